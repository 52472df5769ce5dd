/** P_Key tables as programs specify them: with the option `pkeys`, or while the kernel runs. */

/** One table for all ports, or tables by interface name; other interfaces have only the default partition. */
export type PkeyTables = readonly number[] | Readonly<Record<string, readonly number[]>>;

/** Maximum number of entries of one table. */
const mostPkeys = 64;

/** The form of a list of P_Keys, for error messages. */
export const pkeysText = `must be 1 to ${mostPkeys} P_Keys, each from 1 to 65535 except 32768 and without duplicates, or such a list for each interface name`;

/** Whether a value is a P_Key table. The high bit of an entry means full member; the other bits identify a partition (IBA 1 §10.9). */
export function isPkeyTable(value: unknown): value is number[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > mostPkeys) return false;
  const known = value.every(
    (key) => Number.isInteger(key) && (key as number) > 0 && (key as number) <= 0xffff && key !== 0x8000,
  );
  return known && new Set(value).size === value.length;
}

/** Whether a value has the form of the option `pkeys`. */
export function arePkeyTables(value: unknown): value is PkeyTables {
  if (Array.isArray(value)) return isPkeyTable(value);
  return typeof value === 'object' && value !== null && Object.values(value).every(isPkeyTable);
}
