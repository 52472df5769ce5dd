// Processes are killed with SIGKILL at hundreds of points of their lives. Peers on the host detect this immediately, ports and slots are
// free again, and nothing is left behind. ND_KILL_RUNS=n kills n processes, ND_KILL_SEED=n repeats a failure's seed, ND_KILL_LINK=wire uses
// the wire, and ND_KILL_STOP=1 stops every second process before killing it. Runs in its own network namespace, where no other process has
// slots and ports.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type IWVProvider,
  type KernelOptionsInput,
  openProvider,
  QpState,
  Status,
  statusName,
  WvSend,
} from '../../winverbs/index.js';
import { apart, runApart } from '../helpers/apart.js';
import { ADDRESS, openListener, openSide } from '../helpers/loopback.js';
import { outcome } from '../helpers/outcome.js';
import { programFile } from '../helpers/programs.js';
import { seeded } from '../helpers/random.js';
import { firstIf } from '../helpers/tiers.js';
import { nothingLeft } from '../helpers/verbs-model-outcome.js';

const program = programFile(new URL('../helpers/kill-victim.js', import.meta.url));
/** Clients of a victim, which are in different phases when the victim is killed. */
const CLIENTS = 8;
const runs = Number(process.env.ND_KILL_RUNS ?? 42);
const firstSeed = Number(process.env.ND_KILL_SEED ?? 1);
/** Whether every second victim is stopped for a while first, as by a debugger. */
const stops = process.env.ND_KILL_STOP !== undefined;
const link = process.env.ND_KILL_LINK === 'wire' ? 'wire' : 'auto';
/** Number of simultaneous victims. */
const LANES = 3;
/** Number of victims in one test. */
const BATCH = 7;
/**
 * Silent peers do not time out within a minute, and idle connections are not probed. Victims also have these options.
 */
const options: KernelOptionsInput = {
  link,
  rc: { ackTimeoutCode: 21 },
  cm: { responseTimeoutCode: 20 },
  keepAliveMs: 0,
  startTimeoutMs: 60_000,
};
/** Far less than a minute, but more than a busy machine needs to report all ends. */
const AT_ONCE_MS = 10_000;

/** The peer's activities at the time when victims were killed, with counts. */
const points = new Map<string, number>();
let served = 0;

interface Victim {
  /** Whether the signal was sent. */
  killed: boolean;
  /** Resolves with the time of death. */
  readonly dead: Promise<number>;
  /** Called whenever its peer has observed one of its actions. */
  readonly moved: () => void;
}

/** Serves one client of a victim until the victim is dead. Then every request of its connections must end. */
async function serve(
  provider: IWVProvider,
  listener: ReturnType<typeof openListener>['listener'],
  victim: Victim,
) {
  const { dead, moved } = victim;
  let diedAt: number | undefined;
  const end = dead.then((at) => {
    diedAt = at;
    listener.cancelOverlappedRequests();
  });
  let waited = false;
  const timely = async (what: string, request: PromiseLike<unknown>): Promise<number> => {
    const alive = !victim.killed;
    const status = await outcome(request);
    const point = `${what}: ${statusName(status)}`;
    if (alive && victim.killed) {
      points.set(point, (points.get(point) ?? 0) + 1);
      waited = true;
    }
    if (diedAt === undefined) return status;
    const late = performance.now() - diedAt;
    assert.ok(
      late < AT_ONCE_MS,
      `${what} ended in ${statusName(status)} ${late.toFixed(0)} ms after the death`,
    );
    return status;
  };
  const within = async (what: string, request: PromiseLike<unknown>): Promise<number> => {
    const status = await timely(what, request);
    if (diedAt === undefined) moved();
    return status;
  };
  while (diedAt === undefined) {
    const side = openSide(provider);
    const sgl = [{ region: side.region, offset: 0, length: 64 }];
    for (let n = 0; n < 2; n++) side.qp.postReceive('message', sgl);
    if ((await within('getRequest', listener.getRequest(side.ep))) === Status.SUCCESS) {
      const accepted = await within('accept', side.ep.accept(side.qp, { privateData: Buffer.from('go on') }));
      if (accepted === Status.SUCCESS) {
        const ended = side.ep.notifyDisconnect();
        let over = false;
        const ending = within('session', ended).then((status) => {
          over = true;
          assert.ok(status === Status.CONNECTION_DISCONNECTED || status === Status.CONNECTION_ABORTED);
          // On a disconnected side, all requests have completed.
          assert.is(side.qp.state, QpState.ERROR);
          side.cq.cancelOverlappedRequests();
        });
        while (!over) {
          const completions: Parameters<typeof side.cq.poll>[0] = [];
          const count = side.cq.poll(completions, 8);
          for (const { context, status } of completions.slice(0, count)) {
            if (context === 'message' && status === 0) side.qp.send('answer', sgl, WvSend.SIGNALED);
          }
          if (count > 0) moved();
          else await timely('notify', side.cq.notify('any'));
        }
        await ending;
      }
    }
    side.release();
  }
  await end;
  if (waited) served += 1;
}

const victims = new Set<ChildProcess>();
// Even a failed test must not leave a process behind.
test.after(() => {
  for (const child of victims) child.kill('SIGKILL');
});

/** Maximum number of a victim's actions that peers observe before its end. A client's session has about eight. */
const MOST_MOVES = 30 * CLIENTS;
const MOST_STOPPED_MS = 40;
/** Longer than a process takes to start. */
const START_MS = 600;

/** The phases in which a victim is ended, with their weights. */
const ends = {
  /** While its clients are working. */
  working: 6,
  /** While it starts, possibly before it has a port or a slot. */
  starting: 1,
  /** While it exits normally. */
  ending: 1,
} as const;

function endOf(random: () => number): keyof typeof ends {
  let left = random() * Object.values(ends).reduce((sum, weight) => sum + weight, 0);
  for (const [end, weight] of Object.entries(ends)) {
    left -= weight;
    if (left < 0) return end as keyof typeof ends;
  }
  return 'working';
}

/** Number of victims so far. */
let tried = 0;
/** Number of victims that were alive at the signal. One that exits normally may be faster. */
let killed = 0;
/** Number of victims that were requested to exit normally. */
let ended = 0;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function killOne(provider: IWVProvider, seed: number): Promise<void> {
  tried += 1;
  const random = seeded(seed);
  const end = endOf(random);
  const { listener, peer } = openListener(provider);
  const args = [peer.port, CLIENTS, Math.floor(random() * 2 ** 31)].map(String);
  const child = fork(program, args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ND_OPTIONS: JSON.stringify(options) },
  });
  victims.add(child);
  child.once('exit', () => victims.delete(child));
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  const dead = exited.then(() => performance.now());
  let moves = Math.floor(random() * MOST_MOVES);
  let reached: () => void = () => {};
  const enough = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const moved = (): void => {
    if (moves-- === 0) reached();
  };
  let port: number | undefined;
  child.once('message', (reported: number) => {
    port = reported;
    moved();
  });
  const victim: Victim = { killed: false, dead, moved };
  const serving = Promise.all(Array.from({ length: CLIENTS }, () => serve(provider, listener, victim)));
  // Serving ends early only after an error.
  const failed = serving.then(() => Promise.reject(new Error('The victim has exited on its own.')));
  failed.catch(() => {});
  await Promise.race([end === 'starting' ? sleep(random() * START_MS) : enough, failed]);
  if (end === 'ending') {
    ended += 1;
    child.send('end');
  }
  // Waits until some point between this action and the next one.
  await sleep(random() * 8);
  victim.killed = true;
  if (stops && random() < 0.5) {
    child.kill('SIGSTOP');
    await sleep(random() * MOST_STOPPED_MS);
  }
  child.kill('SIGKILL');
  const [code, signal] = await exited;
  if (end !== 'ending' || code !== 0) assert.equal([code, signal], [null, 'SIGKILL']);
  if (signal === 'SIGKILL') killed += 1;
  // Its resources must be free, so its port can be claimed.
  if (port !== undefined) {
    const heir = provider.createConnectEndpoint();
    heir.bindAddress({ family: 4, address: ADDRESS, port });
    heir.listen(1);
    heir.release();
  }
  await serving;
  listener.release();
}

/** The claims of processes in this network namespace by their abstract names: slots, ports and blocks of ports. */
function claims(): string[] {
  const names =
    readFileSync('/proc/self/net/unix', 'utf8').match(/@networkdirect\/\d+\/\d+\/(slot|ports?)\/.*/g) ?? [];
  return [...new Set(names)].sort();
}

/** Kills the processes of these seeds, several at a time. */
async function killAll(seeds: readonly number[]): Promise<void> {
  const provider = openProvider(options);
  // A process keeps the block that contains its first free port.
  openListener(provider).listener.release();
  const before = claims();
  assert.ok(before.length > 0, 'this process has a slot');
  const left = [...seeds];
  const lane = async (): Promise<void> => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      try {
        await killOne(provider, seed);
      } catch (error) {
        console.error(`seed ${seed}:`);
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await nothingLeft();
  if (apart) assert.equal(claims(), before, 'slots and ports are as they were');
  provider.release();
}

for (let n = 0; n < runs; n += BATCH) {
  const seeds = Array.from({ length: Math.min(BATCH, runs - n) }, (_, i) => firstSeed + n + i);
  firstIf(n === 0, test)(
    `seeds ${seeds[0]} to ${seeds.at(-1)}: peers of killed processes get an error at once, and nothing else is left`,
    () => killAll(seeds),
  );
}

test('processes were killed at every point of their lives', () => {
  if (process.env.ND_KILL_RUNS !== undefined) console.log(runs, served, Object.fromEntries(points));
  assert.ok(killed >= tried - ended, `${killed} of ${tried} were killed, and ${ended} requested to end`);
  assert.ok(
    served >= killed * CLIENTS,
    `${served} clients had pending requests when ${killed * CLIENTS} died`,
  );
  if (tried < 42) return;
  assert.ok(killed > 0.8 * tried, `${killed} of ${tried} were killed`);
  for (const what of ['getRequest', 'accept', 'session']) {
    assert.ok(
      [...points.keys()].some((point) => point.startsWith(what)),
      `no process was killed during ${what}`,
    );
  }
});

runApart(import.meta.url, () => test.run());
