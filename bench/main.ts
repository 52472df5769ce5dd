/**
 * The benchmark. It measures this library and its peers between two processes on this host, in the same run.
 *
 *   npm run bench -- [--only PATTERN] [--rounds N] [--scale X] [--no-peers] [--json] [--svg FILE]
 *
 * Figures of a shared machine are noisy, so compare ratios rather than numbers.
 */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { parseOptions } from './bench-options.js';
import { chart } from './chart.js';
import { describeMachine, machineText } from './machine.js';
import { plan } from './plan.js';
import { choosePlacement, mayBeRealtime } from './processes.js';
import { absences, jsonLines, markdown, table } from './report.js';
import { type RowOutcome, runRow } from './run.js';

function checkWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    throw new CommanderError(
      2,
      'bench.option',
      `--svg must be a writable file in an existing folder (${(error as Error).message})`,
    );
  }
}

async function main(): Promise<void> {
  const options = parseOptions();
  const rows = plan(options.scale, options.only);
  if (rows.length === 0) {
    throw new CommanderError(2, 'bench.only', `No row matches ${options.only}. --list prints the names.`);
  }
  if (options.list && options.json) {
    for (const { name, title, contestants } of rows)
      console.log(JSON.stringify({ name, title, contestants: contestants.map(({ label }) => label) }));
    return;
  }
  if (options.list) {
    const width = Math.max(...rows.map(({ name }) => name.length));
    for (const { name, title, contestants } of rows)
      console.log(`${name.padEnd(width)}  ${title} (${contestants.map(({ label }) => label).join('; ')})`);
    return;
  }
  const { cpus } = options.pin ? choosePlacement() : { cpus: undefined };
  const placement = { cpus, realtime: options.realtime };
  if (cpus === undefined && options.pin) {
    console.error('The processes are not pinned: pinning requires taskset (util-linux) and two CPUs.');
  }
  if (options.realtime && !mayBeRealtime()) {
    throw new CommanderError(
      2,
      'bench.option',
      '--realtime requires root: chrt (util-linux) is not permitted to set the priority.',
    );
  }
  // The file is checked before the measurements, which take minutes.
  if (options.svg !== undefined) checkWritable(options.svg);
  const machine = describeMachine(placement);
  if (options.json) {
    console.log(JSON.stringify({ machine, rounds: options.rounds, scale: options.scale }));
  } else {
    console.log(`${machineText(machine)}\n`);
  }
  const terminal = process.stderr.isTTY;
  const progress = (text: string) => process.stderr.write(terminal ? `\r\x1b[K${text}` : `${text}\n`);
  const outcomes: RowOutcome[] = [];
  for (const [index, row] of rows.entries()) {
    const at = `${index + 1} of ${rows.length}: ${row.name}`;
    if (!terminal) progress(at);
    const outcome = await runRow(row, {
      ...options,
      placement,
      progress: (text) => terminal && progress(`${at}: ${text}`),
    });
    outcomes.push(outcome);
    if (options.json) for (const line of jsonLines(outcome)) console.log(line);
  }
  if (terminal) progress('');
  if (!options.json) console.log(options.markdown ? markdown(outcomes) : table(outcomes));
  for (const absence of absences(outcomes)) console.error(absence);
  if (options.svg !== undefined) writeFileSync(options.svg, chart(outcomes));
  if (outcomes.some((row) => row.outcomes.some(({ failed }) => failed !== undefined))) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  if (error.code === 'bench.option' || error.code === 'bench.only') console.error(error.message);
  // All invalid options exit with 2; help exits with 0.
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}
