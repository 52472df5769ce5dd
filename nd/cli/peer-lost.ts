/** How commands report errors. A peer that is gone is one error, with an exit code of its own. */
import { NdError, Status, statusText } from '../index.js';
import { nameGiven, printJsonError } from './command-line.js';
import { EXIT_INTERRUPTED, Interrupted } from './interrupts.js';

/** The peer has ended or lost the connection before the work was done. */
export class ConnectionEnded extends Error {
  constructor(cause?: unknown, sentence = 'The peer has ended the connection before the test was over.') {
    super(sentence, cause === undefined ? undefined : { cause });
  }
}

/** The exit code of {@link ConnectionEnded}: the program itself did nothing wrong. */
const EXIT_PEER_LOST = 3;

/** Statuses of calls on a connection that its peer has ended. Connecting has others if there is no server. */
const endedStatuses: ReadonlySet<number> = new Set([
  Status.CONNECTION_INVALID,
  Status.CONNECTION_ABORTED,
  Status.CONNECTION_DISCONNECTED,
]);

/** Statuses of requests whose peer has ended the connection, or does not answer any more. */
const lostStatuses: ReadonlySet<number> = new Set([Status.CANCELED, Status.TIMEOUT, Status.IO_TIMEOUT]);

/** A {@link ConnectionEnded} for an error that says the same; others unchanged. */
export function meaningOf(error: unknown): unknown {
  return error instanceof NdError && endedStatuses.has(error.status) ? new ConnectionEnded(error) : error;
}

/** The error of a request that has failed with a status. */
export function requestFailure(status: number): Error {
  const error = new NdError(status, `A request failed: ${statusText(status)}`);
  return lostStatuses.has(status) ? new ConnectionEnded(error) : error;
}

/** The exit code of a program that has failed. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ConnectionEnded ? EXIT_PEER_LOST : 1;
}

/** Prints an error of a command, as JSON, too, with `--json`, and sets the exit code. */
export function fail(thrown: unknown): void {
  const error = meaningOf(thrown);
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K'); // in place of the progress
  if (error instanceof Interrupted) {
    process.stderr.write(`${nameGiven()}: interrupted\n`);
    process.exitCode = EXIT_INTERRUPTED;
    return;
  }
  printJsonError(error);
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof NdError ? ` [${error.code}]` : '';
  process.stderr.write(`nd: ${message}${code}\n`);
  if (process.env.ND_DEBUG !== undefined && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  process.exitCode = exitCodeOf(error);
}
