/**
 * An adapter and its connections as the tools use them: what ND SPI v1 and v2 have in common. `side-v1.ts` and
 * `side-v2.ts` show how each version does it.
 */
import {
  NdError,
  type NdSge,
  ndResolveAddress,
  type Overlapped,
  type SocketAddress,
  Status,
  statusText,
} from '../../nd/index.js';
import { format, Interrupted, type Tool } from './tool.js';

/** What a completed request was; the values of `Nd2RequestType`. */
export const Kind = { RECEIVE: 0, SEND: 1, BIND: 2, INVALIDATE: 3, READ: 4, WRITE: 5 } as const;

/** A completed request; the object is used again for the next. */
export interface Done {
  kind: number;
  /** What the Receive was posted with. */
  tag: number;
  /** Bytes received. */
  bytes: number;
}

/** Registered memory: the bytes, and pieces of them for requests. */
export interface Memory {
  readonly bytes: Uint8Array;
  readonly region: NdSge['memory'] & object;
  /** A list of at most `entries` entries of 40 bytes each, the last of which takes the rest. */
  list(offset: number, length: number, entries?: number): NdSge[];
}

/** Peer's memory; each version has its own form. */
export interface Remote {
  readonly rkey: number;
}

/** How a process waits for completions. */
export type Mode = 'polling' | 'blocking';

/** Queue sizes of a connection. */
export interface LinkSize {
  /** Receives that may be outstanding. */
  receives: number;
  /** Other requests that may be outstanding. */
  initiators: number;
  /** Scatter/gather entries of a request. */
  sge: number;
}

/** Limits of an adapter, and what it can do. */
export interface SideLimits {
  readonly queueDepth: number;
  readonly receiveDepth: number;
  readonly completionDepth: number;
  readonly sge: number;
  readonly readSge: number;
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** Whether a Write's last byte is written last; undefined where the SPI does not tell. */
  readonly inOrder: boolean | undefined;
}

/** An adapter. */
export interface Side {
  readonly address: SocketAddress;
  readonly limits: SideLimits;
  register(bytes: Uint8Array<ArrayBuffer>): Promise<Memory>;
  link(tool: Tool, mode: Mode, size: LinkSize): Link;
  /** Listens at the side's address. */
  listen(port: number): Listening;
  [Symbol.dispose](): void;
}

/** A listener. */
export interface Listening {
  readonly address: SocketAddress;
  /** Gives the next request for a connection to `link`. */
  request(link: Link): Overlapped<void>;
  [Symbol.dispose](): void;
}

/** The connection has ended: requests that were outstanding come back canceled. */
export class ConnectionEnded extends Error {
  constructor() {
    super('The peer has ended the connection before the test was over.');
  }
}

/** Looks at the clock are this many polls apart. */
const POLLS = 2048;
/** So long the event loop may wait. */
const PATIENCE_MS = 50;

/** One connection: connector, queue pair and a completion queue for everything. */
export abstract class Link {
  readonly done: Done = { kind: 0, tag: 0, bytes: 0 };
  readonly #tool: Tool;
  readonly #mode: Mode;
  #polls = 0;
  #rested = performance.now();

  constructor(tool: Tool, mode: Mode) {
    this.#tool = tool;
    this.#mode = mode;
  }

  abstract connect(peer: SocketAddress): Overlapped<void>;
  abstract completeConnect(): Overlapped<void>;
  abstract accept(privateData?: Uint8Array): Overlapped<void>;
  abstract get privateData(): Uint8Array;
  abstract get peerAddress(): SocketAddress;
  abstract notifyDisconnect(): Overlapped<void>;
  abstract disconnect(): Overlapped<void>;
  abstract receive(tag: number, list: NdSge[]): void;
  abstract send(list: NdSge[]): void;
  abstract write(list: NdSge[], remote: Remote, offset: number): void;
  abstract read(list: NdSge[], remote: Remote, offset: number): void;
  /** Opens all of `memory` to the peer, for Reads and Writes; answers address and token. */
  abstract open(memory: Memory): { address: bigint; token: number };
  abstract remote(address: bigint, length: number, token: number): Remote;
  abstract [Symbol.asyncDispose](): Promise<void>;

  /** Takes one completion into {@link done}; answers its status, undefined if there is none. */
  protected abstract take(): number | undefined;
  protected abstract notify(): Overlapped<void>;

  /**
   * The next completion, if it comes soon; else the event loop needs its turn: await {@link next} then.
   *
   * @example
   * ```ts
   * const done = link.poll() ?? (await link.next());
   * ```
   */
  poll(): Done | undefined {
    const tries = this.#mode === 'polling' ? POLLS : 1;
    for (let i = 0; i < tries; i += 1) {
      this.#polls += 1;
      if (this.#polls >= POLLS) {
        this.#polls = 0;
        if (performance.now() - this.#rested > PATIENCE_MS) return undefined;
      }
      if (this.#taken()) return this.done;
    }
    return undefined;
  }

  /** The next completion, while the event loop runs: by notification, or in turns with polling. */
  async next(mode: Mode = this.#mode): Promise<Done> {
    for (;;) {
      await this.rest();
      if (this.#taken()) return this.done;
      if (mode === 'blocking') {
        await this.notify()
          .abortOn(this.#tool.signal)
          .recover(({ status }) => (status === Status.CANCELED ? null : undefined));
      } else {
        for (let i = 0; i < POLLS; i += 1) if (this.#taken()) return this.done;
      }
    }
  }

  /** A completion, if there is one right now. */
  glance(): Done | undefined {
    return this.#taken() ? this.done : undefined;
  }

  /** Waits until the peer has ended the connection. @throws Interrupted */
  async peerGone(): Promise<void> {
    await this.notifyDisconnect().abortOn(this.#tool.signal);
  }

  /** Lets the event loop have a turn. @throws Interrupted */
  async rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#rested = performance.now();
    if (this.#tool.signal.aborted) throw new Interrupted();
  }

  /** Whether the event loop has not had a turn for some time. */
  get tired(): boolean {
    return performance.now() - this.#rested > PATIENCE_MS;
  }

  #taken(): boolean {
    const status = this.take();
    if (status === undefined) return false;
    if (status === Status.SUCCESS) return true;
    if (status === Status.CANCELED) throw new ConnectionEnded();
    throw new NdError(status, `A request failed: ${statusText(status)}`);
  }
}

/** Opens the adapter of a local address. */
export async function openSide(spi: 'v1' | 'v2', address: SocketAddress): Promise<Side> {
  try {
    const { open } = spi === 'v1' ? await import('./side-v1.js') : await import('./side-v2.js');
    return open({ ...address, port: 0 });
  } catch (error) {
    if (!(error instanceof NdError) || error.status !== Status.INVALID_ADDRESS) throw error;
    throw new Error(`No adapter of this host has the address ${address.address}.`, { cause: error });
  }
}

/** The adapter from which the host's routes lead to a peer. */
export function openTowards(spi: 'v1' | 'v2', peer: SocketAddress): Promise<Side> {
  return openSide(spi, ndResolveAddress(peer));
}

/** Waits for a request, and gives it to `link`. */
export async function awaitClient(tool: Tool, side: Side, link: Link, port: number): Promise<void> {
  using listening = side.listen(port);
  tool.note(`Listening on ${format(listening.address)}`);
  await listening.request(link).abortOn(tool.signal);
}

/** Connects, and says what to do when nobody answers. */
export async function connectTo(tool: Tool, link: Link, peer: SocketAddress): Promise<void> {
  try {
    await link.connect(peer).abortOn(tool.signal);
  } catch (error) {
    throw missingServer(tool, error, peer);
  }
}

/** An error that people understand, if it is one of those that a missing server causes. */
export function missingServer(tool: Tool, error: unknown, peer: SocketAddress): unknown {
  if (!(error instanceof NdError)) return error;
  const { address, port } = peer;
  if (error.status === Status.CONNECTION_REFUSED) {
    return new Error(
      `No server answers at ${address}, port ${port}. Start one there first: ${tool.name} -s ${format(peer)}`,
      { cause: error },
    );
  }
  if (error.status === Status.TIMEOUT || error.status === Status.IO_TIMEOUT) {
    return new Error(
      `${address} does not answer. Is it up, with the server running and UDP port 4791 open in its firewall? ` +
        `The server would be: ${tool.name} -s ${format(peer)}`,
      { cause: error },
    );
  }
  return error;
}

/** Runs a server's work until the client ends the connection, which is how it is told that the test is over. */
export async function untilEnd(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ConnectionEnded)) throw error;
  }
}

const ENTRY = 40;

/** Memory of either version. */
export function memoryOf(bytes: Uint8Array, region: Memory['region']): Memory {
  return {
    bytes,
    region,
    list(offset, length, entries = 1) {
      const list: NdSge[] = [];
      let at = 0;
      while (at < length) {
        const rest = length - at;
        const size = list.length < entries - 1 ? Math.min(ENTRY, rest) : rest;
        list.push({ memory: region, offset: offset + at, length: size });
        at += size;
      }
      return list;
    },
  };
}
