/**
 * Two connected sides: what examples, benchmarks and tests share. A {@link Host} is an address of this host, opened by one of
 * the interfaces: SPI v1 (`v1-side.ts`), SPI v2 (`v2-side.ts`) or WinVerbs (`winverbs-side.ts`). A {@link Side} is one end of a connection.
 * {@link connectSides} connects two sides of one process; in two processes, one accepts what its listener gives it
 * ({@link acceptSide}), and the other connects ({@link Side.establish}).
 */
import { allocate, type Nd2RequestType, type Overlapped, type SocketAddress } from 'networkdirect';

/** The loopback address: every host has it, and no other host reaches it. */
export const LOOPBACK = '127.0.0.1';

/** Bytes of a side's own memory where nothing else is said. */
export const OWN_BYTES = 1 << 20;

/** Memory to be registered. Any buffer can be, but on Windows only that of `allocate()` and SharedArrayBuffers. */
export function memoryFor(bytes: number): Uint8Array<ArrayBuffer> {
  return process.platform === 'win32' ? allocate(bytes) : new Uint8Array(bytes);
}

/** A piece of registered memory, for requests of the interface that made it. */
export interface Piece {
  readonly offset: number;
  readonly length: number;
}

/** Registered memory. */
export interface Memory {
  readonly bytes: Uint8Array;
  /** A list of one piece. */
  sge(offset: number, length: number): readonly Piece[];
  release(): void;
}

/** The peer's memory; each interface has a form of its own. */
export interface Remote {
  readonly rkey: number;
}

/** A completed request. */
export interface Done {
  context: unknown;
  kind: Nd2RequestType;
  status: number;
  /** Bytes received. */
  bytes: number;
}

/** The completion queue of Receives, or that of other requests. They may be one. */
export type Which = 'inbound' | 'outbound';

/** Sizes of a side; what is left out has a default. */
export interface SideOptions {
  /** Receives that may be outstanding. */
  readonly receives?: number;
  /** Other requests that may be outstanding. */
  readonly requests?: number;
  /** Scatter/gather entries of a request. */
  readonly sge?: number;
  /** One completion queue for everything. */
  readonly oneQueue?: boolean;
  /** Memory of the side's own. */
  readonly bytes?: Uint8Array;
}

/** One end of a connection: connector, queue pair and completion queues. */
export abstract class Side {
  /** What {@link take} took last; the object is used again. */
  readonly done: Done = { context: undefined, kind: 0, status: 0, bytes: 0 };

  abstract connect(peer: SocketAddress, options?: { privateData?: Uint8Array }): Overlapped<void>;
  abstract completeConnect(): Overlapped<void>;
  abstract accept(options?: { privateData?: Uint8Array }): Overlapped<void>;
  abstract notifyDisconnect(): Overlapped<void>;
  abstract disconnect(): Overlapped<void>;
  /** Came with the peer's request, or its reply. */
  abstract get privateData(): Uint8Array;
  abstract get peerAddress(): SocketAddress;

  abstract receive(context: unknown, list: readonly Piece[]): void;
  abstract send(context: unknown, list: readonly Piece[]): void;
  abstract write(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void;
  abstract read(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void;
  /** Opens all of `memory` to the peer, for Reads and Writes; answers what {@link remoteAt} takes there. */
  abstract open(memory: Memory): { address: bigint; token: number };
  abstract remoteAt(address: bigint, length: number, token: number): Remote;

  /** A list of one piece of the side's own memory. */
  abstract sge(offset: number, length: number): readonly Piece[];
  /** Takes one completion into {@link done}; false: there is none. */
  abstract take(which: Which): boolean;
  abstract notify(which: Which): Overlapped<void>;
  /** The name of a status in {@link done}. */
  abstract statusName(status: number): string;
  /** Releases its parts; memory that nothing else uses can go with them. */
  abstract release(memoryToo?: boolean): void;

  [Symbol.dispose](): void {
    this.release();
  }

  /** Connects to a listener; answers the private data of its reply. */
  async establish(peer: SocketAddress, privateData?: Uint8Array): Promise<Uint8Array> {
    await this.connect(peer, privateData === undefined ? {} : { privateData });
    const reply = this.privateData;
    await this.completeConnect();
    return reply;
  }
}

/** A listener. */
export interface Listener {
  /** Its port is a free one if 0 was asked for. */
  readonly address: SocketAddress;
  /** Gives the next request to `side`. */
  request(side: Side): Overlapped<void>;
  release(): void;
}

/** When the private data of either side's peer has come, and what is said to it. */
export interface Joining<C, A> {
  readonly connect?: C;
  readonly accept?: A;
  readonly onRequest?: () => void;
  readonly onReply?: () => void;
}

/** Connects two sides of this process. */
export async function connectSides<S extends Side>(
  listener: Listener,
  active: S,
  passive: S,
  options: Joining<Parameters<S['connect']>[1], Parameters<S['accept']>[0]> = {},
): Promise<void> {
  const requested = listener.request(passive);
  const connected = active.connect(listener.address, options.connect);
  await requested;
  options.onRequest?.();
  const accepted = passive.accept(options.accept);
  await connected;
  options.onReply?.();
  await active.completeConnect();
  await accepted;
}

/** An address of this host, opened by one of the interfaces; `O` are the options of its sides. */
export abstract class Host<S extends Side = Side, L extends Listener = Listener, O = unknown> {
  #listening: L | undefined;

  /** A side with sizes that every interface has. */
  abstract side(options?: SideOptions): S;
  /** A side with options of the interface. */
  abstract newSide(options?: O): S;
  /** Listens at the host's address, or, where the interface has it, at another; port 0 asks for a free one. */
  abstract listen(port?: number, backlog?: number, address?: string): L;
  abstract register(bytes: Uint8Array): Promise<Memory>;
  protected abstract releaseParts(): void;

  /** The listener for pairs. */
  get listening(): L {
    this.#listening ??= this.listen();
    return this.#listening;
  }

  /** Where it listens, `address:port`. */
  get target(): string {
    const { address, port } = this.listening.address;
    return `${address}:${port}`;
  }

  /** Connects two sides to each other. */
  join(
    active: S,
    passive: S,
    options?: Joining<Parameters<S['connect']>[1], Parameters<S['accept']>[0]>,
  ): Promise<void> {
    return connectSides(this.listening, active, passive, options);
  }

  /** Two connected sides in this process. */
  async pair(
    options: { active?: O; passive?: O } & Joining<
      Parameters<S['connect']>[1],
      Parameters<S['accept']>[0]
    > = {},
  ): Promise<{ active: S; passive: S }> {
    const [active, passive] = [this.newSide(options.active), this.newSide(options.passive)];
    await this.join(active, passive, options);
    return { active, passive };
  }

  release(): void {
    this.#listening?.release();
    this.releaseParts();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Gives a side the next request of a listener, and accepts it; answers the request's private data. */
export async function acceptSide(
  listener: Listener,
  side: Side,
  privateData?: Uint8Array,
  ready?: () => void,
): Promise<Uint8Array> {
  await listener.request(side);
  const heard = side.privateData;
  ready?.();
  await side.accept(privateData === undefined ? {} : { privateData });
  return heard;
}

/** A completion queue of any of the interfaces. */
export type AnyQueue<R> = { notify(type: 'any'): Overlapped<void> } & (
  | { getResults(results: R[], count: number): number }
  | { poll(completions: R[], count: number): number }
);

/** Takes exactly `count` completions, sleeping in between; `patienceMs` bounds the sleep until the next one. */
export async function take<R>(queue: AnyQueue<R>, count = 1, patienceMs = 30_000): Promise<R[]> {
  const taken: R[] = [];
  for (;;) {
    // New ones: a queue fills the objects of the array again.
    const some: R[] = [];
    const wanted = count - taken.length;
    const found = 'poll' in queue ? queue.poll(some, wanted) : queue.getResults(some, wanted);
    taken.push(...some.slice(0, found));
    if (taken.length === count) return taken;
    if (found === 0) await queue.notify('any').abortOn(AbortSignal.timeout(patienceMs));
  }
}

/** The next completion. */
export async function takeOne<R>(queue: AnyQueue<R>): Promise<R> {
  return (await take(queue))[0]!;
}

/** An IP address with a port. */
export function socketAddress(address: string, port = 0): SocketAddress {
  return { family: address.includes(':') ? 6 : 4, address, port };
}

/** Private data as text: the transport pads it with zeros. */
export function textOf(data: Uint8Array): string {
  const end = data.indexOf(0);
  return Buffer.from(end < 0 ? data : data.subarray(0, end)).toString('latin1');
}
