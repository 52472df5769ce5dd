import { shown } from '../../kernel-bridge/ioctl/shown.js';
import {
  type GetResultOptions,
  type IWVProvider,
  type Overlapped,
  type SocketAddress,
  Status,
  type WvDeviceAttributes,
} from '../../winverbs/index.js';
import { AdapterBase } from '../core/adapter-base.js';
import { checkCount, checkOptions, type OptionNames, readLimit } from '../core/argument-checks.js';
import { resultOf } from '../core/nd-object.js';
import { OverlappedFile } from '../core/overlapped-file.js';
import { MAX_CALLER_DATA, maxCalleeData } from '../core/private-data.js';
import type { NdAdapterOptions, NdOverlappedFile } from '../spi/common-types.js';
import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDListen,
  type INDMemoryWindow,
  ND_VERSION_1,
  type NdAdapterInfo,
  type NdEndpointOptions,
  type NdListenOptions,
  type NdMemoryHandle,
  type NdResult,
} from '../spi/v1.js';
import { refuse, v1Terms } from '../status.js';
import { CompletionQueue } from './completion-queue.js';
import { Connector } from './connector.js';
import { Endpoint } from './endpoint.js';
import { Listen } from './listen.js';
import { MemoryTable } from './memory-handle.js';
import { checkResult } from './result.js';

/** Inline bytes that an endpoint requests: enough for control messages, and few enough to keep WQEs short. */
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

/** INDAdapter: creates all objects of an adapter, which is opened by one of its addresses. */
export class Adapter extends AdapterBase implements INDAdapter {
  protected get interfaces() {
    return ['INDOverlapped', 'INDAdapter'] as const;
  }

  readonly address: SocketAddress;
  readonly memory: MemoryTable;

  /** Takes over the caller's reference to `provider`, even when the constructor throws. */
  constructor(provider: IWVProvider, address: SocketAddress, options?: NdAdapterOptions) {
    const own = { ...address, port: 0 };
    super(v1Terms, provider, () => provider.translateAddress(own), options);
    this.address = own;
    this.memory = new MemoryTable(this.pd, Number(this.limits.maxMrSize));
  }

  query(version: number = ND_VERSION_1): NdAdapterInfo {
    const what = 'Query';
    this.alive(what);
    if (version !== ND_VERSION_1) {
      throw refuse(Status.NOT_SUPPORTED, what, `\`version\` must be ${ND_VERSION_1}; got ${shown(version)}.`);
    }
    return this.#info(this.terms.call(what, () => this.device.query()));
  }

  control(_code: number, _input: Uint8Array | null, _outputLength: number): Overlapped<Uint8Array> {
    throw refuse(Status.NOT_SUPPORTED, 'Control', 'This adapter does not support vendor-specific requests.');
  }

  createCompletionQueue(entries: number): INDCompletionQueue {
    return new CompletionQueue(this, this.makeCompletionQueue(entries, Status.INVALID_PARAMETER, 'entries'));
  }

  registerMemory(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle> {
    this.alive('RegisterMemory');
    return this.#issued(this.memory.register(buffer));
  }

  deregisterMemory(memory: NdMemoryHandle | number): Overlapped<void> {
    this.alive('DeregisterMemory');
    return this.#issued(this.memory.deregister(memory));
  }

  getFileHandle(): NdOverlappedFile {
    this.alive('GetFileHandle');
    this.file ??= new OverlappedFile();
    return this.file;
  }

  #issued<T>(request: Overlapped<T>): Overlapped<T> {
    this.file?.add(request, this);
    return request;
  }

  createMemoryWindow(invalidateResult?: NdResult): INDMemoryWindow {
    if (invalidateResult !== undefined) checkResult('CreateMemoryWindow', invalidateResult);
    return this.makeMemoryWindow(invalidateResult);
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
    return resultOf(request, options);
  }

  createEndpoint(options: NdEndpointOptions): Endpoint {
    const what = 'CreateEndpoint';
    checkOptions(what, options, endpointOptions);
    const { limits } = this;
    const queue = (value: unknown, status: number, which: string) =>
      this.completionQueueOf(value, CompletionQueue, what, status, which);
    const inbound = queue(
      options.inboundCompletionQueue,
      Status.INVALID_PARAMETER_1,
      'inboundCompletionQueue',
    );
    const outbound = queue(
      options.outboundCompletionQueue,
      Status.INVALID_PARAMETER_2,
      'outboundCompletionQueue',
    );
    const { inboundEntries: receiveDepth, outboundEntries: sendDepth } = options;
    const { inboundSge: receiveSge = 1, outboundSge: sendSge = 1 } = options;
    const count = checkCount.bind(undefined, what);
    count('inboundEntries', receiveDepth, 1, limits.maxQpWr, Status.INVALID_PARAMETER_3);
    count('outboundEntries', sendDepth, 1, limits.maxQpWr, Status.INVALID_PARAMETER_4);
    count('inboundSge', receiveSge, 1, limits.maxSge, Status.INVALID_PARAMETER_5);
    count('outboundSge', sendSge, 1, limits.maxSge, Status.INVALID_PARAMETER_6);
    const limit = (name: 'inboundReadLimit' | 'outboundReadLimit', max: number, status: number): number =>
      readLimit(what, name, options[name], max, status);
    const inboundReadLimit = limit(
      'inboundReadLimit',
      limits.maxQpResponderResources,
      Status.INVALID_PARAMETER_7,
    );
    const outboundReadLimit = limit(
      'outboundReadLimit',
      limits.maxQpInitiatorDepth,
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
        maxInlineSend: Math.min(limits.maxInlineSend, INLINE_WANTED),
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

  #info(attributes: WvDeviceAttributes): NdAdapterInfo {
    const adapter = this;
    const maxMrSize = Number(attributes.maxMrSize);
    return {
      vendorId: attributes.vendorId,
      deviceId: attributes.vendorPartId,
      maxInboundSge: attributes.maxSge,
      maxInboundRequests: attributes.maxQpWr,
      maxInboundLength: this.maxTransfer,
      maxOutboundSge: attributes.maxSge,
      maxOutboundRequests: attributes.maxQpWr,
      maxOutboundLength: this.maxTransfer,
      maxInlineData: attributes.maxInlineSend,
      maxInboundReadLimit: attributes.maxQpResponderResources,
      maxOutboundReadLimit: attributes.maxQpInitiatorDepth,
      maxCqEntries: attributes.maxCqEntries,
      maxRegistrationSize: maxMrSize,
      maxWindowSize: attributes.maxMw === 0 ? 0 : maxMrSize,
      get largeRequestThreshold() {
        return adapter.largeRequest;
      },
      maxCallerData: MAX_CALLER_DATA,
      maxCalleeData: maxCalleeData(this.provider),
    };
  }
}
