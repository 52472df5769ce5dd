/** Argument checks. Errors have the codes of Node.js. */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';

/** Error for a value of the wrong type. */
export function wrongType(sentence: string): TypeError & { code: string } {
  return Object.assign(new TypeError(sentence), { code: 'ERR_INVALID_ARG_TYPE' });
}

/** Error for a value of the right type that is not one of the permitted values. */
export function wrongValue(sentence: string): TypeError & { code: string } {
  return Object.assign(new TypeError(sentence), { code: 'ERR_INVALID_ARG_VALUE' });
}

/** Error for a value that is too small or too large. */
export function outOfRange(sentence: string): RangeError & { code: string } {
  return Object.assign(new RangeError(sentence), { code: 'ERR_OUT_OF_RANGE' });
}

/** Whether a value can be used as an AbortSignal, by the rule of Node.js. */
export function isSignal(signal: unknown): signal is AbortSignal {
  return typeof signal === 'object' && signal !== null && 'aborted' in signal;
}

/** Error for a value that is not an AbortSignal. */
export function wrongSignal(signal: unknown): TypeError {
  return wrongType(`\`signal\` must be an AbortSignal; got ${shown(signal)}.`);
}

/** @throws TypeError if `signal` is not an AbortSignal */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !isSignal(signal)) throw wrongSignal(signal);
}

/** Returns a host name. As in Node.js, an empty one selects the default. @throws TypeError */
export function hostOf(host: unknown): string | undefined {
  if (host === undefined || host === null || host === '') return undefined;
  if (typeof host === 'string') return host;
  throw wrongType(`\`host\` must be an address or a host name; got ${shown(host)}.`);
}

/** @throws TypeError if a function is not one; `what` is its name */
export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== 'function') throw wrongType(`\`${what}\` must be a function; got ${shown(value)}.`);
}

/** @throws TypeError unless an option is a boolean or omitted */
export function checkBoolean(what: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw wrongType(`\`${what}\` must be a boolean; got ${shown(value)}.`);
}

/** The longest timeout of a Node.js timer, in ms. */
const MOST_MS = 2 ** 31 - 1;

/** @throws TypeError, RangeError with the codes of Node.js if a timeout is not valid; `what` is its name */
export function checkMs(what: string, ms: unknown): void {
  if (typeof ms !== 'number')
    throw wrongType(`\`${what}\` must be a number of milliseconds; got ${shown(ms)}.`);
  if (!(ms >= 0 && ms <= MOST_MS))
    throw outOfRange(`\`${what}\` must be from 0 to ${MOST_MS} milliseconds; got ${ms}.`);
}

/**
 * Parses a port: a number or, as in Node.js, a string of digits, for example from an environment variable.
 *
 * @throws RangeError with the code of Node.js
 */
export function portOf(port: unknown, least: 0 | 1): number {
  const value = typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= 65_535) return value;
  const error = new RangeError(
    typeof port === 'string' && /[/\\]/.test(port)
      ? `\`port\` must be a number; got the path ${shown(port)}. Paths are not supported; use listen({ name }) and connect({ name }) instead.`
      : `\`port\` must be an integer from ${least} to 65535; got ${shown(port)}.`,
  );
  throw Object.assign(error, { code: 'ERR_SOCKET_BAD_PORT' });
}

/** Copies an object without the properties that are undefined. */
export function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
