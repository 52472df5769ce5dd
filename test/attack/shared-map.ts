/** Owners and readers of a shared map that are killed while the owner stores and the readers read. */
import { setTimeout as sleep } from 'node:timers/promises';
import { seeded } from '../helpers/random.js';
import type { Attack, Outcome, Run } from './attack.js';
import { Program } from './process.js';
import type { MapReads } from './shared-map-program.js';

/** The longest time until a kill, in ms. */
const MOST_MS = 40;
const READERS = 2;

async function run({ build, seed, count, progress }: Run): Promise<Outcome> {
  const random = seeded(seed);
  const name = `attack-${process.pid}.${seed}`;
  const findings: string[] = [];
  const sum = { gets: 0, found: 0, torn: 0, foreign: 0, expired: 0, busy: 0 };
  const start = async (args: (string | number)[], expected: string): Promise<Program> => {
    const program = new Program('shared-map-program', { build, args });
    const said = await program.next<string>(expected);
    if (said !== expected) findings.push(`A process reported '${said}' instead of '${expected}'.`);
    return program;
  };
  const startReader = (): Promise<Program> => start(['read', name, Math.floor(random() * 2 ** 31)], 'reads');
  const add = (seen: MapReads): void => {
    for (const key of Object.keys(sum) as (keyof MapReads)[]) sum[key] += seen[key];
  };
  let owner = await start(['own', name], 'stores');
  let readers = await Promise.all(Array.from({ length: READERS }, startReader));
  let kills = 0;
  while (kills < count) {
    await sleep(random() * MOST_MS);
    for (const reader of readers) add(await reader.ask<MapReads>('seen'));
    if (random() < 0.5) {
      owner.kill();
      for (const reader of readers) {
        const said = await reader.next<string>('closed');
        if (said !== 'closed') findings.push(`A reader whose owner was killed reported '${String(said)}'.`);
        reader.kill();
      }
      await owner.exited;
      owner = await start(['own', name], 'stores');
      readers = await Promise.all(Array.from({ length: READERS }, startReader));
    } else {
      const killed = Math.floor(random() * READERS);
      readers[killed]!.kill();
      readers[killed] = await startReader();
    }
    kills += 1;
    progress(kills);
  }
  for (const kind of ['torn', 'foreign', 'expired'] as const)
    if (sum[kind] > 0) findings.push(`${sum[kind]} of ${sum.found} values were ${kind}.`);
  if (sum.found === 0) findings.push('No reader has found a value.');
  for (const program of [owner, ...readers]) program.kill();
  return { done: kills, findings, figures: { gets: sum.gets, found: sum.found, busy: sum.busy } };
}

export const sharedMapAttack: Attack = {
  name: 'shared-map',
  what: 'owners and readers of a shared map that are killed while one stores and the others read',
  unit: 'kills',
  full: 200,
  short: 3,
  run,
};
