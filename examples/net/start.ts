// The command lines of the programs in this folder.
import type { Server } from 'networkdirect/net';

/** A port from a command line; 0 is a free one. @throws RangeError */
export function portOf(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new RangeError(`${text} is no port; it takes a whole number from 0 to 65535.`);
}

/** Listens on all addresses, and tells the port in the first line of output. */
export function listen(server: Server, port: string): void {
  server.listen(portOf(port));
  server.on('listening', () => console.log(`port ${server.address()!.port}`));
}

/** Runs the command that the first argument names, with the other arguments. An error is printed as one line. */
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
