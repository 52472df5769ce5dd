// Several processes of one host.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readProcesses } from '../../kernel-bridge/index.js';
import { HANG_MS } from '../helpers/within.js';
import type { PortNews, PortOrder } from './port-program.js';

/** How many processes that have the port are killed. */
const KILLS = Number(process.env.ND_WINDOWS_KILLS ?? 5);
/** Where one is killed: before this step of a connection between two others. */
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

test('a process reads what the others of its user have', async () => {
  const program = '../helpers/observed-program.js';
  const children = [start(program), start(program), start(program, { statistics: false })];
  await Promise.all(children.map((child) => once(child, 'message')));
  const seen = await readProcesses({ timeoutMs: 60_000 });
  for (const [n, { pid }] of children.entries()) {
    const one = seen.find((kernel) => kernel.pid === pid);
    assert.ok(one, `process ${pid} is not seen`);
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
  readonly #news: PortNews[] = [];
  #closed = false;
  #look = (): void => undefined;

  constructor() {
    this.child.on('message', (news: PortNews) => {
      this.#news.push(news);
      this.#look();
    });
    // 'exit' may come before the last messages.
    this.child.on('close', () => {
      this.#closed = true;
      this.#look();
    });
  }

  /** Starts the HCA, which takes the port if it is free. */
  async open(): Promise<this> {
    this.tell({ order: 'open' });
    await this.hear('ready');
    return this;
  }

  tell(order: PortOrder): void {
    this.child.send(order);
  }

  /** The next news; the step `until`, if it is given, or the last. */
  async hear(wanted: PortNews['news'], step?: string): Promise<PortNews> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), HANG_MS);
    try {
      for (;;) {
        for (let news = this.#news.shift(); news !== undefined; news = this.#news.shift()) {
          if (news.news === 'failed') throw new Error(news.reason);
          if (news.news === wanted && (news.news !== 'step' || news.step === step)) return news;
        }
        if (this.#closed) {
          throw new Error(`Process ${this.child.pid} has ended before ${step ?? wanted}`);
        }
        await new Promise<void>((resolve) => {
          this.#look = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async counters(): Promise<Record<string, number>> {
    this.tell({ order: 'counters' });
    const news = await this.hear('counters');
    return news.news === 'counters' ? news.counters : {};
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}

/** The one that has the port; waits until one of them has. */
async function ownerOf(peers: readonly Peer[]): Promise<Peer> {
  for (const end = performance.now() + HANG_MS; performance.now() < end; ) {
    const owners: Peer[] = [];
    for (const peer of peers) if ((await peer.counters()).wire_port_taken! > 0) owners.push(peer);
    assert.ok(owners.length < 2, `${owners.length} processes have the port`);
    if (owners[0] !== undefined) return owners[0];
  }
  throw new Error('nobody has taken the port over');
}

/** The first of them has the port. */
async function threePeers(): Promise<Peer[]> {
  const [first, ...others] = [new Peer(), new Peer(), new Peer()] as const;
  await first.open();
  return [first, ...(await Promise.all(others.map((peer) => peer.open())))];
}

/** A connection between two of them by the port of a third, which `atStep` is told of. */
async function connection(
  server: Peer,
  client: Peer,
  port: number,
  step: string,
  atStep: () => void,
): Promise<void> {
  server.tell({ order: 'serve', port });
  await server.hear('listening');
  client.tell({ order: 'call', port });
  await client.hear('step', step);
  atStep();
  await Promise.all([client.hear('called'), server.hear('served')]);
}

test(`connections of the others go on when the process that has the port is killed, at ${KILLS} points`, async () => {
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
    // A process that starts would take a free port as well: the others have to have it before.
    peers.splice(peers.indexOf(owner), 1);
    owner = await ownerOf(peers);
    peers.push(await reserve.shift()!.open());
    reserve.push(new Peer());
  }
  assert.ok(forwarded > KILLS, `${forwarded} packets came by the port's owner`);
  console.log(`Windows (Wine): ${KILLS} processes with the port killed, ${forwarded} packets handed on`);
});

test('the process that has the port ends in order', async () => {
  const peers = await threePeers();
  const owner = await ownerOf(peers);
  assert.is(owner, peers[0]);
  owner.tell({ order: 'end' });
  const [code] = await once(owner.child, 'exit');
  assert.is(code, 0);
  const left = peers.slice(1) as [Peer, Peer];
  const heir = await ownerOf(left);
  assert.ok(left.includes(heir));
  await connection(left[0], left[1], 54_390, 'message 3', () => undefined);
});

test.run();
