/**
 * `npm run test:install`: installs the packed package with package managers, runs it with third-party runtimes and tools, and prints a
 * table.
 */
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { Command } from 'commander';
import { Place } from './place.js';
import { startRegistry } from './registry.js';
import { type Row, rows } from './rows.js';
import { root, SUPPORTED } from './tools.js';

interface Options {
  readonly only: string;
  readonly quick?: true;
  readonly list?: true;
  readonly json?: true;
  readonly packed?: true;
}

interface Outcome {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: number;
  /** The failures. */
  readonly problem?: string;
}

async function runRow(registry: string, { name, node = SUPPORTED, run }: Row): Promise<Outcome> {
  const begin = performance.now();
  let [place, problem]: [Place?, string?] = [];
  try {
    place = await Place.make(registry, node);
    await run(place);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  place?.remove();
  const seconds = Number(((performance.now() - begin) / 1000).toFixed(1));
  return { name, ok: problem === undefined, seconds, ...(problem === undefined ? {} : { problem }) };
}

function table(outcomes: readonly Outcome[]): string {
  const out = new Table({ head: ['', 'result', 's'], style: { head: [], border: [], compact: true } });
  for (const { name, ok, seconds } of outcomes) out.push([name, ok ? 'ok' : 'FAILED', seconds.toFixed(1)]);
  return out.toString();
}

async function main({ only, quick, list, json, packed }: Options): Promise<void> {
  const chosen = rows.filter((row) => (!quick || row.quick === true) && row.name.includes(only));
  if (list) {
    for (const { name } of chosen) console.log(name);
    return;
  }
  if (!packed)
    execFileSync(process.execPath, [join(root, 'scripts/pack.mjs'), '--local'], {
      stdio: ['ignore', 2, 'inherit'],
    });
  const registry = await startRegistry(join(root, 'build/package'));
  const outcomes = new Map<Row, Outcome>();
  const queue = [...chosen];
  const lane = async (): Promise<void> => {
    for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
      const outcome = await runRow(registry.url, row);
      outcomes.set(row, outcome);
      if (json) console.log(JSON.stringify(outcome));
      else if (outcome.problem !== undefined)
        console.error(`FAILED ${outcome.name}\n${outcome.problem.replace(/^/gm, '    ')}`);
    }
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  registry.close();
  const done = chosen.map((row) => outcomes.get(row)!);
  const failed = done.filter(({ ok }) => !ok).length;
  if (!json) {
    console.log(table(done));
    console.log(`${done.length - failed} passed, ${failed} failed, 0 skipped`);
    console.log(`${done.length} rows in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
  }
  if (failed > 0 || done.length === 0) process.exitCode = 1;
}

const command = new Command('test:install')
  .description('Installs the packed package into empty folders, and runs programs there')
  .option('--only <text>', 'rows whose name has this in it', '')
  .option('--quick', 'the chosen part that continuous integration runs')
  .option('--list', 'print the names of the rows')
  .option('--json', 'print a JSON object for each row')
  .option('--packed', 'take what build/package has, instead of packing with the addons of build/Release')
  .action(() => main(command.opts<Options>()));
await command.parseAsync();
