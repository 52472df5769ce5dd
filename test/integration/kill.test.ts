// Processes killed by SIGKILL at random points of their sessions: peers on the host hear of it at once, ports and slots
// are free again, and nothing is left. ND_KILL_RUNS=n kills n processes without a bound in time.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type IWVProvider,
  openProvider,
  QpState,
  Status,
  StatusError,
  statusName,
  WvSend,
} from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide } from '../helpers/loopback.js';
import { nothingLeft } from '../helpers/verbs-model.js';

const program = fileURLToPath(new URL('../helpers/kill-victim.js', import.meta.url));
const long = process.env.ND_KILL_RUNS !== undefined;
const runs = Number(process.env.ND_KILL_RUNS ?? 10_000);
const milliseconds = long ? Number.POSITIVE_INFINITY : 15_000;
/** How many live at a time. */
const LANES = 4;
/** Far less than keep-alive and connection management take to give up on somebody silent. */
const AT_ONCE_MS = 3000;

async function statusOf(request: PromiseLike<unknown>): Promise<number> {
  try {
    await request;
    return Status.SUCCESS;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}

/** What the peer of a victim was doing when it died, by how often. */
const points = new Map<string, number>();

interface Victim {
  readonly child: ChildProcess;
  /** Resolves when it is dead, with the time. */
  readonly dead: Promise<number>;
  /** Called whenever its peer has seen it do something. */
  readonly moved: () => void;
}

/** Serves one victim until it is dead; every request of its connections must end then. */
async function serve(
  provider: IWVProvider,
  listener: ReturnType<typeof openListener>['listener'],
  { dead, moved }: Victim,
) {
  let diedAt: number | undefined;
  const end = dead.then((at) => {
    diedAt = at;
    listener.cancelOverlappedRequests();
  });
  const within = async (what: string, request: PromiseLike<unknown>): Promise<number> => {
    const alive = diedAt === undefined;
    const status = await statusOf(request);
    if (diedAt === undefined) {
      moved();
      return status;
    }
    const late = performance.now() - diedAt;
    if (alive)
      points.set(`${what}: ${statusName(status)}`, (points.get(`${what}: ${statusName(status)}`) ?? 0) + 1);
    assert.ok(
      late < AT_ONCE_MS,
      `${what} ended in ${statusName(status)} ${late.toFixed(0)} ms after the death`,
    );
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
          // Whoever is disconnected has its requests back.
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
          else await statusOf(side.cq.notify('any'));
        }
        await ending;
      }
    }
    side.release();
  }
  await end;
}

const victims = new Set<ChildProcess>();
// A test that has failed leaves none behind.
test.after(() => {
  for (const child of victims) child.kill('SIGKILL');
});

/** The most that a peer sees of a victim before it is killed; a session is about eight. */
const MOST_MOVES = 40;

async function killOne(provider: IWVProvider): Promise<void> {
  const { listener, peer } = openListener(provider);
  const child = fork(program, [String(peer.port)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  victims.add(child);
  child.once('exit', () => victims.delete(child));
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  const dead = exited.then(() => performance.now());
  let moves = Math.floor(Math.random() * MOST_MOVES);
  let reached: () => void = () => {};
  const enough = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const moved = (): void => {
    if (moves-- === 0) reached();
  };
  const told = once(child, 'message') as Promise<[number]>;
  const serving = serve(provider, listener, { child, dead, moved });
  // Serving ends early only by an error.
  const failed = serving.then(() => Promise.reject(new Error('The victim has died by itself.')));
  failed.catch(() => {});
  const [port] = await Promise.race([told, failed]);
  moved();
  await Promise.race([enough, failed]);
  // Somewhere between this and what comes next.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 8));
  child.kill('SIGKILL');
  const [code, signal] = await exited;
  assert.equal([code, signal], [null, 'SIGKILL']);
  // What it held is free: its port can be had.
  const heir = provider.createConnectEndpoint();
  heir.bindAddress({ family: 4, address: ADDRESS, port });
  heir.listen(1);
  heir.release();
  await serving;
  listener.release();
}

test('processes that are killed leave their peers with an error at once, and nothing else', async () => {
  const provider = openProvider();
  const began = performance.now();
  let kills = 0;
  const lane = async (): Promise<void> => {
    while (kills < runs && performance.now() - began < milliseconds) {
      kills++;
      await killOne(provider);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await nothingLeft();
  provider.release();
  if (long) console.log(kills, Object.fromEntries(points));
  assert.ok(kills >= LANES);
});

test.run();
