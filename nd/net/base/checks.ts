/** Checks of what a program gives: refusals with the codes that Node.js has for them. */

/** What a value is, for a sentence. */
export function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value;
}

/** The error of a value of another type than is taken. */
export function wrongType(sentence: string): TypeError & { code: string } {
  return Object.assign(new TypeError(sentence), { code: 'ERR_INVALID_ARG_TYPE' });
}

/** The error of a value that is not one of those that there are. */
export function wrongValue(sentence: string): TypeError & { code: string } {
  return Object.assign(new TypeError(sentence), { code: 'ERR_INVALID_ARG_VALUE' });
}

/** The error of a value that is too small or too large. */
export function outOfRange(sentence: string): RangeError & { code: string } {
  return Object.assign(new RangeError(sentence), { code: 'ERR_OUT_OF_RANGE' });
}

/** Whether it can be used as an AbortSignal, by the rule of Node.js. */
export function isSignal(signal: unknown): signal is AbortSignal {
  return typeof signal === 'object' && signal !== null && 'aborted' in signal;
}

/** The error of a signal that is none. */
export function wrongSignal(signal: unknown): TypeError {
  return wrongType(`The signal is an AbortSignal, not ${kindOf(signal)}.`);
}

/** @throws TypeError: not a signal */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !isSignal(signal)) throw wrongSignal(signal);
}

/** A host as Node.js takes it: empty, it stands for the default, as if there were none. @throws TypeError */
export function hostOf(host: unknown): string | undefined {
  if (host === undefined || host === null || host === '') return undefined;
  if (typeof host === 'string') return host;
  throw wrongType(`A host is an address or a name, not ${kindOf(host)}.`);
}

/** @throws TypeError: not a function */
export function checkHandler(handler: unknown): void {
  if (typeof handler !== 'function')
    throw wrongType(`A handler of requests is a function, not ${kindOf(handler)}.`);
}

/** The longest time of a timer. */
const MOST_MS = 2 ** 31 - 1;

/** @throws TypeError, RangeError, with the codes that Node.js has for them: not the time of a timer */
export function checkMs(ms: number): void {
  if (typeof ms !== 'number')
    throw wrongType(`The time is of type ${typeof ms}; it is a number of milliseconds.`);
  if (!(ms >= 0 && ms <= MOST_MS))
    throw outOfRange(`The time is ${ms} ms; it is a number from 0 to ${MOST_MS}.`);
}

/**
 * A port: a number or, as Node.js takes it from an environment variable, its digits.
 *
 * @throws RangeError, with the code that Node.js has for it
 */
export function portOf(port: unknown, least: 0 | 1): number {
  const value = typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= 65_535) return value;
  const shown = typeof port === 'string' ? `'${port}'` : String(port);
  const error = new RangeError(
    typeof port === 'string' && /[/\\]/.test(port)
      ? `\`port\` must be a number; got the path ${shown}. Connections have no path: let the server listen({ name }), and connect({ name }).`
      : `\`port\` must be a whole number from ${least} to 65535; got ${shown}.`,
  );
  throw Object.assign(error, { code: 'ERR_SOCKET_BAD_PORT' });
}

/** The properties that are not undefined. */
export function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
