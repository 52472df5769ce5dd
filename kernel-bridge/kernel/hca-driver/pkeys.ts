/** Partitions: P_Keys, and which members may communicate (IBA 1 §10.9). */
import { DEFAULT_PKEY } from '../../ioctl/constants.js';

export { DEFAULT_PKEY };

/** Full membership; without this bit it is limited. */
const FULL_MEMBER = 0x8000;
const PARTITION = 0x7fff;

/** Whether two members may communicate: the same partition, and at least one of them a full member (IBA 1 §10.9.3). */
export function pkeysFit(a: number, b: number): boolean {
  return (a & PARTITION) !== 0 && (a & PARTITION) === (b & PARTITION) && ((a | b) & FULL_MEMBER) !== 0;
}

/** Whether two entries name the same partition, regardless of membership. False without an entry. */
export function samePartition(a = 0, b = 0): boolean {
  return (a & PARTITION) !== 0 && (a & PARTITION) === (b & PARTITION);
}

/** The index of the entry for communication with a member like `peer`, a full membership before a limited one; or -1. */
export function pkeyIndexFor(table: readonly number[], peer: number): number {
  const full = table.findIndex((entry) => (entry & FULL_MEMBER) !== 0 && pkeysFit(entry, peer));
  return full >= 0 ? full : table.findIndex((entry) => pkeysFit(entry, peer));
}

/**
 * The P_Key of a management datagram: that of the default partition, so that a refusal can be sent to every peer; for a
 * port outside it, the wanted one.
 */
export function managementPkey(table: readonly number[], wanted: number | undefined): number {
  const common = table.filter((entry) => (entry & PARTITION) === PARTITION);
  if (common.length > 0) return Math.max(...common);
  return wanted !== undefined && table.some((entry) => (entry & PARTITION) === (wanted & PARTITION))
    ? table.find((entry) => (entry & PARTITION) === (wanted & PARTITION))!
    : (table[0] ?? DEFAULT_PKEY);
}
