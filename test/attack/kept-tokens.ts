/** Peers of `networkdirect/net` that keep every token they have received. */
import type { Attack, Outcome, Run } from './attack.js';
import type { Kept, Served } from './kept-tokens-program.js';
import { Program } from './process.js';

async function run(link: 'auto' | 'wire', { build, seed, count, progress }: Run): Promise<Outcome> {
  const options = { link };
  const server = new Program('kept-tokens-program', { build, args: ['serve'], options });
  const { port } = await server.next<{ port: number }>('port');
  const attacker = new Program('kept-tokens-program', {
    build,
    args: ['attack', port, seed, count],
    options,
  });
  for (;;) {
    const { done, outcome } = await attacker.next<Kept>('accesses');
    progress(done);
    if (outcome === undefined) continue;
    const { findings, messages } = await server.ask<Served>('health');
    return {
      done,
      findings: [...outcome.findings, ...findings],
      figures: { ...outcome.figures, messages },
    };
  }
}

const keptTokens = (name: string, what: string, link: 'auto' | 'wire'): Attack => ({
  name,
  what,
  unit: 'accesses',
  full: 5000,
  short: 100,
  run: (whole) => run(link, whole),
});

export const keptTokenAttacks: readonly Attack[] = [
  keptTokens('kept-tokens', 'peers of a channel server that keep every token, on the local link', 'auto'),
  keptTokens('kept-tokens-wire', 'the same over the network', 'wire'),
];
