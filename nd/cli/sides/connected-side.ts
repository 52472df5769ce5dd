/**
 * Two connected sides, shared by examples, benchmarks and tests. A {@link Host} is a local address opened through one of the interfaces:
 * SPI v1 (`v1-side.ts`), SPI v2 (`v2-side.ts`) or WinVerbs (`winverbs-side.ts`). A {@link Side} is one end of a connection. {@link
 * connectSides} connects two sides in one process. With two processes, one accepts a request from its listener ({@link acceptSide}), and
 * the other connects ({@link Side.establish}).
 */
import { allocate, type Nd2RequestType, type Overlapped, type SocketAddress } from 'networkdirect';

/** The loopback address, which every host has and no other host can reach. */
export const LOOPBACK = '127.0.0.1';

/** Default size of a side's memory, in bytes. */
export const OWN_BYTES = 1 << 20;

/** Allocates memory for registration. Linux accepts any buffer; Windows only memory from `allocate()` and SharedArrayBuffers. */
export function memoryFor(bytes: number): Uint8Array<ArrayBuffer> {
  return process.platform === 'win32' ? allocate(bytes) : new Uint8Array(bytes);
}

/** Part of registered memory, for requests of the interface that created it. */
export interface Piece {
  readonly offset: number;
  readonly length: number;
}

/** Registered memory. */
export interface Memory {
  readonly bytes: Uint8Array;
  /** Returns a scatter/gather list with one entry. */
  sge(offset: number, length: number): readonly Piece[];
  release(): void;
}

/** The peer's memory, in a form that depends on the interface. */
export interface Remote {
  readonly rkey: number;
}

/** A completed request. */
export interface Done {
  context: unknown;
  kind: Nd2RequestType;
  status: number;
  /** Number of bytes received. */
  bytes: number;
}

/** The completion queue of Receives or of other requests; they may be the same. */
export type Which = 'inbound' | 'outbound';

/** Sizes of a side. Each has a default. */
export interface SideOptions {
  /** Maximum outstanding Receives. */
  readonly receives?: number;
  /** Maximum outstanding other requests. */
  readonly requests?: number;
  /** Scatter/gather entries of a request. */
  readonly sge?: number;
  /** Whether to use one completion queue for everything. */
  readonly oneQueue?: boolean;
  /** Memory of the side. */
  readonly bytes?: Uint8Array;
}

/** One end of a connection: connector, queue pair and completion queues. */
export abstract class Side {
  /** The last completion of {@link take}; the object is reused. */
  readonly done: Done = { context: undefined, kind: 0, status: 0, bytes: 0 };

  abstract connect(peer: SocketAddress, options?: { privateData?: Uint8Array }): Overlapped<void>;
  abstract completeConnect(): Overlapped<void>;
  abstract accept(options?: { privateData?: Uint8Array }): Overlapped<void>;
  abstract notifyDisconnect(): Overlapped<void>;
  abstract disconnect(): Overlapped<void>;
  /** Private data of the peer's request or reply. */
  abstract get privateData(): Uint8Array;
  abstract get peerAddress(): SocketAddress;

  abstract receive(context: unknown, list: readonly Piece[]): void;
  abstract send(context: unknown, list: readonly Piece[]): void;
  abstract write(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void;
  abstract read(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void;
  /** Gives the peer access to all of `memory` for Reads and Writes. Returns the arguments for its {@link remoteAt}. */
  abstract open(memory: Memory): { address: bigint; token: number };
  abstract remoteAt(address: bigint, length: number, token: number): Remote;

  /** Returns a scatter/gather list with one entry of the side's memory. */
  abstract sge(offset: number, length: number): readonly Piece[];
  /** Moves one completion to {@link done}. Returns false if the queue is empty. */
  abstract take(which: Which): boolean;
  abstract notify(which: Which): Overlapped<void>;
  /** The name of a status in {@link done}. */
  abstract statusName(status: number): string;
  /** Releases its objects and, with `memoryToo`, its memory. */
  abstract release(memoryToo?: boolean): void;

  [Symbol.dispose](): void {
    this.release();
  }

  /** Connects to a listener. Resolves with the private data of the reply. */
  async establish(peer: SocketAddress, privateData?: Uint8Array): Promise<Uint8Array> {
    await this.connect(peer, privateData === undefined ? {} : { privateData });
    const reply = this.privateData;
    await this.completeConnect();
    return reply;
  }
}

/** A listener. */
export interface Listener {
  /** The address of the listener; its port is a free one if 0 was requested. */
  readonly address: SocketAddress;
  /** Passes the next request to `side`. */
  request(side: Side): Overlapped<void>;
  release(): void;
}

/** Private data for the connection request and, once the peer's data is known, for the reply. */
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

/** A local address opened through one of the interfaces. `O` is the type of the options of its sides. */
export abstract class Host<S extends Side = Side, L extends Listener = Listener, O = unknown> {
  #listening: L | undefined;

  /** Creates a side with sizes that every interface supports. */
  abstract side(options?: SideOptions): S;
  /** Creates a side with options of the interface. */
  abstract newSide(options?: O): S;
  /** Listens at the host's address or, if the interface supports it, at another; port 0 selects a free one. */
  abstract listen(port?: number, backlog?: number, address?: string): L;
  abstract register(bytes: Uint8Array): Promise<Memory>;
  protected abstract releaseParts(): void;

  /** The listener for pairs. */
  get listening(): L {
    this.#listening ??= this.listen();
    return this.#listening;
  }

  /** The address of that listener as `address:port`. */
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

  /** Creates two connected sides in this process. */
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

/** Passes the next request of a listener to a side and accepts it. Resolves with the request's private data. */
export async function acceptSide(
  listener: Listener,
  side: Side,
  privateData?: Uint8Array,
  ready?: () => void,
): Promise<Uint8Array> {
  await listener.request(side);
  const received = side.privateData;
  ready?.();
  await side.accept(privateData === undefined ? {} : { privateData });
  return received;
}

/** A completion queue of any of the interfaces. */
export type AnyQueue<R> = { notify(type: 'any'): Overlapped<void> } & (
  | { getResults(results: R[], count: number): number }
  | { poll(completions: R[], count: number): number }
);

/** Waits for exactly `count` completions. `timeoutMs` limits the wait for each. */
export async function take<R>(queue: AnyQueue<R>, count = 1, timeoutMs = 30_000): Promise<R[]> {
  const taken: R[] = [];
  for (;;) {
    // New objects are created, because a queue refills those of the array.
    const some: R[] = [];
    const wanted = count - taken.length;
    const found = 'poll' in queue ? queue.poll(some, wanted) : queue.getResults(some, wanted);
    taken.push(...some.slice(0, found));
    if (taken.length === count) return taken;
    if (found === 0) await queue.notify('any').abortOn(AbortSignal.timeout(timeoutMs));
  }
}

/** Waits for the next completion. */
export async function takeOne<R>(queue: AnyQueue<R>): Promise<R> {
  return (await take(queue))[0]!;
}

/** An IP address with a port. */
export function socketAddress(address: string, port = 0): SocketAddress {
  return { family: address.includes(':') ? 6 : 4, address, port };
}

/** Private data as text, without the transport's padding zeros. */
export function textOf(data: Uint8Array): string {
  const end = data.indexOf(0);
  return Buffer.from(end < 0 ? data : data.subarray(0, end)).toString('latin1');
}
