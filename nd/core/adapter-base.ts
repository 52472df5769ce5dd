import {
  type IWVCompletionQueue,
  type IWVConnectQueuePair,
  type IWVDevice,
  type IWVProtectionDomain,
  type IWVProvider,
  QpAttr,
  QpState,
  type SocketAddress,
  Status,
  StatusError,
  WvAccess,
  type WvDeviceAddress,
  type WvDeviceAttributes,
  type WvMemoryRegion,
  type WvQpCreate,
} from '../../winverbs/index.js';
import type { NdAdapterOptions, NdAddress, NdResult } from '../spi/common-types.js';
import { NdError, refuse, type StatusMap, type Terms } from '../status.js';
import { addressStatuses, parseAddress } from './address.js';
import { checkOptions, isCount } from './argument-checks.js';
import type { CompletionQueueBase } from './completion-queue-base.js';
import { measureLargeRequest } from './large-request.js';
import { MemoryWindow } from './memory-window.js';
import { NdObject } from './nd-object.js';
import { OverlappedFile } from './overlapped-file.js';
import { MAX_TRANSFER, type MemoryResolver } from './scatter-gather.js';

/** How deregistering memory fails that can be deregistered later: a window is bound to it, or a stopped peer may still write there. */
const passing: ReadonlySet<number> = new Set([Status.ACCESS_DENIED, Status.DEVICE_BUSY, Status.NO_MEMORY]);

/** Statuses of addresses, endpoints and connections whose device is gone: true, but not the cause. */
const symptoms: ReadonlySet<number> = new Set([
  Status.INVALID_ADDRESS,
  Status.INVALID_HANDLE,
  Status.INVALID_DEVICE_STATE,
  Status.CONNECTION_INVALID,
  Status.CONNECTION_ABORTED,
]);

/**
 * The common part of INDAdapter and IND2Adapter, over an IWVProvider, an IWVDevice and a protection domain of its own.
 * In WinVerbs the provider makes endpoints and the protection domain registers memory; in ND the adapter does both.
 */
export abstract class AdapterBase extends NdObject {
  readonly terms: Terms;
  readonly provider: IWVProvider;
  readonly device: IWVDevice;
  readonly pd: IWVProtectionDomain;
  /** Bound windows by their key. */
  readonly windows = new Map<number, MemoryWindow>();
  /** Limits at the time of opening. */
  readonly limits: WvDeviceAttributes;
  /** Bytes of a request: those of a message of the port (`max_msg_sz`). */
  readonly maxTransfer: number;
  /** Its device and port, and the partition of the port's address. */
  readonly place: WvDeviceAddress;
  /** The P_Key that the client has chosen; undefined: the port's first, and requests of any partition. */
  readonly pkey: number | undefined;
  /** Queue pairs stay when the peer disconnects. */
  readonly keepQueuePairs: boolean;

  /** v1: the file of all its requests, once the client has asked for it. */
  file: OverlappedFile | undefined = undefined;

  #largeRequest: number | undefined = undefined;

  /** Memory whose region was released while windows were bound to it. */
  readonly #opened = new Set<WvMemoryRegion>();

  /** The objects that were made from it and still live. */
  readonly #children = new Set<NdObject>();

  /** Finds the memory that requests of this adapter name. */
  abstract readonly memory: MemoryResolver;

  /** Takes over the caller's reference to `provider`, also when it throws. */
  constructor(
    terms: Terms,
    provider: IWVProvider,
    place: (provider: IWVProvider) => WvDeviceAddress,
    options: NdAdapterOptions = {},
  ) {
    super();
    this.terms = terms;
    this.provider = provider;
    let device: IWVDevice | undefined;
    try {
      this.place = place(provider);
      checkOptions('OpenAdapter', options, { pkey: true, keepQueuePairsOnDisconnect: true });
      this.keepQueuePairs = checkedKeep(options.keepQueuePairsOnDisconnect);
      device = provider.openDevice(this.place.deviceGuid);
      this.device = device;
      this.pkey = checkedPkey(options.pkey);
      if (this.pkey !== undefined) this.#pkeyIndex('OpenAdapter', Status.INVALID_PARAMETER);
      this.limits = device.query();
      this.maxTransfer = transferOf(device.queryPort(this.place.portNumber).maxMessageSize);
      this.pd = device.allocateProtectionDomain();
    } catch (error) {
      device?.release();
      provider.release();
      throw error;
    }
  }

  /** Holds it for an object that {@link Symbol.asyncDispose} ends with it. */
  holdFor(child: NdObject): void {
    this.#children.add(child);
    this.hold();
  }

  /** Undoes a {@link holdFor}. */
  letGoOf(child: NdObject): void {
    this.#children.delete(child);
    this.letGo();
  }

  /** Disconnects and releases all that was made from it, whoever holds references, and then itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    const connectors = [...this.#children].filter((child) => Symbol.asyncDispose in child);
    await Promise.all(connectors.map((connector) => (connector as AsyncDisposable)[Symbol.asyncDispose]()));
    for (const child of [...this.#children].reverse()) while (!child.ended) child.release();
    while (!this.ended) this.release();
  }

  /** LargeRequestThreshold in bytes, measured when it is first asked for. */
  get largeRequest(): number {
    this.#largeRequest ??= measureLargeRequest(this.pd, Number(this.limits.maxMrSize));
    return this.#largeRequest;
  }

  /** The GUID of its device. */
  get guid(): bigint {
    return this.place.deviceGuid;
  }

  /** As {@link Terms.error}, for addresses and connections: DEVICE_REMOVED if that is the cause. */
  error(error: StatusError, what: string, map?: StatusMap): NdError;
  error(error: unknown, what: string, map?: StatusMap): unknown;
  error(error: unknown, what: string, map?: StatusMap): unknown {
    const failure = this.terms.error(error, what, map);
    if (!(failure instanceof NdError && symptoms.has(failure.status) && this.#isGone())) return failure;
    return new NdError(
      Status.DEVICE_REMOVED,
      `${what}: The device of this adapter is gone, or has failed; release everything of the adapter and open another. (${failure.message})`,
      { cause: failure },
    );
  }

  /** As {@link Terms.call}, with {@link error}. */
  call<T>(what: string, call: () => T, map?: StatusMap): T {
    try {
      return call();
    } catch (error) {
      throw this.error(error, what, map);
    }
  }

  /** Throws DEVICE_REMOVED unless the device works. */
  checkPresent(what: string): void {
    this.terms.call(what, () => this.device.query());
  }

  /** A local address of this adapter; INVALID_ADDRESS for any other, the wildcard included. */
  ownAddress(address: NdAddress, what: string): SocketAddress {
    const local = parseAddress(address, what);
    const { deviceGuid } = this.call(
      what,
      () => this.provider.translateAddress({ ...local, port: 0 }),
      addressStatuses,
    );
    if (deviceGuid !== this.guid) {
      throw refuse(Status.INVALID_ADDRESS, what, `${local.address} is an address of another adapter.`);
    }
    return local;
  }

  /** Refuses an invalid number of completion queue entries. */
  checkCqEntries(entries: number, what: string, status: number): void {
    const { maxCqEntries } = this.limits;
    if (!isCount(entries, 1, maxCqEntries)) {
      throw refuse(status, what, `A completion queue has 1 to ${maxCqEntries} entries, not ${entries}.`);
    }
  }

  /** The WinVerbs queue for so many entries; `status` is the error for an invalid number. */
  protected makeCompletionQueue(entries: number, status: number): IWVCompletionQueue {
    const what = 'CreateCompletionQueue';
    this.alive(what);
    this.checkCqEntries(entries, what, status);
    return this.terms.call(what, () => this.device.createCompletionQueue(entries));
  }

  protected makeMemoryWindow(invalidateResult?: NdResult): MemoryWindow {
    const what = 'CreateMemoryWindow';
    this.alive(what);
    const window = this.terms.call(what, () => this.pd.allocateMemoryWindow());
    return new MemoryWindow(this, window, invalidateResult);
  }

  /** The index of the partition's P_Key now: tables change. `status`: the port is not in the chosen one. */
  #pkeyIndex(what: string, status: number): number {
    const { portNumber, pkey } = this.place;
    try {
      return this.device.findPkey(portNumber, this.pkey ?? pkey);
    } catch (error) {
      if (!(error instanceof StatusError) || error.status !== Status.INVALID_ADDRESS) throw error;
      if (this.pkey === undefined) return 0;
      const text = `The port is not in the partition of P_Key 0x${this.pkey.toString(16)} (${error.message})`;
      throw refuse(status, what, text);
    }
  }

  /** A queue pair in INIT, so that Receives can be posted before the connection; `make` does the rest. */
  protected makeQueuePair<T>(what: string, create: WvQpCreate, make: (qp: IWVConnectQueuePair) => T): T {
    const qp = this.terms.call(what, () => this.pd.createConnectQueuePair(create));
    try {
      const { portNumber } = this.place;
      qp.modify(
        {
          qpState: QpState.INIT,
          portNumber,
          pkeyIndex: this.#pkeyIndex(what, Status.INVALID_DEVICE_STATE),
          // The connection adds the rights that peers need.
          accessFlags: WvAccess.LOCAL_WRITE,
        },
        QpAttr.STATE | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX | QpAttr.ACCESS_FLAGS,
      );
      return make(qp);
    } catch (error) {
      qp.release();
      throw this.terms.error(error, what);
    }
  }

  /** A completion queue of this adapter instance. */
  protected completionQueueOf<T extends CompletionQueueBase<unknown>>(
    queue: unknown,
    type: abstract new (...args: never[]) => T,
    what: string,
    status: number,
    which: string,
  ): T {
    if (!(queue instanceof type) || queue.adapter !== this || queue.ended) {
      throw refuse(
        status,
        what,
        `The ${which} completion queue is not one of this adapter instance, or was released.`,
      );
    }
    return queue;
  }

  /** Deregisters memory whose region was released: now, or as soon as it can be. */
  dropMemory(region: WvMemoryRegion): void {
    this.#opened.add(region);
    this.deregisterReleased();
  }

  /** Deregisters memory that waits for that: windows may have been unbound, or other memory is released. */
  deregisterReleased(): void {
    for (const region of this.#opened) {
      try {
        this.pd.deregisterMemory(region);
      } catch (error) {
        // Any other error would be the same next time.
        if (error instanceof StatusError && passing.has(error.status)) continue;
      }
      this.#opened.delete(region);
    }
  }

  #isGone(): boolean {
    try {
      this.checkPresent('');
      return false;
    } catch (error) {
      return error instanceof NdError && error.status === Status.DEVICE_REMOVED;
    }
  }

  /** v2: the file with which an object is made; INVALID_HANDLE if it is none, or closed. */
  protected fileOf(file: unknown, what: string): OverlappedFile | undefined {
    if (file === undefined || (file instanceof OverlappedFile && !file.closed)) return file;
    throw refuse(
      Status.INVALID_HANDLE,
      what,
      'The overlapped file is none that createOverlappedFile returned, or is closed.',
    );
  }

  protected end(): void {
    this.file?.close();
    // The end of the protection domain deregisters the rest.
    this.pd.release();
    this.device.release();
    this.provider.release();
  }
}

/** A driver that reports no length sets no limit of its own. */
function transferOf(maxMessageSize: number): number {
  return maxMessageSize === 0 ? MAX_TRANSFER : Math.min(maxMessageSize, MAX_TRANSFER);
}

function checkedKeep(value: unknown = false): boolean {
  if (typeof value === 'boolean') return value;
  const text = `\`keepQueuePairsOnDisconnect\` must be a boolean; got ${value === null ? 'null' : typeof value}.`;
  throw refuse(Status.INVALID_PARAMETER, 'OpenAdapter', text);
}

function checkedPkey(pkey: number | undefined): number | undefined {
  if (pkey === undefined || (isCount(pkey, 1, 0xffff) && (pkey & 0x7fff) !== 0)) return pkey;
  const text = `The P_Key is ${String(pkey)}; it is a number of 16 bits, of which the low 15 name a partition.`;
  throw refuse(Status.INVALID_PARAMETER, 'OpenAdapter', text);
}
