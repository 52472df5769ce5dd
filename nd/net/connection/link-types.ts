import type { IND2MemoryRegion, Nd2Sge } from '../../index.js';
import type { Hello } from './frames.js';

/**
 * The part of a link's memory for one Send or Receive, which contains one or more frames; or the part of a ring with the bytes of one
 * frame.
 */
export interface Slot {
  /** The memory that contains it. */
  readonly memory: Buffer;
  /** Offset of its first byte. */
  readonly offset: number;
  /** For a part of a ring, the slot of the frame that announced its bytes. */
  readonly carrier: Slot | undefined;
  /** The whole slot as a scatter/gather list. */
  readonly sgl: [Nd2Sge];
  /** Bytes of its frames, in a send slot. */
  used: number;
  /** Frames that the user has not released, in a receive slot. */
  frames: number;
}

/** Creates a slot in memory that is registered as `region`. */
export function slotAt(memory: Buffer, region: IND2MemoryRegion, offset: number, length: number): Slot {
  return {
    memory,
    offset,
    carrier: undefined,
    used: 0,
    frames: 0,
    sgl: [{ memory: region, offset, length }],
  };
}

/** The socket or channel above a link. */
export interface LinkUser {
  /** Called for a data frame. Its payload, at offset `at` of the slot's memory, belongs to the user until `Link.release`. */
  frame(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void;
  /** Called when the peer has read a large payload. */
  wasRead(id: number): void;
  /** Called when credits or send slots were returned. */
  writable(): void;
  /** Called once, after all frames, when the connection has ended. */
  ended(error: unknown): void;
  /** Whether data waits for credits or to be read by the peer. */
  unsent(): boolean;
}

/** Sizes of this side. */
export type LinkOptions = Hello;
