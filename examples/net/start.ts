// Command-line parsing for the programs in this folder.
import type { Server } from 'networkdirect/net';

/** Parses a port; 0 means a free one. @throws RangeError */
export function portOf(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new RangeError(`The port must be an integer from 0 to 65535; got ${text}.`);
}

/** Listens on all addresses and prints the port as the first line of output. */
export function listen(server: Server, port: string): void {
  server.listen(portOf(port));
  server.on('listening', () => console.log(`port ${server.address()!.port}`));
}

/** Runs the command that the first argument names, with the remaining arguments. Prints an error as one line. */
export async function run(
  usage: string,
  commands: Readonly<Record<string, (...rest: string[]) => unknown>>,
): Promise<void> {
  const [name = '', ...rest] = process.argv.slice(2);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined || rest.length < command.length) {
    console.error(usage);
    process.exitCode = 2;
    return;
  }
  try {
    await command(...rest);
  } catch (error) {
    console.error(String(error));
    process.exitCode = 1;
  }
}
