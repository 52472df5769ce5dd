import { shown } from '../../kernel-bridge/ioctl/shown.js';
import {
  AtomicCapability,
  DEFAULT_PKEY,
  type IWVProvider,
  type Overlapped,
  type SocketAddress,
  Status,
  WvCapability,
  type WvDeviceAddress,
  type WvDeviceAttributes,
  type WvMemoryRegion,
} from '../../winverbs/index.js';
import { AdapterBase } from '../core/adapter-base.js';
import { checkCount, checkOptions } from '../core/argument-checks.js';
import type { NdOverlappedBase } from '../core/nd-object.js';
import { OverlappedFile } from '../core/overlapped-file.js';
import { MAX_CALLER_DATA, maxCalleeData } from '../core/private-data.js';
import { addressesOf } from '../core/provider-base.js';
import type { MemoryResolver } from '../core/scatter-gather.js';
import type { NdAdapterOptions, NdOverlappedFile } from '../spi/common-types.js';
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type IND2QueuePair,
  type IND2SharedReceiveQueue,
  ND_VERSION_2,
  Nd2AdapterFlag,
  type Nd2AdapterInfo,
  type Nd2Affinity,
  type Nd2InitiatorOptions,
  type Nd2QueuePairOptions,
  type Nd2SharedReceiveQueueOptions,
  type Nd2SrqQueuePairOptions,
} from '../spi/v2.js';
import { refuse, v2Terms } from '../status.js';
import { checkAffinity } from './affinity.js';
import { CompletionQueue } from './completion-queue.js';
import { Connector } from './connector.js';
import { queuePairOptions, srqOptions, srqQueuePairOptions } from './create-options.js';
import { Listener } from './listener.js';
import { accessOf, MemoryRegion } from './memory-region.js';
import { QueuePair } from './queue-pair.js';
import { type RegionAdapter, RegisteredRegions } from './registered-regions.js';
import { SharedReceiveQueue } from './shared-receive-queue.js';

/** The adapter's flags by the capabilities of its device. */
const flagOf = [
  [WvCapability.IN_ORDER_DMA, Nd2AdapterFlag.IN_ORDER_DMA_SUPPORTED],
  [WvCapability.LOOPBACK, Nd2AdapterFlag.LOOPBACK_CONNECTIONS_SUPPORTED],
] as const;

/** IND2Adapter: all functions of an adapter, which is opened by its id. */
export class Adapter extends AdapterBase implements IND2Adapter, RegionAdapter {
  protected get interfaces() {
    return ['IND2Adapter'] as const;
  }

  readonly #systemAddresses: () => SocketAddress[];
  readonly regions: RegisteredRegions = new RegisteredRegions(this);

  /** Takes over the caller's reference to `provider`, even when the constructor throws. */
  constructor(
    provider: IWVProvider,
    id: bigint,
    systemAddresses: () => SocketAddress[],
    options?: NdAdapterOptions,
  ) {
    const deviceAddressOf = (): WvDeviceAddress => {
      const addresses = addressesOf(provider, systemAddresses());
      const own = addresses.find(([, device]) => device.deviceGuid === id);
      return own?.[1] ?? { deviceGuid: id, pkey: DEFAULT_PKEY, portNumber: 1 };
    };
    super(v2Terms, provider, deviceAddressOf, options);
    this.#systemAddresses = systemAddresses;
  }

  get memory(): MemoryResolver {
    return this.regions;
  }

  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<WvMemoryRegion> {
    const atomics = this.limits.atomicCapability !== AtomicCapability.NONE;
    return this.pd.registerMemoryOverlapped(buffer, accessOf(flags, atomics));
  }

  query(version: number = ND_VERSION_2): Nd2AdapterInfo {
    const what = 'Query';
    this.alive(what);
    if (version !== ND_VERSION_2) {
      throw refuse(
        Status.NOT_SUPPORTED,
        what,
        `\`version\` must be 0x${ND_VERSION_2.toString(16)}; got ${shown(version)}.`,
      );
    }
    return this.#info(this.terms.call(what, () => this.device.query()));
  }

  queryAddressList(): SocketAddress[] {
    const what = 'QueryAddressList';
    this.alive(what);
    const addresses = this.terms.call(what, () => addressesOf(this.provider, this.#systemAddresses()));
    return addresses.filter(([, device]) => device.deviceGuid === this.guid).map(([address]) => address);
  }

  createOverlappedFile(): NdOverlappedFile {
    this.alive('CreateOverlappedFile');
    return new OverlappedFile();
  }

  createCompletionQueue(depth: number, affinity?: Nd2Affinity, file?: NdOverlappedFile): IND2CompletionQueue {
    const what = 'CreateCompletionQueue';
    this.alive(what);
    checkAffinity(what, affinity);
    const own = this.fileOf(file, what);
    const queue = this.makeCompletionQueue(depth, Status.INVALID_PARAMETER_3, 'depth');
    return this.#with(own, new CompletionQueue(this, queue));
  }

  createMemoryRegion(file?: NdOverlappedFile): IND2MemoryRegion {
    const what = 'CreateMemoryRegion';
    this.alive(what);
    const own = this.fileOf(file, what);
    return this.#with(own, new MemoryRegion(this));
  }

  /** Assigns the object's requests to a file. */
  #with<T extends NdOverlappedBase>(file: OverlappedFile | undefined, object: T): T {
    object.ownFile = file;
    return object;
  }

  createMemoryWindow(): IND2MemoryWindow {
    return this.makeMemoryWindow();
  }

  createSharedReceiveQueue(options: Nd2SharedReceiveQueueOptions): IND2SharedReceiveQueue {
    const what = 'CreateSharedReceiveQueue';
    this.alive(what);
    checkOptions(what, options, srqOptions);
    const { maxSrqWr, maxSrqSge } = this.limits;
    if (maxSrqWr === 0) {
      throw refuse(
        Status.NOT_SUPPORTED,
        what,
        `The device ${this.device.name} does not support shared receive queues.`,
      );
    }
    const { depth, maxRequestSge = 1, notifyThreshold = 0 } = options;
    checkAffinity(what, options.affinity);
    const own = this.fileOf(options.overlappedFile, what, 'overlappedFile');
    checkCount(what, 'depth', depth, 1, maxSrqWr, Status.INVALID_PARAMETER_3);
    checkCount(what, 'maxRequestSge', maxRequestSge, 1, maxSrqSge, Status.INVALID_PARAMETER_4);
    checkCount(what, 'notifyThreshold', notifyThreshold, 0, depth, Status.INVALID_PARAMETER_5);
    const wv = this.terms.call(what, () => this.pd.createSharedReceiveQueue(depth, maxRequestSge, 0));
    return this.#with(own, new SharedReceiveQueue(this, wv, depth, notifyThreshold));
  }

  createQueuePair(options: Nd2QueuePairOptions): IND2QueuePair {
    const what = 'CreateQueuePair';
    this.alive(what);
    checkOptions(what, options, queuePairOptions);
    const { limits } = this;
    const queues = this.#queues(what, options);
    const { receiveQueueDepth, maxReceiveRequestSge = 1, initiatorQueueDepth } = options;
    const { maxInitiatorRequestSge = 1, inlineDataSize = 0 } = options;
    const check = checkCount.bind(undefined, what);
    check('receiveQueueDepth', receiveQueueDepth, 1, limits.maxQpWr, Status.INVALID_PARAMETER_5);
    check('initiatorQueueDepth', initiatorQueueDepth, 1, limits.maxQpWr, Status.INVALID_PARAMETER_6);
    check('maxReceiveRequestSge', maxReceiveRequestSge, 1, limits.maxSge, Status.INVALID_PARAMETER_7);
    check('maxInitiatorRequestSge', maxInitiatorRequestSge, 1, limits.maxSge, Status.INVALID_PARAMETER_8);
    check('inlineDataSize', inlineDataSize, 0, limits.maxInlineSend, Status.INVALID_PARAMETER_9);
    return this.#make(what, options, queues, {
      receiveDepth: receiveQueueDepth,
      receiveSge: maxReceiveRequestSge,
    });
  }

  createQueuePairWithSrq(options: Nd2SrqQueuePairOptions): IND2QueuePair {
    const what = 'CreateQueuePairWithSrq';
    this.alive(what);
    checkOptions(what, options, srqQueuePairOptions);
    const { limits } = this;
    const queues = this.#queues(what, options);
    const { sharedReceiveQueue: srq, initiatorQueueDepth } = options;
    const { maxInitiatorRequestSge = 1, inlineDataSize = 0 } = options;
    if (!(srq instanceof SharedReceiveQueue) || srq.adapter !== this || srq.ended) {
      throw refuse(
        Status.INVALID_PARAMETER_4,
        what,
        `\`sharedReceiveQueue\` must belong to this adapter instance and must not be released; got ${shown(srq)}.`,
      );
    }
    const check = checkCount.bind(undefined, what);
    check('initiatorQueueDepth', initiatorQueueDepth, 1, limits.maxQpWr, Status.INVALID_PARAMETER_6);
    check('maxInitiatorRequestSge', maxInitiatorRequestSge, 1, limits.maxSge, Status.INVALID_PARAMETER_7);
    check('inlineDataSize', inlineDataSize, 0, limits.maxInlineSend, Status.INVALID_PARAMETER_8);
    return this.#make(what, options, queues, { receiveDepth: 0, receiveSge: 0, srq });
  }

  createConnector(file?: NdOverlappedFile): IND2Connector {
    const what = 'CreateConnector';
    this.alive(what);
    const own = this.fileOf(file, what);
    return this.#with(own, new Connector(this));
  }

  createListener(file?: NdOverlappedFile): IND2Listener {
    const what = 'CreateListener';
    this.alive(what);
    const own = this.fileOf(file, what);
    return this.#with(own, new Listener(this));
  }

  #queues(
    what: string,
    options: Nd2InitiatorOptions,
  ): { receive: CompletionQueue; initiator: CompletionQueue } {
    const queue = (value: unknown, status: number, which: string) =>
      this.completionQueueOf<CompletionQueue>(value, CompletionQueue, what, status, which);
    return {
      receive: queue(options.receiveCompletionQueue, Status.INVALID_PARAMETER_2, 'receiveCompletionQueue'),
      initiator: queue(
        options.initiatorCompletionQueue,
        Status.INVALID_PARAMETER_3,
        'initiatorCompletionQueue',
      ),
    };
  }

  #make(
    what: string,
    options: Nd2InitiatorOptions,
    queues: { receive: CompletionQueue; initiator: CompletionQueue },
    receives: { receiveDepth: number; receiveSge: number; srq?: SharedReceiveQueue },
  ): QueuePair {
    const { limits } = this;
    const { receive, initiator } = queues;
    const { receiveDepth, receiveSge, srq } = receives;
    const { initiatorQueueDepth: initiatorDepth } = options;
    return this.makeQueuePair(
      what,
      {
        sendCq: initiator.wv,
        receiveCq: receive.wv,
        ...(srq === undefined ? {} : { srq: srq.wv }),
        context: options.context,
        sendDepth: initiatorDepth,
        sendSge: options.maxInitiatorRequestSge ?? 1,
        receiveDepth,
        receiveSge,
        maxInlineSend: options.inlineDataSize ?? 0,
        initiatorDepth: limits.maxQpInitiatorDepth,
        responderResources: limits.maxQpResponderResources,
      },
      (qp) =>
        new QueuePair(
          { adapter: this, qp, receiveCq: receive, initiatorCq: initiator, receiveDepth, initiatorDepth },
          srq,
        ),
    );
  }

  #info(attributes: WvDeviceAttributes): Nd2AdapterInfo {
    const adapter = this;
    const maxMrSize = Number(attributes.maxMrSize);
    const { capabilityFlags } = attributes;
    const resizes = (capabilityFlags & WvCapability.FIXED_CQ) === 0 ? Nd2AdapterFlag.CQ_RESIZE_SUPPORTED : 0;
    const adapterFlags = flagOf.reduce(
      (flags, [capability, flag]) => flags | ((capabilityFlags & capability) === 0 ? 0 : flag),
      resizes,
    );
    return {
      infoVersion: ND_VERSION_2,
      vendorId: attributes.vendorId & 0xffff,
      deviceId: attributes.vendorPartId & 0xffff,
      adapterId: this.guid,
      maxRegistrationSize: maxMrSize,
      maxWindowSize: attributes.maxMw === 0 ? 0 : maxMrSize,
      maxInitiatorSge: attributes.maxSge,
      maxReceiveSge: attributes.maxSge,
      maxReadSge: attributes.maxReadSge,
      maxTransferLength: this.maxTransfer,
      maxInlineDataSize: attributes.maxInlineSend,
      maxInboundReadLimit: attributes.maxQpResponderResources,
      maxOutboundReadLimit: attributes.maxQpInitiatorDepth,
      maxReceiveQueueDepth: attributes.maxQpWr,
      maxInitiatorQueueDepth: attributes.maxQpWr,
      maxSharedReceiveQueueDepth: attributes.maxSrqWr,
      maxCompletionQueueDepth: attributes.maxCqEntries,
      // Inline data saves a DMA read at every size that fits. The limit is that of the device, which programs use when
      // they create queue pairs.
      inlineRequestThreshold: attributes.maxInlineSend,
      get largeRequestThreshold() {
        return adapter.largeRequest;
      },
      maxCallerData: MAX_CALLER_DATA,
      maxCalleeData: maxCalleeData(this.provider),
      adapterFlags,
    };
  }
}
