/** Common parts of the tools: command lines, output, and exit codes. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { type Command, Option } from 'commander';
import * as z from 'zod';
import { parseSocketAddress } from '../../../winverbs/index.js';
import { NdError, ndCleanup, ndStartup, type SocketAddress, Status, StatusError } from '../../index.js';
import { addressOfHost, errorLine, isHostName, wrongArguments, wrongOptions } from '../command-line.js';
import { EXIT_INTERRUPTED, Interrupted, onInterrupt } from '../interrupts.js';
import { exitCodeOf, meaningOf } from '../peer-lost.js';

const flag = z.boolean().default(false);

/** Options of every tool. */
export const commonOptions = { spi: z.enum(['v1', 'v2'], 'must be v1 or v2').default('v2'), json: flag };

/** The role of this process. Exactly one of the two is set. */
export const roleOptions = { server: flag, client: flag };

export function oneRole({ server, client }: { server: boolean; client: boolean }): boolean {
  return server !== client;
}
export const ONE_ROLE = 'requires either -s (server) or -c (client)';

/** Adds the options of every tool. */
export function withCommon(command: Command): Command {
  return command
    .option('--spi <version>', 'version of the SPI: v1 or v2 (default: v2)')
    .option('--json', 'print JSON')
    .option('-l, --logFile <file>', 'write the output to a file');
}

/** Adds `-s` and `-c`, also in upper case. */
export function withRole(command: Command): Command {
  return upperCase(
    command.option('-s, --server', 'wait for a client').option('-c, --client', 'connect to a server'),
    '-S',
    '-C',
  );
}

/** Adds upper-case variants of options for users of the original tools. */
export function upperCase(command: Command, ...flags: string[]): Command {
  for (const flags_ of flags) command.addOption(new Option(flags_).hideHelp());
  return command;
}

/** Long names of the options that are also accepted in upper case. */
const upperCaseNames: Readonly<Record<string, string>> = {
  S: 'server',
  C: 'client',
  B: 'blocking',
  P: 'polling',
  N: 'nSge',
  Q: 'pipeline',
};

export { Interrupted };

/** The output of a running tool, and the signal that stops it. */
export class Tool {
  readonly #abort = new AbortController();
  readonly #log: number | undefined;
  #progress = false;
  #hasResult = false;
  #muted = false;

  /** Prints the results so far. Called when the tool is interrupted. */
  partial: () => void = () => {};

  constructor(
    readonly name: string,
    readonly json: boolean,
    logFile?: string,
  ) {
    this.#log = logFile === undefined ? undefined : openSync(logFile, 'w');
  }

  /** Aborts when the process is interrupted. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  interrupt(): void {
    this.#abort.abort();
  }

  /** Ends the tool without further output, because its standard output cannot be written. */
  mute(): void {
    this.#muted = true;
    this.interrupt();
  }

  /** Whether a result was printed. */
  get hasResult(): boolean {
    return this.#hasResult;
  }

  /** Prints a line of the text output; prints nothing with `--json`. */
  line(text = ''): void {
    if (!this.json) this.#write(process.stdout, `${text}\n`);
  }

  /** Prints the whole result as JSON; prints nothing without `--json`. */
  result(value: unknown): void {
    const plain = (_: string, one: unknown) => (typeof one === 'bigint' ? one.toString() : one);
    if (!this.json) return;
    this.#hasResult = true;
    this.#write(process.stdout, `${JSON.stringify(value, plain)}\n`);
  }

  /** Prints a line that is not part of the results. */
  note(text: string): void {
    this.progress('');
    this.#write(process.stderr, `${text}\n`);
  }

  /** Shows the progress on a terminal. The next output replaces it, and an empty text removes it. */
  progress(text: string): void {
    if (!process.stderr.isTTY || this.#log !== undefined || (text === '' && !this.#progress)) return;
    this.#progress = text !== '';
    process.stderr.write(`\r\x1b[K${text}`);
  }

  close(): void {
    this.progress('');
    if (this.#log !== undefined) closeSync(this.#log);
  }

  #write(stream: NodeJS.WriteStream, text: string): void {
    if (this.#log !== undefined) writeSync(this.#log, text);
    else if (stream !== process.stdout) stream.write(text);
    else if (!this.#muted) {
      this.progress('');
      stream.write(text);
    }
  }
}

/** Replaces the host name in `<name>` or `<name>:<port>` by its address. Other texts are returned unchanged. */
async function withAddress(text: string): Promise<string> {
  const [, name = '', port = ''] = /^([^:]*)(:\d+)?$/.exec(text) ?? [];
  if (!isHostName(name)) return text;
  const address = await addressOfHost(name);
  return address.includes(':') && port !== '' ? `[${address}]${port}` : `${address}${port}`;
}

/**
 * Parses the address of a command line, `<ip>` or `<ip>:<port>`, for IPv6 `<ip>` or `[<ip>]:<port>`, or a host name in
 * place of the IP address. Returns the text of an error if it is invalid.
 *
 * @throws Error if the host name cannot be resolved
 */
async function addressOf(given: string, defaultPort: number): Promise<SocketAddress | string> {
  const text = await withAddress(given);
  try {
    const { port, ...address } = parseSocketAddress(text, defaultPort);
    if (/^[0:.]*$/.test(address.address)) return `the address must be that of a single host; got '${given}'`;
    return { ...address, port: port === 0 ? defaultPort : port };
  } catch (error) {
    return error instanceof StatusError && error.status === Status.INVALID_PARAMETER
      ? error.message
      : `the address must be an IP address such as 192.0.2.1 or 2001:db8::1, or a host name; got '${given}'`;
  }
}

/** Formats an address, with its port unless that is 0. */
export function format({ family, address, port }: SocketAddress): string {
  if (port === 0) return address;
  return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * Completes a command with common options, an address as its last argument, and an action that checks the options. Exit
 * codes: 2 for wrong arguments, with the usage, 1 for failures, 3 for a lost peer, 130 for an interrupt, after the
 * connection has been ended. With `--json`, errors are also printed as a line of JSON.
 *
 * @param port - default port of the address; 0 for tools without a peer
 * @param banner - whether to print the first and last line of the test
 */
export function tool<T>(
  command: Command,
  options: z.ZodType<T>,
  { port = 0, banner = true }: { port?: number; banner?: boolean },
  run: (tool: Tool, address: SocketAddress, values: T) => Promise<void>,
): Command {
  const name = `nd ${command.name()}`;
  return withCommon(command)
    .argument(
      port === 0 ? '<host>' : '<host[:port]>',
      port === 0 ? 'address of the adapter' : `address of the server; default port ${port}`,
    )
    .allowExcessArguments(false)
    .action(async (text: string) => {
      const given: Record<string, unknown> = command.opts();
      for (const [upper, long] of Object.entries(upperCaseNames)) {
        if (given[upper] !== undefined) given[long] ??= given[upper];
      }
      let address: SocketAddress | string;
      try {
        address = await addressOf(text, port);
      } catch (error) {
        // The usage would not help, because the command line is well-formed.
        return wrongArguments([messageOf(error)]);
      }
      if (typeof address === 'string') return wrongArguments([address], command);
      const parsed = options.safeParse(given);
      if (!parsed.success) return wrongOptions(parsed.error, given, command);
      const { json = false, logFile } = given as { json?: boolean; logFile?: string };
      await runTool(name, json, logFile, banner, (one) => run(one, address, parsed.data));
    });
}

async function runTool(
  name: string,
  json: boolean,
  logFile: string | undefined,
  banner: boolean,
  run: (tool: Tool) => Promise<void>,
): Promise<void> {
  let one: Tool;
  try {
    one = new Tool(name, json, logFile);
  } catch (error) {
    process.stderr.write(`${name}: ${messageOf(error)}\n`);
    process.exitCode = 1;
    return;
  }
  using _ = onInterrupt(() => one.interrupt());
  // Writing fails, for example, when the reader of a pipe has closed it.
  process.stdout.once('error', () => one.mute());
  try {
    if (banner) one.line(`Beginning test: ${name}`);
    ndStartup();
    await run(one).finally(ndCleanup);
    if (banner) one.line(`End of test: ${name}`);
  } catch (thrown) {
    const error = meaningOf(thrown);
    if (one.signal.aborted) {
      one.partial();
      if (json && !one.hasResult) one.result(JSON.parse(errorLine(name, new Interrupted())));
      one.note(`${name}: interrupted`);
      process.exitCode = EXIT_INTERRUPTED;
    } else {
      const code = error instanceof NdError ? ` [${error.code}]` : '';
      if (json) one.result(JSON.parse(errorLine(name, error)));
      one.note(`${name}: ${messageOf(error)}${code}`);
      if (process.env.ND_DEBUG !== undefined && error instanceof Error) one.note(String(error.stack));
      process.exitCode = exitCodeOf(error);
    }
  } finally {
    one.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
