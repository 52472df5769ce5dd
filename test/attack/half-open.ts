/**
 * Strangers on another host that request connections of `networkdirect/net` and complete none, from one address and from many, while an
 * honest process connects repeatedly. The server's memory is bounded, and every honest connection is established.
 */
import type { CrowdOrder, CrowdReport } from '../helpers/crowd-program.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import type { Attack, Outcome, Run } from './attack.js';
import type { HalfOpenHealth } from './half-open-victim.js';
import { type Build, Program } from './process.js';

/** Additional addresses of the other host. */
const OTHERS = Array.from({ length: 15 }, (_, n) => `10.99.0.${n + 66}`);
/** Maximum growth of the server's process in bytes: 128 half-open connections, and garbage not collected yet. */
const MOST_GROWTH: Readonly<Record<Build, number>> = { plain: 192 * 2 ** 20, asan: 768 * 2 ** 20 };

/** By then the server has ended half-open connections of the flood. */
const MOST_CONNECTIONS = 10_000;

async function floodOf(kind: 'channel' | 'stream', others: readonly string[], run: Run): Promise<Outcome> {
  const network = await TwoHosts.start();
  try {
    return await floodBetween(network, kind, others, run);
  } finally {
    network.end();
  }
}

async function floodBetween(
  network: TwoHosts,
  kind: 'channel' | 'stream',
  others: readonly string[],
  { build, count, progress }: Run,
): Promise<Outcome> {
  const findings: string[] = [];
  const [host, elsewhere] = network.hosts;
  for (const other of others)
    network.run(elsewhere, ['ip', 'address', 'add', `${other}/24`, 'dev', elsewhere.interface]);
  const { address, by } = host;
  const victim = new Program('half-open-victim', { build, by, args: [kind, address] });
  const port = await victim.next<number>('start');
  const honest = new Program('../helpers/crowd-program', { build, by, args: [] });
  await honest.next('start');
  const order: CrowdOrder = { what: kind === 'stream' ? 'streams' : 'channels', count: 1, port, address };
  const connect = async (): Promise<number> => {
    const { times, failures } = await honest.ask<CrowdReport>(order);
    findings.push(...failures.map((text) => `an honest connection: ${text}`));
    return times[0] ?? 0;
  };
  await connect();
  const before = await victim.ask<HalfOpenHealth>('health');
  const args = [address, port, kind, count, elsewhere.address, ...others];
  const flood = new Program('../helpers/half-open-program', { build: 'plain', by: elsewhere.by, args });
  await flood.next('start');
  let over = false;
  const sent = flood.last().then(() => {
    over = true;
  });
  const times: number[] = [];
  let { memory } = before;
  let after = before;
  do {
    times.push(await connect());
    after = await victim.ask<HalfOpenHealth>('health');
    memory = Math.max(memory, after.memory);
    progress(over ? count : 0);
  } while ((!over || times.length < 5 || after.clientErrors === 0) && times.length < MOST_CONNECTIONS);
  await sent;
  const grown = memory - before.memory;
  if (grown > MOST_GROWTH[build]) findings.push(`the server grew by ${(grown / 2 ** 20).toFixed()} MiB`);
  if (!after.listening) findings.push('the server does not listen any more');
  if (after.clientErrors === 0) findings.push('the attack: no connection was half open');
  times.sort((a, b) => a - b);
  const figures = {
    'MiB more': Math.round(grown / 2 ** 20),
    'half open and ended': after.clientErrors,
    connected: times.length,
    'ms at the median': Math.round(times[times.length >> 1]!),
    'ms at most': Math.round(times.at(-1)!),
  };
  for (const one of [flood, honest, victim]) one.kill();
  return { done: count, findings, figures };
}

const halfOpenAttack = (
  name: string,
  what: string,
  kind: 'channel' | 'stream',
  others: readonly string[],
): Attack => ({
  name,
  what,
  unit: 'MADs',
  full: 400_000,
  short: 20_000,
  needs: ['namespaces'],
  run: (run) => floodOf(kind, others, run),
});

export const halfOpenAttacks: readonly Attack[] = [
  halfOpenAttack('half-open', 'requests of one stranger, none of which is completed', 'channel', []),
  halfOpenAttack('half-open-many', 'the same of 16 addresses, to a stream server', 'stream', OTHERS),
];
