/**
 * Peers that hang, and an honest one. Some are stopped in the middle of a copy, even while the owner of the memory has no room to withdraw
 * it. Others wait for pages that are never supplied. The native program test/native/host_stuck.cc does this, because it can stop a peer
 * within a copy.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { Attack, Outcome, Run } from './attack.js';
import type { Build } from './process.js';

const native = fileURLToPath(new URL('../../../test/native', import.meta.url));
const programs: Record<Build, { target: string; path: string }> = {
  plain: { target: 'stuck', path: 'build/host_stuck' },
  asan: { target: 'asan-stuck', path: 'build/asan/host_stuck' },
};

/** The program's last line of output. */
const figuresSchema = z.record(z.string(), z.number());

interface Ended {
  readonly how: string;
  readonly output: string;
  readonly errors: string;
}

async function runProgram(command: string, args: readonly string[]): Promise<Ended> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk) => {
    output = `${output}${chunk}`.slice(-20_000);
  });
  child.stderr.on('data', (chunk) => {
    errors = `${errors}${chunk}`.slice(-20_000);
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { how: signal ?? `exit code ${code}`, output, errors };
}

/** The program's own checks decide: the honest peer's connection must exist, and each of its Writes must have succeeded. */
async function runStuck({ build, count }: Run): Promise<Outcome> {
  const { target, path } = programs[build];
  const made = await runProgram('make', ['--silent', '-j2', '-C', native, target]);
  if (made.how !== 'exit code 0')
    throw new Error(`make ${target} ended by ${made.how}. ${made.errors.trim()}`);
  const { how, output, errors } = await runProgram(`${native}/${path}`, [String(count)]);
  const line = /^\{.*\}$/m.exec(output)?.[0];
  const figures = line === undefined ? {} : figuresSchema.parse(JSON.parse(line));
  const findings = how === 'exit code 0' ? [] : [`ended by ${how}. ${errors.trim()}`];
  return { done: figures.stops ?? 0, findings, figures };
}

export const stuckAttack: Attack = {
  name: 'stuck',
  what: 'peers stopped in the middle of a copy, with room to withdraw the memory and without, and one whose pages are never supplied',
  unit: 'stops',
  full: 2000,
  short: 50,
  seldom: true,
  needs: ['direct access'],
  run: runStuck,
};
