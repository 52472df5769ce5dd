/**
 * A process that is attacked, or one that is connected to it: `victim job`, with the job in JSON. Each replies to its parent's requests,
 * and ends with its parent. `ND_OPTIONS` has the options of both.
 */
import { readFileSync } from 'node:fs';
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider, type SocketAddress } from '../../winverbs/index.js';
import type { Activity, ActivityHealth } from './activity.js';
import { openConnectionTarget, openDatagramTarget, type Target } from './attack-target.js';
import { ask, type BystanderHealth, serve } from './bystander.js';
import { askChurn, serveChurn } from './churn.js';
import { askLookups, serveLookups } from './lookups.js';
import type { AimMessage } from './packets.js';

/** The ports of a victim: for the bystanders' connection, for short-lived connections, for lookups. */
export interface Ports {
  readonly port: number;
  readonly churn?: number | undefined;
  readonly lookups?: number | undefined;
  /** The QPN in replies to lookups. */
  readonly qpn?: number | undefined;
}

export interface ServeJob {
  readonly role: 'serve';
  /** The local address. */
  readonly address: string;
  readonly seed: number;
  /** Whether there are short-lived connections besides that of the bystanders. */
  readonly churn: boolean;
  /** Whether it replies to lookups. */
  readonly lookups: boolean;
  /** Number of targets of each kind. */
  readonly connections: number;
  readonly datagrams: number;
}

export interface AskJob {
  readonly role: 'ask';
  readonly address: string;
  readonly seed: number;
  /** The address and ports of the other victim. */
  readonly peer: string;
  readonly ports: Ports;
  /** The address where an attacker replies to lookups. */
  readonly attacker: string;
}

export type Job = ServeJob | AskJob;

/** `rest`: stop using the other victim. `connectTo`: also connect to that port. */
export type Question = 'aim' | 'health' | 'rest' | 'end' | { readonly connectTo: SocketAddress };

export interface Health {
  readonly bystander: BystanderHealth;
  readonly activities: readonly ActivityHealth[];
  /** Targets that have ended and were replaced. */
  readonly renewed: number;
  readonly damage: readonly string[];
  readonly hca: Readonly<Record<string, number>>;
  readonly objects: Readonly<Record<string, number>>;
  readonly cm: Readonly<Record<string, number>>;
  /**
   * Datagrams dropped by the OS because a socket on port 4791 was full, for all processes of this network.
   */
  readonly systemDropped: number;
}

export type Answer = Ports | { aims: AimMessage[] } | { health: Health } | { left: Health };

const WORK_MS = 4;
const PKEYS = JSON.parse(process.env.ND_OPTIONS ?? '{}').pkeys?.length ?? 1;
const job = JSON.parse(process.argv[2]!) as Job;
const { address, seed } = job;
const provider = openProvider();
const answer = (what: Answer): void => void process.send!(what);

const targets: Target[] = [];
let bystander: BystanderHealth;
let stopAsking: (() => Promise<void>) | undefined;
const activities: Activity[] = [];
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
  const { hca, cm, objects } = readCounters();
  return {
    bystander,
    activities: activities.map(({ health }) => health),
    renewed,
    damage: [...damage],
    hca,
    cm,
    objects,
    systemDropped: systemDropped(),
  };
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
    // Kept until there is another queue pair, so that its number is not a target.
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
  else if (question === 'rest') {
    await Promise.all(activities.map((activity) => (activity.asks ? activity.stop() : undefined)));
    answer({ health: health() });
  } else if (typeof question === 'object') {
    begin(askChurn(provider, address, question.connectTo, seed + 1));
    answer({ port: 0 });
  } else {
    ending = true;
    for (const activity of activities) if (!activity.asks) await activity.stop();
    await stopAsking?.();
    while (renewing > 0) await sleep(5);
    for (const target of targets) target.release();
    answer({ left: health() });
    process.disconnect();
    process.exitCode = 0;
    process.exit();
  }
});

/** Starts an activity and returns it. */
function begin<A extends Activity>(activity: A): A {
  activities.push(activity);
  return activity;
}

if (job.role === 'serve') {
  const { connections, datagrams } = job;
  const served = serve(provider, address);
  bystander = served.health;
  const churn = job.churn ? begin(serveChurn(provider, address)) : undefined;
  const lookups = job.lookups ? begin(serveLookups(provider, address)) : undefined;
  for (let n = 0; n < connections; n++) {
    await open(() => openConnectionTarget(provider, seed + n, n % PKEYS, address));
  }
  for (let n = 0; n < datagrams; n++) await open(() => openDatagramTarget(provider, n % PKEYS, address));
  answer({ port: served.port, churn: churn?.port, lookups: lookups?.port, qpn: lookups?.qpn });
} else {
  const { peer, attacker } = job;
  const { port, churn, lookups, qpn } = job.ports;
  const asking = ask(provider, port, address, peer);
  bystander = asking.health;
  stopAsking = asking.stop;
  const to = (at: number) => ({ family: 4, address: peer, port: at }) as const;
  if (churn !== undefined) begin(askChurn(provider, address, to(churn), seed));
  const own = churn !== undefined ? begin(serveChurn(provider, address)) : undefined;
  if (lookups !== undefined && qpn !== undefined) {
    const right = { ...to(lookups), qpn };
    begin(askLookups(provider, address, right, { family: 4, address: attacker, port: 9 }, seed));
  }
  answer({ port: 0, churn: own?.port });
}
