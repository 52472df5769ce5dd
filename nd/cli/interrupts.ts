/**
 * Ctrl-C, with one rule for all commands: an interrupted job prints what it has measured and exits with 130. A command that runs until it
 * is stopped (`nd top`, `nd nvme serve`, `nd conformance --serve`) exits with 0. SIGTERM does the same.
 */
import { nameGiven, printJsonError } from './command-line.js';

/** The exit status of an interrupted job. */
export const EXIT_INTERRUPTED = 130;

/** Text about the exit status in the help of every command and in docs/reference/cli.md. */
export const EXIT_STATUS = `
Exit status:
  0    success
  1    failure
  2    wrong arguments
  3    the peer was lost
  130  interrupted with Ctrl-C; commands that run until they are stopped (top,
       nvme serve, conformance --serve) exit with 0
`;

/** The error of a job that the user has interrupted. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted.');
  }
}

let stop: ((signal: NodeJS.Signals) => void) | undefined;

/** Installs handlers for SIGINT and SIGTERM. A command without {@link onInterrupt} ends immediately. */
export function handleInterrupts(): void {
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
}

/** Calls `stops` when the user interrupts the command; a second interrupt ends the process immediately. Disposing removes the handler. */
export function onInterrupt(stops: (signal: NodeJS.Signals) => void): Disposable {
  stop = stops;
  return {
    [Symbol.dispose]: () => {
      stop = undefined;
    },
  };
}

/** Ends an interrupted job that has printed its results or has none. With `--json`, the interruption is printed unless `printed`. */
export function exitInterrupted(printed = false): never {
  if (!printed) printJsonError(new Interrupted());
  process.stderr.write(`${nameGiven()}: interrupted\n`);
  process.exit(EXIT_INTERRUPTED);
}

function interrupted(signal: NodeJS.Signals): void {
  const stops = stop;
  stop = undefined;
  if (stops === undefined) exitInterrupted();
  else stops(signal);
}
