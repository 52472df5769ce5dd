/** Payloads that are longer than a slot and arrive in several (docs/internals/net.md). */
import type { Link, Slot } from '../connection/link.js';

/** A part of a payload, in its slot. */
interface Piece {
  readonly slot: Slot;
  readonly at: number;
  readonly length: number;
}

/**
 * The pieces of a payload before its last one. They stay in their slots, which stops the sender when its credits run out. The sender posts
 * all pieces in one turn, so nothing arrives between them.
 */
export class Pieces {
  #bytes = 0;
  readonly #pieces: Piece[] = [];

  /** @param type, id - type and id of each frame */
  constructor(
    readonly type: number,
    readonly id: number,
  ) {}

  /** Bytes received so far. */
  get bytes(): number {
    return this.#bytes;
  }

  add(slot: Slot, at: number, length: number): void {
    this.#pieces.push({ slot, at, length });
    this.#bytes += length;
  }

  /** Copies the pieces to the beginning of a payload and releases their slots. */
  moveTo(link: Link, bytes: Buffer): void {
    let to = 0;
    for (const { slot, at, length } of this.#pieces) {
      link.memory.copy(bytes, to, at, at + length);
      to += length;
      link.release(slot);
    }
  }

  /** Releases the slots of a payload that is no longer needed. */
  release(link: Link): void {
    for (const { slot } of this.#pieces) link.release(slot);
  }
}

const EMPTY = Buffer.alloc(0);

/** Copies a payload out of its slots and releases them. */
export function takePayload(
  link: Link,
  slot: Slot,
  at: number,
  length: number,
  before: Pieces | undefined,
): Buffer {
  if (before !== undefined) {
    const bytes = Buffer.allocUnsafe(before.bytes + length);
    link.memory.copy(bytes, before.bytes, at, at + length);
    link.release(slot);
    before.moveTo(link, bytes);
    return bytes;
  }
  const bytes = length === 0 ? EMPTY : Buffer.from(link.payload(at, length));
  link.release(slot);
  return bytes;
}
