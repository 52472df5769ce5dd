/** Options of the benchmark's command line: names, defaults, limits. */
import { Command, CommanderError } from 'commander';
import * as z from 'zod';

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

/** Parses the command line. @throws CommanderError for invalid options, and after --help */
export function parseOptions() {
  const command = new Command('bench')
    .description(
      'Measures this library between two processes of this host, beside its peers: libfabric, UCX, node:net, zeromq, ' +
        'MessagePorts, lmdb, Redis and baselines in C.',
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
