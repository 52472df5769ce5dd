/** Peers of `networkdirect/net` that hoard: the memory that a server holds for them is bounded, and an honest client is always served. */
import type { Attack, Outcome, Run } from './attack.js';
import type { Hoarded } from './hoard-attacker.js';
import type { Ports, Size } from './hoard-victim.js';
import { Program } from './process.js';

/** `maxBufferedBytes` of the victim. */
export const BUFFERED_BYTES = 2 ** 26;

/** Maximum growth of the victim in bytes: its limit, plus slots and short requests of about ten connections. */
const GROWTH_BYTES = 2 * BUFFERED_BYTES;

async function hoard({ build, seed, count, progress }: Run): Promise<Outcome> {
  const victim = new Program('hoard-victim', { build, args: [BUFFERED_BYTES] });
  const { channels, streams } = await victim.next<Ports>('ports');
  const attacker = new Program('hoard-attacker', { build: 'plain', args: [channels, streams, seed, count] });
  await attacker.next('connected');
  const before = await victim.ask<Size>('size');
  await attacker.ask('go');
  const hoarded = await attacker.last<Hoarded>();
  const after = await victim.ask<Size>('size');
  progress(hoarded.frames);
  const findings: string[] = [];
  const grown = after.bytes - before.bytes;
  if (grown > GROWTH_BYTES)
    findings.push(`the victim has grown by ${grown} bytes; at most ${GROWTH_BYTES} are allowed`);
  if (hoarded.unserved !== undefined) findings.push(`an honest client: ${hoarded.unserved}`);
  const rss = await attacker.ask<Hoarded>('end').then(() => victim.ask<Size>('size'));
  if (rss.bytes - before.bytes > GROWTH_BYTES / 4)
    findings.push(`${rss.bytes - before.bytes} bytes are left when the attackers have gone`);
  for (const program of [attacker, victim]) program.kill();
  const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
  const figures = {
    'MiB grown': mib(grown),
    'MiB of RSS grown': mib(after.rss - before.rss),
    'MiB left': mib(rss.bytes - before.bytes),
    'ended by the victim': hoarded.ended,
    'honest requests': hoarded.served,
    'ms for the slowest': Math.round(hoarded.slowestMs),
  };
  return { done: hoarded.frames, findings, figures };
}

export const hoardAttack: Attack = {
  name: 'hoard',
  what: 'peers of networkdirect/net that return no credits, read no replies, and offer memory that is not fetched',
  unit: 'frames',
  full: 200_000,
  short: 20_000,
  run: hoard,
};
