/** `npm run test:interop`: runs the matrix against Linux guests with rdma_rxe, and prints a table. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Table from 'cli-table3';
import { Command } from 'commander';
import * as z from 'zod';
import { canDecode, type Decoded, decode } from './captures.js';
import type { InteropCase } from './case.js';
import { cases } from './cases.js';
import { type Numbered, runLanes } from './lanes.js';
import { missing, type Rig } from './rig.js';

const options = z.object({
  only: z.string().default(''),
  quick: z.boolean().default(false),
  list: z.boolean().default(false),
  json: z.boolean().default(false),
  keep: z.boolean().default(false),
  capture: z.string().min(1, 'must be a folder').optional(),
  kernel: z
    .string()
    .regex(/^linux-image-[a-z0-9.+-]+$/, 'must be a Debian kernel package, as in linux-image-6.12-amd64')
    .optional(),
  linkMtu: z.coerce.number('must be a number').int().min(1280).max(9000).default(4200),
});

/** Maximum number of malformed packets listed for a case. */
const SHOWN = 5;

interface Outcome {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: number;
  readonly problem?: string;
  /** Measurements of the case. */
  readonly notes?: readonly string[];
}

/** A finished case. */
interface Done {
  readonly one: InteropCase;
  readonly outcome: Outcome;
  /** Common prefix of its captures' names. */
  readonly files?: string;
  decoded?: Decoded;
}

const nameOf = ({ peer, operation, role, family, mtu, loss }: InteropCase): string =>
  [`${role} of ${peer}`, operation, `IPv${family}`, mtu && `MTU ${mtu}`, loss].filter(Boolean).join(', ');

async function runCase(rig: Rig, one: InteropCase, files?: string): Promise<Outcome> {
  const begin = performance.now();
  rig.begin(files);
  const outcome = (ok: boolean, problem?: string): Outcome => ({
    name: nameOf(one),
    ok,
    seconds: (performance.now() - begin) / 1000,
    ...(problem === undefined ? {} : { problem }),
    ...(rig.notes.length === 0 ? {} : { notes: rig.notes }),
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

/** The results, with one row for each peer, operation and role. */
function table(done: readonly Done[]): string {
  const captured = done.some(({ decoded }) => decoded !== undefined);
  const out = new Table({
    head: [
      ...['peer', 'operation', 'IP', 'MTU', 'link', 'result', 'we are'],
      ...(captured ? ['packets', 'malformed'] : []),
    ],
    style: { head: [], border: [], compact: true },
  });
  for (const { one, outcome, decoded } of done) {
    const { peer, operation, family, mtu, loss, role } = one;
    out.push([
      ...[peer, operation, `IPv${family}`, String(mtu ?? ''), loss ?? ''],
      ...[`${outcome.ok ? 'ok' : 'FAILED'} ${outcome.seconds.toFixed(1)} s`, role],
      ...(decoded === undefined ? [] : [String(decoded.packets), String(decoded.malformed.length)]),
    ]);
  }
  return out.toString();
}

/** The folder for this run's captures; undefined: none. Captures of the short run are decoded and deleted. */
function captureFolder({ capture, quick }: z.output<typeof options>): string | undefined {
  if (capture === undefined) return quick && canDecode() ? mkdtempSync(join(tmpdir(), 'roce-')) : undefined;
  const folder = resolve(capture);
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new Error(`--capture: the folder ${folder} is not empty.`);
  if (!canDecode())
    throw new Error('--capture: tshark, which decodes it, is missing (scripts/install-interop-tools.sh).');
  return folder;
}

/** Decodes the captures. Returns the number of cases with malformed packets or without any packets. */
async function decodeAll(done: readonly Done[]): Promise<number> {
  let bad = 0;
  const queue = done.filter(({ files }) => files !== undefined);
  const worker = async () => {
    for (let it = queue.shift(); it !== undefined; it = queue.shift()) {
      it.decoded = await decode(it.files!);
      const { packets, malformed } = it.decoded;
      if (packets > 0 && malformed.length === 0) continue;
      bad += 1;
      console.error(`${it.outcome.name}: ${packets === 0 ? 'nothing was captured' : 'malformed packets'}`);
      for (const line of malformed.slice(0, SHOWN)) console.error(`    ${line}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return bad;
}

function tell({ ok, name, seconds, problem, notes = [] }: Outcome): void {
  console.error(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds.toFixed(1)} s)`);
  for (const text of [...notes, ...(problem === undefined ? [] : [problem])])
    console.error(text.replace(/^/gm, '    '));
}

/** A line about the captures: the findings, or the reason why they were not decoded. */
function capturesText(done: readonly Done[], bad: number, { quick }: z.output<typeof options>): string {
  const captured = done.flatMap(({ decoded }) => (decoded === undefined ? [] : [decoded]));
  if (captured.length === 0)
    return quick ? 'SKIPPED: no capture was decoded: tshark is missing.' : 'captures: none (--capture)';
  const packets = captured.reduce((sum, one) => sum + one.packets, 0);
  const malformed = captured.reduce((sum, one) => sum + one.malformed.length, 0);
  return `captures: ${packets} packets, ${malformed} malformed; ${bad} cases with wrong captures`;
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
  const folder = captureFolder(values);
  const results = new Map<number, Done>();
  const begin = performance.now();
  const run = async (rig: Rig, { one, index }: Numbered) => {
    const files = folder && join(folder, String(index + 1).padStart(3, '0'));
    const outcome = await runCase(rig, one, files);
    results.set(index, { one, outcome, ...(files === undefined ? {} : { files }) });
    if (values.json) console.log(JSON.stringify(outcome));
    else tell(outcome);
  };
  await runLanes(values, chosen, run, values.keep);
  const done = [...results.entries()].sort(([a], [b]) => a - b).map(([, it]) => it);
  const bad = await decodeAll(done);
  const failed = done.filter(({ outcome }) => !outcome.ok).length;
  if (!values.json) {
    console.log(table(done));
    console.log(`${done.length} cases in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    console.log(`${done.length - failed} passed, ${failed} failed, 0 skipped`);
    console.log(capturesText(done, bad, values));
  }
  if (values.capture === undefined && folder !== undefined) rmSync(folder, { recursive: true });
  if (failed > 0 || bad > 0 || done.length === 0) process.exitCode = 1;
}

const command = new Command('test:interop')
  .description('Talks to Linux guests with rdma_rxe, in both roles')
  .option('--only <text>', 'cases whose name has this in it')
  .option('--quick', 'the chosen part that continuous integration runs')
  .option('--list', 'print the names of the cases')
  .option('--json', 'print a JSON object for each case')
  .option('--keep', 'leave the guests running')
  .option('--capture <folder>', 'write captures of our side there and decode them with tshark at the end')
  .option('--kernel <package>', "Debian package of the guest's kernel (default: linux-image-amd64)")
  .option('--link-mtu <bytes>', 'MTU of the link between the hosts (default: 4200)')
  .action(async () => {
    const parsed = options.safeParse(command.opts());
    if (parsed.success) return main(parsed.data);
    for (const { path, message } of parsed.error.issues) console.error(`--${path.join('.')}: ${message}`);
    process.exitCode = 2;
  });
await command.parseAsync();
