import { Status, StatusError } from '../kernel-bridge/ioctl/status.js';

export { type StatusName, statusHex, statusName, statusText } from '../kernel-bridge/ioctl/status.js';
export { Status, StatusError };

/**
 * What every WinVerbs call throws, and every overlapped one rejects with, when it ends in anything but SUCCESS. The
 * blocking and the overlapped form of a call report the same status.
 */
export class WvError extends StatusError {
  static {
    WvError.prototype.name = 'WvError';
  }
}

/** The same failure as WinVerbs tells it; `what` names the call. Other errors stay what they are. */
export function toWvError(error: StatusError, what?: string): WvError;
export function toWvError(error: unknown, what?: string): unknown;
export function toWvError(error: unknown, what?: string): unknown {
  if (!(error instanceof StatusError) || error instanceof WvError) return error;
  // The door names the IOCTL already.
  const named = what === undefined || error.message.startsWith(`${what}:`);
  const message = named ? error.message : `${what}: ${error.message}`;
  return new WvError(error.status, message, { cause: error });
}

/** Runs `body`; its StatusErrors come out as WvErrors. */
export function guarded<T>(what: string, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw toWvError(error, what);
  }
}

/** An argument that is an object, or WvError INVALID_PARAMETER; `holds` names what it holds. */
export function checkedObject<T extends object>(what: string, value: T, holds: string): T {
  if (typeof value === 'object' && value !== null) return value;
  const given = value === null ? 'null' : `of type ${typeof value}`;
  throw new WvError(Status.INVALID_PARAMETER, `${what} is ${given}; it takes an object with ${holds}.`);
}

/** What a post throws. Callers without types may hand in anything in place of SGEs. */
export function refusal(error: unknown, what: string): unknown {
  if (!(error instanceof TypeError)) return toWvError(error, what);
  const message = `${what}: SGEs are an array of { region, offset, length }, and numbers are numbers (${error.message}).`;
  return new WvError(Status.INVALID_PARAMETER, message, { cause: error });
}
