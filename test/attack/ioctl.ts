/** A program that sends invalid requests may break only its own objects. */
import { ADDRESS } from '../helpers/loopback.js';
import type { Attack, Outcome, Run } from './attack.js';
import type { IoctlProgress, IoctlReport } from './ioctl-program.js';
import { Program } from './process.js';
import type { ServeJob } from './victim.js';

async function runIoctls({ build, seed, count, progress }: Run): Promise<Outcome> {
  const job: ServeJob = {
    role: 'serve',
    address: ADDRESS,
    seed,
    connections: 0,
    datagrams: 0,
    churn: false,
    lookups: false,
  };
  const partner = new Program('victim', { build, args: [JSON.stringify(job)], options: {} });
  const { port } = await partner.next<{ port: number }>('start');
  const program = new Program('ioctl-program', { build, args: [port, count, seed], options: {} });
  let reported = await program.last<IoctlReport | IoctlProgress>();
  for (; 'progress' in reported; reported = await program.last()) progress(reported.progress);
  const { done, succeeded, foreignIds, scribbles, findings, rounds } = reported;
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
  short: 12_000,
  run: runIoctls,
};
