/**
 * The interface between the SPI's objects and the layer that executes their requests. It is implemented by WinVerbs'
 * objects and by those over a vendor's NetworkDirect provider (nd/vendor).
 */
import type {
  IWVCompletionQueue,
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  IWVQueuePair,
  Overlapped,
  SocketAddress,
  WvCompletion,
  WvConnectAttributes,
  WvConnectParam,
  WvDeviceAddress,
  WvMemoryRegion,
} from '../../winverbs/index.js';

/** A reference-counted object. */
export interface ObjectBelow {
  release(): unknown;
}

/** The members of a completion that results are created from. */
export type CompletionBelow = Pick<
  WvCompletion,
  'context' | 'qpContext' | 'status' | 'length' | 'flags' | 'immediateData'
>;

/** Maximum number of completions that a {@link QueueBelow} is polled for at a time. */
export const POLL_BATCH = 32;

/** A completion queue. */
export interface QueueBelow
  extends ObjectBelow,
    Pick<
      IWVCompletionQueue,
      'entries' | 'resize' | 'peek' | 'shouldPoll' | 'notify' | 'cancelOverlappedRequests'
    > {
  /** The same as IWVCompletionQueue.poll, with `n` at most {@link POLL_BATCH}. */
  poll(completions: CompletionBelow[], n: number): number;
}

/** A queue pair. */
export interface QueuePairBelow
  extends ObjectBelow,
    Pick<IWVQueuePair, 'state' | 'sendSge' | 'receiveSge' | 'modify' | 'postReceive'>,
    Pick<IWVConnectQueuePair, 'send' | 'sendAndInvalidate' | 'read' | 'write' | 'direct' | 'view'> {
  /** The same as IWVConnectQueuePair.bindMemoryWindow. */
  bindMemoryWindow(
    window: ObjectBelow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number;
  /** The same as IWVConnectQueuePair.invalidateMemoryWindow. */
  invalidateMemoryWindow(window: ObjectBelow, context: unknown, flags: number): void;
}

/** A connector or a listener. */
export interface EndpointBelow
  extends ObjectBelow,
    Pick<
      IWVConnectEndpoint,
      | 'resolveRoute'
      | 'listen'
      | 'reject'
      | 'disconnect'
      | 'notifyDisconnect'
      | 'keepQueuePairOnDisconnect'
      | 'cancelOverlappedRequests'
    > {
  /** Whether the endpoint can connect again after a failed attempt. */
  readonly reconnects?: boolean;
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress;
  getRequest(endpoint: EndpointBelow): Overlapped<void>;
  connect(queuePair: QueuePairBelow, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  accept(queuePair: QueuePairBelow | null, param: WvConnectParam): Overlapped<void>;
  query(): Pick<
    WvConnectAttributes,
    'localAddress' | 'peerAddress' | 'privateData' | 'responderResources' | 'initiatorDepth'
  >;
}
