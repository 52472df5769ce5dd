/**
 * The structures that WinVerbs and a user-mode verbs provider share (`inc/user/iba/ib_uvp.h`, `inc/iba/ib_types.h` of WinOFED), for 32-bit
 * and 64-bit pointers. Types and fields have their C names. test/windows/layouts.ts compares each with the layout of a C compiler.
 */
import {
  bytes,
  type FieldType,
  packed,
  u8,
  u16,
  u16be,
  u32,
  u32be,
  u64,
  u64be,
  union,
} from '../../ioctl/layout.js';
import { address, cStruct, offsetIn, type PointerBytes } from './c-layout.js';
import { uvpSlots } from './uvp-slots.js';

const localDs = cStruct('ib_local_ds_t', { vaddr: address(8), length: u32, lkey: u32 });

/** A pointer that occupies 8 bytes in both. */
const longPointer = address(8);

/** A work request of any kind. */
function sendLayout(pointer: FieldType<number>) {
  const remoteOps = cStruct('remote_ops', { vaddr: u64, rkey: u32be, atomic1: u64be, atomic2: u64be });
  const datagram = cStruct('ud', {
    h_av: pointer,
    remote_qp: u32be,
    remote_qkey: u32be,
    rsvd: pointer,
    pkey_index: u16,
    header: pointer,
    hlen: u32,
    mss: u32,
  });
  const fastReg = cStruct('fast_reg', {
    iova_start: u64,
    page_list: pointer,
    page_shift: u32,
    page_list_len: u32,
    length: u32,
    access_flags: u32,
    rkey: u32be,
    fbo: u32,
  });
  return cStruct('ib_send_wr_t', {
    wr_id: u64,
    p_next: pointer,
    ds_array: pointer,
    num_ds: u32,
    wr_type: u32,
    send_opt: u32,
    immediate_data: u32be,
    wr: union('wr', { remote_ops: remoteOps, ud: datagram, fast_reg: fastReg }),
  });
}

const recvWr = cStruct('ib_recv_wr_t', {
  p_next: longPointer,
  wr_id: u64,
  num_ds: u32,
  ds_array: longPointer,
});
const bindWr = cStruct('ib_bind_wr_t', {
  wr_id: u64,
  send_opt: u32,
  h_mr: longPointer,
  access_ctrl: u32,
  current_rkey: u32be,
  local_ds: localDs,
});
/** A completion. */
function completionLayout(pointer: FieldType<number>) {
  return cStruct('uvp_wc_t', {
    qp_context: pointer,
    wr_id: u64,
    wc_type: u32,
    length: u32,
    vendor_specific: u64,
    status: u32,
    recv_opt: u32,
    immediate_data: u32be,
    remote_qp: u32be,
    pkey_index: u16,
    remote_lid: u16be,
    remote_sl: u8,
    path_bits: u8,
  });
}

const grh = packed('ib_grh_t', {
  ver_class_flow: u32be,
  resv1: u16,
  resv2: u8,
  hop_limit: u8,
  src_gid: bytes(16),
  dest_gid: bytes(16),
});
const avAttr = cStruct('ib_av_attr_t', {
  port_num: u8,
  sl: u8,
  dlid: u16be,
  grh_valid: u32,
  grh,
  static_rate: u8,
  path_bits: u8,
  conn: cStruct('conn', { path_mtu: u8, local_ack_timeout: u8, seq_err_retry_cnt: u8, rnr_retry_cnt: u8 }),
});
const srqAttr = cStruct('ib_srq_attr_t', { max_wr: u32, max_sge: u32, srq_limit: u32 });
const qpCreate = cStruct('ib_qp_create_t', {
  qp_type: u32,
  sq_max_inline: u32,
  sq_depth: u32,
  rq_depth: u32,
  sq_sge: u32,
  rq_sge: u32,
  h_sq_cq: longPointer,
  h_rq_cq: longPointer,
  h_srq: longPointer,
  sq_signaled: u32,
});
const umvBuf = cStruct('ci_umv_buf_t', {
  command: u32,
  status: u32,
  input_size: u32,
  output_size: u32,
  p_inout_buf: address(8),
});

/** Returns all structures for one size of pointers. */
export function uvpLayouts(pointerBytes: PointerBytes) {
  const pointer = address(pointerBytes);
  const uvpQpCreate = cStruct('uvp_qp_create_t', {
    qp_create: qpCreate,
    context: pointer,
    max_inline_send: u32,
    initiator_depth: u32,
    responder_resources: u32,
  });
  const uvpInterface = cStruct(
    'uvp_interface_t',
    Object.fromEntries(uvpSlots.map(({ name }) => [name, pointer])),
  );
  const sendWr = sendLayout(pointer);
  const wc = completionLayout(pointer);
  return {
    localDs,
    sendWr,
    recvWr,
    bindWr,
    wc,
    grh,
    avAttr,
    srqAttr,
    qpCreate,
    uvpQpCreate,
    umvBuf,
    uvpInterface,
  };
}

export const pointerBytes: PointerBytes = process.arch === 'ia32' ? 4 : 8;
/** The structures of this process. */
export const layouts = uvpLayouts(pointerBytes);

const word = (structure: Parameters<typeof offsetIn>[0], path: string): number =>
  offsetIn(structure, path) / 4;

/** `ib_send_wr_t` */
export const SendWord = {
  size: layouts.sendWr.size / 4,
  id: word(layouts.sendWr, 'wr_id'),
  sgl: word(layouts.sendWr, 'ds_array'),
  sges: word(layouts.sendWr, 'num_ds'),
  type: word(layouts.sendWr, 'wr_type'),
  flags: word(layouts.sendWr, 'send_opt'),
  immediate: word(layouts.sendWr, 'immediate_data'),
  remote: word(layouts.sendWr, 'wr.remote_ops.vaddr'),
  rkey: word(layouts.sendWr, 'wr.remote_ops.rkey'),
  compare: word(layouts.sendWr, 'wr.remote_ops.atomic1'),
  swap: word(layouts.sendWr, 'wr.remote_ops.atomic2'),
  av: word(layouts.sendWr, 'wr.ud.h_av'),
  remoteQpn: word(layouts.sendWr, 'wr.ud.remote_qp'),
  remoteQkey: word(layouts.sendWr, 'wr.ud.remote_qkey'),
} as const;

/** `ib_recv_wr_t` */
export const ReceiveWord = {
  size: layouts.recvWr.size / 4,
  id: word(layouts.recvWr, 'wr_id'),
  sges: word(layouts.recvWr, 'num_ds'),
  sgl: word(layouts.recvWr, 'ds_array'),
} as const;

/** `ib_bind_wr_t` */
export const BindWord = {
  size: layouts.bindWr.size / 4,
  id: word(layouts.bindWr, 'wr_id'),
  flags: word(layouts.bindWr, 'send_opt'),
  access: word(layouts.bindWr, 'access_ctrl'),
  rkey: word(layouts.bindWr, 'current_rkey'),
  address: word(layouts.bindWr, 'local_ds.vaddr'),
  length: word(layouts.bindWr, 'local_ds.length'),
  lkey: word(layouts.bindWr, 'local_ds.lkey'),
} as const;

/** `uvp_wc_t` */
export const CompletionWord = {
  size: layouts.wc.size / 4,
  qpContext: word(layouts.wc, 'qp_context'),
  id: word(layouts.wc, 'wr_id'),
  type: word(layouts.wc, 'wc_type'),
  length: word(layouts.wc, 'length'),
  vendor: word(layouts.wc, 'vendor_specific'),
  status: word(layouts.wc, 'status'),
  flags: word(layouts.wc, 'recv_opt'),
  immediate: word(layouts.wc, 'immediate_data'),
  remoteQpn: word(layouts.wc, 'remote_qp'),
  /** P_Key index in the low half, remote LID in network byte order in the high half. */
  pkeyAndLid: word(layouts.wc, 'pkey_index'),
  /** Service level in the lowest byte, path bits in the next. */
  slAndPath: word(layouts.wc, 'remote_sl'),
} as const;

/** Reverses the bytes of a word. */
export function swapped(value: number): number {
  return ((value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24)) >>> 0;
}

const TWO_32 = 2 ** 32;

/** Writes an address or a handle as two words; 32-bit code uses only the first. */
export function writeAddress(words: Uint32Array, at: number, address: number): void {
  words[at] = address;
  if (pointerBytes === 8) words[at + 1] = address / TWO_32;
}
