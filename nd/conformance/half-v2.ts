import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type IND2Provider,
  type IND2QueuePair,
  type IND2SharedReceiveQueue,
  Nd2MrFlag,
  Nd2RemoteMemory,
  type Nd2Result,
  type Nd2Sge,
  type NdAdapterOptions,
  Status,
} from '../index.js';
import { type AnyLink, CommonHalf, familyOf, lookUp, statusOfError } from './common-half.js';
import type {
  Half,
  HalfAddress,
  HalfInfo,
  LinkOptions,
  LinkParts,
  Outcome,
  PeerData,
  Piece,
  Post,
  Posted,
  Target,
} from './half.js';
import type { MemorySource } from './memory-source.js';

interface Link extends AnyLink {
  readonly connector: IND2Connector;
  readonly queuePair: IND2QueuePair;
  readonly inline: number;
  readonly limits: { inboundReadLimit?: number; outboundReadLimit?: number };
}

/** A half over a provider of ND SPI v2. */
export class HalfV2
  extends CommonHalf<IND2CompletionQueue, IND2Listener, IND2MemoryWindow, Link>
  implements Half
{
  readonly #provider: IND2Provider;
  readonly #address: string;
  #adapter: IND2Adapter | undefined;
  readonly #regions = new Map<number, IND2MemoryRegion>();
  readonly #shared = new Map<number, IND2SharedReceiveQueue>();
  /** Connectors that have a role or an address; the first Connect binds the others. */
  #placed = new WeakSet<IND2Connector>();

  constructor(provider: IND2Provider, address: string, stepTimeoutMs: number, source?: MemorySource) {
    super(stepTimeoutMs, source);
    this.#provider = provider;
    this.#address = address;
  }

  get adapter(): IND2Adapter {
    if (this.#adapter === undefined) throw new Error('begin() must be called before this method.');
    return this.#adapter;
  }

  begin(options?: NdAdapterOptions): void {
    this.end();
    this.#adapter = this.#provider.openAdapter(this.#provider.resolveAddress(this.#address), options);
  }

  end(): void {
    this.releaseAll(this.#shared, this.#regions);
    this.#adapter?.release();
    this.#adapter = undefined;
    this.source.reset();
  }

  info(): HalfInfo {
    const info = this.adapter.query();
    return {
      spi: 'v2',
      family: familyOf(this.#address),
      address: this.#address,
      limits: {
        receives: info.maxReceiveQueueDepth,
        requests: info.maxInitiatorQueueDepth,
        receiveSge: info.maxReceiveSge,
        requestSge: info.maxInitiatorSge,
        readSge: info.maxReadSge,
        transfer: info.maxTransferLength,
        inline: info.maxInlineDataSize,
        inboundReads: info.maxInboundReadLimit,
        outboundReads: info.maxOutboundReadLimit,
        cqEntries: info.maxCompletionQueueDepth,
        callerData: info.maxCallerData,
        calleeData: info.maxCalleeData,
        sharedReceives: info.maxSharedReceiveQueueDepth,
      },
    };
  }

  listen(options: { port?: number; backlog?: number; address?: string }): number {
    const listener = this.adapter.createListener();
    try {
      listener.bind(this.#place(options.port, options.address));
      listener.listen(options.backlog);
    } catch (error) {
      listener.release();
      throw error;
    }
    return this.add(this.listeners, listener);
  }

  listenerAddress(listener: number): HalfAddress {
    const { address, port } = this.listenerOf(listener).getLocalAddress();
    return { address, port };
  }

  cq(entries: number): number {
    return this.add(this.cqs, this.adapter.createCompletionQueue(entries));
  }

  async link(options: LinkOptions): Promise<number> {
    const inbound = options.inbound ?? this.cq(options.cqEntries ?? 128);
    const outbound = options.outbound ?? this.cq(options.cqEntries ?? 128);
    const inline = options.inline ?? Math.min(this.adapter.query().maxInlineDataSize, 256);
    const id = this.next();
    const own: { release(): number }[] = [];
    let queuePair: IND2QueuePair;
    if (options.endpointOf === undefined) {
      const common = {
        receiveCompletionQueue: this.queueOf(inbound),
        initiatorCompletionQueue: this.queueOf(outbound),
        context: id,
        initiatorQueueDepth: options.requests ?? 32,
        maxInitiatorRequestSge: options.requestSge ?? 4,
        inlineDataSize: inline,
      };
      queuePair =
        options.shared === undefined
          ? this.adapter.createQueuePair({
              ...common,
              receiveQueueDepth: options.receives ?? 32,
              maxReceiveRequestSge: options.receiveSge ?? 4,
            })
          : this.adapter.createQueuePairWithSrq({
              ...common,
              sharedReceiveQueue: lookUp(this.#shared, options.shared, 'shared receive queue'),
            });
      own.push(queuePair);
    } else {
      queuePair = this.linkOf(options.endpointOf).queuePair;
    }
    let connector: IND2Connector;
    if (options.connectorOf === undefined) {
      connector = this.adapter.createConnector();
      own.push(connector);
    } else {
      connector = this.linkOf(options.connectorOf).connector;
    }
    const { inboundReads, outboundReads, rights } = options;
    const wanted = options.memory ?? 65_536;
    const memory = wanted === 0 ? 0 : await this.memory(wanted, rights);
    this.links.set(id, {
      connector,
      queuePair,
      inbound,
      outbound,
      memory,
      inline,
      limits: {
        ...(inboundReads === undefined ? {} : { inboundReadLimit: inboundReads }),
        ...(outboundReads === undefined ? {} : { outboundReadLimit: outboundReads }),
      },
      own,
    });
    return id;
  }

  parts(link: number): LinkParts {
    const { inbound, outbound, memory, inline, queuePair } = this.linkOf(link);
    const { maxReceiveRequestSge: receiveSge, maxInitiatorRequestSge: requestSge } = queuePair;
    return { inbound, outbound, memory, maxInline: inline, receiveSge, requestSge };
  }

  awaitRequest(listener: number, link: number): number {
    const { connector } = this.linkOf(link);
    return this.request(listener, () => {
      const request = this.listenerOf(listener).getConnectionRequest(connector);
      this.#placed.add(connector);
      return request;
    });
  }

  connect(
    link: number,
    to: string | HalfAddress,
    options: { data?: readonly number[]; localPort?: number },
  ): number {
    const { connector, queuePair, limits } = this.linkOf(link);
    const { data, localPort } = options;
    const address = typeof to === 'string' ? to : { family: familyOf(to.address), ...to };
    return this.request(link, () => {
      if (!this.#placed.has(connector)) {
        connector.bind(this.#place(localPort));
        this.#placed.add(connector);
      }
      return connector.connect(queuePair, address, {
        ...limits,
        ...(data === undefined ? {} : { privateData: Uint8Array.from(data) }),
      });
    });
  }

  accept(link: number, data?: readonly number[]): number {
    const { connector, queuePair, limits } = this.linkOf(link);
    return this.request(link, () =>
      connector.accept(queuePair, {
        ...limits,
        ...(data === undefined ? {} : { privateData: Uint8Array.from(data) }),
      }),
    );
  }

  peerData(link: number): PeerData {
    const { connector } = this.linkOf(link);
    const data = [...connector.getPrivateData()];
    // A rejection has data but no limits.
    let limits = { inbound: 0, outbound: 0 };
    try {
      limits = connector.getReadLimits();
    } catch (error) {
      statusOfError(error);
    }
    return { inboundReads: limits.inbound, outboundReads: limits.outbound, data };
  }

  cancel(object: number): number[] {
    const target =
      this.cqs.get(object) ??
      this.listeners.get(object) ??
      this.#regions.get(object) ??
      this.#shared.get(object) ??
      this.linkOf(object).connector;
    return this.cancelWith(object, () => target.cancelOverlappedRequests());
  }

  flush(link: number): void {
    this.linkOf(link).queuePair.flush();
  }

  poll(cq: number, max: number): Outcome[] {
    const results: Nd2Result[] = [];
    const n = this.queueOf(cq).getResults(results, max);
    if (n > max) throw new Error(`GetResults must return at most ${max} results; got ${n}.`);
    return results.slice(0, n).map((result) => ({
      context: result.requestContext as number | string,
      status: result.status,
      bytes: result.bytesTransferred,
      type: result.requestType,
      link: result.queuePairContext as number,
    }));
  }

  memory(bytes: number, rights?: number): Promise<number> {
    return this.#register(this.source.take(bytes), rights);
  }

  registerAgain(memory: number, at: number, length: number, rights?: number): Promise<number> {
    return this.#register(this.bytesOf(memory, at, length), rights);
  }

  deregister(memory: number): number {
    return this.request(memory, () => this.#region(memory).deregister());
  }

  target(memory: number): Target {
    const region = this.#region(memory);
    return { address: region.address.toString(), length: region.length, key: region.getRemoteToken() };
  }

  window(): number {
    return this.add(this.windows, this.adapter.createMemoryWindow());
  }

  shared(options: { depth: number; sge?: number; threshold?: number }): number {
    const { depth, sge, threshold } = options;
    return this.add(
      this.#shared,
      this.adapter.createSharedReceiveQueue({
        depth,
        maxRequestSge: sge ?? 4,
        notifyThreshold: threshold ?? 0,
      }),
    );
  }

  sharedReceive(shared: number, posts: readonly Post[]): Posted[] {
    const queue = lookUp(this.#shared, shared, 'shared receive queue');
    return posts.map(({ context = 0, pieces = [] }) => {
      try {
        queue.receive(
          context,
          pieces.map((piece) => this.#sge(piece, 0)),
        );
        return { status: Status.SUCCESS };
      } catch (error) {
        return { status: statusOfError(error) };
      }
    });
  }

  sharedModify(shared: number, depth: number, threshold: number): void {
    lookUp(this.#shared, shared, 'shared receive queue').modify(depth, threshold);
  }

  sharedNotify(shared: number): number {
    return this.request(shared, () => lookUp(this.#shared, shared, 'shared receive queue').notify());
  }

  release(object: number, part?: 'connector' | 'endpoint' | 'inbound' | 'outbound'): void {
    const link = this.links.get(object);
    if (link !== undefined) {
      if (part === undefined) for (const one of link.own) one.release();
      else if (part === 'connector') link.connector.release();
      else if (part === 'endpoint') link.queuePair.release();
      else this.queueOf(link[part]).release();
      return;
    }
    const found =
      this.cqs.get(object) ??
      this.listeners.get(object) ??
      this.windows.get(object) ??
      this.#regions.get(object) ??
      this.#shared.get(object);
    if (found === undefined) throw new Error(`Unknown object ${object}, which cannot be released.`);
    found.release();
  }

  protected issue({ queuePair, memory }: Link, post: Post): Target | undefined {
    const { context = 0, flags, offset = 0 } = post;
    const sgl = (post.pieces ?? []).map((piece) => this.#sge(piece, memory));
    switch (post.op) {
      case 'send':
        queuePair.send(context, sgl, flags);
        break;
      case 'receive':
        queuePair.receive(context, sgl);
        break;
      case 'read':
        queuePair.read(context, sgl, remoteOf(post), offset, flags);
        break;
      case 'write':
        queuePair.write(context, sgl, remoteOf(post), offset, flags);
        break;
      case 'bind': {
        const region = this.#region(post.memory ?? memory);
        const window = this.windowOf(post);
        const length = post.length ?? 0;
        queuePair.bind(context, region, window, offset, length, flags);
        return {
          address: (region.address + BigInt(offset)).toString(),
          length,
          key: window.getRemoteToken(),
        };
      }
      case 'invalidate':
        queuePair.invalidate(context, this.windowOf(post), flags);
        break;
      default:
        throw new Error(`SPI v2 does not support the request ${post.op}.`);
    }
    if (post.scribble === true) {
      for (const { memory: used } of sgl) if (used instanceof Uint8Array) used.fill(0xee);
    }
    return undefined;
  }

  #sge(piece: Piece, memory: number): Nd2Sge {
    const { at, length, plain } = piece;
    if (plain !== undefined) return { memory: Uint8Array.from(plain), offset: at, length };
    const region = this.#region(piece.memory ?? memory);
    return { memory: piece.token === true ? region.getLocalToken() : region, offset: at, length };
  }

  async #register(bytes: Uint8Array, rights: number = Nd2MrFlag.ALLOW_LOCAL_WRITE): Promise<number> {
    const region = this.adapter.createMemoryRegion();
    const id = this.add(this.#regions, region);
    this.bytes.set(id, bytes);
    await region.register(bytes, rights);
    return id;
  }

  #place(port = 0, address = this.#address): { family: 4 | 6; address: string; port: number } {
    return { family: familyOf(address), address, port };
  }

  #region(id: number): IND2MemoryRegion {
    return lookUp(this.#regions, id, 'memory');
  }
}

function remoteOf({ target }: Post): Nd2RemoteMemory {
  if (target === undefined) throw new Error('The request must have a `target`.');
  return new Nd2RemoteMemory(BigInt(target.address), target.key);
}
