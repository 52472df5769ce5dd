/**
 * Peers that are killed, or stopped and then killed, at any point: test/integration/kill.test.ts with larger counts.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Attack, Outcome, Run } from './attack.js';
import { environmentOf } from './process.js';

const program = fileURLToPath(new URL('../integration/kill.test.js', import.meta.url));

/** With fewer kills some processes end by themselves, and the others may not cover all points. */
const LEAST = 14;

async function runKills(link: 'auto' | 'wire', { build, seed, count }: Run): Promise<Outcome> {
  const wanted = Math.max(count, LEAST);
  const child = spawn(process.execPath, ['--enable-source-maps', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...environmentOf(build),
      ND_KILL_RUNS: String(wanted),
      ND_KILL_SEED: String(seed),
      ND_KILL_LINK: link,
      ND_KILL_STOP: '1',
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-20_000);
    });
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  const findings = code === 0 ? [] : [`ended by ${signal ?? `exit code ${code}`}. ${output.trim()}`];
  return { done: wanted, findings, figures: {} };
}

const killAttack = (name: string, what: string, link: 'auto' | 'wire'): Attack => ({
  name,
  what,
  unit: 'kills',
  full: 250,
  short: 14,
  seldom: true,
  run: (run) => runKills(link, run),
});

export const killAttacks: readonly Attack[] = [
  killAttack('kill-local', 'peers killed, half of them stopped before, on the local link', 'auto'),
  killAttack('kill-wire', 'the same over the network', 'wire'),
];
