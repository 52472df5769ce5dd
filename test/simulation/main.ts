/**
 * The engine's transport and connection management on a simulated network: `npm run test:simulation -- [--minutes n | --hours n |
 * --runs n] [--scenario part] [--seed n] [--plan json] [--json] [--list]`. docs/internals/simulation.md describes it.
 */
import { Command } from 'commander';
import * as z from 'zod';
import { count } from '../../nd/cli/argument-schemas.js';
import { endsInTwo } from '../../nd/cli/command-line.js';
import { seeded } from '../helpers/random.js';
import { draw, type Plan, type Report, type Scenario } from './scenario.js';
import { scenarios } from './scenarios.js';
import { type Failing, shrink } from './shrink.js';
import { Violation, World } from './world.js';

const MS_PER_MINUTE = 60_000;
const PROGRESS_MS = 10_000;
const SHORT_MINUTES = 1;
/** Time limit for shrinking a failure. */
const SHRINK_MS = 60_000;
/** One in this many runs is repeated and must have the same result. */
const REPEATED_EVERY = 20;
/** Number of failures after which the program ends. */
const MOST_FAILURES = 5;
const LARGEST_SEED = 2 ** 32 - 1;

const positive = z.coerce.number('must be a number').positive('must be above 0');
const optionsSchema = z.object({
  minutes: positive.max(60_000, 'must be 60000 or less').optional(),
  hours: positive.max(1000, 'must be 1000 or less').optional(),
  runs: count(1, 1_000_000_000).optional(),
  scenario: z.string().default(''),
  seed: count(0, LARGEST_SEED).optional(),
  plan: z.string().optional(),
  first: z.boolean().default(false),
  json: z.boolean().default(false),
  list: z.boolean().default(false),
});
type Options = z.infer<typeof optionsSchema>;

function readOptions(): Options {
  const command: Command = endsInTwo(new Command('simulation'))
    .description('The transport and connection management on a simulated network, each run from a seed.')
    .option('--minutes <n>', `how long (default: ${SHORT_MINUTES})`)
    .option('--hours <n>', 'how long')
    .option('--runs <n>', 'how many runs instead')
    .option('--scenario <part>', 'scenarios whose names have this part')
    .option('--seed <n>', 'of the first run; the next has the next number')
    .option('--plan <json>', 'parameters of the run instead of those that the seed draws')
    .option('--first', 'end with the first failure')
    .option('--json', 'print JSON')
    .option('--list', 'what scenarios there are')
    .parse();
  const read = optionsSchema.safeParse(command.opts());
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  command.error(`error: --${issue!.path.join('.')} ${issue!.message}`, { exitCode: 2 });
}

interface Failure extends Failing {
  readonly scenario: string;
  readonly seed: number;
}

interface Total {
  runs: number;
  packets: number;
  seconds: number;
  virtualSeconds: number;
  longest: Record<string, number>;
}

/** One run. A failure has the faults that occurred until then. */
function runOnce(
  scenario: Scenario,
  seed: number,
  plan: Plan,
  faults?: Float64Array,
  onProgress?: (world: World) => void,
) {
  const world = new World(seed, faults);
  if (onProgress) world.onProgress = () => onProgress(world);
  let report: Report = {};
  let message: string | undefined;
  try {
    report = scenario.run(world, plan);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    ({ message } = error);
  }
  const { packets, digest } = world.native.figures();
  const applied = message === undefined ? undefined : world.native.appliedFaults();
  return { packets, digest, report, message, applied, virtualSeconds: world.nowMs / 1000 };
}

function shrunk(scenario: Scenario, seed: number, first: Failing): Failure {
  const end = performance.now() + SHRINK_MS;
  const smallest = shrink(
    scenario.ranges,
    first,
    (plan, faults) => {
      const { message, applied } = runOnce(scenario, seed, plan, faults);
      return message === undefined ? undefined : { message, faults: applied! };
    },
    () => performance.now() > end,
  );
  return { ...smallest, scenario: scenario.name, seed };
}

const FAULT_NAMES = ['none', 'loss', 'duplicate', 'delay', 'ancient'];

function show({ scenario, seed, plan, faults, message }: Failure): void {
  console.log(`FELL: ${scenario}, seed ${seed}: ${message}`);
  console.log(
    `  again: npm run test:simulation -- --scenario ${scenario} --seed ${seed} --runs 1 --plan '${JSON.stringify(plan)}'`,
  );
  if (!faults) return;
  console.log(`  ${faults.length / 3} of its faults suffice:`);
  for (let i = 0; i < Math.min(faults.length, 30); i += 3) {
    console.log(`    ${FAULT_NAMES[faults[i + 2]!]} of packet ${faults[i + 1]} of port ${faults[i]}`);
  }
}

/** Interleaves the scenarios in proportion to their shares, until the time or the number of runs is reached. */
function runAll(
  chosen: readonly Scenario[],
  options: Options,
): { totals: Map<string, Total>; failures: Failure[] } {
  const minutes = options.hours !== undefined ? options.hours * 60 : (options.minutes ?? SHORT_MINUTES);
  const until =
    options.runs === undefined ? performance.now() + minutes * MS_PER_MINUTE : Number.POSITIVE_INFINITY;
  const totals = new Map<string, Total>();
  for (const { name } of chosen)
    totals.set(name, { runs: 0, packets: 0, seconds: 0, virtualSeconds: 0, longest: {} });
  const failures: Failure[] = [];
  const given = options.plan === undefined ? undefined : (JSON.parse(options.plan) as Plan);
  let seed = options.seed ?? Math.floor(Math.random() * 2 ** 31);
  let toldAt = performance.now();
  for (let run = 0; run < (options.runs ?? Number.POSITIVE_INFINITY) && performance.now() < until; run++) {
    // Selects the scenario that is furthest behind its share.
    const behind = (one: Scenario) => totals.get(one.name)!.seconds / one.share;
    const scenario = chosen.reduce((a, b) => (behind(b) < behind(a) ? b : a));
    const total = totals.get(scenario.name)!;
    const plan = {
      ...draw(scenario.ranges, seeded(seed ^ 0x5eed), total.runs === 0 && options.runs === undefined),
      ...given,
    };
    const began = performance.now();
    const tell = (world: World) => {
      if (options.json || performance.now() < toldAt + PROGRESS_MS) return;
      toldAt = performance.now();
      const { packets } = world.native.figures();
      console.log(
        `  … ${scenario.name}, seed ${seed}: ${Math.round(world.nowMs)} ms, ${packets.toLocaleString('en')} packets`,
      );
    };
    const { packets, message, applied, virtualSeconds, report, digest } = runOnce(
      scenario,
      seed,
      plan,
      undefined,
      tell,
    );
    total.runs += 1;
    total.packets += packets;
    total.virtualSeconds += virtualSeconds;
    total.seconds += (performance.now() - began) / 1000;
    for (const [name, value] of Object.entries(report))
      total.longest[name] = Math.max(total.longest[name] ?? value, value);
    if (run % REPEATED_EVERY === REPEATED_EVERY - 1 && runOnce(scenario, seed, plan).digest !== digest)
      throw new Error(
        `${scenario.name}, seed ${seed}: a second run had other packets; something does not depend on the seed alone`,
      );
    if (message !== undefined) {
      if (!options.json)
        console.log(`${scenario.name}, seed ${seed}, does not hold: ${message}; shrinking …`);
      const failure = shrunk(scenario, seed, { plan, faults: applied, message });
      failures.push(failure);
      if (!options.json) show(failure);
      if (failures.length >= (options.first ? 1 : MOST_FAILURES)) break;
    }
    seed = (seed + 1) % (LARGEST_SEED + 1);
  }
  return { totals, failures };
}

function main(): void {
  const options = readOptions();
  const chosen = scenarios.filter(({ name }) => name.includes(options.scenario));
  if (chosen.length === 0) {
    console.error(`error: --scenario: none has '${options.scenario}' in its name; --list prints them`);
    process.exit(2);
  }
  if (options.list) {
    for (const { name, what } of chosen) console.log(`${name}: ${what}`);
    return;
  }
  const { totals, failures } = runAll(chosen, options);
  const rows = [...totals].map(([scenario, total]) => ({ scenario, ...total }));
  if (options.json) {
    const plain = failures.map((failure) => ({ ...failure, faults: failure.faults && [...failure.faults] }));
    console.log(JSON.stringify({ rows, failures: plain }, undefined, 2));
  } else {
    for (const { scenario, runs, packets, seconds, virtualSeconds } of rows) {
      const rate = Math.round((packets / Math.max(seconds, 0.001)) * 60).toLocaleString('en');
      console.log(
        `${scenario}: ${runs} runs, ${packets.toLocaleString('en')} packets in ${seconds.toFixed(1)} s (${rate} a minute), ${virtualSeconds.toFixed(0)} s of virtual time`,
      );
    }
    console.log(failures.length === 0 ? 'All held.' : `${failures.length} failures.`);
  }
  if (failures.length > 0) process.exitCode = 1;
}

main();
