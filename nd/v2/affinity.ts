import { readFileSync } from 'node:fs';
import { shownJson } from '../../kernel-bridge/ioctl/shown.js';
import { Status } from '../../winverbs/index.js';
import type { Nd2Affinity } from '../spi/v2.js';
import { refuse } from '../status.js';

/** CPUs of a group (GROUP_AFFINITY of Windows). */
const GROUP_BITS = 64n;
const GROUP_MASK = (1n << GROUP_BITS) - 1n;

/** Checks an affinity, which this provider then ignores, as the SPI allows: its notifications need no interrupt. */
export function checkAffinity(what: string, affinity: Nd2Affinity | undefined): void {
  if (affinity === undefined) return;
  const { group, mask } = affinity ?? {};
  if (Number.isInteger(group) && group >= 0 && group <= 0xffff && typeof mask === 'bigint') {
    if (mask >= 0n && mask <= GROUP_MASK) return;
  }
  throw refuse(
    Status.INVALID_PARAMETER,
    what,
    `\`affinity\` must be an object with a 16-bit number \`group\` and a 64-bit bigint \`mask\`; got ${shownJson(affinity)}.`,
  );
}

/**
 * Returns the CPUs that deliver notifications. The event loop of this thread delivers them, so these are the CPUs on
 * which the thread may run, in the first group that has one.
 *
 * @throws NdError NOT_SUPPORTED where the OS does not report them
 */
export function notifyAffinity(what: string, statusFile = '/proc/thread-self/status'): Nd2Affinity {
  let text: string;
  try {
    text = readFileSync(statusFile, 'utf8');
  } catch {
    text = '';
  }
  const words = /^Cpus_allowed:\s*([0-9a-f,]+)$/m.exec(text)?.[1];
  if (words === undefined) {
    throw refuse(Status.NOT_SUPPORTED, what, 'The OS does not report on which CPUs the thread may run.');
  }
  let mask = BigInt(`0x${words.replaceAll(',', '')}`);
  let group = 0;
  while (mask !== 0n && (mask & GROUP_MASK) === 0n) {
    mask >>= GROUP_BITS;
    group += 1;
  }
  return { group, mask: mask & GROUP_MASK };
}
