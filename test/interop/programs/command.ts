/** Command lines and exit codes of the programs of this folder. */
import type { Command } from 'commander';
import type * as z from 'zod';
import { endsInTwo } from '../../../nd/cli/command-line.js';
import { WvError } from '../../../winverbs/index.js';

export { count as number, ipAddress } from '../../../nd/cli/argument-schemas.js';

/** Parses and checks the command line, and runs the program. Prints an error as one sentence. */
export async function run<T>(
  command: Command,
  options: z.ZodType<T>,
  main: (values: T) => Promise<void>,
): Promise<void> {
  endsInTwo(command);
  command.allowExcessArguments(false).action(async () => {
    const parsed = options.safeParse(command.opts());
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues) {
        process.stderr.write(
          `${command.name()}: ${path.length > 0 ? `--${path.join('.')} ` : ''}${message}\n`,
        );
      }
      process.exitCode = 2;
      return;
    }
    try {
      await main(parsed.data);
    } catch (error) {
      const code = error instanceof WvError ? ` [${error.name}]` : '';
      process.stderr.write(
        `${command.name()}: ${error instanceof Error ? error.message : String(error)}${code}\n`,
      );
      if (process.env.ND_DEBUG !== undefined && error instanceof Error)
        process.stderr.write(`${error.stack}\n`);
      process.exitCode = 1;
    }
  });
  await command.parseAsync();
}
