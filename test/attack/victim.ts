/**
 * A process that is attacked, and one that is connected to it: `victim serve targets datagrams seed`, `victim ask port`. Each
 * tells what it is asked for by its parent, and ends with it. `ND_OPTIONS` has the options of both.
 */
import { readFileSync } from 'node:fs';
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider } from '../../winverbs/index.js';
import { ask, type BystanderHealth, serve } from './bystander.js';
import type { AimMessage } from './packets.js';
import { openConnectionTarget, openDatagramTarget, type Target } from './target.js';

export type Question = 'aim' | 'health' | 'end';

export interface Health {
  readonly bystander: BystanderHealth;
  /** Targets that have ended, and had successors. */
  readonly renewed: number;
  readonly damage: readonly string[];
  readonly hca: Readonly<Record<string, number>>;
  readonly objects: Readonly<Record<string, number>>;
  /** What the system has dropped for want of room in a socket on port 4791, of all processes of this network. */
  readonly systemDropped: number;
}

export type Answer = { port: number } | { aims: AimMessage[] } | { health: Health } | { left: Health };

const WORK_MS = 4;
const PKEYS = JSON.parse(process.env.ND_OPTIONS ?? '{}').pkeys?.length ?? 1;
const [role, ...numbers] = process.argv.slice(2);
const provider = openProvider();
const answer = (what: Answer): void => void process.send!(what);

const targets: Target[] = [];
let bystander: BystanderHealth;
let stopAsking: (() => Promise<void>) | undefined;
let renewed = 0;
const damage = new Set<string>();
let ending = false;
let renewing = 0;

function systemDropped(): number {
  let sum = 0;
  for (const name of ['udp', 'udp6', 'raw']) {
    const [, ...rows] = readFileSync(`/proc/self/net/${name}`, 'utf8').trim().split('\n');
    for (const row of rows) {
      const words = row.trim().split(/\s+/);
      if (name === 'raw' || /:12B7$/.test(words[1] ?? '')) sum += Number(words.at(-1));
    }
  }
  return sum;
}

function health(): Health {
  for (const target of targets) for (const text of target.damage()) damage.add(text);
  const { hca, objects } = readCounters();
  return { bystander, renewed, damage: [...damage], hca, objects, systemDropped: systemDropped() };
}

async function open(make: () => Promise<Target>): Promise<void> {
  const target = await make();
  const index = targets.push(target) - 1;
  const renew = async (): Promise<void> => {
    const ended = targets[index]!;
    for (const text of ended.damage()) damage.add(text);
    ended.release();
    renewed++;
    renewing++;
    try {
      targets[index] = await make();
    } finally {
      renewing--;
    }
  };
  const work = (): void => {
    if (ending) return;
    if (!targets[index]!.work()) {
      setTimeout(work, WORK_MS);
      return;
    }
    // Until there is another one: nobody can be told to attack it.
    const gone = targets[index]!;
    targets[index] = { ...gone, aims: () => [] };
    renew().then(work, (error: unknown) => {
      bystander.failure ??= `a target could not be opened again: ${String(error)}`;
    });
  };
  work();
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

process.on('disconnect', () => process.exit(3));
process.on('message', async (question: Question) => {
  if (question === 'aim') answer({ aims: targets.flatMap((target) => target.aims()) });
  else if (question === 'health') answer({ health: health() });
  else {
    ending = true;
    await stopAsking?.();
    while (renewing > 0) await sleep(5);
    for (const target of targets) target.release();
    answer({ left: health() });
    process.disconnect();
    process.exitCode = 0;
    process.exit();
  }
});

if (role === 'serve') {
  const [connections = 0, datagrams = 0, seed = 1] = numbers.map(Number);
  const served = serve(provider);
  bystander = served.health;
  for (let n = 0; n < connections; n++) await open(() => openConnectionTarget(provider, seed + n, n % PKEYS));
  for (let n = 0; n < datagrams; n++) await open(() => openDatagramTarget(provider, n % PKEYS));
  answer({ port: served.port });
} else {
  const asking = ask(provider, Number(numbers[0]));
  bystander = asking.health;
  stopAsking = asking.stop;
  answer({ port: 0 });
}
