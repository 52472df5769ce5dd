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

/**
 * Failures of a deregistration that can succeed later: a window is bound to the memory, or a stopped peer may still
 * write to it.
 */
const retryable: ReadonlySet<number> = new Set([Status.ACCESS_DENIED, Status.DEVICE_BUSY, Status.NO_MEMORY]);

/**
 * Statuses of addresses, endpoints and connections that follow from a removed device, without naming it as the cause.
 */
const symptoms: ReadonlySet<number> = new Set([
  Status.INVALID_ADDRESS,
  Status.INVALID_HANDLE,
  Status.INVALID_DEVICE_STATE,
  Status.CONNECTION_INVALID,
  Status.CONNECTION_ABORTED,
]);

/**
 * Base of INDAdapter and IND2Adapter, over an IWVProvider, an IWVDevice and a protection domain of its own. In WinVerbs
 * the provider creates endpoints and the protection domain registers memory; in ND the adapter does both.
 */
export abstract class AdapterBase extends NdObject {
  readonly terms: Terms;
  readonly provider: IWVProvider;
  readonly device: IWVDevice;
  readonly pd: IWVProtectionDomain;
  /** Bound windows by key. */
  readonly windows = new Map<number, MemoryWindow>();
  /** Limits of the device when the adapter was opened. */
  readonly limits: WvDeviceAttributes;
  /** Maximum length of a request in bytes, which is that of a message of the port (`max_msg_sz`). */
  readonly maxTransfer: number;
  /** The adapter's device and port, and the partition of the port's address. */
  readonly deviceAddress: WvDeviceAddress;
  /**
   * The P_Key that the client has selected. Undefined: connects with the port's first P_Key, accepts requests of any
   * partition.
   */
  readonly pkey: number | undefined;
  /** Whether queue pairs stay as they are when the peer disconnects. */
  readonly keepQueuePairs: boolean;

  /** v1: the file of all requests, once the client has called GetFileHandle. */
  file: OverlappedFile | undefined = undefined;

  #largeRequest: number | undefined = undefined;

  /** Memory whose region was released while windows were bound to it. */
  readonly #opened = new Set<WvMemoryRegion>();

  /** Live objects created from this adapter. */
  readonly #children = new Set<NdObject>();

  /** Finds the memory that requests of this adapter refer to. */
  abstract readonly memory: MemoryResolver;

  /** Takes over the caller's reference to `provider`, also when it throws. */
  constructor(
    terms: Terms,
    provider: IWVProvider,
    deviceAddressOf: (provider: IWVProvider) => WvDeviceAddress,
    options: NdAdapterOptions = {},
  ) {
    super();
    this.terms = terms;
    this.provider = provider;
    let device: IWVDevice | undefined;
    try {
      this.deviceAddress = deviceAddressOf(provider);
      checkOptions('OpenAdapter', options, { pkey: true, keepQueuePairsOnDisconnect: true });
      this.keepQueuePairs = checkedKeep(options.keepQueuePairsOnDisconnect);
      device = provider.openDevice(this.deviceAddress.deviceGuid);
      this.device = device;
      this.pkey = checkedPkey(options.pkey);
      if (this.pkey !== undefined) this.#pkeyIndex('OpenAdapter', Status.INVALID_PARAMETER);
      this.limits = device.query();
      this.maxTransfer = transferOf(device.queryPort(this.deviceAddress.portNumber).maxMessageSize);
      this.pd = device.allocateProtectionDomain();
    } catch (error) {
      device?.release();
      provider.release();
      throw error;
    }
  }

  /** Adds a reference of a child, which {@link Symbol.asyncDispose} also releases. */
  holdFor(child: NdObject): void {
    this.#children.add(child);
    this.hold();
  }

  /** Reverts a {@link holdFor}. */
  letGoOf(child: NdObject): void {
    this.#children.delete(child);
    this.letGo();
  }

  /** Disconnects and releases everything created from this adapter, regardless of reference counts, and then itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    const connectors = [...this.#children].filter((child) => Symbol.asyncDispose in child);
    await Promise.all(connectors.map((connector) => (connector as AsyncDisposable)[Symbol.asyncDispose]()));
    for (const child of [...this.#children].reverse()) while (!child.ended) child.release();
    while (!this.ended) this.release();
  }

  /** LargeRequestThreshold in bytes, measured at the first call. */
  get largeRequest(): number {
    this.#largeRequest ??= measureLargeRequest(this.pd, Number(this.limits.maxMrSize));
    return this.#largeRequest;
  }

  /** The GUID of the adapter's device. */
  get guid(): bigint {
    return this.deviceAddress.deviceGuid;
  }

  /** As {@link Terms.error}, for addresses and connections: returns DEVICE_REMOVED if that is the cause. */
  error(error: StatusError, what: string, map?: StatusMap): NdError;
  error(error: unknown, what: string, map?: StatusMap): unknown;
  error(error: unknown, what: string, map?: StatusMap): unknown {
    const failure = this.terms.error(error, what, map);
    if (!(failure instanceof NdError && symptoms.has(failure.status) && this.#isGone())) return failure;
    return new NdError(
      Status.DEVICE_REMOVED,
      `${what}: The device of this adapter was removed or has failed. Release the adapter and everything created from it, and open another. (${failure.message})`,
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

  /** Throws DEVICE_REMOVED if the device does not work. */
  checkPresent(what: string): void {
    this.terms.call(what, () => this.device.query());
  }

  /** Checks that an address is local to this adapter. Throws INVALID_ADDRESS for any other, including the wildcard. */
  ownAddress(address: NdAddress, what: string): SocketAddress {
    const local = parseAddress(address, what);
    const { deviceGuid } = this.call(
      what,
      () => this.provider.translateAddress({ ...local, port: 0 }),
      addressStatuses,
    );
    if (deviceGuid !== this.guid) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `\`address\` must be an address of this adapter; got ${local.address}.`,
      );
    }
    return local;
  }

  /** Throws `status` for an invalid number of completion queue entries. */
  checkCqEntries(entries: number, what: string, status: number): void {
    const { maxCqEntries } = this.limits;
    if (!isCount(entries, 1, maxCqEntries)) {
      throw refuse(
        status,
        what,
        `A completion queue must have 1 to ${maxCqEntries} entries; got ${entries}.`,
      );
    }
  }

  /** Creates the WinVerbs queue with at least `entries` entries; `status` is the error for an invalid number. */
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

  /**
   * Returns the current index of the partition's P_Key, because tables change. `status`: the port is not in the
   * selected partition.
   */
  #pkeyIndex(what: string, status: number): number {
    const { portNumber, pkey } = this.deviceAddress;
    try {
      return this.device.findPkey(portNumber, this.pkey ?? pkey);
    } catch (error) {
      if (!(error instanceof StatusError) || error.status !== Status.INVALID_ADDRESS) throw error;
      if (this.pkey === undefined) return 0;
      const text = `\`pkey\` must be of a partition that the port is in; got 0x${this.pkey.toString(16)} (${error.message})`;
      throw refuse(status, what, text);
    }
  }

  /** Creates a queue pair in INIT, so that Receives can be posted before the connection; `make` does the rest. */
  protected makeQueuePair<T>(what: string, create: WvQpCreate, make: (qp: IWVConnectQueuePair) => T): T {
    const qp = this.terms.call(what, () => this.pd.createConnectQueuePair(create));
    try {
      const { portNumber } = this.deviceAddress;
      qp.modify(
        {
          qpState: QpState.INIT,
          portNumber,
          pkeyIndex: this.#pkeyIndex(what, Status.INVALID_DEVICE_STATE),
          // Connecting adds the rights that peers need.
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

  /** Checks that `queue` is a completion queue of this adapter instance. */
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
        `The ${which} completion queue must be of this adapter instance and not released.`,
      );
    }
    return queue;
  }

  /** Deregisters memory whose region was released: now, or as soon as possible. */
  dropMemory(region: WvMemoryRegion): void {
    this.#opened.add(region);
    this.deregisterReleased();
  }

  /** Deregisters memory that waits for it, because windows may have been unbound or other memory released. */
  deregisterReleased(): void {
    for (const region of this.#opened) {
      try {
        this.pd.deregisterMemory(region);
      } catch (error) {
        // Any other error would recur.
        if (error instanceof StatusError && retryable.has(error.status)) continue;
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

  /** v2: checks the file that an object is created with. Throws INVALID_HANDLE if it is not a file, or closed. */
  protected fileOf(file: unknown, what: string): OverlappedFile | undefined {
    if (file === undefined || (file instanceof OverlappedFile && !file.closed)) return file;
    throw refuse(
      Status.INVALID_HANDLE,
      what,
      '`file` must be a file returned by createOverlappedFile and not closed.',
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
  const text = `\`pkey\` must be a 16-bit number whose low 15 bits are not 0; got ${String(pkey)}.`;
  throw refuse(Status.INVALID_PARAMETER, 'OpenAdapter', text);
}
