import { kindOf, shown } from '../kernel-bridge/ioctl/shown.js';
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
  const text = inCallersTerms(error.message);
  const named = what === undefined || text.startsWith(`${what}:`);
  const message = named ? text : `${what}: ${text}`;
  return new WvError(error.status, message, { cause: error });
}

/** Attributes of calls whose fields in structures have other names. */
const attributeNames: Readonly<Record<string, string>> = {
  sGid: 'sourceGid',
  dGid: 'destinationGid',
  data: 'privateData',
  sequenceErrorRetryCount: 'retryCount',
};

/** Names the field of a structure that cannot hold a value by the attribute of the call. */
function inCallersTerms(message: string): string {
  const [text, field] = /^(?:WV|IB)_\w+(?:\.\w+)*\.(\w+) must be /.exec(message) ?? [];
  if (text === undefined || field === undefined) return message;
  const key = `${field.charAt(0).toLowerCase()}${field.slice(1)}`;
  return `\`${attributeNames[key] ?? key}\` must be ${message.slice(text.length)}.`;
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
  const given = shown(value);
  throw new WvError(Status.INVALID_PARAMETER, `\`${what}\` must be an object with ${holds}; got ${given}.`);
}

/** Converts the error of a post. Untyped callers may pass anything in place of SGEs. */
export function refusal(error: unknown, what: string, sgl: unknown): unknown {
  if (!(error instanceof TypeError)) return toWvError(error, what);
  const list: readonly unknown[] = Array.isArray(sgl) ? sgl : [];
  const index = list.findIndex((sge) => !hasRegion(sge));
  if (index >= 0) return wrongSge(`sgl[${index}]`, list[index], `${what}: `, error);
  const message = `${what}: \`sgl\` must be an array of { region, offset, length }; got ${shown(sgl)}.`;
  return new WvError(Status.INVALID_PARAMETER, message, { cause: error });
}

/** The error of a value that is no SGE. */
export function wrongSge(name: string, given: unknown, prefix = '', cause?: unknown): WvError {
  const message = `${prefix}\`${name}\` must be { region, offset, length }, with the result of registerMemory() as region; got ${shown(given)}.`;
  return new WvError(Status.INVALID_PARAMETER, message, cause === undefined ? undefined : { cause });
}

function hasRegion(sge: unknown): boolean {
  return kindOf((sge as { region?: unknown } | null | undefined)?.region).endsWith('object');
}
