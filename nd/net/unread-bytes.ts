import { Fifo } from './fifo.js';
import type { Link, Slot } from './link.js';
import { unfilled } from './slab.js';

/** Bytes of a chunk that has several pieces, at most. */
const CHUNK_BYTES = 262_144;

/** Received bytes of a stream that its reader did not want yet. They stay in their slots, so that the sender is held back. */
export class UnreadBytes {
  readonly #pieces = new Fifo<{ readonly slot: Slot; at: number; length: number }>();

  /** There are none. */
  get empty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds the payload of a frame: `length` bytes, at least one, from `at` on in the memory of its slot. */
  put(slot: Slot, at: number, length: number): void {
    this.#pieces.push({ slot, at, length });
  }

  /** Takes a chunk: as many whole pieces as 256 KiB hold, and at least one. */
  chunk(link: Link): Buffer {
    const pieces = [this.#pieces.shift()!];
    let total = pieces[0]!.length;
    for (let next = this.#pieces.first; next !== undefined; next = this.#pieces.first) {
      if (total + next.length > CHUNK_BYTES) break;
      total += next.length;
      pieces.push(this.#pieces.shift()!);
    }
    const chunk = unfilled(total);
    let to = 0;
    for (const { slot, at, length } of pieces) {
      chunk.set(slot.memory.subarray(at, at + length), to);
      to += length;
      link.release(slot);
    }
    return chunk;
  }

  /** Takes as many bytes as `buffer` holds. Returns their number. */
  into(buffer: Uint8Array, link: Link): number {
    let to = 0;
    for (
      let piece = this.#pieces.first;
      piece !== undefined && to < buffer.length;
      piece = this.#pieces.first
    ) {
      const { slot, at } = piece;
      const length = Math.min(piece.length, buffer.length - to);
      buffer.set(slot.memory.subarray(at, at + length), to);
      to += length;
      piece.at += length;
      piece.length -= length;
      if (piece.length > 0) break;
      this.#pieces.shift();
      link.release(slot);
    }
    return to;
  }
}
