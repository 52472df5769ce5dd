/** `npm run test:rdma`: this library on the RDMA devices of Linux guests, against Linux's own programs and the conformance suite. */
import { Command } from 'commander';
import { missing, Rig } from '../interop/rig.js';
import { cases, type HcaCase, OURS, THEIRS } from './cases.js';

/** Runs a case; true: it has passed. */
async function runCase(rig: Rig, { name, run }: HcaCase): Promise<boolean> {
  const begun = performance.now();
  rig.begin(undefined);
  let problem: string | undefined;
  try {
    await run(rig);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  rig.settle();
  // What a failed case has left in a guest ends with it.
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${problem === undefined ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  for (const text of [...rig.notes, ...(problem === undefined ? [] : [problem])])
    console.log(text.replace(/^/gm, '    '));
  return problem === undefined;
}

async function main({ quick, only, keep }: { quick?: true; only: string; keep?: true }): Promise<void> {
  const chosen = cases.filter((one) => (!quick || one.quick === true) && one.name.includes(only));
  const reason = missing();
  if (reason !== undefined) {
    console.log(`SKIPPED: none of ${chosen.length} tests on RDMA devices was run: this machine ${reason}.`);
    return;
  }
  const rig = new Rig({ linkMtu: 1500, node: true }, '-rdma');
  let failed = 0;
  try {
    await rig.build();
    await rig.boot(OURS, THEIRS);
    for (const guest of [OURS, THEIRS]) await rig.deploy(guest);
    for (const one of chosen) if (!(await runCase(rig, one))) failed++;
  } finally {
    if (!keep) await rig.down();
  }
  console.log(`${chosen.length - failed} passed, ${failed} failed, 0 skipped`);
  if (failed > 0 || chosen.length === 0) process.exitCode = 1;
}

await new Command('test:rdma')
  .description('Runs this library on the RDMA devices of Linux guests')
  .option('--only <text>', 'cases whose name has this in it', '')
  .option('--quick', 'the chosen part that continuous integration runs')
  .option('--keep', 'leave the guests running')
  .action(main)
  .parseAsync();
