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
    const size = this.sizeOf(step);
    let block = size.blocks.at(-1);
    if (block === undefined) {
      // Who has few queue pairs does not pay for many.
      const together = step > MOST_BYTES ? 1 : Math.min(MOST_TOGETHER, Math.max(1, size.used));
      const ring = this.addon.allocateRing(step * (together - 1) + bytes);
      block = { ring, free: Array.from({ length: together }, (_, i) => (together - 1 - i) * step), used: 0 };
      size.blocks.push(block);
    }
    const offset = block.free.pop()!;
    if (block.free.length === 0) size.blocks.pop();
    block.used++;
    size.used++;
    return { block, offset };
  }

  /** Gives a place back. `again`: the HCA and its owner will not touch it any more, so that another may have it. */
  give({ block, offset }: RingPlace, bytes: number, again: boolean): void {
    const step = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    const size = this.sizeOf(step);
    block.used--;
    size.used--;
    const known = size.blocks.indexOf(block);
    if (block.used === 0) {
      if (known >= 0) size.blocks.splice(known, 1);
      this.addon.releaseRing(block.ring.address);
    } else if (again) {
      new Uint8Array(block.ring.buffer, offset, bytes).fill(0);
      block.free.push(offset);
      if (known < 0) size.blocks.push(block);
    }
    if (size.used === 0) this.sizes.delete(step);
  }

  private sizeOf(step: number): Size {
    let size = this.sizes.get(step);
    if (size === undefined) {
      size = { blocks: [], used: 0 };
      this.sizes.set(step, size);
    }
    return size;
  }
}
