/**
 * Keys changed by requests: those of memory windows by binds, those of regions by fast registrations, and both by
 * invalidations. Writes the requests' WQEs after checking them.
 */

import type { UvpBindRequest, UvpSendRequest } from '../door/user-verbs.js';
import { randomBits } from '../ioctl/random-bits.js';
import { shown } from '../ioctl/shown.js';
import { abi } from '../schema/generated/ring.js';
import { badRange, invalid, MAX_ADDRESS, UPPER } from './work-request.js';

/**
 * A key whose low byte is changed by requests (IBA 1 §10.6.3.1), as its owner sees it. The HCA chooses the index. The
 * new key is current from the moment the request is queued. If requests fail, the key of the last successful one is
 * current again.
 */
export class ChangingKey {
  /** The key of the latest request, queued or completed. */
  rkey = 0;
  private confirmed = 0;
  private readonly queued: number[] = [];

  /** Sets the key chosen by the HCA. */
  begin(key: number): void {
    this.rkey = this.confirmed = key;
  }

  /** The key with another low byte. */
  withByte(byte: number): number {
    return ((this.rkey & 0xffffff00) | (byte & 0xff)) >>> 0;
  }

  /** A request that changes the key to this one was queued. */
  changing(key: number): void {
    this.queued.push(key);
    this.rkey = key;
  }

  /** The oldest queued request has succeeded. */
  changed(): void {
    const key = this.queued.shift();
    if (key !== undefined) this.confirmed = key;
    this.settle();
  }

  /** The oldest queued request has failed. */
  failed(): void {
    this.queued.shift();
    this.settle();
  }

  private settle(): void {
    if (this.queued.length === 0) this.rkey = this.confirmed;
  }
}

/** A region's key that fast registrations change. */
export class SoftFastRegion extends ChangingKey {
  constructor(key: number) {
    super();
    this.begin(key);
  }
}

/**
 * A memory window's rkey as its owner sees it. Its low byte changes with every bind (IBA 1 §10.6.7.2.4, type 2), so
 * that a peer with the old key cannot use the new one.
 */
export class SoftMemoryWindow extends ChangingKey {
  handle = 0;

  open(handle: number, rkey: number): void {
    this.handle = handle;
    this.begin(rkey);
  }

  /** A new key with the same index. */
  nextKey(): number {
    return this.withByte(this.rkey + 1 + (randomBits(8) % 255));
  }
}

/** The memory of a request, read once: getters are program code, which may even destroy the queue pair. */
export interface NamedMemory {
  readonly lkey: number;
  readonly start: number;
  readonly length: number;
  readonly access: number;
  readonly flags: number;
  readonly context: unknown;
}

/** The memory of a bind. @throws StatusError INVALID_PARAMETER, ACCESS_VIOLATION (the buffer was detached). */
export function memoryOfBind(request: UvpBindRequest): NamedMemory {
  const { region, offset, length, flags, access, context } = request;
  const { address, lkey } = region;
  void region.bytes; // throws if the buffer was detached
  const start = address + offset;
  if (!(offset >= 0 && start <= MAX_ADDRESS && Number.isSafeInteger(start))) badRange('offset', offset);
  if (!(length >= 0 && length <= MAX_ADDRESS && Number.isSafeInteger(length))) badRange('length', length);
  return { lkey, start, length, access, flags, context };
}

/** The memory of a fast registration. @throws StatusError as {@link memoryOfBind}. */
export function memoryOfRegistration(request: UvpSendRequest): NamedMemory {
  const { sgl, flags, access, context } = request;
  const [memory] = sgl;
  if (sgl.length !== 1 || memory === undefined) {
    invalid('`sgl` of a fast registration must be one SGE: { region, offset, length }.');
  }
  const { region, offset, length } = memory;
  return memoryOfBind({ region, offset, length, flags, access, context });
}

/** The region of a fast registration request, and its key after the request. @throws StatusError INVALID_PARAMETER */
export function regionOf({ fastRegion, keyByte }: UvpSendRequest): { region: SoftFastRegion; next: number } {
  if (!(fastRegion instanceof SoftFastRegion)) {
    invalid('The request must have a region that was allocated for fast registration.');
  }
  if (keyByte !== -1 && (keyByte & 0xff) !== keyByte) {
    invalid(`\`keyByte\` must be from 0 to 255, or -1 for the next one; got ${shown(keyByte)}.`);
  }
  return { region: fastRegion, next: fastRegion.withByte(keyByte === -1 ? fastRegion.rkey + 1 : keyByte) };
}

/** Writes the WQE of a bind or a fast registration. */
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

/** Writes the WQE that invalidates a local key. */
export function writeInvalidation(words: Uint32Array, wqe: number, key: number, flags: number): void {
  words[wqe + abi.swOpcode] = abi.opLocalInvalidate;
  words[wqe + abi.swFlags] = flags;
  words[wqe + abi.swSgeCount] = 0;
  words[wqe + abi.swRkey] = key;
}
