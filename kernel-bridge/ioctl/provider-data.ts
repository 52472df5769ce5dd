/**
 * Data that the software HCA's user-mode provider (UVP) and its driver exchange behind the structures of the IOCTLs:
 * the payload of `ci_umv_buf_t`, which no layer between them reads. A real HCA's provider appends its own.
 */
import { type Fields, type FieldsValue, layouts, reserved, type Struct, u32, u64 } from './layout.js';
import { madeCode } from './made-code.js';
import { Status, StatusError } from './status.js';

const { struct } = layouts(madeCode);

/** DEVICE_OPEN out: limits that the UVP must know before it lays out rings. Bytes or numbers of entries. */
export const CaProviderOut = struct('CA provider output', {
  MaxSge: u32,
  /** Bytes. */
  MaxInline: u32,
  MaxQpWr: u32,
  MaxCqEntries: u32,
  MaxSrqWr: u32,
  MaxSrqSge: u32,
});

/** PD_ALLOCATE out. */
export const PdProviderOut = struct('PD provider output', { Handle: u32, Reserved: reserved(4) });

/** MW_ALLOCATE out. */
export const MwProviderOut = struct('MW provider output', { Handle: u32, Rkey: u32 });

/** AH_CREATE out: the handle for work requests. */
export const AvProviderOut = struct('AV provider output', { Handle: u32, Reserved: reserved(4) });

/** CQ_CREATE and CQ_RESIZE in: the ring (hca/engine/base/abi.h) and its number of CQEs. */
export const CqProviderIn = struct('CQ provider input', { RingAddress: u64, RingBytes: u32, Entries: u32 });

/** CQ_CREATE and CQ_RESIZE out. */
export const CqProviderOut = struct('CQ provider output', { Handle: u32, Reserved: reserved(4) });

/** SRQ_CREATE and SRQ_MODIFY in: the ring, its number of WQEs and their size in bytes. A modify may have none. */
export const SrqProviderIn = struct('SRQ provider input', {
  RingAddress: u64,
  RingBytes: u32,
  Entries: u32,
  Stride: u32,
  Reserved: reserved(4),
});

/** SRQ_CREATE and SRQ_MODIFY out. */
export const SrqProviderOut = struct('SRQ provider output', { Handle: u32, Reserved: reserved(4) });

/** QP_CREATE in: the ring with both queues. Strides are bytes per WQE; CQEs carry the token. */
export const QpProviderIn = struct('QP provider input', {
  RingAddress: u64,
  RingBytes: u32,
  SendEntries: u32,
  SendStride: u32,
  ReceiveEntries: u32,
  ReceiveStride: u32,
  Token: u32,
});

/** QP_CREATE out. */
export const QpProviderOut = struct('QP provider output', { Handle: u32, Qpn: u32 });

/** Output of QP_MODIFY, EP_ACCEPT and EP_DISCONNECT: the queue pair's new WV_QP_STATE. */
export const QpStateOut = struct('QP state output', { State: u32 });

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
    const message = `${head.name} takes ${head.size} bytes; there are ${whole.length}`;
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
