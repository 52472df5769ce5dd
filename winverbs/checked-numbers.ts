import { shown } from '../kernel-bridge/ioctl/shown.js';
import { Status, WvError } from './status.js';

/** Returns `value` if it is an integer from 0 to `most`. @throws WvError INVALID_PARAMETER */
export function checkedSmall(what: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`${what}\` must be an integer from 0 to ${most}; got ${shown(value)}.`,
  );
}

/** @throws WvError INVALID_PARAMETER unless a number of at most so many bits is given or omitted */
export function checkBits(what: string, value: number | undefined, bits: number): void {
  if (value !== undefined) checkedSmall(what, value, 2 ** bits - 1);
}

/** @internal Returns a 64-bit address, given as a bigint or a number, as a bigint; undefined for anything else. */
export function asAddress(address: unknown): bigint | undefined {
  const wide = typeof address === 'number' && Number.isSafeInteger(address) ? BigInt(address) : address;
  return typeof wide === 'bigint' && BigInt.asUintN(64, wide) === wide ? wide : undefined;
}
