import {
  ADAPTER_INFO_BYTES,
  type AdapterInfo,
  type Address,
  adoptFile,
  argumentMemory,
  ComObject,
  closeFile,
  decodeAdapterInfo,
  type NdProviderEntry,
  OverlappedObject,
  type SlotOf,
  TokenTable,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import {
  type Overlapped,
  type SocketAddress,
  Status,
  StatusError,
  type WvMemoryRegion,
} from '../../winverbs/index.js';
import { type AdapterBounds, AdapterObject } from '../core/adapter-object.js';
import { isWildcard, parseAddress } from '../core/address.js';
import { checkCount, checkOptions } from '../core/argument-checks.js';
import type { EndpointBelow } from '../core/below.js';
import { MemoryWindow } from '../core/memory-window.js';
import type { NdOverlappedBase } from '../core/nd-object.js';
import { OverlappedFile } from '../core/overlapped-file.js';
import type { MemoryResolver } from '../core/scatter-gather.js';
import type { NdAdapterOptions, NdAddress, NdOverlappedFile } from '../spi/common-types.js';
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
  type Nd2AdapterInfo,
  type Nd2Affinity,
  type Nd2InitiatorOptions,
  type Nd2QueuePairOptions,
  type Nd2SharedReceiveQueueOptions,
  type Nd2SrqQueuePairOptions,
} from '../spi/v2.js';
import { inUseStatuses, refuse } from '../status.js';
import { checkAffinity } from '../v2/affinity.js';
import { Connector } from '../v2/connector.js';
import { queuePairOptions, srqOptions, srqQueuePairOptions } from '../v2/create-options.js';
import { Listener } from '../v2/listener.js';
import { MemoryRegion } from '../v2/memory-region.js';
import { QueuePair } from '../v2/queue-pair.js';
import { type RegionAdapter, RegisteredRegions } from '../v2/registered-regions.js';
import { addressList, lists } from './native-address.js';
import { NativeConnector } from './native-connector.js';
import { NativeListener } from './native-listener.js';
import { deregisterMemory, type NativeRegion, registerMemory } from './native-memory.js';
import { NativeQueue } from './native-queue.js';
import { NativeQueuePair, type QueuePairSizes, unsupported } from './native-queue-pair.js';
import { vendorTerms } from './statuses.js';
import { VendorCompletionQueue } from './vendor-completion-queue.js';
import { VendorSharedReceiveQueue } from './vendor-shared-receive-queue.js';

/** Interfaces that are created with an overlapped file. */
type WithFile =
  | 'IND2CompletionQueue'
  | 'IND2SharedReceiveQueue'
  | 'IND2MemoryRegion'
  | 'IND2Connector'
  | 'IND2Listener';

/** IND2Adapter over a vendor's provider. One overlapped file serves the requests of all its objects. */
export class VendorAdapter extends AdapterObject implements IND2Adapter, RegionAdapter {
  protected get interfaces() {
    return ['IND2Adapter'] as const;
  }

  readonly terms = vendorTerms;
  readonly pkey = undefined;
  readonly deviceAddress = undefined;
  readonly keepQueuePairs = false;
  readonly regions: RegisteredRegions = new RegisteredRegions(this);
  readonly memory: MemoryResolver = this.regions;
  readonly maxTransfer: number;
  readonly bounds: AdapterBounds;
  /** Limits of the device when the adapter was opened. */
  readonly info: AdapterInfo;
  readonly #com: ComObject<'IND2Adapter'>;
  readonly #file: number;
  readonly #tokens = new TokenTable<NativeQueuePair>();
  readonly #queuePairs = new Set<NativeQueuePair>();
  /** Released regions that could not be deregistered. */
  readonly #abandoned: NativeRegion[] = [];

  /** @param adapterId - the result of ResolveAddress */
  constructor(
    provider: ComObject<'IND2Provider'>,
    readonly entry: NdProviderEntry,
    adapterId: bigint,
    options: NdAdapterOptions = {},
  ) {
    super();
    const what = 'OpenAdapter';
    checkOptions(what, options, { pkey: true, keepQueuePairsOnDisconnect: true });
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined || value === false) continue;
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `The provider ${provider.library} does not support the option \`${name}\`. Omit it.`,
      );
    }
    const com = this.terms.call(what, () => {
      const address = provider.make('OpenAdapter', 'IND2Adapter', adapterId);
      return new ComObject('IND2Adapter', address, provider.library);
    });
    this.#com = com;
    try {
      this.info = this.terms.call(what, () => this.#query());
      this.#file = this.terms.call(what, () => fileFor(com));
    } catch (error) {
      com.release();
      throw error;
    }
    const { info } = this;
    this.maxTransfer = info.maxTransferLength;
    this.bounds = {
      maxCqEntries: info.maxCompletionQueueDepth,
      // If the provider does not support RDMA Reads, posting one fails with NOT_SUPPORTED.
      maxReadSge: readsOf(info) === 0 ? info.maxInitiatorSge : info.maxReadSge,
      maxRegistration: info.maxRegistrationSize,
      maxInboundReads: info.maxInboundReadLimit,
      maxOutboundReads: info.maxOutboundReadLimit,
      maxCallerData: info.maxCallerData,
      maxCalleeData: info.maxCalleeData,
    };
  }

  /** File name of the provider's DLL. */
  get library(): string {
    return this.#com.library;
  }

  #query(): AdapterInfo {
    const memory = argumentMemory(8 + ADAPTER_INFO_BYTES);
    memory.words[0] = ADAPTER_INFO_BYTES;
    memory.words[2] = ND_VERSION_2;
    this.#com.run('Query', memory.address + 8, memory.address);
    return decodeAdapterInfo(memory.bytes.subarray(8));
  }

  query(version: number = ND_VERSION_2): Nd2AdapterInfo {
    const what = 'Query';
    this.alive(what);
    if (version !== ND_VERSION_2) {
      const text = `\`version\` must be 0x${ND_VERSION_2.toString(16)}; got ${version}.`;
      throw refuse(Status.NOT_SUPPORTED, what, text);
    }
    const info = this.terms.call(what, () => this.#query());
    // Programs create queue pairs with this inline size, which must not exceed the maximum. One provider reports a larger size.
    return { ...info, inlineRequestThreshold: Math.min(info.inlineRequestThreshold, info.maxInlineDataSize) };
  }

  queryAddressList(): SocketAddress[] {
    const what = 'QueryAddressList';
    this.alive(what);
    return this.terms.call(what, () => addressList(this.#com));
  }

  checkPresent(what: string): void {
    // A request can fail after the release of the adapter, which cannot be queried then.
    if (this.#com.released) return;
    this.terms.call(what, () => this.#query());
  }

  ownAddress(address: NdAddress, what: string): SocketAddress {
    const local = parseAddress(address, what);
    const own = this.terms.call(what, () => addressList(this.#com));
    if (!isWildcard(local) && this.terms.call(what, () => lists(own, local))) return local;
    const text = `\`address\` must be an address of this adapter (${own.map((one) => one.address).join(', ')}); got ${local.address}.`;
    throw refuse(Status.INVALID_ADDRESS, what, text);
  }

  endpointBelow(listens: boolean): EndpointBelow {
    return listens
      ? new NativeListener(this.#withFile('CreateListener', 'IND2Listener'))
      : new NativeConnector(this.#withFile('CreateConnector', 'IND2Connector'));
  }

  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<WvMemoryRegion> {
    const make = (): OverlappedObject<'IND2MemoryRegion'> => {
      const region = this.#withFile('CreateMemoryRegion', 'IND2MemoryRegion');
      // A terminated thread deregisters nothing, so its queue pairs must be released before its regions.
      for (const queuePair of this.#queuePairs) queuePair.com.endFirst();
      return region;
    };
    return registerMemory(make, buffer, flags);
  }

  deregister(region: WvMemoryRegion): void {
    this.terms.call('Deregister', () => deregisterMemory(region as NativeRegion), inUseStatuses);
  }

  /** Releases the region's object after the queue pairs. Its memory stays pinned, because the device may write to it. */
  protected override abandon(region: WvMemoryRegion): void {
    this.#abandoned.push(region as NativeRegion);
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
    this.checkCqEntries(depth, what, Status.INVALID_PARAMETER_3, 'depth');
    const com = this.terms.call(what, () =>
      this.#withFile(what, 'IND2CompletionQueue', depth, affinity?.group ?? 0, affinity?.mask ?? 0),
    );
    const queue = new NativeQueue(com, this.#tokens, this.info.adapterFlags, depth);
    return this.#collected(own, new VendorCompletionQueue(this, queue));
  }

  createMemoryRegion(file?: NdOverlappedFile): IND2MemoryRegion {
    const what = 'CreateMemoryRegion';
    this.alive(what);
    return this.#collected(this.fileOf(file, what), new MemoryRegion(this));
  }

  createMemoryWindow(): IND2MemoryWindow {
    const what = 'CreateMemoryWindow';
    this.alive(what);
    const window = this.terms.call(what, () => {
      if (this.info.maxWindowSize === 0) unsupported(this.library, 'memory windows');
      const address = this.#com.make(what, 'IND2MemoryWindow');
      return new ComObject('IND2MemoryWindow', address, this.library);
    });
    return new MemoryWindow(this, window);
  }

  createSharedReceiveQueue(options: Nd2SharedReceiveQueueOptions): IND2SharedReceiveQueue {
    const what = 'CreateSharedReceiveQueue';
    this.alive(what);
    checkOptions(what, options, srqOptions);
    const { maxSharedReceiveQueueDepth, maxReceiveSge } = this.info;
    if (maxSharedReceiveQueueDepth === 0)
      this.terms.call(what, () => unsupported(this.library, 'shared receive queues'));
    const { depth, maxRequestSge = 1, notifyThreshold = 0, affinity, overlappedFile } = options;
    checkAffinity(what, affinity);
    const own = this.fileOf(overlappedFile, what, 'overlappedFile');
    checkCount(what, 'depth', depth, 1, maxSharedReceiveQueueDepth, Status.INVALID_PARAMETER_3);
    checkCount(what, 'maxRequestSge', maxRequestSge, 1, maxReceiveSge, Status.INVALID_PARAMETER_4);
    checkCount(what, 'notifyThreshold', notifyThreshold, 0, depth, Status.INVALID_PARAMETER_5);
    const sizes = [depth, maxRequestSge, notifyThreshold, affinity?.group ?? 0, affinity?.mask ?? 0];
    const com = this.terms.call(what, () => this.#withFile(what, 'IND2SharedReceiveQueue', ...sizes));
    return this.#collected(own, new VendorSharedReceiveQueue(this, com, depth, maxRequestSge));
  }

  createQueuePair(options: Nd2QueuePairOptions): IND2QueuePair {
    const what = 'CreateQueuePair';
    this.alive(what);
    checkOptions(what, options, queuePairOptions);
    const { info } = this;
    const { receiveQueueDepth, maxReceiveRequestSge = 1 } = options;
    const { receive, initiator } = this.#queues(what, options);
    const check = checkCount.bind(undefined, what);
    check('receiveQueueDepth', receiveQueueDepth, 1, info.maxReceiveQueueDepth, Status.INVALID_PARAMETER_5);
    const own = this.#initiatorSizes(what, options, Status.INVALID_PARAMETER_6, () =>
      check('maxReceiveRequestSge', maxReceiveRequestSge, 1, info.maxReceiveSge, Status.INVALID_PARAMETER_7),
    );
    const sizes = { ...own, receiveDepth: receiveQueueDepth, receiveSge: maxReceiveRequestSge };
    const below = new NativeQueuePair(this.#tokens, options.context, sizes, [receive.wv, initiator.wv]);
    const { receiveDepth, initiatorDepth, receiveSge, sendSge, maxInline } = sizes;
    const cqs = [receive.wv.com.address, initiator.wv.com.address];
    const numbers = [below.token, receiveDepth, initiatorDepth, receiveSge, sendSge, maxInline];
    return this.#queuePair(what, below, { receive, initiator }, sizes, [...cqs, ...numbers]);
  }

  createQueuePairWithSrq(options: Nd2SrqQueuePairOptions): IND2QueuePair {
    const what = 'CreateQueuePairWithSrq';
    this.alive(what);
    checkOptions(what, options, srqQueuePairOptions);
    const { receive, initiator } = this.#queues(what, options);
    const { sharedReceiveQueue: srq } = options;
    if (!(srq instanceof VendorSharedReceiveQueue) || srq.adapter !== this || srq.ended) {
      const text = '`sharedReceiveQueue` must belong to this adapter instance and must not be released.';
      throw refuse(Status.INVALID_PARAMETER_4, what, text);
    }
    const own = this.#initiatorSizes(what, options, Status.INVALID_PARAMETER_6);
    const sizes = { ...own, receiveDepth: 0, receiveSge: 0 };
    const below = new NativeQueuePair(this.#tokens, options.context, sizes, [receive.wv, initiator.wv], srq);
    const { initiatorDepth, sendSge, maxInline } = sizes;
    const objects = [receive.wv.com.address, initiator.wv.com.address, srq.com.address];
    const values = [...objects, below.token, initiatorDepth, sendSge, maxInline];
    return this.#queuePair(what, below, { receive, initiator }, sizes, values, srq);
  }

  createConnector(file?: NdOverlappedFile): IND2Connector {
    const what = 'CreateConnector';
    this.alive(what);
    return this.#collected(this.fileOf(file, what), new Connector(this));
  }

  createListener(file?: NdOverlappedFile): IND2Listener {
    const what = 'CreateListener';
    this.alive(what);
    return this.#collected(this.fileOf(file, what), new Listener(this));
  }

  /** Assigns the object's requests to a file. */
  #collected<T extends NdOverlappedBase>(file: OverlappedFile | undefined, object: T): T {
    object.ownFile = file;
    return object;
  }

  /** Creates an object whose requests complete in this thread. */
  #withFile<I extends WithFile>(
    method: SlotOf<'IND2Adapter'>,
    name: I,
    ...values: readonly unknown[]
  ): OverlappedObject<I> {
    return new OverlappedObject(
      name,
      this.#com.make(method, name, this.#file, ...values),
      this.library,
      this,
    );
  }

  #queues(what: string, options: Nd2InitiatorOptions) {
    const queue = (value: unknown, status: number, which: string) =>
      this.completionQueueOf<VendorCompletionQueue>(value, VendorCompletionQueue, what, status, which);
    return {
      receive: queue(options.receiveCompletionQueue, Status.INVALID_PARAMETER_2, 'receiveCompletionQueue'),
      initiator: queue(
        options.initiatorCompletionQueue,
        Status.INVALID_PARAMETER_3,
        'initiatorCompletionQueue',
      ),
    };
  }

  /**
   * Checks initiator options. `first` is the status for the depth; the statuses of the other options follow it, after that of `between`.
   */
  #initiatorSizes(
    what: string,
    options: Nd2InitiatorOptions,
    first: number,
    between?: () => void,
  ): Omit<QueuePairSizes, 'receiveDepth' | 'receiveSge'> {
    const { info } = this;
    const { initiatorQueueDepth, maxInitiatorRequestSge = 1, inlineDataSize = 0 } = options;
    checkCount(what, 'initiatorQueueDepth', initiatorQueueDepth, 1, info.maxInitiatorQueueDepth, first);
    between?.();
    const next = between === undefined ? first + 1 : first + 2;
    checkCount(what, 'maxInitiatorRequestSge', maxInitiatorRequestSge, 1, info.maxInitiatorSge, next);
    checkCount(what, 'inlineDataSize', inlineDataSize, 0, info.maxInlineDataSize, next + 1);
    return {
      initiatorDepth: initiatorQueueDepth,
      sendSge: maxInitiatorRequestSge,
      maxInline: inlineDataSize,
      maxReads: readsOf(info),
    };
  }

  #queuePair(
    what: 'CreateQueuePair' | 'CreateQueuePairWithSrq',
    below: NativeQueuePair,
    queues: { readonly receive: VendorCompletionQueue; readonly initiator: VendorCompletionQueue },
    { receiveDepth, initiatorDepth }: QueuePairSizes,
    values: readonly unknown[],
    srq?: VendorSharedReceiveQueue,
  ): QueuePair {
    let address: Address;
    try {
      address = this.terms.call(what, () => this.#com.make(what, 'IND2QueuePair', ...values));
    } catch (error) {
      below.release();
      throw error;
    }
    this.#queuePairs.add(below);
    below.begin(new ComObject('IND2QueuePair', address, this.library), () => this.#queuePairs.delete(below));
    const { receive, initiator } = queues;
    const parts = { receiveCq: receive, initiatorCq: initiator, receiveDepth, initiatorDepth };
    return new QueuePair({ adapter: this, qp: below, ...parts }, srq);
  }

  protected end(): void {
    for (const { com } of this.#abandoned) com.release();
    this.#com.release();
    closeFile(this.#file);
  }
}

/** Returns the maximum number of Reads in flight on a queue pair; 0 if the provider does not support Reads. */
function readsOf({ maxOutboundReadLimit, maxReadSge }: AdapterInfo): number {
  return maxReadSge === 0 ? 0 : maxOutboundReadLimit;
}

/** Creates an overlapped file whose requests complete in this thread. @throws StatusError */
function fileFor(com: ComObject<'IND2Adapter'>): number {
  const { words, address } = argumentMemory(8);
  com.run('CreateOverlappedFile', address);
  const file = words[0]!;
  if (adoptFile(file)) {
    // If the thread ends before the file is closed, the adapter must be released first.
    com.endFirst();
    return file;
  }
  closeFile(file);
  const text = `The overlapped file of ${com.library} does not support completion ports.`;
  throw new StatusError(Status.NOT_SUPPORTED, text);
}
