/**
 * Ctrl-C, by one rule for every command: a job that is cut short exits with 130, after it has printed what it has measured; a command
 * that runs until it is stopped (`nd top`, `nd nvme serve`, `nd conformance --serve`) exits with 0. SIGTERM does the same.
 */
import { nameGiven, printJsonError } from './command-line.js';

/** The exit status of a job that was cut short. */
export const EXIT_INTERRUPTED = 130;

/** What the help of every command says of its exit status, and docs/reference/cli.md. */
export const EXIT_STATUS = `
Exit status:
  0    success
  1    failure
  2    wrong arguments
  3    the peer was lost
  130  Ctrl-C cut the job short; those that run until Ctrl-C (top, nvme serve,
       conformance --serve) exit with 0
`;

/** The error of a job that the user has stopped. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted.');
  }
}

let stop: ((signal: NodeJS.Signals) => void) | undefined;

/** Handles SIGINT and SIGTERM from now on. A command without {@link onInterrupt} ends at once. */
export function handleInterrupts(): void {
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
}

/** Calls `stops` when the user interrupts the command; the second time the process ends at once. Disposing ends this. */
export function onInterrupt(stops: (signal: NodeJS.Signals) => void): Disposable {
  stop = stops;
  return {
    [Symbol.dispose]: () => {
      stop = undefined;
    },
  };
}

/** Ends a job that was cut short and has measured nothing, or that has printed it; `--json` gets what it has not printed. */
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
