import { shown } from '../../kernel-bridge/ioctl/shown.js';
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
import { refuse, type Terms } from '../status.js';
import { type AdapterBounds, AdapterObject } from './adapter-object.js';
import { addressStatuses, parseAddress } from './address.js';
import { checkOptions, isCount } from './argument-checks.js';
import type { EndpointBelow } from './below.js';
import { measureLargeRequest } from './large-request.js';
import { MemoryWindow } from './memory-window.js';
import { MAX_CALLER_DATA, maxCalleeData } from './private-data.js';
import { MAX_TRANSFER } from './scatter-gather.js';

/**
 * Base of INDAdapter and IND2Adapter, over an IWVProvider, an IWVDevice and a protection domain of its own. In WinVerbs
 * the provider creates endpoints and the protection domain registers memory; in ND the adapter does both.
 */
export abstract class AdapterBase extends AdapterObject {
  readonly terms: Terms;
  readonly provider: IWVProvider;
  readonly device: IWVDevice;
  readonly pd: IWVProtectionDomain;
  /** Limits of the device when the adapter was opened. */
  readonly limits: WvDeviceAttributes;
  /** Maximum length of a request in bytes, which is that of a message of the port (`max_msg_sz`). */
  readonly maxTransfer: number;
  readonly bounds: AdapterBounds;
  /** The adapter's device and port, and the partition of the port's address. */
  readonly deviceAddress: WvDeviceAddress;
  /**
   * P_Key that the client has selected. If undefined, connections use the port's first P_Key, and requests of any
   * partition are accepted.
   */
  readonly pkey: number | undefined;
  /** Whether queue pairs stay as they are when the peer disconnects. */
  readonly keepQueuePairs: boolean;

  #largeRequest: number | undefined = undefined;

  /** Takes over the caller's reference to `provider`, even when the constructor throws. */
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
      this.bounds = boundsOf(this.limits, provider);
    } catch (error) {
      device?.release();
      provider.release();
      throw error;
    }
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

  /** Throws DEVICE_REMOVED if the device does not work. */
  checkPresent(what: string): void {
    this.terms.call(what, () => this.device.query());
  }

  endpointBelow(_listens: boolean, protocol?: number): EndpointBelow {
    return this.provider.createConnectEndpoint(protocol);
  }

  deregister(region: WvMemoryRegion): void {
    this.pd.deregisterMemory(region);
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

  /** Creates the WinVerbs queue with at least `entries` entries; `status` is the error for an invalid number. */
  protected makeCompletionQueue(entries: number, status: number, name: string): IWVCompletionQueue {
    const what = 'CreateCompletionQueue';
    this.alive(what);
    this.checkCqEntries(entries, what, status, name);
    return this.terms.call(what, () => this.device.createCompletionQueue(entries));
  }

  protected makeMemoryWindow(invalidateResult?: NdResult): MemoryWindow {
    const what = 'CreateMemoryWindow';
    this.alive(what);
    const window = this.terms.call(what, () => this.pd.allocateMemoryWindow());
    return new MemoryWindow(this, window, invalidateResult);
  }

  /**
   * Returns the current index of the partition's P_Key, because tables change. `status` is the error if the port is not
   * in the selected partition.
   */
  #pkeyIndex(what: string, status: number): number {
    const { portNumber, pkey } = this.deviceAddress;
    try {
      return this.device.findPkey(portNumber, this.pkey ?? pkey);
    } catch (error) {
      if (!(error instanceof StatusError) || error.status !== Status.INVALID_ADDRESS) throw error;
      if (this.pkey === undefined) return 0;
      const text = `\`pkey\` must be of a partition that the port is in; got 0x${this.pkey.toString(16)}.`;
      throw refuse(status, what, text);
    }
  }

  /**
   * Creates a queue pair in INIT, so that Receives can be posted before it is connected. `make` creates the ND object.
   */
  protected makeQueuePair<T>(what: string, create: WvQpCreate, make: (qp: IWVConnectQueuePair) => T): T {
    const qp = this.terms.call(what, () => this.pd.createConnectQueuePair(create));
    try {
      const { portNumber } = this.deviceAddress;
      qp.modify(
        {
          qpState: QpState.INIT,
          portNumber,
          pkeyIndex: this.#pkeyIndex(what, Status.INVALID_DEVICE_STATE),
          // Connecting grants the rights that peers need.
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

  protected end(): void {
    this.file?.close();
    // Releasing the protection domain deregisters the rest.
    this.pd.release();
    this.device.release();
    this.provider.release();
  }
}

function boundsOf(limits: WvDeviceAttributes, provider: IWVProvider): AdapterBounds {
  return {
    maxCqEntries: limits.maxCqEntries,
    maxReadSge: limits.maxReadSge,
    maxRegistration: Number(limits.maxMrSize),
    maxInboundReads: limits.maxQpResponderResources,
    maxOutboundReads: limits.maxQpInitiatorDepth,
    maxCallerData: MAX_CALLER_DATA,
    get maxCalleeData() {
      return maxCalleeData(provider);
    },
  };
}

/** A driver that reports no length sets no limit of its own. */
function transferOf(maxMessageSize: number): number {
  return maxMessageSize === 0 ? MAX_TRANSFER : Math.min(maxMessageSize, MAX_TRANSFER);
}

function checkedKeep(value: unknown = false): boolean {
  if (typeof value === 'boolean') return value;
  const text = `\`keepQueuePairsOnDisconnect\` must be a boolean; got ${shown(value)}.`;
  throw refuse(Status.INVALID_PARAMETER, 'OpenAdapter', text);
}

function checkedPkey(pkey: number | undefined): number | undefined {
  if (pkey === undefined || (isCount(pkey, 1, 0xffff) && (pkey & 0x7fff) !== 0)) return pkey;
  const text = `\`pkey\` must be a 16-bit number whose low 15 bits are not 0; got ${shown(pkey)}.`;
  throw refuse(Status.INVALID_PARAMETER, 'OpenAdapter', text);
}
