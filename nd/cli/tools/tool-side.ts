/** Adapters and connections for the tools, over ND SPI v1 or v2 (`sides/`). */
import {
  Nd2AdapterFlag,
  type Nd2AdapterInfo,
  Nd2RequestType,
  type NdAdapterInfo,
  NdError,
  ndResolveAddress,
  type Overlapped,
  type SocketAddress,
  Status,
} from '../../index.js';
import type { Done, Listener, Piece, Memory as Registered, Remote } from '../sides/connected-side.js';

export type { Piece, Remote };

import { ConnectionEnded, requestFailure } from '../peer-lost.js';
import { HostV1, type SideV1 } from '../sides/v1-side.js';
import { HostV2, type SideV2 } from '../sides/v2-side.js';
import { format, Interrupted, type Tool } from './tool.js';

export { ConnectionEnded };

/** The type of a completed request. */
export const Kind = Nd2RequestType;

/** Registered memory and scatter/gather lists of its parts. */
export class Memory {
  constructor(readonly registered: Registered) {}

  get bytes(): Uint8Array {
    return this.registered.bytes;
  }

  /** Returns a list of at most `entries` entries. All but the last have 40 bytes. */
  list(offset: number, length: number, entries = 1): Piece[] {
    const list: Piece[] = [];
    let at = 0;
    while (at < length) {
      const rest = length - at;
      const size = list.length < entries - 1 ? Math.min(ENTRY, rest) : rest;
      list.push(...this.registered.sge(offset + at, size));
      at += size;
    }
    return list;
  }
}

/** How a process waits for completions. */
export type Mode = 'polling' | 'blocking';

export function modeOf({ blocking }: { blocking: boolean }): Mode {
  return blocking ? 'blocking' : 'polling';
}

/** Queue sizes of a connection. */
export interface LinkSize {
  /** Maximum outstanding Receives. */
  receives: number;
  /** Maximum other outstanding requests. */
  initiators: number;
  /** Maximum scatter/gather entries of a request. */
  sge: number;
}

/** Limits and features of an adapter. */
export interface SideLimits {
  readonly queueDepth: number;
  readonly receiveDepth: number;
  readonly completionDepth: number;
  readonly sge: number;
  readonly readSge: number;
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** Whether the last byte of a Write is placed last; undefined if the SPI does not report it. */
  readonly inOrder: boolean | undefined;
}

/** An adapter. */
export class Side implements Disposable {
  readonly limits: SideLimits;

  constructor(
    private readonly host: HostV1 | HostV2,
    readonly address: SocketAddress,
  ) {
    this.limits = host instanceof HostV1 ? limitsV1(host.adapter.query()) : limitsV2(host.adapter.query());
  }

  async register(bytes: Uint8Array<ArrayBuffer>): Promise<Memory> {
    return new Memory(await this.host.register(bytes));
  }

  link(tool: Tool, mode: Mode, { receives, initiators, sge }: LinkSize): Link {
    return new Link(tool, mode, this.host.side({ receives, requests: initiators, sge, oneQueue: true }));
  }

  /** Listens at the side's address. */
  listen(port: number): Listening {
    return new Listening(this.host.listen(port));
  }

  [Symbol.dispose](): void {
    this.host.release();
  }
}

function limitsV1(info: NdAdapterInfo): SideLimits {
  return {
    queueDepth: info.maxOutboundRequests,
    receiveDepth: info.maxInboundRequests,
    completionDepth: info.maxCqEntries,
    sge: Math.min(info.maxOutboundSge, info.maxInboundSge),
    readSge: info.maxOutboundSge,
    inboundReads: info.maxInboundReadLimit,
    outboundReads: info.maxOutboundReadLimit,
    inOrder: undefined,
  };
}

function limitsV2(info: Nd2AdapterInfo): SideLimits {
  return {
    queueDepth: info.maxInitiatorQueueDepth,
    receiveDepth: info.maxReceiveQueueDepth,
    completionDepth: info.maxCompletionQueueDepth,
    sge: Math.min(info.maxInitiatorSge, info.maxReceiveSge),
    readSge: info.maxReadSge,
    inboundReads: info.maxInboundReadLimit,
    outboundReads: info.maxOutboundReadLimit,
    inOrder: (info.adapterFlags & Nd2AdapterFlag.IN_ORDER_DMA_SUPPORTED) !== 0,
  };
}

/** A listener. */
export class Listening implements Disposable {
  constructor(private readonly listener: Listener) {}

  get address(): SocketAddress {
    return this.listener.address;
  }

  /** Passes the next connection request to `link`. */
  request(link: Link): Overlapped<void> {
    return this.listener.request(link.side);
  }

  [Symbol.dispose](): void {
    this.listener.release();
  }
}

/** Size in bytes of all but the last entry of a list. */
const ENTRY = 40;
/** Number of polls between two reads of the clock. */
const POLLS = 2048;
/** Maximum time that the event loop is blocked, in ms. */
const MAX_BLOCKED_MS = 50;

/** A connection with one completion queue for all requests. */
export class Link implements AsyncDisposable {
  #polls = 0;
  #yielded = performance.now();

  constructor(
    readonly tool: Tool,
    readonly mode: Mode,
    readonly side: SideV1 | SideV2,
  ) {}

  receive(tag: number, list: readonly Piece[]): void {
    this.side.receive(tag, list);
  }

  send(list: readonly Piece[]): void {
    this.side.send(undefined, list);
  }

  write(list: readonly Piece[], remote: Remote, offset: number): void {
    this.side.write(undefined, list, remote, offset);
  }

  read(list: readonly Piece[], remote: Remote, offset: number): void {
    this.side.read(undefined, list, remote, offset);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.side.connector[Symbol.asyncDispose]();
    this.side.release();
  }

  /**
   * Polls for the next completion. If it returns undefined, the event loop must run: await {@link next}.
   *
   * @example
   * ```ts
   * const done = link.poll() ?? (await link.next());
   * ```
   */
  poll(): Done | undefined {
    const tries = this.mode === 'polling' ? POLLS : 1;
    for (let i = 0; i < tries; i += 1) {
      this.#polls += 1;
      if (this.#polls >= POLLS) {
        this.#polls = 0;
        if (performance.now() - this.#yielded > MAX_BLOCKED_MS) return undefined;
      }
      if (this.#take()) return this.side.done;
    }
    return undefined;
  }

  /** Waits for the next completion while the event loop runs, by notification or by polling at intervals. */
  async next(mode: Mode = this.mode): Promise<Done> {
    for (;;) {
      await this.yieldToLoop();
      if (this.#take()) return this.side.done;
      if (mode === 'blocking') {
        await this.side
          .notify('inbound')
          .abortOn(this.tool.signal)
          .recover(({ status }) => (status === Status.CANCELED ? null : undefined));
      } else {
        for (let i = 0; i < POLLS; i += 1) if (this.#take()) return this.side.done;
      }
    }
  }

  /** Polls once. */
  pollOnce(): Done | undefined {
    return this.#take() ? this.side.done : undefined;
  }

  /** Ends the test with a message of 0 bytes. Call when the server has replied to all messages. */
  async sendEnd(): Promise<void> {
    this.send([]);
    while ((this.poll() ?? (await this.next())).kind !== Kind.SEND);
  }

  /** Waits until the peer ends the connection. @throws Interrupted */
  async peerGone(): Promise<void> {
    await this.side.notifyDisconnect().abortOn(this.tool.signal);
  }

  /** Lets the event loop run once. @throws Interrupted */
  async yieldToLoop(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#yielded = performance.now();
    if (this.tool.signal.aborted) throw new Interrupted();
  }

  /** Whether the event loop has been blocked for too long. */
  get mustYield(): boolean {
    return performance.now() - this.#yielded > MAX_BLOCKED_MS;
  }

  #take(): boolean {
    if (!this.side.take('inbound')) return false;
    const { status } = this.side.done;
    if (status === Status.SUCCESS) return true;
    throw requestFailure(status);
  }
}

/** Opens the adapter of a local address. */
export async function openSide(spi: 'v1' | 'v2', address: SocketAddress): Promise<Side> {
  try {
    const Host = spi === 'v1' ? HostV1 : HostV2;
    return new Side(new Host(address), { ...address, port: 0 });
  } catch (error) {
    if (!(error instanceof NdError) || error.status !== Status.INVALID_ADDRESS) throw error;
    throw new Error(`No adapter of this host has the address ${address.address}.`, { cause: error });
  }
}

/** Opens the adapter that the host's routes to a peer use. */
export function openTowards(spi: 'v1' | 'v2', peer: SocketAddress): Promise<Side> {
  return openSide(spi, ndResolveAddress(peer));
}

/** Waits for a connection request and passes it to `link`. */
export async function awaitClient(tool: Tool, side: Side, link: Link, port: number): Promise<void> {
  using listening = side.listen(port);
  tool.note(`Listening on ${format(listening.address)}`);
  await listening.request(link).abortOn(tool.signal);
}

/** Connects. Without a server, the error contains the command that starts one. */
export async function connectTo(tool: Tool, link: Link, peer: SocketAddress): Promise<void> {
  try {
    await link.side.connect(peer).abortOn(tool.signal);
  } catch (error) {
    throw missingServer(tool, error, peer);
  }
}

/** Converts errors caused by a missing server to understandable ones; other errors are returned unchanged. */
export function missingServer(tool: Tool, error: unknown, peer: SocketAddress): unknown {
  if (!(error instanceof NdError)) return error;
  const { address, port } = peer;
  if (error.status === Status.CONNECTION_REFUSED) {
    return new Error(
      `No server responds at ${address}, port ${port}. Start one there first: ${tool.name} -s ${format(peer)}`,
      { cause: error },
    );
  }
  if (error.status === Status.TIMEOUT || error.status === Status.IO_TIMEOUT) {
    return new Error(
      `${address} does not respond. Check that it is up, that ${tool.name} -s ${format(peer)} is running there, ` +
        'and that its firewall permits UDP port 4791.',
      { cause: error },
    );
  }
  return error;
}
