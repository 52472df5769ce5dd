import { Status, WvError } from './status.js';

/** A checked small number; otherwise WvError INVALID_PARAMETER. */
export function checkedSmall(what: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `${what} is ${value}; it takes a whole number from 0 to ${most}.`,
  );
}

/** @internal An address of 64 bits, given as a bigint or as a number, as a bigint; undefined for anything else. */
export function asAddress(address: unknown): bigint | undefined {
  const wide = typeof address === 'number' && Number.isSafeInteger(address) ? BigInt(address) : address;
  return typeof wide === 'bigint' && BigInt.asUintN(64, wide) === wide ? wide : undefined;
}
