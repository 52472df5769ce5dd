import type { IND2MemoryRegion, Nd2Sge } from '../../index.js';
import type { Hello } from './frames.js';

/** The part of a link's memory for one Send or Receive, which has one or more frames; or the part of a ring with the bytes of one. */
export interface Slot {
  /** Where it is. */
  readonly memory: Buffer;
  /** Of its first byte. */
  readonly offset: number;
  /** Of a part of a ring: the slot of the frame that announced its bytes. */
  readonly carrier: Slot | undefined;
  /** All of it, as requests name it. */
  readonly sgl: [Nd2Sge];
  /** Bytes of its frames, in a send slot. */
  used: number;
  /** Frames that its user has not released, in a receive slot. */
  frames: number;
}

/** A slot, in memory that is registered as the region. */
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

/** What is above a link. */
export interface LinkUser {
  /** A data frame. Its payload, from an offset on in the slot's memory, belongs to the user until `Link.release`. */
  frame(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void;
  /** The peer has read a large payload. */
  wasRead(id: number): void;
  /** Credits or slots have come back. */
  writable(): void;
  /** The connection has ended: once, after all frames. */
  ended(error: unknown): void;
  /** Something waits for credits, or for the peer to read it. */
  unsent(): boolean;
}

/** Sizes of this side. */
export type LinkOptions = Hello;
