/**
 * Parts of work requests shared by work queues: SGEs, the destination of a datagram, the requests and flags supported
 * by each type of queue pair, and the errors for invalid ones.
 */

import type { UvpSendRequest, UvpSge } from '../door/user-verbs.js';
import { QpType, WvSend } from '../ioctl/constants.js';
import { shown } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';
import { abi } from '../schema/generated/ring.js';

/** The longest message of a connected queue pair (IBA 1 §9.7.7), in bytes. */
const MAX_MESSAGE = 2 ** 31;
export const TWO_32 = 2 ** 32;
/** The upper word of an address below {@link MAX_ADDRESS} is the address times this, with a fraction that a store drops. */
export const UPPER = 2 ** -32;
/** Native addresses and offsets within memory are below this. */
export const MAX_ADDRESS = 2 ** 48;
/** Copies of both constants for {@link writeSgl}: V8 does not treat a module's exports as constants, not even within the module. */
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

/** Size in bytes of a receive WQE with room for `sge` SGEs. */
export function receiveStride(sge: number): number {
  return abi.receiveWqeHeaderBytes + sge * abi.sgeBytes;
}

/**
 * Writes SGEs starting at a word of a ring and returns their number. The HCA checks whether they lie within their
 * regions: a request with one that does not is queued, and its completion reports LOCAL_PROTECTION_ERROR (IBA 1
 * §10.7.3).
 *
 * @throws StatusError DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER, ACCESS_VIOLATION (a region whose ArrayBuffer
 * was detached).
 */
export function writeSgl(words: Uint32Array, word: number, sgl: readonly UvpSge[], limit: number): number {
  const count = sgl.length;
  // The condition is negated, so that a value without a length fails too.
  if (!(count <= limit)) tooMany(sgl, limit);
  let total = 0;
  let at = word;
  for (let i = 0; i < count; i++) {
    const sge = sgl[i]!;
    const length = sge.length;
    const { region, offset } = sge;
    // Throws if the buffer has been detached.
    void region.bytes;
    const address = region.address + offset;
    if (length >>> 0 !== length) badSge(i, sge);
    if (!(offset >= 0 && address <= LIMIT && Number.isSafeInteger(address))) badSge(i, sge);
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
      `A message must be at most ${MAX_MESSAGE} bytes; got ${total}.`,
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
    `All ${depth} entries of the ${queue} queue are in use; poll completions before you post more.`,
  );
}

function tooMany(sgl: readonly UvpSge[], limit: number): never {
  if (!Array.isArray(sgl))
    invalid(
      `\`sgl\` must be an array of { region, offset, length }, even for a single SGE; got ${shown(sgl)}.`,
    );
  throw new StatusError(
    Status.DATA_OVERRUN,
    `The length of \`sgl\` must be at most ${limit}, as requested when this queue was created; got ${sgl.length}.`,
  );
}

/** Throws the error for an invalid SGE that is an object with a region. */
function badSge(i: number, { region, offset, length }: UvpSge): never {
  if (typeof region.address !== 'number') {
    invalid(`The region of SGE ${i} must be the result of registerMemory(); got ${shown(region)}.`);
  }
  if (typeof length !== 'number' || length >>> 0 !== length) badRange(`length of SGE ${i}`, length);
  badRange(`offset of SGE ${i}`, offset);
}

/** The error of an inline SGE beyond the end of its region: its bytes cannot be copied. */
export function outsideOfRegion(i: number, offset: number, length: number, size: number): never {
  throw new StatusError(
    Status.ACCESS_VIOLATION,
    `SGE ${i} (offset ${offset}, length ${length}) ends at byte ${offset + length} of a region of ${size} bytes.`,
  );
}

export function badRange(what: string, value: number): never {
  invalid(`The ${what} must be a non-negative whole number of bytes within the memory; got ${shown(value)}.`);
}

const KNOWN_SEND_FLAGS = WvSend.IMMEDIATE | WvSend.FENCE | WvSend.SIGNALED | WvSend.SOLICITED | WvSend.INLINE;

const NO_DATA = KNOWN_SEND_FLAGS & ~(WvSend.IMMEDIATE | WvSend.INLINE);
/** Supported flags by opcode. */
export const SEND_FLAGS: readonly number[] = [
  /* send */ KNOWN_SEND_FLAGS,
  /* write */ KNOWN_SEND_FLAGS,
  /* read */ NO_DATA,
  /* compare-exchange */ NO_DATA,
  /* fetch-add */ NO_DATA,
  /* bind */ NO_DATA,
  /* invalidate */ NO_DATA,
  /* fast-register */ NO_DATA,
];
/** Used instead of the refused flags for an opcode that the type of queue pair does not support. */
export const NO_REQUEST = -1;

/** Requests supported by each type of queue pair, by opcode (IBA 1 §11.4.1.1; unreliable transports have no responses). */
const REQUESTS: Readonly<Record<number, readonly boolean[]>> = {
  /*            send, write, read, c-x, f-add, bind, invalidate; fast-register only if requested */
  [QpType.RC]: [true, true, true, true, true, true, true],
  [QpType.UC]: [true, true, false, false, false, false, false],
  [QpType.UD]: [true, false, false, false, false, false, false],
};

/** Refused flags by opcode, or {@link NO_REQUEST}: one table for all queue pairs of a type. */
const REFUSED: Readonly<Record<number, Int32Array>> = Object.fromEntries(
  Object.entries(REQUESTS).map(([type, has]) => [
    type,
    Int32Array.from(SEND_FLAGS, (flags, opcode) => (has[opcode] === true ? ~flags : NO_REQUEST)),
  ]),
);
/** For reliable queue pairs with fast registration. */
const MANAGED = Int32Array.from(SEND_FLAGS, (flags) => ~flags);
/** For an unknown type, which the HCA refuses. */
const ALL_REFUSED = Int32Array.from(SEND_FLAGS, () => NO_REQUEST);

/** Refused flags by opcode, or {@link NO_REQUEST}, for a type of queue pair. `managed` means that it was created for fast registration. */
export function refusedFlags(type: number, managed = false): Int32Array {
  if (managed && type === QpType.RC) return MANAGED;
  return REFUSED[type] ?? ALL_REFUSED;
}

const QPN_MASK = 0xff_ffff;

/** An address handle, identified by the HCA's handle number. */
export class SoftAddressHandle {
  handle = 0;
}

/** Writes a datagram's destination into its WQE. Throws INVALID_PARAMETER. */
export function writeDestination(words: Uint32Array, wqe: number, request: UvpSendRequest): void {
  const { av, remoteQpn, remoteQkey } = request;
  if (!(av instanceof SoftAddressHandle)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      '`addressHandle` must be an address handle of the same device.',
    );
  }
  if (!(remoteQpn >= 0 && (remoteQpn & QPN_MASK) === remoteQpn)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `\`destinationQpn\` must be an unsigned 24-bit integer; got ${shown(remoteQpn)}.`,
    );
  }
  if (remoteQkey >>> 0 !== remoteQkey) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `\`destinationQkey\` must be an unsigned 32-bit integer; got ${shown(remoteQkey)}.`,
    );
  }
  words[wqe + abi.swAh] = av.handle;
  words[wqe + abi.swRemoteQpn] = remoteQpn;
  words[wqe + abi.swRemoteQkey] = remoteQkey;
}
