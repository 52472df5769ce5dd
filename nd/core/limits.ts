/** Limits and defaults that both versions report, in bytes. */
import { Capacity } from '../../winverbs/index.js';

/** Private data of Connect, Accept and Reject: what WinVerbs' connection parameter carries. */
export const MAX_PRIVATE_DATA = Capacity.CONNECT_DATA;

/** From here on a Read or Write is worth its round trip. */
export const LARGE_REQUEST = 65_536;

/** Whether a value is a whole number from `min` to `max`. */
export function isCount(value: unknown, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}
