/** `npm run test:interop`: the matrix against Linux guests with rdma_rxe, as a table. */
import { copyFileSync } from 'node:fs';
import Table from 'cli-table3';
import { Command } from 'commander';
import { z } from 'zod';
import { GUEST, type InteropCase } from './case.js';
import { cases } from './cases.js';
import { missing, Rig, scriptPath } from './rig.js';

const options = z.object({
  only: z.string().default(''),
  quick: z.boolean().default(false),
  list: z.boolean().default(false),
  json: z.boolean().default(false),
  keep: z.boolean().default(false),
  kernel: z
    .string()
    .regex(/^linux-image-[a-z0-9.+-]+$/, 'must be a Debian kernel package, as in linux-image-6.12-amd64')
    .optional(),
  linkMtu: z.coerce.number('must be a number').int().min(1280).max(9000).default(4200),
});

/** What the guest runs of rig/. */
const GUEST_SCRIPTS = ['all-ops.py', 'cm-peer.py', 'verbs-peer.py', 'group.py'];

interface Outcome {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: number;
  readonly problem?: string;
}

const nameOf = ({ peer, operation, role, family, mtu, loss }: InteropCase): string =>
  [`${role} of ${peer}`, operation, `IPv${family}`, mtu && `MTU ${mtu}`, loss].filter(Boolean).join(', ');

async function runCase(rig: Rig, one: InteropCase): Promise<Outcome> {
  const begin = performance.now();
  const outcome = (ok: boolean, problem?: string): Outcome => ({
    name: nameOf(one),
    ok,
    seconds: (performance.now() - begin) / 1000,
    ...(problem === undefined ? {} : { problem }),
  });
  try {
    await one.run(rig);
    return outcome(true);
  } catch (error) {
    return outcome(false, error instanceof Error ? error.message : String(error));
  } finally {
    rig.settle();
  }
}

/** A row for each peer and operation, a column for each role. */
function table(done: readonly (readonly [InteropCase, Outcome])[]): string {
  const rows = new Map<string, { head: string[]; cells: Map<string, string> }>();
  for (const [one, { ok, seconds }] of done) {
    const head = [one.peer, one.operation, `IPv${one.family}`, String(one.mtu ?? ''), one.loss ?? ''];
    const key = head.join('|');
    const row = rows.get(key) ?? { head, cells: new Map() };
    row.cells.set(one.role, `${ok ? 'ok' : 'FAILED'} ${seconds.toFixed(1)} s`);
    rows.set(key, row);
  }
  const out = new Table({
    head: ['peer', 'operation', 'IP', 'MTU', 'link', 'result', 'we are'],
    style: { head: [], border: [], compact: true },
  });
  for (const { head, cells } of rows.values())
    for (const [role, cell] of cells) out.push([...head, cell, role]);
  return out.toString();
}

async function main(values: z.output<typeof options>): Promise<void> {
  const chosen = cases.filter(
    (one) => (!values.quick || one.quick === true) && nameOf(one).includes(values.only),
  );
  if (values.list) {
    for (const one of chosen) console.log(nameOf(one));
    return;
  }
  const reason = missing();
  if (reason !== undefined) {
    console.log(`SKIPPED: none of ${chosen.length} interop tests was run: this machine ${reason}.`);
    return;
  }
  const rig = new Rig(values);
  const done: (readonly [InteropCase, Outcome])[] = [];
  const begin = performance.now();
  try {
    await rig.boot(GUEST);
    const [release] = await rig.inGuest(GUEST, 'uname -r');
    console.error(`Linux ${release}, link MTU ${values.linkMtu}`);
    const [share] = await rig.share(GUEST);
    for (const script of GUEST_SCRIPTS) copyFileSync(scriptPath(script), `${share}/${script}`);
    for (const one of chosen) {
      const outcome = await runCase(rig, one);
      done.push([one, outcome]);
      if (values.json) console.log(JSON.stringify(outcome));
      else
        console.error(
          `${outcome.ok ? 'ok    ' : 'FAILED'} ${outcome.name} (${outcome.seconds.toFixed(1)} s)`,
        );
      if (outcome.problem !== undefined && !values.json)
        console.error(outcome.problem.replace(/^/gm, '    '));
    }
  } finally {
    if (!values.keep) await rig.down();
  }
  const failed = done.filter(([, { ok }]) => !ok).length;
  if (!values.json) {
    console.log(table(done));
    console.log(`${done.length} cases in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    console.log(`${done.length - failed} passed, ${failed} failed, 0 skipped`);
  }
  if (failed > 0 || done.length === 0) process.exitCode = 1;
}

const command = new Command('test:interop')
  .description('Talks to Linux guests with rdma_rxe, in both roles')
  .option('--only <text>', 'cases whose name has this in it')
  .option('--quick', 'the chosen part that continuous integration runs')
  .option('--list', 'print the names of the cases')
  .option('--json', 'print a JSON object for each case')
  .option('--keep', 'leave the guests running')
  .option('--kernel <package>', "Debian package of the guest's kernel (default: linux-image-amd64)")
  .option('--link-mtu <bytes>', 'MTU of the link between the hosts (default: 4200)')
  .action(async () => {
    const parsed = options.safeParse(command.opts());
    if (parsed.success) return main(parsed.data);
    for (const { path, message } of parsed.error.issues) console.error(`--${path.join('.')}: ${message}`);
    process.exitCode = 2;
  });
await command.parseAsync();
