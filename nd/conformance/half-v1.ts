import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  type INDListen,
  type INDMemoryWindow,
  type INDProvider,
  type NdAdapterOptions,
  type NdMemoryHandle,
  NdMwDescriptor,
  type NdResult,
  type NdSge,
  Status,
} from '../index.js';
import { type AnyLink, bytesOf, CommonHalf, familyOf, lookUp } from './common-half.js';
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
  readonly connector: INDConnector;
  readonly endpoint: INDEndpoint;
}

const noShared = (): never => {
  throw new Error('SPI v1 does not support shared receive queues.');
};

/** A half over a provider of ND SPI v1. */
export class HalfV1 extends CommonHalf<INDCompletionQueue, INDListen, INDMemoryWindow, Link> implements Half {
  readonly #provider: INDProvider;
  readonly #address: string;
  #adapter: INDAdapter | undefined;
  readonly #memory = new Map<number, NdMemoryHandle>();
  /** Results that this half has passed to the provider. */
  #results = new WeakSet<NdResult>();

  constructor(provider: INDProvider, address: string, stepTimeoutMs: number, source?: MemorySource) {
    super(stepTimeoutMs, source);
    this.#provider = provider;
    this.#address = address;
  }

  get adapter(): INDAdapter {
    if (this.#adapter === undefined) throw new Error('begin() must be called before this method.');
    return this.#adapter;
  }

  begin(options?: NdAdapterOptions): void {
    this.end();
    this.#adapter = this.#provider.openAdapter(this.#address, options);
  }

  end(): void {
    this.releaseAll();
    this.#memory.clear();
    this.#adapter?.release();
    this.#adapter = undefined;
    this.source.reset();
  }

  info(): HalfInfo {
    const info = this.adapter.query();
    return {
      spi: 'v1',
      family: this.adapter.address.family,
      address: this.adapter.address.address,
      limits: {
        receives: info.maxInboundRequests,
        requests: info.maxOutboundRequests,
        receiveSge: info.maxInboundSge,
        requestSge: info.maxOutboundSge,
        readSge: info.maxOutboundSge,
        transfer: info.maxOutboundLength,
        inline: info.maxInlineData,
        inboundReads: info.maxInboundReadLimit,
        outboundReads: info.maxOutboundReadLimit,
        cqEntries: info.maxCqEntries,
        callerData: info.maxCallerData,
        calleeData: info.maxCalleeData,
        sharedReceives: 0,
      },
    };
  }

  listen(options: { port?: number; backlog?: number; protocol?: number }): number {
    return this.add(this.listeners, this.adapter.listen(options));
  }

  listenerAddress(listener: number): HalfAddress {
    const { address, port } = this.listenerOf(listener).address;
    return { address, port };
  }

  cq(entries: number): number {
    return this.add(this.cqs, this.adapter.createCompletionQueue(entries));
  }

  async link(options: LinkOptions): Promise<number> {
    const inbound = options.inbound ?? this.cq(options.cqEntries ?? 128);
    const outbound = options.outbound ?? this.cq(options.cqEntries ?? 128);
    const own: { release(): number }[] = [];
    let connector: INDConnector;
    if (options.connectorOf === undefined) {
      connector = this.adapter.createConnector();
      own.push(connector);
    } else {
      connector = this.linkOf(options.connectorOf).connector;
    }
    let endpoint: INDEndpoint;
    if (options.endpointOf === undefined) {
      try {
        endpoint = connector.createEndpoint({
          inboundCompletionQueue: this.queueOf(inbound),
          outboundCompletionQueue: this.queueOf(outbound),
          inboundEntries: options.receives ?? 32,
          outboundEntries: options.requests ?? 32,
          inboundSge: options.receiveSge ?? 4,
          outboundSge: options.requestSge ?? 4,
          ...(options.inboundReads === undefined ? {} : { inboundReadLimit: options.inboundReads }),
          ...(options.outboundReads === undefined ? {} : { outboundReadLimit: options.outboundReads }),
        });
      } catch (error) {
        for (const object of own) object.release();
        throw error;
      }
      own.push(endpoint);
    } else {
      endpoint = this.linkOf(options.endpointOf).endpoint;
    }
    const wanted = options.memory ?? 65_536;
    const memory = wanted === 0 ? 0 : await this.memory(wanted);
    return this.add(this.links, { connector, endpoint, inbound, outbound, memory, own });
  }

  parts(link: number): LinkParts {
    const { inbound, outbound, memory, endpoint } = this.linkOf(link);
    const { maxInline, inboundSge: receiveSge, outboundSge: requestSge } = endpoint;
    return { inbound, outbound, memory, maxInline, receiveSge, requestSge };
  }

  awaitRequest(listener: number, link: number): number {
    const { connector } = this.linkOf(link);
    return this.request(listener, () => this.listenerOf(listener).getConnectionRequest(connector));
  }

  connect(
    link: number,
    to: string | HalfAddress,
    options: { data?: readonly number[]; localPort?: number; protocol?: number },
  ): number {
    const { connector, endpoint } = this.linkOf(link);
    const { data, ...rest } = options;
    const address = typeof to === 'string' ? to : { family: familyOf(to.address), ...to };
    return this.request(link, () =>
      connector.connect(endpoint, address, {
        ...rest,
        ...(data === undefined ? {} : { privateData: Uint8Array.from(data) }),
      }),
    );
  }

  accept(link: number, data?: readonly number[]): number {
    const { connector, endpoint } = this.linkOf(link);
    return this.request(link, () => connector.accept(endpoint, bytesOf(data)));
  }

  peerData(link: number): PeerData {
    const { inboundReadLimit, outboundReadLimit, privateData } =
      this.linkOf(link).connector.getConnectionData();
    return { inboundReads: inboundReadLimit, outboundReads: outboundReadLimit, data: [...privateData] };
  }

  cancel(object: number): number[] {
    const target = this.cqs.get(object) ?? this.listeners.get(object) ?? this.links.get(object)?.connector;
    return this.cancelWith(object, () => (target ?? this.adapter).cancelOverlappedRequests());
  }

  flush(link: number): void {
    this.linkOf(link).endpoint.flush();
  }

  poll(cq: number, max: number): Outcome[] {
    const results: NdResult[] = [];
    const n = this.queueOf(cq).getResults(results, max);
    if (n > max) throw new Error(`GetResults must return at most ${max} results; got ${n}.`);
    return results.slice(0, n).map((result) => ({
      context: this.#results.has(result)
        ? (result.context as number | string)
        : 'a result that was not passed',
      status: result.status,
      bytes: result.bytesTransferred,
    }));
  }

  async memory(bytes: number): Promise<number> {
    const buffer = this.source.take(bytes);
    return this.#keep(buffer, await this.adapter.registerMemory(buffer));
  }

  async registerAgain(memory: number, at: number, length: number): Promise<number> {
    const part = this.bytesOf(memory, at, length);
    return this.#keep(part, await this.adapter.registerMemory(part));
  }

  deregister(memory: number): number {
    const handle = lookUp(this.#memory, memory, 'memory');
    return this.request(memory, () => this.adapter.deregisterMemory(handle));
  }

  target(): Target {
    throw new Error('SPI v1 supports remote access only to windows.');
  }

  window(invalidateContext?: number | string): number {
    const result = invalidateContext === undefined ? undefined : this.#result(invalidateContext);
    return this.add(this.windows, this.adapter.createMemoryWindow(result));
  }

  shared(): number {
    return noShared();
  }
  sharedReceive(): Posted[] {
    return noShared();
  }
  sharedModify(): void {
    noShared();
  }
  sharedNotify(): number {
    return noShared();
  }

  release(object: number, part?: 'connector' | 'endpoint' | 'inbound' | 'outbound'): void {
    const link = this.links.get(object);
    if (link !== undefined) {
      if (part === undefined) for (const one of link.own) one.release();
      else if (part === 'connector' || part === 'endpoint') link[part].release();
      else this.queueOf(link[part]).release();
      return;
    }
    const found = this.cqs.get(object) ?? this.listeners.get(object) ?? this.windows.get(object);
    if (found === undefined) throw new Error(`Unknown object ${object}, which cannot be released.`);
    found.release();
  }

  protected issue({ endpoint, memory }: Link, post: Post): Target | undefined {
    const { flags, offset = 0 } = post;
    const result = this.#result(post.context ?? 0);
    const sgl = (post.pieces ?? []).map((piece) => this.#sge(piece, memory));
    switch (post.op) {
      case 'send':
        endpoint.send(result, sgl, flags);
        break;
      case 'sendInvalidate':
        endpoint.sendAndInvalidate(result, sgl, descriptorOf(post), flags);
        break;
      case 'receive':
        endpoint.receive(result, sgl);
        break;
      case 'read':
        endpoint.read(result, sgl, descriptorOf(post), offset, flags);
        break;
      case 'write':
        endpoint.write(result, sgl, descriptorOf(post), offset, flags);
        break;
      case 'bind': {
        const { base, length, token } = endpoint.bind(
          result,
          lookUp(this.#memory, post.memory ?? memory, 'memory'),
          this.windowOf(post),
          offset,
          post.length ?? 0,
          flags ?? 0,
        );
        return { address: base.toString(), length: Number(length), key: token };
      }
      case 'invalidate':
        endpoint.invalidate(result, this.windowOf(post), flags);
        break;
      case 'startBatch':
        endpoint.startRequestBatch();
        break;
      case 'submitBatch':
        endpoint.submitRequestBatch();
        break;
    }
    if (post.scribble === true)
      for (const { memory: used } of sgl) if (used instanceof Uint8Array) used.fill(0xee);
    return undefined;
  }

  #sge(piece: Piece, memory: number): NdSge {
    const { at, length, plain } = piece;
    if (plain !== undefined) return { memory: Uint8Array.from(plain), offset: at, length };
    return { memory: lookUp(this.#memory, piece.memory ?? memory, 'memory'), offset: at, length };
  }

  #result(context: number | string): NdResult {
    const result: NdResult = { status: Status.PENDING, bytesTransferred: -1, context };
    this.#results.add(result);
    return result;
  }

  #keep(bytes: Uint8Array, handle: NdMemoryHandle): number {
    const id = this.add(this.#memory, handle);
    this.bytes.set(id, bytes);
    return id;
  }
}

function descriptorOf({ target }: Post): NdMwDescriptor {
  if (target === undefined) throw new Error('The request must have a `target`.');
  return new NdMwDescriptor(BigInt(target.address), BigInt(target.length), target.key);
}
