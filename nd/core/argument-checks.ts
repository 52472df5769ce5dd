/** Checks of arguments for both versions: option names, counts within limits. */
import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Whether a value is an integer from `min` to `max`. */
export function isCount(value: unknown, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** Throws `status` unless the value is an integer from `min` to `max`, the adapter's limit. */
export function checkCount(
  what: string,
  name: string,
  value: number,
  min: number,
  max: number,
  status: number,
): void {
  if (!isCount(value, min, max)) {
    throw refuse(status, what, `\`${name}\` must be an integer from ${min} to ${max}; got ${shown(value)}.`);
  }
}

/** Reduces a read limit to that of the adapter, which is the default. */
export function readLimit(
  what: string,
  name: string,
  value: number | undefined,
  max: number,
  status: number,
): number {
  if (value === undefined) return max;
  if (!isCount(value, 0, Number.MAX_SAFE_INTEGER)) {
    throw refuse(status, what, `\`${name}\` must be a non-negative integer; got ${shown(value)}.`);
  }
  return Math.min(value, max);
}

/** All names of an options type. */
export type OptionNames<O> = Readonly<Record<keyof O, true>>;

/** Throws INVALID_PARAMETER unless `options` is an object without other names than these. */
export function checkOptions<O extends object>(what: string, options: O, names: OptionNames<O>): void {
  const known = (): string => Object.keys(names).join(', ');
  if (typeof options !== 'object' || options === null) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `\`options\` must be an object with ${known()}; got ${shown(options)}.`,
    );
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(names, name)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`options\` must contain only ${known()}; got ${shown(name)}.`,
      );
    }
  }
}
