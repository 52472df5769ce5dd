/** The bytes of connections: hello, frames, descriptions of memory (docs/internals/net.md). Numbers are big-endian. */
import { DIALECT } from '../../../kernel-bridge/schema/generated/numbers.js';

/** What a connection carries. */
export const Kind = { STREAM: 0, CHANNEL: 1 } as const;
/** A value of {@link Kind}. */
export type Kind = (typeof Kind)[keyof typeof Kind];

/** Types of frames. */
export const Frame = {
  CONTROL: 0,
  DATA: 1,
  REQUEST: 2,
  ANSWER: 3,
  FAILURE: 4,
  CANCEL: 5,
  ATOMIC: 6,
  END: 7,
  RING: 8,
} as const;

/** The receiving program takes a frame of this type when it likes; all others are replies, taken as they come. */
export function isHeld(type: number): boolean {
  return type === Frame.DATA || type === Frame.REQUEST;
}

/**
 * Data credits that a frame of this type leaves alone, of those that a connection has besides its slots ({@link moreSlots}). Messages, requests
 * and bytes wait for the receiving program; the slot of an atomic operation waits until its answer was sent, and all others for nothing.
 * So there are always slots for those on which others wait.
 */
export function leaves(type: number, more: number): number {
  if (isHeld(type)) return more;
  return type === Frame.ATOMIC ? more / 2 : 0;
}

/** Whether a message in slots is longer than its receiver takes. Of answers those to atomic operations, of 8 bytes, never are. */
export function exceeds(type: number, flags: number, length: number, most: number): boolean {
  return length > most && flags !== LARGE && (isHeld(type) || (type === Frame.ANSWER && length > 8));
}

/** Flag of a frame: the payload describes memory from which the receiver reads the real one. */
export const LARGE = 1;

/** Flag of a frame as long as the shorter of both sides' slots: the next data frame, of the same type and id, goes on with its payload. */
export const MORE = 4;

/** Flag of a frame of DATA, the first of its Send: the sender has put the bytes into the Send's part of the receiver's ring; the id is their number. */
export const IN_RING = 2;

/** What a frame of a type may have besides a payload and credits. */
export interface Form {
  /** The flags that it may have, at most one at a time. */
  readonly flags: number;
  /** Its id has a meaning; otherwise it is 0. */
  readonly hasId: boolean;
  /** Bytes of its payload without a flag; undefined: any number. */
  readonly bytes: number | undefined;
}

/** Bytes of an ATOMIC frame's payload. */
export const ATOMIC_BYTES = 32;

const END_FORM: Form = { flags: 0, hasId: false, bytes: 0 };
/** A message may be in the sender's memory, or in several frames. */
const LONG = LARGE | MORE;

/** The data frames of each kind of connection. */
export const forms: Readonly<Record<Kind, ReadonlyMap<number, Form>>> = {
  [Kind.STREAM]: new Map([
    [Frame.DATA, { flags: 0, hasId: false, bytes: undefined }],
    [Frame.END, END_FORM],
  ]),
  [Kind.CHANNEL]: new Map([
    [Frame.DATA, { flags: LONG, hasId: false, bytes: undefined }],
    [Frame.REQUEST, { flags: LONG, hasId: true, bytes: undefined }],
    [Frame.ANSWER, { flags: LONG, hasId: true, bytes: undefined }],
    [Frame.FAILURE, { flags: LARGE, hasId: true, bytes: undefined }],
    [Frame.CANCEL, { flags: 0, hasId: true, bytes: 0 }],
    [Frame.ATOMIC, { flags: 0, hasId: true, bytes: ATOMIC_BYTES }],
    [Frame.END, END_FORM],
  ]),
};

/** Why a data frame is malformed on a connection of this kind; undefined: it is not. Frames with {@link IN_RING} are not checked here. */
export function malformed(
  kind: Kind,
  type: number,
  flags: number,
  id: number,
  length: number,
): string | undefined {
  const form = forms[kind].get(type);
  if (form === undefined)
    return `a ${kind === Kind.STREAM ? 'stream' : 'channel'} has no frame of type ${type}`;
  if ((flags & ~form.flags) !== 0 || (flags & (flags - 1)) !== 0)
    return `a frame of type ${type} has no flag 0x${flags.toString(16)} here`;
  if (id !== 0 && !form.hasId) return `a frame of type ${type} has no id; got ${id}`;
  if (flags === 0 && form.bytes !== undefined && length !== form.bytes)
    return `a frame of type ${type} has ${form.bytes} bytes; got ${length}`;
  return undefined;
}

/** What a RING frame says, as its flags: its sender offers a ring, wants it back, or gives the peer's back. */
export const Notice = { OFFER: 0, TAKE_BACK: 1, GIVE_BACK: 2 } as const;

/** The length of each part of a ring is a multiple of this. Shorter pieces are sent in slots. */
export const RING_UNIT = 4096;

/** The largest ring, in bytes. */
export const MOST_RING_BYTES = 2 ** 28;

/** Header fields of a frame, by byte offset; the credits are those of the first frame in a slot. */
export const Header = {
  TYPE: 0,
  FLAGS: 1,
  DATA_CREDITS: 2,
  CONTROL_CREDITS: 4,
  RESERVED: 6,
  ID: 8,
  LENGTH: 12,
  BYTES: 16,
} as const;

/** Writes the header of a frame that returns nothing. */
export function writeHeader(
  view: DataView,
  at: number,
  type: number,
  flags: number,
  id: number,
  length: number,
): void {
  view.setUint8(at, type);
  view.setUint8(at + Header.FLAGS, flags);
  view.setUint16(at + Header.DATA_CREDITS, 0);
  view.setUint16(at + Header.CONTROL_CREDITS, 0);
  view.setUint16(at + Header.RESERVED, 0);
  view.setUint32(at + Header.ID, id);
  view.setUint32(at + Header.LENGTH, length);
}

/** Slots of CONTROL frames, in addition to those of the hello. */
export const CONTROL_SLOTS = 8;

/**
 * Slots that a channel has besides those of its hello, which messages and requests leave free: answers come through when the program takes
 * no messages.
 */
export const REPLY_SLOTS = 4;

/** The slot that a stream has besides those of its hello: END comes through when the program takes no bytes. */
export const END_SLOTS = 1;

/** Slots that a connection of this kind has besides those of its hello. */
export function moreSlots(kind: Kind): number {
  return kind === Kind.CHANNEL ? REPLY_SLOTS : END_SLOTS;
}

const MAGIC = 0x4e44_4e31;
/** Bytes of a hello. */
export const HELLO_BYTES = 24;

/** What a side announces when it connects or accepts. */
export interface Hello {
  readonly kind: Kind;
  /** Receive slots for data frames, besides {@link moreSlots}. */
  readonly slots: number;
  /** Bytes of a slot, header included. */
  readonly slotBytes: number;
  /** Bytes of the longest message, request or answer that it takes; of a stream 0. */
  readonly maxMessageBytes: number;
  /** Of a stream: bytes of the largest ring that it has for what comes, and of the peer's that it puts bytes into; of a channel 0. */
  readonly ringBytes: number;
}

/** The private data of Connect, Accept and Reject. */
export function encodeHello({ kind, slots, slotBytes, maxMessageBytes, ringBytes }: Hello): Uint8Array {
  const bytes = new Uint8Array(HELLO_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint8(4, DIALECT);
  view.setUint8(5, kind);
  view.setUint16(6, slots);
  view.setUint32(8, slotBytes);
  view.setUint32(12, ringBytes);
  view.setBigUint64(16, BigInt(maxMessageBytes));
  return bytes;
}

/** The peer's hello; undefined if it is none, or one that nobody can use. */
export function decodeHello(bytes: Uint8Array): Hello | undefined {
  if (bytes.length < HELLO_BYTES) return undefined;
  const view = viewOf(bytes);
  const kind = view.getUint8(5);
  const slots = view.getUint16(6);
  const slotBytes = view.getUint32(8);
  const ringBytes = view.getUint32(12);
  if (view.getUint32(0) !== MAGIC || view.getUint8(4) !== DIALECT) return undefined;
  if (kind !== Kind.STREAM && kind !== Kind.CHANNEL) return undefined;
  if (slots < 1 || slotBytes < Header.BYTES + MEMORY_BYTES) return undefined;
  const maxMessageBytes = Number(view.getBigUint64(16));
  if (kind === Kind.CHANNEL ? maxMessageBytes < 1 : maxMessageBytes !== 0) return undefined;
  if (kind === Kind.CHANNEL && ringBytes !== 0) return undefined;
  return { kind, slots, slotBytes, maxMessageBytes, ringBytes };
}

/** The private data of a Reject for a hello of another version: the beginning of a hello, which tells its version alone. */
export function encodeVersion(): Uint8Array {
  const bytes = new Uint8Array(HELLO_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint8(4, DIALECT);
  return bytes;
}

/** The version of a hello, if it is another than this side's; undefined: it is the same, or these bytes are no hello. */
export function otherVersionIn(bytes: Uint8Array): number | undefined {
  if (bytes.length < HELLO_BYTES) return undefined;
  const view = viewOf(bytes);
  const version = view.getUint8(4);
  return view.getUint32(0) !== MAGIC || version === DIALECT ? undefined : version;
}

/** Bytes of a description of memory. */
export const MEMORY_BYTES = 24;

/** Memory that the peer may access. */
export interface MemoryDescription {
  readonly address: bigint;
  readonly token: number;
  /** Of a large payload; 0 for exposed memory. */
  readonly id: number;
  /** Bytes. */
  readonly length: number;
}

/** Writes a description of memory. */
export function encodeMemory({ address, token, id, length }: MemoryDescription): Uint8Array {
  const bytes = new Uint8Array(MEMORY_BYTES);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, address);
  view.setUint32(8, token);
  view.setUint32(12, id);
  view.setBigUint64(16, BigInt(length));
  return bytes;
}

/** Reads a description of memory; undefined if it has no such form. */
export function decodeMemory(bytes: Uint8Array): MemoryDescription | undefined {
  if (bytes.length !== MEMORY_BYTES) return undefined;
  const view = viewOf(bytes);
  const length = Number(view.getBigUint64(16));
  if (!Number.isSafeInteger(length)) return undefined;
  return { address: view.getBigUint64(0), token: view.getUint32(8), id: view.getUint32(12), length };
}

/** A view of the same bytes. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
