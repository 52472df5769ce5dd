/** The benchmark's command-line options: names, defaults, limits. */
import { Command, CommanderError } from 'commander';
import * as z from 'zod';

const optionsSchema = z.strictObject({
  only: z.string().transform((text, context) => {
    try {
      return new RegExp(text);
    } catch (error) {
      context.addIssue(`must be a valid regular expression: ${(error as Error).message}`);
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

/** Parses the command line. @throws CommanderError for invalid options, and after --help */
export function parseOptions() {
  const command = new Command('bench')
    .description(
      'Measures this library between two processes on this host and compares it with libfabric, UCX, node:net, zeromq, ' +
        'MessagePorts, lmdb, Redis and baselines in C.',
    )
    .option('--only <pattern>', 'rows whose name matches; --list prints the names', '')
    .option('--rounds <n>', 'measurements of each contestant, interleaved', '5')
    .option('--scale <factor>', 'scale the duration of measurements', '1')
    .option('--no-peers', 'measure only this library')
    .option('--no-pin', 'do not pin the processes to CPUs')
    .option(
      '--realtime',
      'use real-time priority for the measured processes on a busy machine (requires root)',
    )
    .option('--json', 'print JSON lines: the machine, then one for each row and contestant')
    .option('--markdown', 'print a Markdown table')
    .option('--svg <file>', 'write a chart of latency and bandwidth by message size')
    .option('--list', 'print the names of the rows and their contestants, and exit')
    .exitOverride()
    .parse();
  const parsed = optionsSchema.safeParse(command.opts());
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CommanderError(2, 'bench.option', `--${issue!.path.join('.')}: ${issue!.message}`);
}
