/** Payloads that are longer than a slot, and come in several (docs/internals/net.md). */
import type { Link, Slot } from '../connection/link.js';

/** A part of a payload, in its slot. */
interface Piece {
  readonly slot: Slot;
  readonly at: number;
  readonly length: number;
}

/**
 * The pieces of a payload before its last one. They stay in their slots, so that the sender is held back. The sender posts all in one turn:
 * nothing else comes between.
 */
export class Pieces {
  #bytes = 0;
  readonly #pieces: Piece[] = [];

  /** @param type, id - those of each of its frames */
  constructor(
    readonly type: number,
    readonly id: number,
  ) {}

  /** Bytes that have come. */
  get bytes(): number {
    return this.#bytes;
  }

  add(slot: Slot, at: number, length: number): void {
    this.#pieces.push({ slot, at, length });
    this.#bytes += length;
  }

  /** Copies them to the beginning of a payload, and releases their slots. */
  moveTo(link: Link, bytes: Buffer): void {
    let to = 0;
    for (const { slot, at, length } of this.#pieces) {
      link.memory.copy(bytes, to, at, at + length);
      to += length;
      link.release(slot);
    }
  }

  /** Releases their slots: nobody wants the payload. */
  release(link: Link): void {
    for (const { slot } of this.#pieces) link.release(slot);
  }
}

const EMPTY = Buffer.alloc(0);

/** Takes a payload out of its slot, and its earlier pieces out of theirs. */
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
