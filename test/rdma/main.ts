/** `npm run test:rdma`: tests this library on the RDMA devices of Linux guests, with Linux's own programs and the conformance suite. */
import { Command } from 'commander';
import { missing, Rig } from '../interop/rig.js';
import { OURS, type RdmaCase, Skipped, THEIRS } from './case.js';
import { cases } from './cases.js';

type Outcome = 'passed' | 'failed' | 'skipped';
const labels: Readonly<Record<Outcome, string>> = {
  passed: 'ok     ',
  failed: 'FAILED ',
  skipped: 'SKIPPED',
};

/** Ends all programs of this case in the guests. A guest that does not respond is only reported. */
async function clear(rig: Rig, reported: string[]): Promise<void> {
  const ended = await Promise.allSettled([OURS, THEIRS].map((guest) => rig.clear(guest)));
  for (const one of ended) if (one.status === 'rejected') reported.push(String(one.reason.message));
}

async function runCase(rig: Rig, { name, run }: RdmaCase): Promise<Outcome> {
  const begun = performance.now();
  rig.begin(undefined);
  let outcome: Outcome = 'passed';
  const reported: string[] = [];
  try {
    await run(rig);
  } catch (error) {
    outcome = error instanceof Skipped ? 'skipped' : 'failed';
    reported.push(error instanceof Error ? error.message : String(error));
  }
  rig.settle();
  await clear(rig, reported);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${labels[outcome]} ${name} (${seconds} s)`);
  for (const text of [...rig.notes, ...reported]) console.log(text.replace(/^/gm, '    '));
  return outcome;
}

async function main({ quick, only, keep }: { quick?: true; only: string; keep?: true }): Promise<void> {
  const chosen = cases.filter((one) => (!quick || one.quick === true) && one.name.includes(only));
  const reason = missing();
  if (reason !== undefined) {
    console.log(`SKIPPED: none of ${chosen.length} tests on RDMA devices was run: this machine ${reason}.`);
    return;
  }
  const rig = new Rig({ linkMtu: 1500, node: true }, '-rdma');
  const count = { passed: 0, failed: 0, skipped: 0 };
  const begun = performance.now();
  try {
    await rig.build();
    await rig.boot(OURS, THEIRS);
    for (const guest of [OURS, THEIRS]) await rig.deploy(guest);
    for (const one of chosen) count[await runCase(rig, one)]++;
  } finally {
    if (!keep) await rig.down();
  }
  console.log(`${chosen.length} cases in ${((performance.now() - begun) / 60_000).toFixed(1)} min`);
  console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  if (count.failed > 0 || chosen.length === 0) process.exitCode = 1;
}

await new Command('test:rdma')
  .description('Runs this library on the RDMA devices of Linux guests')
  .option('--only <text>', 'cases whose name has this in it', '')
  .option('--quick', 'the chosen part that continuous integration runs')
  .option('--keep', 'leave the guests running')
  .action(main)
  .parseAsync();
