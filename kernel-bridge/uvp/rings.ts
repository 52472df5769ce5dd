/** Rings that the HCA's threads also read and write: access to their words, and the layout and memory of queue pair rings. */

import type { UvpQpCreate } from '../door/user-verbs.js';
import type { NativeRing, UserHca } from '../hca/user-hca.js';
import { abi } from '../schema/generated/ring.js';
import { powerOfTwo, receiveStride } from './work-request.js';

/**
 * A counter is read before the entries that it covers, and written after them.
 *
 * V8 calls a builtin for each use of `Atomics`. On x86 plain accesses suffice, except if a store must become visible
 * before a later load: x86 reorders neither loads with loads nor stores with stores, and V8 reads a typed array's
 * element from memory each time.
 */
const PLAIN = process.arch === 'x64' || process.arch === 'ia32';

/** Reads a word; later reads see memory at least as new. */
export function loadAcquire(words: Uint32Array, index: number): number {
  return PLAIN ? words[index]! : Atomics.load(words, index);
}

/** Writes a word; a thread that sees it also sees all earlier writes. */
export function storeRelease(words: Uint32Array, index: number, value: number): void {
  if (PLAIN) words[index] = value;
  else Atomics.store(words, index, value);
}

/** The layout of a queue pair's ring (schema/ring.ts). */
export interface QpRingLayout {
  readonly sendEntries: number;
  readonly sendStride: number;
  /** SGEs per send WQE: at least the requested number. */
  readonly sendSge: number;
  readonly receiveEntries: number;
  readonly receiveStride: number;
  readonly bytes: number;
}

export function qpRingLayout(create: UvpQpCreate): QpRingLayout {
  const sendEntries = powerOfTwo(create.sendDepth);
  // A queue pair on a shared receive queue has no receive queue of its own.
  const shared = (create.srq ?? null) !== null;
  const receiveEntries = shared ? 0 : powerOfTwo(create.receiveDepth);
  const payload = Math.max(create.sendSge * abi.sgeBytes, create.maxInlineSend);
  const sendStride = Math.ceil((abi.sendWqeHeaderBytes + payload) / 64) * 64;
  const stride = receiveStride(shared ? 0 : create.receiveSge);
  return {
    sendEntries,
    sendStride,
    sendSge: (sendStride - abi.sendWqeHeaderBytes) / abi.sgeBytes,
    receiveEntries,
    receiveStride: stride,
    bytes: abi.qpHeaderBytes + sendEntries * sendStride + receiveEntries * stride,
  };
}

/** Maximum number of queue pairs that share an allocation. While one of them exists, the memory of all stays allocated. */
const MAX_SHARING = 16;
/** Larger rings have an allocation of their own. */
const MAX_SHARED_BYTES = 8192;
/** Alignment of the HCA's rings. */
const ALIGNMENT = 64;

/** An allocation, divided into places of equal size. */
interface Block {
  readonly ring: NativeRing;
  readonly free: number[];
  used: number;
  /** Index in the list of blocks with a free place; -1: none is free. */
  index: number;
}

/** The place of a queue pair's ring. */
export interface RingPlace {
  readonly block: Block;
  /** Byte offset in the block. */
  readonly offset: number;
}

/** All blocks of one size. */
interface Size {
  /** Blocks with a free place. */
  readonly blocks: Block[];
  /** Places in use in all blocks. */
  used: number;
}

export const addressOf = ({ block, offset }: RingPlace): number => block.ring.address + offset;

/**
 * Allocates rings of queue pairs, several in one allocation: an allocation of 3 KB costs more, in the OS and V8, than
 * all other steps of creating a queue pair.
 */
export class RingPool {
  private readonly sizes = new Map<number, Size>();

  constructor(private readonly hca: Pick<UserHca, 'allocateRing' | 'releaseRing'>) {}

  /** Allocates a zeroed place for a ring. */
  take(bytes: number): RingPlace {
    const step = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    let size = this.sizes.get(step);
    let block = size?.blocks.at(-1);
    if (size === undefined || block === undefined) {
      block = this.allocate(step, bytes, size?.used ?? 0);
      // Added after the allocation, which throws if there is not enough memory.
      if (size === undefined) {
        size = { blocks: [], used: 0 };
        this.sizes.set(step, size);
      }
      enter(size, block);
    }
    const offset = block.free.pop()!;
    if (block.free.length === 0) leave(size, block);
    block.used++;
    size.used++;
    return { block, offset };
  }

  /** Frees a place. `reusable`: neither the HCA nor the owner accesses it any more, so that another ring may use it. */
  give({ block, offset }: RingPlace, bytes: number, reusable: boolean): void {
    const step = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    const size = this.sizes.get(step)!;
    block.used--;
    size.used--;
    if (block.used === 0) {
      if (block.index >= 0) leave(size, block);
      this.hca.releaseRing(block.ring.address);
    } else if (reusable) {
      new Uint8Array(block.ring.buffer, offset, bytes).fill(0);
      block.free.push(offset);
      if (block.index < 0) enter(size, block);
    }
    if (size.used === 0) this.sizes.delete(step);
  }

  private allocate(step: number, bytes: number, used: number): Block {
    // A program with few queue pairs does not allocate memory for many.
    const places = step > MAX_SHARED_BYTES ? 1 : Math.min(MAX_SHARING, Math.max(1, used));
    // Each of several places fits any ring of this size class.
    const ring = this.hca.allocateRing(places === 1 ? bytes : step * places);
    const free = Array.from({ length: places }, (_, i) => (places - 1 - i) * step);
    return { ring, free, used: 0, index: -1 };
  }
}

function enter(size: Size, block: Block): void {
  block.index = size.blocks.push(block) - 1;
}

/** Removes a block in constant time by moving the last one to its index, because a program may have thousands of blocks. */
function leave({ blocks }: Size, block: Block): void {
  const last = blocks.pop()!;
  if (last !== block) {
    blocks[block.index] = last;
    last.index = block.index;
  }
  block.index = -1;
}
