import {
  argumentMemory,
  encodeSockaddr,
  type OverlappedObject,
  sockaddrLength,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import {
  type Overlapped,
  type SocketAddress,
  Status,
  StatusError,
  type WvConnectParam,
} from '../../winverbs/index.js';
import type { EndpointBelow, QueuePairBelow } from '../core/below.js';
import { addressFrom, bytesFrom, withAddress } from './native-address.js';
import type { NativeQueuePair } from './native-queue-pair.js';

/** Space for the address in a request's input; private data follows it. */
const ADDRESS_ROOM = 32;
const PRIVATE_ROOM = 512;

/** Attributes of the connection, each read from the provider on access. */
class PeerAttributes {
  #limits: { readonly inbound: number; readonly outbound: number } | undefined;

  constructor(private readonly com: OverlappedObject<'IND2Connector'>) {}

  get localAddress(): SocketAddress {
    return addressFrom(this.com, 'GetLocalAddress');
  }

  get peerAddress(): SocketAddress {
    return addressFrom(this.com, 'GetPeerAddress');
  }

  get privateData(): Uint8Array {
    return bytesFrom(this.com, 'GetPrivateData', PRIVATE_ROOM).slice();
  }

  get responderResources(): number {
    return this.#readLimits().inbound;
  }

  get initiatorDepth(): number {
    return this.#readLimits().outbound;
  }

  #readLimits(): { readonly inbound: number; readonly outbound: number } {
    if (this.#limits === undefined) {
      const { words, address } = argumentMemory(8);
      this.com.run('GetReadLimits', address, address + 4);
      this.#limits = { inbound: words[0]!, outbound: words[1]! };
    }
    return this.#limits;
  }
}

/** IND2Connector of a provider. */
export class NativeConnector implements EndpointBelow {
  readonly reconnects = true;
  #queuePair: NativeQueuePair | undefined;
  /** Whether Disconnect was called. It completes the notifications; cancelling them would also cancel it. */
  #disconnecting = false;

  constructor(readonly com: OverlappedObject<'IND2Connector'>) {}

  bindAddress(address: SocketAddress): SocketAddress {
    withAddress(this.com, 'Bind', address);
    return addressFrom(this.com, 'GetLocalAddress');
  }

  /** The provider resolves the route in Connect. */
  resolveRoute(): void {}

  listen(): void {
    throw new StatusError(Status.INVALID_DEVICE_REQUEST);
  }

  getRequest(): Overlapped<void> {
    throw new StatusError(Status.INVALID_DEVICE_REQUEST);
  }

  keepQueuePairOnDisconnect(): void {
    throw new StatusError(Status.NOT_SUPPORTED);
  }

  connect(queuePair: QueuePairBelow, peer: SocketAddress, param: WvConnectParam): Overlapped<void> {
    const own = queuePair as NativeQueuePair;
    const { inbound, outbound, data, length } = partsOf(param);
    const input = new Uint8Array(ADDRESS_ROOM + length);
    input.set(encodeSockaddr(peer));
    input.set(data, ADDRESS_ROOM);
    this.#queuePair = own;
    return this.com.start(
      'Connect',
      (at) => {
        const address = [own.com.address, at, sockaddrLength(peer.family)];
        return [...address, inbound, outbound, length === 0 ? 0 : at + ADDRESS_ROOM, length];
      },
      { input },
    );
  }

  accept(queuePair: QueuePairBelow | null, param: WvConnectParam): Overlapped<void> {
    if (queuePair === null) return this.com.start('CompleteConnect', () => []);
    const own = queuePair as NativeQueuePair;
    const { inbound, outbound, data, length } = partsOf(param);
    this.#queuePair = own;
    return this.com.start(
      'Accept',
      (at) => [own.com.address, inbound, outbound, length === 0 ? 0 : at, length],
      { input: data },
    );
  }

  reject(privateData: Uint8Array = new Uint8Array(0)): void {
    const { length } = privateData;
    const memory = argumentMemory(length);
    memory.bytes.set(privateData);
    this.com.run('Reject', length === 0 ? 0 : memory.address, length);
  }

  query(): PeerAttributes {
    return new PeerAttributes(this.com);
  }

  notifyDisconnect(): Overlapped<void> {
    const mayCancel = (): boolean => !this.#disconnecting;
    return this.#ending(this.com.start('NotifyDisconnect', () => [], { repeats: true, mayCancel }));
  }

  disconnect(): Overlapped<void> {
    const request = this.com.start('Disconnect', () => []);
    this.#disconnecting = true;
    return this.#ending(request);
  }

  /** Marks the queue pair when the request completes, because the connection has ended. */
  #ending(request: Overlapped<void>): Overlapped<void> {
    const ended = (): void => {
      if (this.#queuePair !== undefined) this.#queuePair.broken = true;
    };
    return request.map(ended);
  }

  cancelOverlappedRequests(): void {
    this.com.cancelAll();
  }

  release(): void {
    this.com.release();
  }
}

function partsOf({ responderResources = 0, initiatorDepth = 0, privateData }: WvConnectParam): {
  inbound: number;
  outbound: number;
  data: Uint8Array;
  length: number;
} {
  const data = privateData ?? new Uint8Array(0);
  return { inbound: responderResources, outbound: initiatorDepth, data, length: data.length };
}
