import { Status, WvError } from './status.js';

/** A checked small number; otherwise WvError INVALID_PARAMETER. */
export function checkedSmall(what: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `${what} is ${value}; it takes a whole number from 0 to ${most}.`,
  );
}
