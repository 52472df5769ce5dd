/**
 * One process of a crowd: `program.js server WHO`, or `program.js client WHO PORT CONNECTIONS`. The parent tells it by messages when to
 * connect, to begin and to report. Every connection sends 64 bytes, awaits the echo, and sends again.
 */
import { once } from 'node:events';
import net from 'node:net';
import {
  type IWVCompletionQueue,
  WcStatus,
  type WvCompletion,
  WvOpcode,
  WvSend,
} from '../../winverbs/index.js';
import { type Connection, Side } from '../ours/side.js';
import type { ClientReport, Command, Event, Who } from './messages.js';

const BYTES = 64;
const DEPTH = 16;
/** One Send in this many is signaled; its completion is that of all before it. */
const SIGNAL_EVERY = DEPTH / 2;
const ADDRESS = '127.0.0.1';
/** Most latencies that a client keeps. */
const SAMPLES = 1 << 16;

/** The connections of a client. */
interface Client {
  readonly connected: Promise<unknown>;
  /** Sends on a connection and resolves with the echo. */
  echo(index: number): Promise<void>;
}

/** Queue pairs, with a completion queue for all that the event loop waits for, or with one for each (`apart`). */
class Crowd {
  readonly side = new Side({ kind: 'open', link: 'auto' }, 8192);
  readonly #memory = this.side.memory(new Uint8Array(2 * BYTES));
  readonly #room = this.#memory.sge(0, BYTES);
  readonly #out = this.#memory.sge(BYTES, BYTES);
  readonly #sent: number[] = [];
  readonly #queuePairs: Connection['qp'][] = [];

  /** `taken`: gets the index of the connection of each message. */
  constructor(
    readonly apart: boolean,
    readonly taken: (index: number) => void,
  ) {
    if (!apart) void this.#run(this.side.cq);
  }

  queuePair(): Connection['qp'] {
    const { host, cq: shared } = this.side;
    const cq = this.apart ? host.device.createCompletionQueue(4 * DEPTH) : shared;
    const context = this.#queuePairs.length;
    const shape = { sendDepth: DEPTH, sendSge: 1, receiveDepth: DEPTH, receiveSge: 1, context };
    const qp = host.queuePair(cq, shape);
    qp.postReceive(0, this.#room);
    qp.postReceive(0, this.#room);
    this.#queuePairs.push(qp);
    if (this.apart) void this.#run(cq);
    return qp;
  }

  send(index: number): void {
    const sent = (this.#sent[index] ?? 0) + 1;
    this.#sent[index] = sent;
    this.#queuePairs[index]!.send(0, this.#out, sent % SIGNAL_EVERY === 0 ? WvSend.SIGNALED : 0);
  }

  async #run(cq: IWVCompletionQueue): Promise<void> {
    const completions: WvCompletion[] = [];
    for (;;) {
      const count = cq.poll(completions, 64);
      for (let i = 0; i < count; i += 1) {
        const { opcode, status, qpContext } = completions[i]!;
        const index = qpContext as number;
        // The other side has ended.
        if (status !== WcStatus.SUCCESS) return;
        if (opcode !== WvOpcode.RECEIVE) continue;
        this.#queuePairs[index]!.postReceive(0, this.#room);
        this.taken(index);
      }
      await (count === 0 ? cq.notify('any') : undefined);
    }
  }
}

async function serveOurs(apart: boolean): Promise<number> {
  const crowd: Crowd = new Crowd(apart, (index) => crowd.send(index));
  const listener = crowd.side.host.listen(0, 1024);
  const accept = async () => {
    for (;;) {
      const endpoint = await listener.next();
      void crowd.side.accept(endpoint, crowd.queuePair());
    }
  };
  void accept();
  return listener.address.port;
}

function connectOurs(apart: boolean, port: number, connections: number): Client {
  const heard: (() => void)[] = [];
  const crowd = new Crowd(apart, (index) => heard[index]!());
  return {
    connected: Promise.all(
      Array.from({ length: connections }, () => crowd.side.connect(port, crowd.queuePair())),
    ),
    echo: (index) =>
      new Promise((resolve) => {
        heard[index] = resolve;
        crowd.send(index);
      }),
  };
}

async function serveNet(): Promise<number> {
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => socket.write(chunk));
  });
  server.listen(0, ADDRESS, 1024);
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

function connectNet(port: number, connections: number): Client {
  const message = Buffer.alloc(BYTES, 1);
  const heard: (() => void)[] = [];
  const left: number[] = [];
  const sockets = Array.from({ length: connections }, (_, index) => {
    const socket = net.connect({ port, host: ADDRESS, noDelay: true });
    socket.on('data', (chunk) => {
      left[index]! -= chunk.length;
      if (left[index] === 0) heard[index]!();
    });
    return socket;
  });
  return {
    connected: Promise.all(sockets.map((socket) => once(socket, 'connect'))),
    echo: (index) =>
      new Promise((resolve) => {
        heard[index] = resolve;
        left[index] = BYTES;
        sockets[index]!.write(message);
      }),
  };
}

const tell = (event: Event): void => void process.send!(event);

async function next(of: Command['do']): Promise<Command> {
  for (;;) {
    const [command] = (await once(process, 'message')) as [Command];
    if (command.do === of) return command;
  }
}

async function beServer(who: Who): Promise<void> {
  tell({ port: await (who === 'net' ? serveNet() : serveOurs(who === 'apart')) });
  let before = process.cpuUsage();
  process.on('message', (command: Command) => {
    if (command.do === 'begin') before = process.cpuUsage();
    if (command.do !== 'report') return;
    const { user, system } = process.cpuUsage(before);
    tell({ processor: user + system });
  });
}

async function beClient(who: Who, port: number, connections: number): Promise<void> {
  tell({ ready: true });
  await next('connect');
  const client =
    who === 'net' ? connectNet(port, connections) : connectOurs(who === 'apart', port, connections);
  await client.connected;
  tell({ connected: true });
  const { seconds = 1, warmUp = 0 } = await next('begin');
  const start = performance.now() + warmUp * 1000;
  const end = start + seconds * 1000;
  const counts: number[] = Array(connections).fill(0);
  const latencies = new Float64Array(SAMPLES);
  let taken = 0;
  let before = process.cpuUsage();
  setTimeout(() => {
    before = process.cpuUsage();
  }, warmUp * 1000);
  const converse = async (index: number) => {
    for (let sent = performance.now(); sent < end; ) {
      await client.echo(index);
      const now = performance.now();
      if (sent >= start && now < end) {
        counts[index]! += 1;
        latencies[taken++ % SAMPLES] = now - sent;
      }
      sent = now;
    }
  };
  await Promise.all(counts.map((_, index) => converse(index)));
  const { user, system } = process.cpuUsage(before);
  const report: ClientReport = {
    counts,
    latencies: [...latencies.subarray(0, Math.min(taken, SAMPLES))],
    processor: user + system,
  };
  tell(report);
}

const [role, who, port, connections] = process.argv.slice(2);
if (role === 'server') await beServer(who as Who);
else await beClient(who as Who, Number(port), Number(connections));
