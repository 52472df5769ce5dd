/** What the queues of requests have in common: how a request's SGEs are written, and what is said of wrong ones. */
import { abi } from '../hca/abi.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { UvpSge } from '../user-verbs.js';

/** The longest message of a connected queue pair (IBA 1 §9.7.7), in bytes. */
const MAX_MESSAGE = 2 ** 31;
export const TWO_32 = 2 ** 32;
/** Times an address below {@link MAX_ADDRESS}: its upper word, and a fraction that a store drops. */
export const UPPER = 2 ** -32;
/** Native addresses and offsets within memory stay below this. */
export const MAX_ADDRESS = 2 ** 48;
/** The same two where {@link writeSgl} uses them: what a module exports is no constant to V8, not even within it. */
const LIMIT = MAX_ADDRESS;
const TO_UPPER = UPPER;

export const RECEIVE_HEADER_WORDS = abi.receiveWqeHeaderBytes / 4;
const SGE_WORDS = abi.sgeBytes / 4;
const { sgeAddressLo, sgeAddressHi, sgeLength, sgeLkey } = abi;

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
    const { region, offset } = sge;
    const address = region.address + offset;
    if (length >>> 0 !== length) badRange('SGE length', length);
    if (!(offset >= 0 && address <= LIMIT && Number.isSafeInteger(address))) {
      badRange('SGE offset', offset);
    }
    total += length;
    words[at + sgeAddressLo] = address;
    words[at + sgeAddressHi] = address * TO_UPPER;
    words[at + sgeLength] = length;
    words[at + sgeLkey] = region.lkey;
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
