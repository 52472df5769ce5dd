/**
 * Two connected sides: what examples, benchmarks and tests share. A {@link Host} is an address of this host, opened by one of
 * the interfaces: SPI v1 (`v1.ts`), SPI v2 (`v2.ts`) or WinVerbs (`winverbs.ts`). A {@link Side} is one end of a connection.
 * {@link connectSides} connects two sides of one process; in two processes, one accepts what its listener gives it
 * ({@link acceptSide}), and the other connects ({@link Side.establish}).
 */
import type { Nd2RequestType, Overlapped, SocketAddress } from '../nd/index.js';

/** The loopback address: every host has it, and no other host reaches it. */
export const LOOPBACK = '127.0.0.1';

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
  readonly bytes?: Uint8Array<ArrayBuffer>;
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
  /** Opens all of `memory` to the peer, for Reads and Writes; answers what {@link remote} takes there. */
  abstract open(memory: Memory): { address: bigint; token: number };
  abstract remote(address: bigint, length: number, token: number): Remote;

  /** A list of one piece of the side's own memory. */
  abstract sge(offset: number, length: number): readonly Piece[];
  /** Takes one completion into {@link done}; false: there is none. */
  abstract take(which: Which): boolean;
  abstract notify(which: Which): Overlapped<void>;
  /** The name of a status in {@link done}. */
  abstract statusName(status: number): string;
  /** Releases its parts; memory that nothing else uses can go with them. */
  abstract release(memoryToo?: boolean): void;

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

/** An address of this host, opened by one of the interfaces. */
export interface Host {
  side(options?: SideOptions): Side;
  /** Listens at the host's address, or, where the interface has it, at another; port 0 asks for a free one. */
  listen(port?: number, backlog?: number, address?: string): Listener;
  release(): void;
}

/** Connects two sides of this process; `heard` is called with each side once its peer's private data has come. */
export async function connectSides<S extends Side, H>(
  listener: Listener,
  active: S,
  passive: S,
  heard: (side: S) => H,
  options: { connect?: Parameters<S['connect']>[1]; accept?: Parameters<S['accept']>[0] } = {},
): Promise<{ atActive: H; atPassive: H }> {
  const requested = listener.request(passive);
  const connected = active.connect(listener.address, options.connect);
  await requested;
  const atPassive = heard(passive);
  const accepted = passive.accept(options.accept);
  await connected;
  const atActive = heard(active);
  await active.completeConnect();
  await accepted;
  return { atActive, atPassive };
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

/** An IP address with a port. */
export function socketAddress(address: string, port = 0): SocketAddress {
  return { family: address.includes(':') ? 6 : 4, address, port };
}

/** Private data as text: the transport pads it with zeros. */
export function textOf(data: Uint8Array): string {
  const end = data.indexOf(0);
  return Buffer.from(end < 0 ? data : data.subarray(0, end)).toString('latin1');
}
