/** Requests that change keys: binds, fast registrations and invalidations. Their WQEs, and the checks before them. */
import { abi } from '../schema/generated/ring.js';
import type { UvpBindRequest, UvpSendRequest } from '../user-verbs.js';
import type { ChangingKey } from './changing-key.js';
import { SoftFastRegion } from './fast-region.js';
import { badRange, invalid, MAX_ADDRESS, UPPER } from './work-request.js';

/** A request for memory, read once: getters are code of the program's, which may even end the queue pair. */
export interface NamedMemory {
  readonly lkey: number;
  readonly start: number;
  readonly length: number;
  readonly access: number;
  readonly flags: number;
  readonly context: unknown;
}

/** What a bind names. @throws StatusError INVALID_PARAMETER, ACCESS_VIOLATION (the program has lost the memory). */
export function memoryOfBind(request: UvpBindRequest): NamedMemory {
  const { region, offset, length, flags, access, context } = request;
  const { address, lkey } = region;
  void region.bytes; // throws where the program has lost the memory
  const start = address + offset;
  if (!(offset >= 0 && start <= MAX_ADDRESS && Number.isSafeInteger(start))) badRange('offset', offset);
  if (!(length >= 0 && length <= MAX_ADDRESS && Number.isSafeInteger(length))) badRange('length', length);
  return { lkey, start, length, access, flags, context };
}

/** What a fast registration names. @throws StatusError as {@link memoryOfBind}. */
export function memoryOfRegistration(request: UvpSendRequest): NamedMemory {
  const { sgl, flags, access, context } = request;
  const [memory] = sgl;
  if (sgl.length !== 1 || memory === undefined) {
    invalid('A fast registration names its memory by one SGE: { region, offset, length }.');
  }
  const { region, offset, length } = memory;
  return memoryOfBind({ region, offset, length, flags, access, context });
}

/** The region that a request names, and the key that it has after a fast registration. @throws StatusError INVALID_PARAMETER */
export function regionOf({ fastRegion, keyByte }: UvpSendRequest): { region: SoftFastRegion; next: number } {
  if (!(fastRegion instanceof SoftFastRegion)) {
    invalid('The request names no region that was allocated for fast registration.');
  }
  if (keyByte !== -1 && (keyByte & 0xff) !== keyByte) {
    invalid(`The low byte of the new key is ${keyByte}; it takes 0 to 255, or -1 for the next one.`);
  }
  return { region: fastRegion, next: fastRegion.withByte(keyByte === -1 ? fastRegion.rkey + 1 : keyByte) };
}

/** Writes a bind or a fast registration. */
export function writeKeyChange(
  words: Uint32Array,
  wqe: number,
  opcode: number,
  memory: NamedMemory,
  present: ChangingKey,
  next: number,
): void {
  const { start, length } = memory;
  words[wqe + abi.swOpcode] = opcode;
  words[wqe + abi.swFlags] = memory.flags;
  words[wqe + abi.swSgeCount] = 0;
  words[wqe + abi.swRemoteLo] = start;
  words[wqe + abi.swRemoteHi] = start * UPPER;
  words[wqe + abi.swRkey] = memory.lkey;
  words[wqe + abi.swAccess] = memory.access;
  words[wqe + abi.swCompareLo] = length;
  words[wqe + abi.swCompareHi] = length * UPPER;
  words[wqe + abi.swSwapLo] = present.rkey;
  words[wqe + abi.swSwapHi] = next;
}

/** Writes the invalidation of this side's key. */
export function writeInvalidation(words: Uint32Array, wqe: number, key: number, flags: number): void {
  words[wqe + abi.swOpcode] = abi.opLocalInvalidate;
  words[wqe + abi.swFlags] = flags;
  words[wqe + abi.swSgeCount] = 0;
  words[wqe + abi.swRkey] = key;
}
