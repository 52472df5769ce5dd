/** The base of all WinVerbs objects: references, and overlapped requests. */
import type { GetResultOptions, Overlapped } from '../kernel-bridge/overlapped.js';
import type {
  IWVAddressHandle,
  IWVCompletionQueue,
  IWVDevice,
  IWVProtectionDomain,
  IWVProvider,
  IWVSharedReceiveQueue,
} from './interfaces-device.js';
import type { IWVConnectEndpoint, IWVDatagramEndpoint, IWVEndpoint } from './interfaces-endpoints.js';
import type { IWVFastRegion, IWVMemoryWindow } from './interfaces-memory.js';
import type { IWVConnectQueuePair, IWVDatagramQueuePair, IWVQueuePair } from './interfaces-queue-pairs.js';

/** The interfaces of WinVerbs by name. */
export interface WvInterfaces {
  /** Every object has it. */
  readonly IUnknown: WvUnknown;
  /** Every object with requests that can wait. */
  readonly IWVOverlapped: WvOverlappedObject;
  /** The root, made by `openProvider`. */
  readonly IWVProvider: IWVProvider;
  /** Made by {@link IWVProvider.openDevice}. */
  readonly IWVDevice: IWVDevice;
  /** Made by {@link IWVDevice.createCompletionQueue}. */
  readonly IWVCompletionQueue: IWVCompletionQueue;
  /** Made by {@link IWVDevice.allocateProtectionDomain}. */
  readonly IWVProtectionDomain: IWVProtectionDomain;
  /** Made by {@link IWVProtectionDomain.createSharedReceiveQueue}. */
  readonly IWVSharedReceiveQueue: IWVSharedReceiveQueue;
  /** Made by {@link IWVProtectionDomain.allocateMemoryWindow}. */
  readonly IWVMemoryWindow: IWVMemoryWindow;
  /** Made by {@link IWVProtectionDomain.allocateFastRegion}. */
  readonly IWVFastRegion: IWVFastRegion;
  /** Made by {@link IWVProtectionDomain.createAddressHandle}. */
  readonly IWVAddressHandle: IWVAddressHandle;
  /** Connected queue pairs and those of datagrams have it. */
  readonly IWVQueuePair: IWVQueuePair;
  /** Made by {@link IWVProtectionDomain.createConnectQueuePair}. */
  readonly IWVConnectQueuePair: IWVConnectQueuePair;
  /** Made by {@link IWVProtectionDomain.createDatagramQueuePair}. */
  readonly IWVDatagramQueuePair: IWVDatagramQueuePair;
  /** Connect and datagram endpoints have it. */
  readonly IWVEndpoint: IWVEndpoint;
  /** Made by {@link IWVProvider.createConnectEndpoint}. */
  readonly IWVConnectEndpoint: IWVConnectEndpoint;
  /** Made by {@link IWVProvider.createDatagramEndpoint}. */
  readonly IWVDatagramEndpoint: IWVDatagramEndpoint;
}

/** Reference counts, as in COM. Releasing never fails and may come in any order. */
export interface WvUnknown {
  /** Adds a reference; returns their number. */
  addRef(): number;
  /** Releases a reference; returns the number left. The last one ends the object. */
  release(): number;
  /**
   * The object as an interface that it has, with a reference added: its own, those that it extends, and IUnknown.
   *
   * @param name - 'IWVQueuePair', …: TypeScript's names stand for the IIDs.
   * @throws WvError NOT_SUPPORTED (E_NOINTERFACE): the object has no such interface.
   */
  queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N];
  /** The same as {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** An object with overlapped requests. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every waiting request of this object with CANCELED before it returns. */
  cancelOverlappedRequests(): void;
  /**
   * The result of a request, of this object or any other; the same as {@link Overlapped.getResult}.
   *
   * @param options - With `wait: true` the thread waits for the end of the request.
   * @throws WvError with the request's status, INVALID_PARAMETER: not a request; StatusError PENDING: it has not completed.
   * @see IWVOverlapped::GetOverlappedResult
   */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}
