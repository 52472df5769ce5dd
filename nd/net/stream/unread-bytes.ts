import { Fifo } from '../base/fifo.js';
import type { Link, Slot } from '../connection/link.js';
import { unfilled } from './slab.js';

/** Maximum bytes of a chunk that is merged from several pieces. */
const CHUNK_BYTES = 262_144;

/**
 * Received bytes that the reader of a stream has not requested. They stay in their slots, which stops the sender when its credits run out.
 */
export class UnreadBytes {
  readonly #pieces = new Fifo<{ readonly slot: Slot; at: number; length: number }>();

  /** Whether all bytes were read. */
  get empty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds the payload of a frame: `length` bytes (at least 1) at offset `at` of the slot's memory. */
  put(slot: Slot, at: number, length: number): void {
    this.#pieces.push({ slot, at, length });
  }

  /** Removes and returns one chunk: at least one piece, and further whole pieces up to 256 KiB in total. */
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

  /** Moves as many bytes as fit into `buffer`. Returns their number. */
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
