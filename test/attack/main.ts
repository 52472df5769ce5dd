/**
 * Attacks on the stack, each with a seed: `node dist/test/attack/main.js [--short] [--only part] [--seed n] [--scale x]
 * [--build plain|asan|both] [--json] [--list]`. docs/internals/bounds.md describes the attackers and the rules.
 */
import Table from 'cli-table3';
import { Command } from 'commander';
import * as z from 'zod';
import { count } from '../../nd/cli/argument-schemas.js';
import { endsInTwo } from '../../nd/cli/command-line.js';
import { apart, runApart } from '../helpers/apart.js';
import { lacking } from '../helpers/needs.js';
import type { Attack, Outcome } from './attack.js';
import { attacks } from './attacks.js';
import { type Build, builds, endAll } from './process.js';

/** The default seed. The short part also uses another one, which it prints. */
const FIXED_SEED = 1;
const PROGRESS_MS = 30_000;

const optionsSchema = z.object({
  short: z.boolean().default(false),
  only: z.string().default(''),
  seed: count(0, 0xffff_ffff).optional(),
  scale: z.coerce
    .number('must be a number')
    .positive('must be above 0')
    .max(1000, 'must be 1000 or less')
    .default(1),
  build: z.enum([...builds, 'both'], 'must be plain, asan or both').default('plain'),
  json: z.boolean().default(false),
  list: z.boolean().default(false),
});
type Options = z.infer<typeof optionsSchema>;

interface Row extends Outcome {
  readonly attack: string;
  readonly build: Build;
  readonly seed: number;
  readonly unit: string;
  readonly seconds: number;
  readonly skipped?: string;
}

function readOptions(): Options {
  const command: Command = endsInTwo(new Command('attack'))
    .description('Attacks the stack, and reports failures.')
    .option('--short', 'a few minutes: small counts, a fixed seed and a random one')
    .option('--only <part>', 'attacks whose names have this part')
    .option('--seed <n>', 'the seed; the same seed sends the same')
    .option('--scale <x>', 'counts are multiplied by it')
    .option('--build <build>', 'plain, asan (`make -C test/native asan-addon`) or both')
    .option('--json', 'print JSON')
    .option('--list', 'what attacks there are')
    .parse();
  const read = optionsSchema.safeParse(command.opts());
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  command.error(`error: --${issue!.path.join('.')} ${issue!.message}`, { exitCode: 2 });
}

/** Prints an attack's progress from time to time. */
function progressOf({ unit }: Attack, count: number): (done: number) => void {
  let toldAt = performance.now();
  return (done) => {
    if (performance.now() < toldAt + PROGRESS_MS) return;
    toldAt = performance.now();
    console.log(`  … ${done.toLocaleString('en')} of ${count.toLocaleString('en')} ${unit}`);
  };
}

async function runOne(attack: Attack, build: Build, seed: number, options: Options): Promise<Row> {
  const wanted = options.short ? attack.short : attack.full;
  const row = { attack: attack.name, build, seed, unit: attack.unit };
  const skipped = lacking(...(attack.needs ?? []));
  if (skipped !== undefined) return { ...row, done: 0, findings: [], figures: {}, seconds: 0, skipped };
  const began = performance.now();
  let outcome: Outcome;
  try {
    const count = Math.max(1, Math.round(wanted * options.scale));
    if (!options.json) console.log(`${attack.name} (${build}, seed ${seed}) …`);
    const progress = options.json ? () => {} : progressOf(attack, count);
    outcome = await attack.run({ build, seed, count, progress });
  } catch (error) {
    outcome = { done: 0, findings: [error instanceof Error ? error.message : String(error)], figures: {} };
  }
  await endAll();
  return { ...row, ...outcome, seconds: (performance.now() - began) / 1000 };
}

function show(row: Row): void {
  const { attack, build, seed, unit, done, seconds, findings, figures, skipped } = row;
  if (skipped !== undefined) {
    console.log(`${attack}: skipped: ${skipped}`);
    return;
  }
  const detail = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  console.log(
    `${attack} (${build}, seed ${seed}): ${done} ${unit}, ${seconds.toFixed(0)} s; ${detail.join(', ')}`,
  );
  for (const text of findings) console.log(`  FELL: ${text}`);
}

function tableOf(rows: readonly Row[]): string {
  const table = new Table({
    head: ['attack', 'build', 'seed', 'count', 'unit', 'per second', 'victims'],
    colAligns: ['left', 'left', 'right', 'right', 'left', 'right', 'left'],
    style: { head: [], border: [], compact: true },
  });
  for (const { attack, build, seed, done, unit, seconds, findings, skipped } of rows) {
    const rate = seconds === 0 ? '' : Math.round(done / seconds).toLocaleString('en');
    const health =
      skipped !== undefined ? 'skipped' : findings.length === 0 ? 'whole' : `${findings.length} fell`;
    table.push([attack, build, seed, done.toLocaleString('en'), unit, rate, health]);
  }
  return table.toString();
}

async function main(): Promise<void> {
  const options = readOptions();
  const chosen = attacks.filter(({ name }) => name.includes(options.only));
  if (chosen.length === 0) {
    console.error(`error: --only: no attack has '${options.only}' in its name; --list prints them`);
    process.exit(2);
  }
  if (options.list) {
    for (const { name, what, full, unit } of chosen)
      console.log(`${name}: ${what} (${full.toLocaleString('en')} ${unit})`);
    return;
  }
  const seeds = [options.seed ?? FIXED_SEED];
  if (options.short && options.seed === undefined) seeds.push(Math.floor(Math.random() * 2 ** 31));
  const rows: Row[] = [];
  for (const build of options.build === 'both' ? builds : [options.build]) {
    for (const attack of chosen) {
      for (const seed of options.short && attack.seldom ? seeds.slice(-1) : seeds) {
        const row = await runOne(attack, build, seed, options);
        rows.push(row);
        if (!options.json) show(row);
      }
    }
  }
  if (options.json) console.log(JSON.stringify(rows, undefined, 2));
  else console.log(tableOf(rows));
  if (rows.some(({ findings }) => findings.length > 0)) process.exitCode = 1;
}

const wantsNetwork = !process.argv.some((word) => ['--list', '--help', '-h'].includes(word));
if (wantsNetwork && !apart) runApart(import.meta.url, () => void main());
else await main();
