/** The wire format of connections: hello, frames, descriptions of memory (docs/internals/net.md). Integers are big-endian. */
import { DIALECT } from '../../../kernel-bridge/schema/generated/numbers.js';

/** The content of a connection. */
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

/** Whether frames of this type wait until the receiving program accepts them. All others are replies, which are processed on arrival. */
export function isHeld(type: number): boolean {
  return type === Frame.DATA || type === Frame.REQUEST;
}

/**
 * Returns how many of the additional data credits ({@link moreSlots}) a frame of this type must leave unused. Messages, requests and stream
 * bytes wait for the receiving program. The slot of an atomic operation waits until its reply was sent. All other frames never wait. Frames
 * that others wait for therefore always find a slot.
 */
export function leaves(type: number, more: number): number {
  if (isHeld(type)) return more;
  return type === Frame.ATOMIC ? more / 2 : 0;
}

/** Whether a message in slots exceeds the receiver's limit. Answers to atomic operations have 8 bytes and never do. */
export function exceeds(type: number, flags: number, length: number, most: number): boolean {
  return length > most && flags !== LARGE && (isHeld(type) || (type === Frame.ANSWER && length > 8));
}

/** Flag of a frame whose payload describes memory, where the receiver reads the actual payload. */
export const LARGE = 1;

/** Flag of a frame that fills the shorter of both sides' slots. The next data frame, of the same type and id, continues the payload. */
export const MORE = 4;

/**
 * Flag of a DATA frame that is the first of its Send. Its bytes are in the Send's part of the receiver's ring, and its id is their number.
 */
export const IN_RING = 2;

/** Permitted fields of a frame type besides payload and credits. */
export interface Form {
  /** The permitted flags, at most one at a time. */
  readonly flags: number;
  /** Whether the id is used; otherwise it must be 0. */
  readonly hasId: boolean;
  /** Size in bytes of the payload without a flag; undefined if any number is valid. */
  readonly bytes: number | undefined;
}

/** Size of an ATOMIC frame's payload in bytes. */
export const ATOMIC_BYTES = 32;

const END_FORM: Form = { flags: 0, hasId: false, bytes: 0 };
/** A message may be in the sender's memory or in several frames. */
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

/**
 * Describes why a data frame is malformed on a connection of this kind; undefined if it is valid. Frames with {@link IN_RING} are not
 * checked here.
 */
export function malformed(
  kind: Kind,
  type: number,
  flags: number,
  id: number,
  length: number,
): string | undefined {
  const form = forms[kind].get(type);
  if (form === undefined)
    return `frame type ${type} is not valid on a ${kind === Kind.STREAM ? 'stream' : 'channel'}`;
  if ((flags & ~form.flags) !== 0 || (flags & (flags - 1)) !== 0)
    return `flags 0x${flags.toString(16)} are not valid on a frame of type ${type}`;
  if (id !== 0 && !form.hasId) return `the id of a frame of type ${type} must be 0; got ${id}`;
  if (flags === 0 && form.bytes !== undefined && length !== form.bytes)
    return `a frame of type ${type} must have ${form.bytes} bytes; got ${length}`;
  return undefined;
}

/** Flags of a RING frame: the sender offers a ring, requests its return, or returns the peer's ring. */
export const Notice = { OFFER: 0, WITHDRAW: 1, RETURN: 2 } as const;

/** The length of each part of a ring is a multiple of this. Shorter payloads are sent in slots. */
export const RING_UNIT = 4096;

/** The largest ring, in bytes. */
export const MOST_RING_BYTES = 2 ** 28;

/** Offsets of the header fields of a frame, in bytes. Only the first frame of a slot may carry credits. */
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

/** Writes the header of a frame that returns no credits. */
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

/** Slots for CONTROL frames, in addition to those announced in the hello. */
export const CONTROL_SLOTS = 8;

/**
 * Slots of a channel in addition to those announced in the hello. Messages and requests leave them free, so that answers arrive even if the
 * program receives no messages.
 */
export const REPLY_SLOTS = 4;

/** The slot of a stream in addition to those announced in the hello, so that END arrives even if the program reads no bytes. */
export const END_SLOTS = 1;

/** Slots of a connection of this kind in addition to those announced in the hello. */
export function moreSlots(kind: Kind): number {
  return kind === Kind.CHANNEL ? REPLY_SLOTS : END_SLOTS;
}

const MAGIC = 0x4e44_4e31;
/** Size of a hello in bytes. */
export const HELLO_BYTES = 24;

/** The sizes that each side announces in Connect or Accept. */
export interface Hello {
  readonly kind: Kind;
  /** Receive slots for data frames, in addition to {@link moreSlots}. */
  readonly slots: number;
  /** Size in bytes of a slot, including the header. */
  readonly slotBytes: number;
  /** Size in bytes of the longest message, request or answer that is accepted; 0 for a stream. */
  readonly maxMessageBytes: number;
  /** For a stream, bytes of the largest ring for received data and of the largest peer ring that it writes to; 0 for a channel. */
  readonly ringBytes: number;
}

/** Encodes a hello: the private data of Connect, Accept and Reject. */
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

/** Decodes the peer's hello; undefined if it is invalid. */
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

/** Encodes the private data of a Reject for a hello of another version: the beginning of a hello, with the version only. */
export function encodeVersion(): Uint8Array {
  const bytes = new Uint8Array(HELLO_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint8(4, DIALECT);
  return bytes;
}

/** The version of a hello if it differs from this side's; undefined if it is the same or these bytes are not a hello. */
export function otherVersionIn(bytes: Uint8Array): number | undefined {
  if (bytes.length < HELLO_BYTES) return undefined;
  const view = viewOf(bytes);
  const version = view.getUint8(4);
  return view.getUint32(0) !== MAGIC || version === DIALECT ? undefined : version;
}

/** Size of a memory description in bytes. */
export const MEMORY_BYTES = 24;

/** Memory that the peer may access. */
export interface MemoryDescription {
  readonly address: bigint;
  readonly token: number;
  /** Id of a large payload; 0 for exposed memory. */
  readonly id: number;
  /** Length in bytes. */
  readonly length: number;
}

/** Encodes a memory description. */
export function encodeMemory({ address, token, id, length }: MemoryDescription): Uint8Array {
  const bytes = new Uint8Array(MEMORY_BYTES);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, address);
  view.setUint32(8, token);
  view.setUint32(12, id);
  view.setBigUint64(16, BigInt(length));
  return bytes;
}

/** Decodes a memory description; undefined if it is malformed. */
export function decodeMemory(bytes: Uint8Array): MemoryDescription | undefined {
  if (bytes.length !== MEMORY_BYTES) return undefined;
  const view = viewOf(bytes);
  const length = Number(view.getBigUint64(16));
  if (!Number.isSafeInteger(length)) return undefined;
  return { address: view.getBigUint64(0), token: view.getUint32(8), id: view.getUint32(12), length };
}

/** A DataView of the same bytes. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
