/** A program that asks for nonsense: what it may break is its own. */
import type { Attack, Outcome, Run } from './attack.js';
import type { IoctlReport } from './ioctl-program.js';
import { Program } from './process.js';

async function runIoctls({ build, seed, count }: Run): Promise<Outcome> {
  const partner = new Program('victim', { build, args: ['serve', 0, 0, seed], options: {} });
  const { port } = await partner.next<{ port: number }>('start');
  const program = new Program('ioctl-program', { build, args: [port, count, seed], options: {} });
  const { done, succeeded, foreignIds, scribbles, findings, rounds } = await program.last<IoctlReport>();
  await partner.ask('end');
  for (const one of [program, partner]) {
    const how = await one.exited;
    if (how !== 'exit code 0') findings.push(`${one.name} ended by ${how}. ${one.errors.trim()}`);
  }
  return {
    done,
    findings,
    figures: { succeeded, 'ids of another file': foreignIds, 'ring words': scribbles, rounds },
  };
}

export const ioctlAttack: Attack = {
  name: 'ioctl',
  what: 'a program with IOCTLs of any bytes, ids of another of its files, and any words in its rings',
  unit: 'IOCTLs',
  full: 1_000_000,
  short: 15_000,
  run: runIoctls,
};
