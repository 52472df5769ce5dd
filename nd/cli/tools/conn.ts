/** `nd conn`: measures connections per second. Each connection is established, used for one message, and ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import * as z from 'zod';
import { NdError, type SocketAddress, Status } from '../../index.js';
import { count } from '../argument-schemas.js';
import { ConnectionEnded } from '../peer-lost.js';
import {
  commonOptions,
  format,
  Interrupted,
  ONE_ROLE,
  oneRole,
  roleOptions,
  type Tool,
  tool,
  withRole,
} from './tool.js';
import {
  Kind,
  type Link,
  type Listening,
  missingServer,
  openSide,
  openTowards,
  type Side,
} from './tool-side.js';

const PORT = 54_321;
const QUEUES = { receives: 1, initiators: 1, sge: 1 };
const CLIENT_SECONDS = 60;
/** The server runs longer and the client starts later, so that they need not be started at the same time. */
const SERVER_SECONDS = 65;
const DELAY_SECONDS = 5;
/** After this many consecutive failures, the server is considered lost. */
const LOST_AFTER = 100;

const seconds = z.coerce.number('must be a number of seconds').min(0).max(86_400);
const connOptions = z
  .object({
    ...commonOptions,
    ...roleOptions,
    threads: count(1, 1024).default(2),
    seconds: seconds.optional(),
    delay: seconds.default(DELAY_SECONDS),
    connections: count(1, 1e9).optional(),
  })
  .refine(oneRole, ONE_ROLE);
type Options = z.output<typeof connOptions>;

/** Counts connections and decides when to stop. */
class Tally {
  readonly #end: number;
  /** Start of the first connection and end of the last one. */
  #first: number | undefined;
  #last = 0;
  readonly #most: number;
  /** Total milliseconds by phase. */
  readonly #phases = new Map<string, number>();
  #begun = 0;
  #failuresInARow = 0;
  made = 0;
  failures = 0;
  timeouts = 0;
  /** Aborts when no more connections should be started. */
  readonly over: AbortSignal;
  readonly #over = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(
    readonly tool: Tool,
    phases: readonly string[],
    milliseconds: number,
    most = Number.POSITIVE_INFINITY,
  ) {
    for (const phase of phases) this.#phases.set(phase, 0);
    this.#end = performance.now() + milliseconds;
    this.#most = most;
    this.#timer = setTimeout(() => this.#over.abort(), milliseconds);
    this.over = AbortSignal.any([this.#over.signal, tool.signal]);
  }

  /** Returns whether another connection should be started, and counts it. */
  begin(): boolean {
    if (this.over.aborted || this.#begun >= this.#most || performance.now() >= this.#end) return false;
    this.#begun += 1;
    return true;
  }

  /** Measures a phase of a connection. */
  async phase(name: string, work: PromiseLike<void>): Promise<void> {
    const start = performance.now();
    this.#first ??= start;
    await work;
    this.#phases.set(name, this.#phases.get(name)! + performance.now() - start);
  }

  /** Whether the server is lost. */
  get lost(): boolean {
    return this.#failuresInARow >= LOST_AFTER;
  }

  failed(error: unknown): void {
    this.#failuresInARow += 1;
    const timedOut =
      error instanceof NdError && (error.status === Status.TIMEOUT || error.status === Status.IO_TIMEOUT);
    if (timedOut) this.timeouts += 1;
    else if (error instanceof NdError || error instanceof ConnectionEnded) this.failures += 1;
    else throw error;
  }

  succeeded(): void {
    this.#failuresInARow = 0;
    this.made += 1;
    this.#last = performance.now();
    if (this.made % 64 === 0) this.tool.progress(`${this.made} connections`);
  }

  print(server: boolean, details: object): void {
    clearTimeout(this.#timer);
    const { tool, made, failures, timeouts } = this;
    const perSecond = made === 0 ? 0 : (made * 1000) / (this.#last - this.#first!);
    const times = [...this.#phases].map(([name, ms]) => [name, made === 0 ? 0 : (ms * 1000) / made] as const);
    tool.line(`${perSecond.toFixed(2)} connections per second`);
    tool.line('Per connection times (microsec):');
    for (const [name, time] of times) tool.line(`${name}: ${time.toFixed(2)}`);
    tool.line(`${server ? failures + timeouts : failures} connection failures.`);
    if (!server) tool.line(`${timeouts} connection timeouts.`);
    tool.result({
      tool: tool.name,
      ...details,
      connections: made,
      perSecond,
      microseconds: Object.fromEntries(times),
      failures,
      timeouts,
      ...(tool.signal.aborted && { interrupted: true }),
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Serves one connection: accepts it, receives a message, and disconnects after the client. */
async function serveOne(tool: Tool, tally: Tally, link: Link): Promise<void> {
  await tally.phase('Accept', link.side.accept().abortOn(tool.signal));
  while ((await link.next()).kind !== Kind.RECEIVE);
  await link.peerGone();
  await tally.phase('Disconnect', link.side.disconnect());
}

async function server(tool: Tool, address: SocketAddress, options: Options): Promise<void> {
  using side = await openSide(options.spi, address);
  using listening: Listening = side.listen(address.port);
  tool.note(`Listening on ${format(listening.address)}`);
  const milliseconds = (options.seconds ?? SERVER_SECONDS) * 1000;
  const tally = new Tally(tool, ['Accept', 'Disconnect'], milliseconds, options.connections);
  const serve = async (): Promise<void> => {
    while (tally.begin()) {
      await using link = side.link(tool, 'blocking', QUEUES);
      link.receive(0, []);
      try {
        await listening.request(link).abortOn(tally.over);
      } catch (error) {
        if (tally.over.aborted) return;
        throw error;
      }
      try {
        await serveOne(tool, tally, link);
        tally.succeeded();
      } catch (error) {
        tally.failed(error);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: options.threads }, serve));
  } finally {
    tally.stop();
  }
  tally.print(true, { spi: options.spi, threads: options.threads });
  if (tool.signal.aborted) throw new Interrupted();
}

/** Runs one connection of the client. */
async function connectOne(tool: Tool, tally: Tally, side: Side, peer: SocketAddress): Promise<void> {
  await using link = side.link(tool, 'blocking', QUEUES);
  await tally.phase('Connect', link.side.connect(peer).abortOn(tool.signal));
  await tally.phase('CompleteConnect', link.side.completeConnect());
  link.send([]);
  await link.next();
  await tally.phase('Disconnect', link.side.disconnect());
}

async function client(tool: Tool, peer: SocketAddress, options: Options): Promise<void> {
  using side = await openTowards(options.spi, peer);
  await sleep(options.delay * 1000, undefined, { signal: tool.signal });
  const milliseconds = (options.seconds ?? CLIENT_SECONDS) * 1000;
  const phases = ['Connect', 'CompleteConnect', 'Disconnect'];
  const tally = new Tally(tool, phases, milliseconds, options.connections);
  const run = async (): Promise<void> => {
    while (!tally.lost && tally.begin()) {
      try {
        await connectOne(tool, tally, side, peer);
        tally.succeeded();
      } catch (error) {
        if (tool.signal.aborted) return;
        // No connection has succeeded, so there is probably no server.
        if (tally.made === 0) throw missingServer(tool, error, peer);
        tally.failed(error);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: options.threads }, run));
  } finally {
    tally.stop();
  }
  tally.print(false, { spi: options.spi, threads: options.threads });
  if (tool.signal.aborted) throw new Interrupted();
  if (tally.lost) throw new ConnectionEnded();
}

export const connCommand = tool(
  withRole(
    new Command('conn')
      .description('measure connections per second, with one message on each')
      .option('-t, --threads <n>', 'concurrent connections (default: 2)')
      .option('--seconds <n>', `duration (default: client ${CLIENT_SECONDS}, server ${SERVER_SECONDS})`)
      .option('--delay <n>', `delay before the client starts, in seconds (default: ${DELAY_SECONDS})`)
      .option('--connections <n>', 'stop after this many connections'),
  ),
  connOptions,
  { port: PORT, banner: false },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
