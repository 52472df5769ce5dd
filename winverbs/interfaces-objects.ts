/** The base of all WinVerbs objects: references, and overlapped requests. */
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
  readonly IUnknown: WvUnknown;
  readonly IWVOverlapped: WvOverlappedObject;
  readonly IWVProvider: IWVProvider;
  readonly IWVDevice: IWVDevice;
  readonly IWVCompletionQueue: IWVCompletionQueue;
  readonly IWVProtectionDomain: IWVProtectionDomain;
  readonly IWVSharedReceiveQueue: IWVSharedReceiveQueue;
  readonly IWVMemoryWindow: IWVMemoryWindow;
  readonly IWVFastRegion: IWVFastRegion;
  readonly IWVAddressHandle: IWVAddressHandle;
  readonly IWVQueuePair: IWVQueuePair;
  readonly IWVConnectQueuePair: IWVConnectQueuePair;
  readonly IWVDatagramQueuePair: IWVDatagramQueuePair;
  readonly IWVEndpoint: IWVEndpoint;
  readonly IWVConnectEndpoint: IWVConnectEndpoint;
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
}
