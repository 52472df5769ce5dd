/**
 * The benchmark. It measures this library between two processes of this host, and its peers in the same run.
 *
 *   npm run bench -- [--only PATTERN] [--rounds N] [--scale X] [--no-peers] [--json] [--svg FILE]
 *
 * Figures of a shared machine are noisy: read the ratios, not the numbers.
 */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import * as z from 'zod';
import { chart } from './chart.js';
import { describeMachine, machineText } from './machine.js';
import { plan } from './plan.js';
import { choosePlacement, mayBeRealtime } from './processes.js';
import { absences, jsonLines, markdown, table } from './report.js';
import { type RowOutcome, runRow } from './run.js';

const optionsSchema = z.strictObject({
  only: z.string().transform((text, context) => {
    try {
      return new RegExp(text);
    } catch (error) {
      context.addIssue(`It is not a regular expression: ${(error as Error).message}`);
      return z.NEVER;
    }
  }),
  rounds: z.coerce.number().int().min(1).max(1000),
  scale: z.coerce.number().positive().max(10),
  peers: z.boolean(),
  pin: z.boolean(),
  realtime: z.boolean().default(false),
  json: z.boolean().default(false),
  markdown: z.boolean().default(false),
  list: z.boolean().default(false),
  svg: z.string().optional(),
});

function parseOptions() {
  const command = new Command('bench')
    .description(
      'Measures this library between two processes of this host, beside its peers: libfabric, UCX, node:net, zeromq, ' +
        'MessagePorts and baselines in C.',
    )
    .option('--only <pattern>', 'rows whose name matches; --list prints the names', '')
    .option('--rounds <n>', 'measurements of each contestant, in alternation', '5')
    .option('--scale <factor>', 'longer or shorter measurements', '1')
    .option('--no-peers', 'this library alone')
    .option('--no-pin', 'do not pin the processes')
    .option('--realtime', 'real-time priority for measured processes (needs root), on a busy machine')
    .option('--json', 'JSON lines: the machine, then one for each row and contestant')
    .option('--markdown', 'a table for documents')
    .option('--svg <file>', 'write a chart of latency and bandwidth by message size')
    .option('--list', 'print the names of the rows and their contestants, and exit')
    .exitOverride()
    .parse();
  const parsed = optionsSchema.safeParse(command.opts());
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CommanderError(2, 'bench.option', `--${issue!.path.join('.')}: ${issue!.message}`);
}

function checkWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    throw new CommanderError(
      2,
      'bench.option',
      `--svg: The chart cannot be written (${(error as Error).message}); give a file in a folder that is there.`,
    );
  }
}

async function main(): Promise<void> {
  const options = parseOptions();
  const rows = plan(options.scale, options.only);
  if (rows.length === 0) {
    throw new CommanderError(2, 'bench.only', `No row's name matches ${options.only}; --list prints them.`);
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
    console.error('The processes are not pinned: pinning needs taskset (util-linux) and two processors.');
  }
  if (options.realtime && !mayBeRealtime()) {
    throw new CommanderError(
      2,
      'bench.option',
      '--realtime: chrt (util-linux) is not permitted to do it here; it needs root.',
    );
  }
  // Checked before the measurements, which take minutes.
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
  // All refused options exit with 2; help exits with 0.
  process.exitCode = error.exitCode === 0 ? 0 : 2;
}
