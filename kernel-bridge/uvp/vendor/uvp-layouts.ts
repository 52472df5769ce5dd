/**
 * The structures that WinVerbs and a user-mode verbs provider share (`inc/user/iba/ib_uvp.h`, `inc/iba/ib_types.h` of WinOFED), for both widths
 * of a pointer. Names of types and fields are those of C. test/windows/layouts.ts compares each of them with what a C compiler makes of it.
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
import { address, cStruct, type PointerBytes } from './c-layout.js';
import { uvpSlots } from './uvp-slots.js';

const localDs = cStruct('ib_local_ds_t', { vaddr: address(8), length: u32, lkey: u32 });

/** A pointer that has the room of the longer width in both. */
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

/** All structures for one width of a pointer. */
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
