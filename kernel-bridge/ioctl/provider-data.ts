/**
 * Data that the software HCA's user-mode provider (UVP) and its driver exchange behind the IOCTL structures: the
 * payload of `ci_umv_buf_t`, opaque to all layers between them. The provider of a real HCA appends its own.
 */
import { type Fields, type FieldsValue, layouts, reserved, type Struct, u32, u64 } from './layout.js';
import { madeCode } from './made-code.js';
import { Status, StatusError } from './status.js';

const { struct } = layouts(madeCode);

/**
 * The version of this file's structures and of the rings that they describe (`schema/ring.ts`). A provider sends its
 * version as the command of DEVICE_OPEN (VerbInfo), or 0 for none. The driver refuses any version but its own with
 * NOT_SUPPORTED, and returns its own as the status.
 */
export const PROVIDER_ABI = 1;

/** DEVICE_OPEN out: limits that the UVP needs to lay out rings. Bytes or numbers of entries. */
export const CaProviderOut = struct('CA provider output', {
  /** SGEs of one request. */
  MaxSge: u32,
  /** Bytes. */
  MaxInline: u32,
  /** Requests in one queue of a queue pair. */
  MaxQpWr: u32,
  /** Entries of one completion queue. */
  MaxCqEntries: u32,
  /** Receives in one shared receive queue. */
  MaxSrqWr: u32,
  /** SGEs of a receive of a shared receive queue. */
  MaxSrqSge: u32,
});

/** PD_ALLOCATE out. */
export const PdProviderOut = struct('PD provider output', {
  /** The engine's handle of the protection domain. */
  Handle: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** MW_ALLOCATE out. */
export const MwProviderOut = struct('MW provider output', {
  /** The engine's handle of the window, for bind requests. */
  Handle: u32,
  /** The window's first key, as a number. */
  Rkey: u32,
});

/** AH_CREATE out: the handle for work requests. */
export const AvProviderOut = struct('AV provider output', {
  /** The engine's handle of the address handle, for datagram requests. */
  Handle: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** CQ_CREATE and CQ_RESIZE in: the ring (schema/ring.ts) and its number of CQEs. */
export const CqProviderIn = struct('CQ provider input', {
  /** Address of the ring in the calling process, below 2^47. */
  RingAddress: u64,
  /** Size in bytes of the ring, including its head. */
  RingBytes: u32,
  /** The number of CQEs, a power of two. */
  Entries: u32,
});

/** CQ_CREATE and CQ_RESIZE out. */
export const CqProviderOut = struct('CQ provider output', {
  /** The engine's handle of the completion queue. */
  Handle: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** SRQ_CREATE and SRQ_MODIFY in: the ring, its number of WQEs and their size in bytes. Optional for a modify. */
export const SrqProviderIn = struct('SRQ provider input', {
  /** Address of the ring in the calling process, below 2^47; 0: the queue keeps its ring. */
  RingAddress: u64,
  /** Size in bytes of the ring, including its head. */
  RingBytes: u32,
  /** The number of WQEs, a power of two. */
  Entries: u32,
  /** Size of a WQE in bytes. */
  Stride: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** SRQ_CREATE and SRQ_MODIFY out. */
export const SrqProviderOut = struct('SRQ provider output', {
  /** The engine's handle of the shared receive queue. */
  Handle: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** QP_CREATE in: the ring with both queues. Strides are bytes per WQE; CQEs carry the token. */
export const QpProviderIn = struct('QP provider input', {
  /** Address of the ring in the calling process, below 2^47. */
  RingAddress: u64,
  /** Size in bytes of the ring with both queues. */
  RingBytes: u32,
  /** The number of send WQEs, a power of two. */
  SendEntries: u32,
  /** Size of a send WQE in bytes. */
  SendStride: u32,
  /** The number of receive WQEs, a power of two; 0 with a shared receive queue. */
  ReceiveEntries: u32,
  /** Size of a receive WQE in bytes. */
  ReceiveStride: u32,
  /** Identifies the queue pair to the UVP when it polls completions. */
  Token: u32,
});

/** QP_CREATE out. */
export const QpProviderOut = struct('QP provider output', {
  /** The engine's handle of the queue pair. */
  Handle: u32,
  /** The queue pair number (QPN), 24 bits. */
  Qpn: u32,
});

/** Output of QP_MODIFY, EP_ACCEPT and EP_DISCONNECT: the queue pair's new WV_QP_STATE. */
export const QpStateOut = struct('QP state output', {
  /** A {@link QpState}. */
  State: u32,
});

/** The bytes of an input: the structure, followed by the provider's bytes. */
export function withProviderData(head: Uint8Array, provider: Uint8Array | null): Uint8Array {
  if (provider === null || provider.length === 0) return head;
  const whole = new Uint8Array(head.length + provider.length);
  whole.set(head);
  whole.set(provider, head.length);
  return whole;
}

/** The provider's bytes behind a structure, as a view; may be empty. */
export function providerBytes(
  whole: Uint8Array,
  head: { readonly size: number; readonly name: string },
): Uint8Array {
  if (whole.length < head.size) {
    const message = `${head.name} needs ${head.size} bytes; got ${whole.length}`;
    throw new StatusError(Status.BUFFER_TOO_SMALL, message);
  }
  return whole.subarray(head.size);
}

/**
 * Reads the provider data behind a structure.
 *
 * @throws StatusError BUFFER_TOO_SMALL if it is incomplete.
 */
export function decodeProviderData<F extends Fields>(
  whole: Uint8Array,
  head: { readonly size: number; readonly name: string },
  type: Struct<F>,
): FieldsValue<F> {
  return type.decode(providerBytes(whole, head));
}
