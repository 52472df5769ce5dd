import { Status, StatusError } from '../kernel-bridge/ioctl/status.js';

export { type StatusName, statusHex, statusName, statusText } from '../kernel-bridge/ioctl/status.js';
export { Status, StatusError };

/**
 * The error of all WinVerbs calls, thrown or as the rejection of an overlapped call, for any status other than SUCCESS.
 * The blocking and the overlapped form of a call report the same status.
 */
export class WvError extends StatusError {
  static {
    WvError.prototype.name = 'WvError';
  }

  /** For postSend: the index of the first request that was not queued. */
  failedRequest?: number;
}

/** Returns the same failure as a WvError; `what` names the call. Other errors are returned unchanged. */
export function toWvError(error: StatusError, what?: string): WvError;
export function toWvError(error: unknown, what?: string): unknown;
export function toWvError(error: unknown, what?: string): unknown {
  if (!(error instanceof StatusError) || error instanceof WvError) return error;
  // The message may already start with the IOCTL name.
  const named = what === undefined || error.message.startsWith(`${what}:`);
  const message = named ? error.message : `${what}: ${error.message}`;
  return new WvError(error.status, message, { cause: error });
}

/** Runs `body` and converts its StatusErrors to WvErrors. */
export function guarded<T>(what: string, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw toWvError(error, what);
  }
}

/** Checks that an argument is an object; `holds` describes its members. @throws WvError INVALID_PARAMETER */
export function checkedObject<T extends object>(what: string, value: T, holds: string): T {
  if (typeof value === 'object' && value !== null) return value;
  const given = value === null ? 'null' : typeof value;
  throw new WvError(Status.INVALID_PARAMETER, `\`${what}\` must be an object with ${holds}; got ${given}.`);
}

/** Converts the error of a post. Untyped callers may pass anything in place of SGEs. */
export function refusal(error: unknown, what: string): unknown {
  if (!(error instanceof TypeError)) return toWvError(error, what);
  const message = `${what}: \`sgl\` must be an array of { region, offset, length } (${error.message}).`;
  return new WvError(Status.INVALID_PARAMETER, message, { cause: error });
}
