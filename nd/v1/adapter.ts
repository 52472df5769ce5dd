import type {
  GetResultOptions,
  IWVProvider,
  Overlapped,
  SocketAddress,
  WvDeviceAttributes,
} from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { AdapterBase } from '../core/adapter.js';
import { isCount, LARGE_REQUEST, MAX_PRIVATE_DATA } from '../core/limits.js';
import { MemoryWindow } from '../core/memory-window.js';
import { checkOptions, type OptionNames } from '../core/options.js';
import { MAX_TRANSFER } from '../core/scatter-gather.js';
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
import { refuse, v1Terms } from '../status.js';
import { CompletionQueue } from './completion-queue.js';
import { Connector } from './connector.js';
import { Endpoint } from './endpoint.js';
import { Listen } from './listen.js';
import { MemoryTable } from './memory.js';

/** Inline bytes an endpoint asks for: enough for control messages, small enough to keep WQEs short. */
const INLINE_WANTED = 256;

const endpointOptions: OptionNames<NdEndpointOptions> = {
  inboundCompletionQueue: true,
  outboundCompletionQueue: true,
  inboundEntries: true,
  outboundEntries: true,
  inboundSge: true,
  outboundSge: true,
  inboundReadLimit: true,
  outboundReadLimit: true,
};

/** INDAdapter: everything of an adapter by one of its addresses. */
export class Adapter extends AdapterBase implements INDAdapter {
  readonly address: SocketAddress;
  readonly memory: MemoryTable;

  /** Takes over the caller's reference to `provider`, also when it throws. */
  constructor(provider: IWVProvider, address: SocketAddress) {
    const own = { ...address, port: 0 };
    super(v1Terms, provider, () => provider.translateAddress(own));
    this.address = own;
    this.memory = new MemoryTable(this.pd, Number(this.limits.maxMrSize));
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
    return infoOf(this.terms.call(what, () => this.device.query()));
  }

  control(_code: number, _input: Uint8Array | null, _outputLength: number): Overlapped<Uint8Array> {
    throw refuse(Status.NOT_SUPPORTED, 'Control', 'This adapter has no vendor specific requests.');
  }

  createCompletionQueue(entries: number): INDCompletionQueue {
    const what = 'CreateCompletionQueue';
    this.alive(what);
    this.checkCqEntries(entries, what, Status.INVALID_PARAMETER);
    return new CompletionQueue(
      this,
      this.terms.call(what, () => this.device.createCompletionQueue(entries)),
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
      this.terms.call(what, () => this.pd.allocateMemoryWindow()),
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
    this.terms.call(what, () => this.pd.cancelOverlappedRequests());
    this.memory.settle();
  }

  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T {
    return request.getResult(options);
  }

  createEndpoint(options: NdEndpointOptions): Endpoint {
    const what = 'CreateEndpoint';
    checkOptions(what, options, endpointOptions);
    const info = infoOf(this.limits);
    const queue = (value: unknown, status: number, which: string) =>
      this.completionQueueOf(value, CompletionQueue, what, status, which);
    const inbound = queue(options.inboundCompletionQueue, Status.INVALID_PARAMETER_1, 'inbound');
    const outbound = queue(options.outboundCompletionQueue, Status.INVALID_PARAMETER_2, 'outbound');
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
    return this.makeQueuePair(
      what,
      {
        sendCq: outbound.wv,
        receiveCq: inbound.wv,
        sendDepth,
        sendSge,
        receiveDepth,
        receiveSge,
        maxInlineSend: Math.min(info.maxInlineData, INLINE_WANTED),
        initiatorDepth: outboundReadLimit,
        responderResources: inboundReadLimit,
      },
      (qp) =>
        new Endpoint({
          adapter: this,
          memory: this.memory,
          qp,
          receiveCq: inbound,
          initiatorCq: outbound,
          receiveDepth,
          initiatorDepth: sendDepth,
          inboundReadLimit,
          outboundReadLimit,
        }),
    );
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
