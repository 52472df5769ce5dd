/** Common parts of all command lines. */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIPv6, SocketAddress } from 'node:net';
import type { Command } from 'commander';
import type { ZodError } from 'zod';

/** A host name. */
const HOST_NAME = /^(?!-)[\w-]+(\.[\w-]+)*\.?$/;

/** Whether a text can be a host name. Numbers with dots are mistyped addresses. */
export const isHostName = (text: string): boolean => HOST_NAME.test(text) && !/^[\d.]*$/.test(text);

/** Resolves a host to its first address, IPv4 before IPv6. Addresses are returned unchanged. */
export async function addressOfHost(host: string): Promise<string> {
  if (!isHostName(host)) return host;
  try {
    const found = await lookup(host, { all: true });
    return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? host;
  } catch (cause) {
    throw new Error(
      `Host name '${host}' cannot be resolved. Use its address, such as 192.0.2.1 or 2001:db8::1.`,
      {
        cause,
      },
    );
  }
}

/** The version of the package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

/** The output of a program for an error with `--json`. */
export function errorLine(tool: string, error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  const text = error instanceof Error ? message : String(error);
  return `${JSON.stringify({ tool, error: { ...(code === undefined ? {} : { code }), message: text } })}\n`;
}

/** Prints an error of the current command as JSON if `--json` was given. */
export function printJsonError(error: unknown): void {
  if (process.argv.includes('--json')) process.stdout.write(errorLine(nameGiven(), error));
}

/**
 * Prints invalid options of the current command and the usage of `command`, and sets the exit code. `given` has the options as on the
 * command line.
 */
export function wrongOptions({ issues }: ZodError, given: unknown, command?: Command): void {
  const problems = issues.map(({ path, message }) => {
    if (path.length === 0) return message;
    const name = String(path[0]);
    const value = path.reduce<unknown>(
      (outer, key) => (outer as Record<PropertyKey, unknown> | undefined)?.[key],
      given,
    );
    const got = message.startsWith('must ') && typeof value === 'string' ? `; got '${value}'` : '';
    return `${name === 'pid' ? 'the process id' : `--${optionName(name)}`} ${message}${got}`;
  });
  wrongArguments(problems, command);
}

/** The same as {@link wrongOptions}, for problems given as text. */
export function wrongArguments(problems: readonly string[], command?: Command): void {
  printJsonError(new Error(problems.join('; ')));
  for (const problem of problems) process.stderr.write(`${nameGiven()}: ${problem}\n`);
  if (command !== undefined) {
    process.stderr.write('\n');
    command.outputHelp({ error: true });
  }
  process.exitCode = 2;
}

/** Options that also have capitals on the command line. */
const CAPITALS: ReadonlySet<string> = new Set(['nSge', 'logFile']);

/** An option as it is written on the command line. */
const optionName = (name: string): string =>
  CAPITALS.has(name) ? name : name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** An IP address in canonical form, without its scope. */
const canonical = (address: string): string =>
  new SocketAddress({ address, family: isIPv6(address) ? 'ipv6' : 'ipv4' }).address;

/** Whether an IP address is the wildcard. */
export const isWildcard = (address: string): boolean =>
  ['0.0.0.0', '::', '::ffff:0.0.0.0'].includes(canonical(address));

/** Whether an IP address is only reachable from this host. */
export const isLoopback = (address: string): boolean =>
  canonical(address).startsWith('127.') || canonical(address) === '::1';

/** Makes parser errors exit with code 2, like later argument errors; help exits with 0. */
export function endsInTwo(command: Command): Command {
  return command
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .configureOutput({
      outputError: (text, write) => {
        printJsonError(new Error(text.trim().replace(/^error: /, '')));
        write(text);
      },
    });
}

/** The name of the current command: `nd`, the tool, and the subcommand of `nvme`. */
export function nameGiven(): string {
  const [tool = '', action = ''] = process.argv.slice(2);
  const words = ['nd', tool, ...(tool === 'nvme' ? [action] : [])];
  return words.filter((word) => word !== '' && !word.startsWith('-')).join(' ');
}
