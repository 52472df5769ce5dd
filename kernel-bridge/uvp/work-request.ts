/** What the queues of requests have in common: how a request's SGEs are written, and what is said of wrong ones. */
import { abi } from '../hca/abi.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { UvpSge } from '../user-verbs.js';

/** The longest message of a connected queue pair (IBA 1 §9.7.7), in bytes. */
const MAX_MESSAGE = 2 ** 31;
export const TWO_32 = 2 ** 32;
/** Native addresses and offsets within memory stay below this. */
export const MAX_ADDRESS = 2 ** 48;

export const RECEIVE_HEADER_WORDS = abi.receiveWqeHeaderBytes / 4;
const SGE_WORDS = abi.sgeBytes / 4;

export function powerOfTwo(n: number): number {
  let result = 1;
  while (result < n) result *= 2;
  return result;
}

/** Bytes of a receive WQE with room for so many SGEs. */
export function receiveStride(sge: number): number {
  return abi.receiveWqeHeaderBytes + sge * abi.sgeBytes;
}

/** Writes SGEs from a word of a ring on; answers how many. Throws DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER. */
export function writeSgl(words: Uint32Array, word: number, sgl: readonly UvpSge[], limit: number): number {
  const count = sgl.length;
  if (count > limit) {
    throw new StatusError(
      Status.DATA_OVERRUN,
      `The request has ${count} SGEs; this queue was made for at most ${limit}.`,
    );
  }
  let total = 0;
  let at = word;
  for (let i = 0; i < count; i++) {
    const sge = sgl[i]!;
    const length = sge.length;
    const address = sge.region.address + sge.offset;
    if (length >>> 0 !== length) badRange('SGE length', length);
    if (!(sge.offset >= 0 && address <= MAX_ADDRESS && Number.isSafeInteger(address))) {
      badRange('SGE offset', sge.offset);
    }
    total += length;
    words[at + abi.sgeAddressLo] = address;
    words[at + abi.sgeAddressHi] = address / TWO_32;
    words[at + abi.sgeLength] = length;
    words[at + abi.sgeLkey] = sge.region.lkey;
    at += SGE_WORDS;
  }
  if (total > MAX_MESSAGE) {
    throw new StatusError(
      Status.BUFFER_OVERFLOW,
      `The request has ${total} bytes; a message has at most ${MAX_MESSAGE}.`,
    );
  }
  return count;
}

export function invalid(message: string): never {
  throw new StatusError(Status.INVALID_PARAMETER, message);
}

export function full(queue: string, depth: number): never {
  throw new StatusError(
    Status.NO_MORE_ENTRIES,
    `All ${depth} entries of the ${queue} queue are taken; poll completions before you post more.`,
  );
}

export function badRange(what: string, value: number): never {
  invalid(`The ${what} is ${value}; it must be a whole number of bytes, not negative, within the memory.`);
}
