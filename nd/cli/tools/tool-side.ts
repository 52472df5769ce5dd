/** An adapter and its connections as the tools use them, by ND SPI v1 or v2 (`sides/`). */
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

/** What a completed request was. */
export const Kind = Nd2RequestType;

/** Registered memory: the bytes, and pieces of them for requests. */
export class Memory {
  constructor(readonly registered: Registered) {}

  get bytes(): Uint8Array {
    return this.registered.bytes;
  }

  /** A list of at most `entries` entries of 40 bytes each, the last of which takes the rest. */
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
  /** Maximum of outstanding Receives. */
  receives: number;
  /** Maximum of other outstanding requests. */
  initiators: number;
  /** Scatter/gather entries of a request. */
  sge: number;
}

/** Limits and abilities of an adapter. */
export interface SideLimits {
  readonly queueDepth: number;
  readonly receiveDepth: number;
  readonly completionDepth: number;
  readonly sge: number;
  readonly readSge: number;
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** Whether a Write's last byte is written last; undefined if the SPI does not say. */
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

  /** Gives the next request for a connection to `link`. */
  request(link: Link): Overlapped<void> {
    return this.listener.request(link.side);
  }

  [Symbol.dispose](): void {
    this.listener.release();
  }
}

/** Bytes of an entry where there are several. */
const ENTRY = 40;
/** Looks at the clock are this many polls apart. */
const POLLS = 2048;
/** How long the event loop may be blocked. */
const PATIENCE_MS = 50;

/** One connection, with a completion queue for everything. */
export class Link implements AsyncDisposable {
  #polls = 0;
  #rested = performance.now();

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
   * The next completion, if it comes soon. Otherwise the event loop must run: await {@link next} then.
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
        if (performance.now() - this.#rested > PATIENCE_MS) return undefined;
      }
      if (this.#taken()) return this.side.done;
    }
    return undefined;
  }

  /** The next completion, while the event loop runs: by notification, or in turns with polling. */
  async next(mode: Mode = this.mode): Promise<Done> {
    for (;;) {
      await this.rest();
      if (this.#taken()) return this.side.done;
      if (mode === 'blocking') {
        await this.side
          .notify('inbound')
          .abortOn(this.tool.signal)
          .recover(({ status }) => (status === Status.CANCELED ? null : undefined));
      } else {
        for (let i = 0; i < POLLS; i += 1) if (this.#taken()) return this.side.done;
      }
    }
  }

  /** A completion, if there is one right now. */
  glance(): Done | undefined {
    return this.#taken() ? this.side.done : undefined;
  }

  /** Tells a server, whose last messages were answered, by a message of 0 bytes that the test is over. */
  async sendEnd(): Promise<void> {
    this.send([]);
    while ((this.poll() ?? (await this.next())).kind !== Kind.SEND);
  }

  /** Waits until the peer has ended the connection. @throws Interrupted */
  async peerGone(): Promise<void> {
    await this.side.notifyDisconnect().abortOn(this.tool.signal);
  }

  /** Lets the event loop run once. @throws Interrupted */
  async rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#rested = performance.now();
    if (this.tool.signal.aborted) throw new Interrupted();
  }

  /** Whether the event loop has been blocked for some time. */
  get tired(): boolean {
    return performance.now() - this.#rested > PATIENCE_MS;
  }

  #taken(): boolean {
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

/** The adapter from which the host's routes lead to a peer. */
export function openTowards(spi: 'v1' | 'v2', peer: SocketAddress): Promise<Side> {
  return openSide(spi, ndResolveAddress(peer));
}

/** Waits for a connection request, and passes it to `link`. */
export async function awaitClient(tool: Tool, side: Side, link: Link, port: number): Promise<void> {
  using listening = side.listen(port);
  tool.note(`Listening on ${format(listening.address)}`);
  await listening.request(link).abortOn(tool.signal);
}

/** Connects; if nobody answers, the error says what to do. */
export async function connectTo(tool: Tool, link: Link, peer: SocketAddress): Promise<void> {
  try {
    await link.side.connect(peer).abortOn(tool.signal);
  } catch (error) {
    throw missingServer(tool, error, peer);
  }
}

/** An understandable error for those that a missing server causes; others unchanged. */
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
