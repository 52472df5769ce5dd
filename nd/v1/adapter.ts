import type {
  IWVDevice,
  IWVProtectionDomain,
  IWVProvider,
  Overlapped,
  SocketAddress,
  WvDeviceAddress,
  WvDeviceAttributes,
} from '../../winverbs/index.js';
import { QpAttr, QpState, Status, WvAccess } from '../../winverbs/index.js';
import type {
  INDAdapter,
  INDCompletionQueue,
  INDConnector,
  INDListen,
  INDMemoryWindow,
  NdAdapterInfo,
  NdEndpointOptions,
  NdListenOptions,
  NdMemoryHandle,
  NdResult,
} from '../spi/v1.js';
import { ND_VERSION_1 } from '../spi/v1.js';
import { refuse, v1Call, v1Error } from '../status.js';
import { CompletionQueue } from './completion-queue.js';
import { Connector } from './connector.js';
import { Endpoint } from './endpoint.js';
import { Listen } from './listen.js';
import { MemoryTable } from './memory.js';
import { MemoryWindow } from './memory-window.js';
import { NdOverlappedBase } from './object.js';
import { MAX_TRANSFER } from './scatter-gather.js';

/** Private data of Connect, Accept and Reject: what WinVerbs' connection parameter carries. */
export const MAX_PRIVATE_DATA = 56;

/** Inline bytes an endpoint asks for: enough for control messages, small enough to keep WQEs short. */
const INLINE_WANTED = 256;

/** From here on a Read or Write is worth its round trip. */
const LARGE_REQUEST = 65_536;

/**
 * INDAdapter over an IWVProvider, an IWVDevice and a protection domain of its own: WinVerbs makes endpoints on the
 * provider and registers memory on the protection domain, while all of this belongs to the adapter in ND.
 */
export class Adapter extends NdOverlappedBase implements INDAdapter {
  readonly address: SocketAddress;
  readonly memory: MemoryTable;
  /** Bound windows by their key. */
  readonly windows = new Map<number, MemoryWindow>();
  readonly info: NdAdapterInfo;
  readonly provider: IWVProvider;
  readonly #device: IWVDevice;
  readonly #pd: IWVProtectionDomain;
  readonly #place: WvDeviceAddress;

  /** Takes over the caller's reference to `provider`, also when it throws. */
  constructor(provider: IWVProvider, address: SocketAddress) {
    super();
    this.provider = provider;
    this.address = { ...address, port: 0 };
    let device: IWVDevice | undefined;
    try {
      this.#place = provider.translateAddress(this.address);
      device = provider.openDevice(this.#place.deviceGuid);
      this.#device = device;
      this.info = infoOf(device.query());
      this.#pd = device.allocateProtectionDomain();
    } catch (error) {
      device?.release();
      provider.release();
      throw error;
    }
    this.memory = new MemoryTable(this.#pd, this.info.maxRegistrationSize);
  }

  query(version: number = ND_VERSION_1): NdAdapterInfo {
    const what = 'Query';
    this.alive(what);
    if (version !== ND_VERSION_1) {
      throw refuse(
        Status.NOT_SUPPORTED,
        what,
        `Adapter information of version ${version} does not exist; version ${ND_VERSION_1} does.`,
      );
    }
    return infoOf(v1Call(what, () => this.#device.query()));
  }

  control(_code: number, _input: Uint8Array | null, _outputLength: number): Overlapped<Uint8Array> {
    throw refuse(Status.NOT_SUPPORTED, 'Control', 'This adapter has no vendor specific requests.');
  }

  createCompletionQueue(entries: number): INDCompletionQueue {
    const what = 'CreateCompletionQueue';
    this.alive(what);
    this.checkCqEntries(entries, what);
    return new CompletionQueue(
      this,
      v1Call(what, () => this.#device.createCompletionQueue(entries)),
    );
  }

  registerMemory(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle> {
    this.alive('RegisterMemory');
    return this.memory.register(buffer);
  }

  deregisterMemory(memory: NdMemoryHandle): Overlapped<void> {
    this.alive('DeregisterMemory');
    return this.memory.deregister(memory);
  }

  createMemoryWindow(invalidateResult?: NdResult): INDMemoryWindow {
    const what = 'CreateMemoryWindow';
    this.alive(what);
    return new MemoryWindow(
      this,
      v1Call(what, () => this.#pd.allocateMemoryWindow()),
      invalidateResult,
    );
  }

  createConnector(): INDConnector {
    this.alive('CreateConnector');
    return new Connector(this);
  }

  listen(options: NdListenOptions = {}): INDListen {
    this.alive('Listen');
    return new Listen(this, options);
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    v1Call(what, () => this.#pd.cancelOverlappedRequests());
    this.memory.settle();
  }

  /** INVALID_PARAMETER unless a completion queue can have so many entries. */
  checkCqEntries(entries: number, what: string): void {
    if (!isCount(entries, 1, this.info.maxCqEntries)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `A completion queue has 1 to ${this.info.maxCqEntries} entries, not ${entries}.`,
      );
    }
  }

  /** A queue pair in INIT, so that Receives can be posted before the connection. */
  createEndpoint(options: NdEndpointOptions): Endpoint {
    const what = 'CreateEndpoint';
    const { info } = this;
    const inbound = this.#completionQueue(
      options.inboundCompletionQueue,
      what,
      Status.INVALID_PARAMETER_1,
      'inbound',
    );
    const outbound = this.#completionQueue(
      options.outboundCompletionQueue,
      what,
      Status.INVALID_PARAMETER_2,
      'outbound',
    );
    const count = (name: keyof NdEndpointOptions, value: number, max: number, status: number): number => {
      if (!isCount(value, 1, max)) {
        throw refuse(status, what, `${name} is ${value}; this adapter takes 1 to ${max}.`);
      }
      return value;
    };
    const limit = (
      name: keyof NdEndpointOptions,
      value: number | undefined,
      max: number,
      status: number,
    ): number => {
      if (value === undefined) return max;
      if (!isCount(value, 0, Number.MAX_SAFE_INTEGER)) {
        throw refuse(status, what, `${name} is ${value}; it must be a number of Reads.`);
      }
      return Math.min(value, max);
    };
    const { inboundEntries: nIn, outboundEntries: nOut, inboundSge = 1, outboundSge = 1 } = options;
    const receiveDepth = count('inboundEntries', nIn, info.maxInboundRequests, Status.INVALID_PARAMETER_3);
    const sendDepth = count('outboundEntries', nOut, info.maxOutboundRequests, Status.INVALID_PARAMETER_4);
    const receiveSge = count('inboundSge', inboundSge, info.maxInboundSge, Status.INVALID_PARAMETER_5);
    const sendSge = count('outboundSge', outboundSge, info.maxOutboundSge, Status.INVALID_PARAMETER_6);
    const inboundReadLimit = limit(
      'inboundReadLimit',
      options.inboundReadLimit,
      info.maxInboundReadLimit,
      Status.INVALID_PARAMETER_7,
    );
    const outboundReadLimit = limit(
      'outboundReadLimit',
      options.outboundReadLimit,
      info.maxOutboundReadLimit,
      Status.INVALID_PARAMETER_8,
    );
    const qp = v1Call(what, () =>
      this.#pd.createConnectQueuePair({
        sendCq: outbound.wv,
        receiveCq: inbound.wv,
        sendDepth,
        sendSge,
        receiveDepth,
        receiveSge,
        maxInlineSend: Math.min(info.maxInlineData, INLINE_WANTED),
        initiatorDepth: outboundReadLimit,
        responderResources: inboundReadLimit,
      }),
    );
    try {
      qp.modify(
        {
          qpState: QpState.INIT,
          portNumber: this.#place.portNumber,
          pkeyIndex: this.#device.findPkey(this.#place.portNumber, this.#place.pkey),
          // The rights that peers need come with the connection.
          accessFlags: WvAccess.LOCAL_WRITE,
        },
        QpAttr.STATE | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX | QpAttr.ACCESS_FLAGS,
      );
      return new Endpoint({
        adapter: this,
        qp,
        inbound,
        outbound,
        inboundEntries: receiveDepth,
        outboundEntries: sendDepth,
        inboundReadLimit,
        outboundReadLimit,
      });
    } catch (error) {
      qp.release();
      throw v1Error(error, what);
    }
  }

  #completionQueue(queue: unknown, what: string, status: number, which: string): CompletionQueue {
    if (!(queue instanceof CompletionQueue) || queue.adapter !== this || queue.ended) {
      throw refuse(
        status,
        what,
        `The ${which} completion queue is not one of this adapter instance, or was released.`,
      );
    }
    return queue;
  }

  protected end(): void {
    // Memory that is still registered goes with the protection domain.
    this.#pd.release();
    this.#device.release();
    this.provider.release();
  }
}

function infoOf(attributes: WvDeviceAttributes): NdAdapterInfo {
  const maxMrSize = Number(attributes.maxMrSize);
  return {
    vendorId: attributes.vendorId,
    deviceId: attributes.vendorPartId,
    maxInboundSge: attributes.maxSge,
    maxInboundRequests: attributes.maxQpWr,
    maxInboundLength: MAX_TRANSFER,
    maxOutboundSge: attributes.maxSge,
    maxOutboundRequests: attributes.maxQpWr,
    maxOutboundLength: MAX_TRANSFER,
    maxInlineData: attributes.maxInlineSend,
    maxInboundReadLimit: attributes.maxQpResponderResources,
    maxOutboundReadLimit: attributes.maxQpInitiatorDepth,
    maxCqEntries: attributes.maxCqEntries,
    maxRegistrationSize: maxMrSize,
    maxWindowSize: maxMrSize,
    largeRequestThreshold: LARGE_REQUEST,
    maxCallerData: MAX_PRIVATE_DATA,
    maxCalleeData: MAX_PRIVATE_DATA,
  };
}

/** Whether a value is a whole number from `min` to `max`. */
export function isCount(value: unknown, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}
