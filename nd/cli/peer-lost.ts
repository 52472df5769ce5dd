/** Error reporting of commands. A lost peer is a distinct error with its own exit code. */
import { NdError, Status, statusText } from '../index.js';
import { nameGiven, printJsonError } from './command-line.js';
import { EXIT_INTERRUPTED, Interrupted } from './interrupts.js';

/** The peer ended or lost the connection before the work was done. */
export class ConnectionEnded extends Error {
  constructor(cause?: unknown, sentence = 'The peer ended the connection before the test was finished.') {
    super(sentence, cause === undefined ? undefined : { cause });
  }
}

/** The exit code for {@link ConnectionEnded}: the program itself did not fail. */
const EXIT_PEER_LOST = 3;

/** Statuses of calls on a connection that the peer has ended. Connecting without a server has other statuses. */
const endedStatuses: ReadonlySet<number> = new Set([
  Status.CONNECTION_INVALID,
  Status.CONNECTION_ABORTED,
  Status.CONNECTION_DISCONNECTED,
]);

/** Statuses of requests whose peer has ended the connection or no longer responds. */
const lostStatuses: ReadonlySet<number> = new Set([Status.CANCELED, Status.TIMEOUT, Status.IO_TIMEOUT]);

/** Converts an error that means a lost peer to {@link ConnectionEnded}; others are returned unchanged. */
export function meaningOf(error: unknown): unknown {
  return error instanceof NdError && endedStatuses.has(error.status) ? new ConnectionEnded(error) : error;
}

/** Error for a request that completed with a status other than success. */
export function requestFailure(status: number): Error {
  const error = new NdError(status, `Request failed: ${statusText(status)}`);
  return lostStatuses.has(status) ? new ConnectionEnded(error) : error;
}

/** The exit code for an error. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ConnectionEnded ? EXIT_PEER_LOST : 1;
}

/** Prints an error of a command, also as JSON with `--json`, and sets the exit code. */
export function fail(thrown: unknown): void {
  const error = meaningOf(thrown);
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K'); // replaces the progress line
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
