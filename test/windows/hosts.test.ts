// Several processes on one host: observation, and the owner of UDP port 4791.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readProcesses } from '../../kernel-bridge/index.js';
import { HANG_MS } from '../helpers/within.js';
import type { PortEvent, PortOrder } from './port-program.js';

/** Number of processes that are killed while they own the port. */
const KILLS = Number(process.env.ND_WINDOWS_KILLS ?? 5);
/** The steps of a connection between two others before which an owner is killed. */
const STEPS = ['connect', ...Array.from({ length: 12 }, (_, n) => `message ${n}`), 'disconnect'];

const running = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

function start(program: string, options: object = {}): ChildProcess {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), {
    env: { ...process.env, ND_OPTIONS: JSON.stringify({ kernel: 'soft', ...options }) },
  });
  running.add(child);
  return child;
}

test('a process reads the statistics of the other processes of its user', async () => {
  const program = '../helpers/observed-program.js';
  const children = [start(program), start(program), start(program, { statistics: false })];
  await Promise.all(children.map((child) => once(child, 'message')));
  const seen = await readProcesses({ timeoutMs: 60_000 });
  for (const [n, { pid }] of children.entries()) {
    const one = seen.find((kernel) => kernel.pid === pid);
    assert.ok(one, `process ${pid} is not listed`);
    if (n === 2) {
      assert.equal([one.problem, one.statistics], ['refused', undefined]);
      continue;
    }
    const statistics = one.statistics!;
    assert.equal([statistics.pid, statistics.queuePairs.length, statistics.connections.length], [pid, 2, 2]);
    assert.ok(statistics.queuePairs.every(({ state }) => state === 'RTS'));
  }
  assert.is(new Set(seen.map(({ slot }) => slot)).size, seen.length);
});

/** A process of port-program.ts. */
class Peer {
  readonly child = start('./port-program.js');
  readonly #events: PortEvent[] = [];
  #closed = false;
  #wake = (): void => undefined;

  constructor() {
    this.child.on('message', (event: PortEvent) => {
      this.#events.push(event);
      this.#wake();
    });
    // 'exit' may be emitted before the last messages.
    this.child.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
  }

  /** Starts the HCA, which takes the port if it is free. */
  async open(): Promise<this> {
    this.send({ order: 'open' });
    await this.waitFor('ready');
    return this;
  }

  send(order: PortOrder): void {
    this.child.send(order);
  }

  /** Waits for the next event of a kind and, for a step, with this name. */
  async waitFor(wanted: PortEvent['event'], step?: string): Promise<PortEvent> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), HANG_MS);
    try {
      for (;;) {
        for (let one = this.#events.shift(); one !== undefined; one = this.#events.shift()) {
          if (one.event === 'failed') throw new Error(one.reason);
          if (one.event === wanted && (one.event !== 'step' || one.step === step)) return one;
        }
        if (this.#closed) {
          throw new Error(`Process ${this.child.pid} has ended before ${step ?? wanted}`);
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async counters(): Promise<Record<string, number>> {
    this.send({ order: 'counters' });
    const reply = await this.waitFor('counters');
    return reply.event === 'counters' ? reply.counters : {};
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}

/** Waits until one of them owns the port, and returns it. */
async function ownerOf(peers: readonly Peer[]): Promise<Peer> {
  for (const end = performance.now() + HANG_MS; performance.now() < end; ) {
    const owners: Peer[] = [];
    for (const peer of peers) if ((await peer.counters()).wire_port_taken! > 0) owners.push(peer);
    assert.ok(owners.length < 2, `${owners.length} processes own the port`);
    if (owners[0] !== undefined) return owners[0];
  }
  throw new Error('no process has taken over the port');
}

/** Starts three processes. The first owns the port. */
async function threePeers(): Promise<Peer[]> {
  const [first, ...others] = [new Peer(), new Peer(), new Peer()] as const;
  await first.open();
  return [first, ...(await Promise.all(others.map((peer) => peer.open())))];
}

/** Runs a connection between two of them through the port of a third. Calls `atStep` before the given step. */
async function connection(
  server: Peer,
  client: Peer,
  port: number,
  step: string,
  atStep: () => void,
): Promise<void> {
  server.send({ order: 'serve', port });
  await server.waitFor('listening');
  client.send({ order: 'call', port });
  await client.waitFor('step', step);
  atStep();
  await Promise.all([client.waitFor('called'), server.waitFor('served')]);
}

test(`connections of other processes continue when the port's owner is killed, at ${KILLS} points`, async () => {
  const peers = await threePeers();
  let forwarded = 0;
  let owner = peers[0]!;
  const reserve = [new Peer(), new Peer()];
  for (let n = 0; n < KILLS; n++) {
    const [server, client] = peers.filter((peer) => peer !== owner) as [Peer, Peer];
    const before = await Promise.all([server.counters(), client.counters()]);
    const step = STEPS[(n * 5) % STEPS.length]!;
    try {
      const { child } = owner;
      await connection(server, client, 54_400 + n, step, () => child.kill('SIGKILL'));
    } catch (error) {
      throw new Error(`kill ${n}, before ${step}: ${(error as Error).message}`, { cause: error });
    }
    await owner.kill();
    const after = await Promise.all([server.counters(), client.counters()]);
    forwarded += after.reduce(
      (sum, { slot_rx_forwarded: count }, i) => sum + count! - before[i]!.slot_rx_forwarded!,
      0,
    );
    assert.is(
      after.reduce((sum, { rx_icrc_errors: count }) => sum + count!, 0),
      0,
    );
    // A new process would also take a free port, so one of the others must own it first.
    peers.splice(peers.indexOf(owner), 1);
    owner = await ownerOf(peers);
    peers.push(await reserve.shift()!.open());
    reserve.push(new Peer());
  }
  assert.ok(forwarded > KILLS, `${forwarded} packets were forwarded by the port's owner`);
  console.log(`Windows (Wine): ${KILLS} owners of the port killed, ${forwarded} packets forwarded`);
});

test('the owner of the port exits normally', async () => {
  const peers = await threePeers();
  const owner = await ownerOf(peers);
  assert.is(owner, peers[0]);
  owner.send({ order: 'end' });
  const [code] = await once(owner.child, 'exit');
  assert.is(code, 0);
  const left = peers.slice(1) as [Peer, Peer];
  const successor = await ownerOf(left);
  assert.ok(left.includes(successor));
  await connection(left[0], left[1], 54_390, 'message 3', () => undefined);
});

test.run();
