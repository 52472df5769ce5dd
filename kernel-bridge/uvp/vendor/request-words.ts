/** Where in a request's and a completion's memory is what, in words of 32 bits, and how numbers in network order are written. */
import { offsetIn, type PointerBytes } from './c-layout.js';
import { uvpLayouts } from './uvp-layouts.js';

export const pointerBytes: PointerBytes = process.arch === 'ia32' ? 4 : 8;
/** The structures of this process. */
export const layouts = uvpLayouts(pointerBytes);

const { sendWr, recvWr, bindWr, wc } = layouts;

const word = (structure: Parameters<typeof offsetIn>[0], path: string): number =>
  offsetIn(structure, path) / 4;

/** `ib_send_wr_t` */
export const SendWord = {
  size: sendWr.size / 4,
  id: word(sendWr, 'wr_id'),
  sgl: word(sendWr, 'ds_array'),
  sges: word(sendWr, 'num_ds'),
  type: word(sendWr, 'wr_type'),
  flags: word(sendWr, 'send_opt'),
  immediate: word(sendWr, 'immediate_data'),
  remote: word(sendWr, 'wr.remote_ops.vaddr'),
  rkey: word(sendWr, 'wr.remote_ops.rkey'),
  compare: word(sendWr, 'wr.remote_ops.atomic1'),
  swap: word(sendWr, 'wr.remote_ops.atomic2'),
  av: word(sendWr, 'wr.ud.h_av'),
  remoteQpn: word(sendWr, 'wr.ud.remote_qp'),
  remoteQkey: word(sendWr, 'wr.ud.remote_qkey'),
} as const;

/** `ib_recv_wr_t` */
export const ReceiveWord = {
  size: recvWr.size / 4,
  id: word(recvWr, 'wr_id'),
  sges: word(recvWr, 'num_ds'),
  sgl: word(recvWr, 'ds_array'),
} as const;

/** `ib_bind_wr_t` */
export const BindWord = {
  size: bindWr.size / 4,
  id: word(bindWr, 'wr_id'),
  flags: word(bindWr, 'send_opt'),
  access: word(bindWr, 'access_ctrl'),
  rkey: word(bindWr, 'current_rkey'),
  address: word(bindWr, 'local_ds.vaddr'),
  length: word(bindWr, 'local_ds.length'),
  lkey: word(bindWr, 'local_ds.lkey'),
} as const;

/** `uvp_wc_t` */
export const CompletionWord = {
  size: wc.size / 4,
  qpContext: word(wc, 'qp_context'),
  id: word(wc, 'wr_id'),
  type: word(wc, 'wc_type'),
  length: word(wc, 'length'),
  vendor: word(wc, 'vendor_specific'),
  status: word(wc, 'status'),
  flags: word(wc, 'recv_opt'),
  immediate: word(wc, 'immediate_data'),
  remoteQpn: word(wc, 'remote_qp'),
  /** P_Key index in its low half, the remote LID in network order in its high one. */
  pkeyAndLid: word(wc, 'pkey_index'),
  /** Service level, then path bits. */
  slAndPath: word(wc, 'remote_sl'),
} as const;

/** The other order of a word's bytes. */
export function swapped(value: number): number {
  return ((value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24)) >>> 0;
}

const TWO_32 = 2 ** 32;

/** Writes an address or a handle: two words, of which 32-bit code has the first. */
export function writeAddress(words: Uint32Array, at: number, address: number): void {
  words[at] = address;
  if (pointerBytes === 8) words[at + 1] = address / TWO_32;
}
