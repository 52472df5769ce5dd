/**
 * Rings of queue pairs, several in one piece of memory: what the system and V8 take for an allocation of 3 KB is more than making
 * a queue pair otherwise costs.
 */
import type { NativeRing } from '../hca/binding.js';
import type { UvpAddon } from './completion-queue.js';

/** Queue pairs that share an allocation at most: as long as one of them lives, the memory of all stays. */
const MOST_TOGETHER = 16;
/** Larger rings are allocated alone. */
const MOST_BYTES = 8192;
/** The HCA's rings begin at multiples of it. */
const ALIGNMENT = 64;

/** An allocation, cut into places of one size. */
interface Block {
  readonly ring: NativeRing;
  readonly free: number[];
  used: number;
  /** Where it is among the blocks that have a free place; -1: it has none. */
  index: number;
}

/** Where a queue pair has its ring. */
export interface RingPlace {
  readonly block: Block;
  /** In bytes, from the block's begin. */
  readonly offset: number;
}

/** The blocks of one size that have a free place, and how many places are in use. */
interface Size {
  readonly blocks: Block[];
  used: number;
}

export const addressOf = ({ block, offset }: RingPlace): number => block.ring.address + offset;

export class RingPool {
  private readonly sizes = new Map<number, Size>();

  constructor(private readonly addon: Pick<UvpAddon, 'allocateRing' | 'releaseRing'>) {}

  /** A place for a ring: zeroed, and nobody else's until it is given back. */
  take(bytes: number): RingPlace {
    const step = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    let size = this.sizes.get(step);
    let block = size?.blocks.at(-1);
    if (size === undefined || block === undefined) {
      block = this.allocate(step, bytes, size?.used ?? 0);
      // Only now: nothing is kept where there was no memory.
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

  /** Gives a place back. `again`: the HCA and its owner will not touch it any more, so that another may have it. */
  give({ block, offset }: RingPlace, bytes: number, again: boolean): void {
    const step = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    const size = this.sizes.get(step)!;
    block.used--;
    size.used--;
    if (block.used === 0) {
      if (block.index >= 0) leave(size, block);
      this.addon.releaseRing(block.ring.address);
    } else if (again) {
      new Uint8Array(block.ring.buffer, offset, bytes).fill(0);
      block.free.push(offset);
      if (block.index < 0) enter(size, block);
    }
    if (size.used === 0) this.sizes.delete(step);
  }

  private allocate(step: number, bytes: number, used: number): Block {
    // Who has few queue pairs does not pay for many.
    const together = step > MOST_BYTES ? 1 : Math.min(MOST_TOGETHER, Math.max(1, used));
    const ring = this.addon.allocateRing(step * (together - 1) + bytes);
    const free = Array.from({ length: together }, (_, i) => (together - 1 - i) * step);
    return { ring, free, used: 0, index: -1 };
  }
}

function enter(size: Size, block: Block): void {
  block.index = size.blocks.push(block) - 1;
}

/** The last one comes into its stead: a program may have thousands. */
function leave({ blocks }: Size, block: Block): void {
  const last = blocks.pop()!;
  if (last !== block) {
    blocks[block.index] = last;
    last.index = block.index;
  }
  block.index = -1;
}
