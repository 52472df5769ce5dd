/**
 * The memory shared by JavaScript and the HCA: rings of queue pairs, completion queues and shared receive queues.
 *
 * Words have 32 bits and are little-endian (host order). They are numbered from the start of their structure, so that the
 * number is an index into a `Uint32Array` over the structure. Counters run freely modulo 2³². Since entry counts are
 * powers of two, masking a counter with the count minus one yields a slot.
 *
 * Everything that JavaScript writes here is untrusted input to the HCA: counters, lengths and addresses are checked on
 * use, and a producer that is more than one ring ahead moves the QP to ERROR.
 */
import {
  CqNotifyType,
  QpState,
  QpType,
  WcStatus,
  WvAccess,
  WvOpcode,
  WvSend,
  WvWc,
} from '../ioctl/constants.js';
import type { ConstantGroup } from './describe.js';

export const ring: readonly ConstantGroup[] = [
  {
    about: 'Completion queue ring: header, then `entries` CQEs.',
    members: {
      cqHeaderBytes: 128,
      cqProducer: [0, 'Written by the HCA: number of CQEs written.'],
      cqState: [1, 'Written by the HCA: 0 valid, 1 overrun (the CQ has failed).'],
      cqConsumer: [16, 'Written by the consumer: number of CQEs consumed.'],
    },
  },
  {
    about: 'CQE.',
    members: {
      cqeBytes: 64,
      cqeToken: [0, 'The QP token of QP_CREATE.'],
      cqeWqe: [1, 'Free-running index of the work request in its queue.'],
      cqeOpcode: [2, 'WV_OPCODE as a completion type.'],
      cqeStatus: [3, 'WV_WC_STATUS.'],
      cqeLength: [4, 'Bytes received, read or (atomics) 8.'],
      cqeFlags: 5,
      cqeImmediate: [6, 'Immediate data, or the invalidated rkey, as the number in packets.'],
      cqeSourceQpn: 7,
      cqeVendor: [8, 'AETH syndrome or an internal reason, for diagnosis.'],
      cqePkeyIndex: 9,
    },
  },
  {
    about: 'Flags of a CQE.',
    flags: true,
    members: {
      cqeFlagImmediate: WvWc.IMMEDIATE,
      cqeFlagInvalidated: WvWc.INVALIDATED,
      cqeFlagGrh: WvWc.GRH_VALID,
      cqeFlagSolicited: WvWc.SOLICITED,
      cqeFlagReceiveQueue: [0x80, 'The WQE index refers to the receive queue.'],
      cqeFlagSharedReceive: [0x100, "With ReceiveQueue: the index refers to the QP's shared receive queue."],
    },
  },
  {
    about: 'Queue pair ring: header, send queue, receive queue.',
    members: {
      qpHeaderBytes: 128,
      qpSendProducer: [0, 'Written by the poster.'],
      qpReceiveProducer: [1, 'Written by the poster.'],
      qpState: [16, 'Written by the HCA: WV_QP_STATE.'],
      qpUnfenced: [
        17,
        'Written by the HCA: whether the poster of a receive may read qpReceiveBell without a fence after writing its producer counter. 1: yes, ' +
          'because the HCA issues a barrier in all threads of the process, so that one of the two sees the other. 0: no.',
      ],
      qpReceiveBell: [
        18,
        'Written by the HCA: nonzero in ERROR and while a message waits for a receive. If so, the poster of a receive rings the doorbell.',
      ],
    },
  },
  {
    about: 'Send WQE: 64-byte header, then SGEs or inline bytes. The stride is a multiple of 64 bytes.',
    members: {
      sendWqeHeaderBytes: 64,
      swOpcode: 0,
      swFlags: 1,
      swSgeCount: [2, 'SGEs; with INLINE the number of inline bytes.'],
      swImmediate: [3, "Immediate data, or the peer's rkey to invalidate, as the number in packets."],
      swRemoteLo: [
        4,
        'Remote address. BIND, FAST_REGISTER: start of the window or region within the region of swRkey.',
      ],
      swRemoteHi: 5,
      swRkey: [
        6,
        'Remote key. BIND, FAST_REGISTER: lkey of the region with the memory. LOCAL_INVALIDATE: the key.',
      ],
      swAccess: [7, 'BIND, FAST_REGISTER: WV_ACCESS_* bits.'],
      swCompareLo: [8, 'Compare, or the operand of fetch-and-add; BIND, FAST_REGISTER: length.'],
      swCompareHi: 9,
      swSwapLo: [10, "Swap operand; BIND: the window's current rkey."],
      swSwapHi: [
        11,
        "BIND: the window's next rkey (same index, other low byte). FAST_REGISTER: the region's (any low byte).",
      ],
      swAh: [12, 'UD: address handle.'],
      swRemoteQpn: 13,
      swRemoteQkey: 14,
    },
  },
  {
    about: 'Opcodes of WQEs and CQEs: WV_OPCODE.',
    members: {
      opSend: WvOpcode.SEND,
      opWrite: WvOpcode.RDMA_WRITE,
      opRead: WvOpcode.RDMA_READ,
      opCompareExchange: WvOpcode.COMPARE_EXCHANGE,
      opFetchAdd: WvOpcode.FETCH_ADD,
      opBindWindow: WvOpcode.BIND_WINDOW,
      opLocalInvalidate: WvOpcode.INVALIDATE,
      opFastRegister: WvOpcode.FAST_REGISTER,
      opReceive: WvOpcode.RECEIVE,
      opReceiveRdmaWrite: WvOpcode.RECEIVE_RDMA_WRITE,
    },
  },
  {
    about: 'Flags of a send WQE: WV_SEND_*.',
    flags: true,
    members: {
      sendFlagImmediate: WvSend.IMMEDIATE,
      sendFlagFence: WvSend.FENCE,
      sendFlagSignaled: WvSend.SIGNALED,
      sendFlagSolicited: WvSend.SOLICITED,
      sendFlagInline: WvSend.INLINE,
      sendFlagInvalidate: [0x100, 'Send with Invalidate.'],
    },
  },
  {
    about: 'Receive WQE: 16-byte header, then SGEs.',
    members: { receiveWqeHeaderBytes: 16, rwSgeCount: 0 },
  },
  {
    about:
      'Shared receive queue ring: header, then receive WQEs. A WQE is copied when a message consumes it, which frees its slot. Its CQE may follow ' +
      'later, in any order among the queue pairs.',
    members: {
      srqHeaderBytes: 128,
      srqProducer: [0, 'Written by the poster.'],
      srqConsumer: [16, 'Written by the HCA: number of WQEs consumed.'],
      srqReceiveBell: [
        17,
        'Written by the HCA: the handle of the queue pair that waits for a receive, otherwise 0. The poster of a receive reads this word after ' +
          'a fence, and rings the doorbell if it is not 0.',
      ],
    },
  },
  {
    about: 'SGE (WV_SGE).',
    members: { sgeBytes: 16, sgeAddressLo: 0, sgeAddressHi: 1, sgeLength: 2, sgeLkey: 3 },
  },
  {
    about:
      'The bytes before the payload of a UD receive: an IPv6 header, or 20 zero bytes and an IPv4 header.',
    members: { grhBytes: 40 },
  },
  {
    about: 'WV_WC_STATUS.',
    only: 'cpp',
    members: {
      wcSuccess: WcStatus.SUCCESS,
      wcLocalLength: WcStatus.LOCAL_LENGTH_ERROR,
      wcLocalOp: WcStatus.LOCAL_OP_ERROR,
      wcLocalProtection: WcStatus.LOCAL_PROTECTION_ERROR,
      wcFlushed: WcStatus.FLUSHED,
      wcMwBind: WcStatus.MW_BIND_ERROR,
      wcRemoteAccess: WcStatus.REMOTE_ACCESS_ERROR,
      wcRemoteOp: WcStatus.REMOTE_OP_ERROR,
      wcRnrRetry: WcStatus.RNR_RETRY_ERROR,
      wcTimeoutRetry: WcStatus.TIMEOUT_RETRY_ERROR,
      wcRemoteInvalidRequest: WcStatus.REMOTE_INVALID_REQUEST,
      wcBadResponse: WcStatus.BAD_RESPONSE,
      wcLocalAccess: WcStatus.LOCAL_ACCESS_ERROR,
      wcError: WcStatus.ERROR,
    },
  },
  {
    about: 'WV_QP_STATE.',
    only: 'cpp',
    members: {
      qpsReset: QpState.RESET,
      qpsInit: QpState.INIT,
      qpsRtr: QpState.RTR,
      qpsRts: QpState.RTS,
      qpsSqd: QpState.SQD,
      qpsSqError: QpState.SQERROR,
      qpsError: QpState.ERROR,
    },
  },
  {
    about: 'WV_ACCESS_*.',
    flags: true,
    only: 'cpp',
    members: {
      accessRemoteRead: WvAccess.REMOTE_READ,
      accessRemoteWriteBit: [
        WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE,
        'WV_ACCESS_REMOTE_WRITE without LOCAL_WRITE, which it includes.',
      ],
      accessRemoteAtomic: WvAccess.REMOTE_ATOMIC,
      accessLocalWrite: WvAccess.LOCAL_WRITE,
      accessMwBind: WvAccess.MW_BIND,
      accessZeroBased: [WvAccess.ZERO_BASED, 'Addresses are offsets from the first byte.'],
      accessRemoteView: [
        WvAccess.REMOTE_VIEW,
        'Peers may map memory from allocate() and keep their mapping.',
      ],
    },
  },
  {
    about: 'WV_QP_TYPE.',
    only: 'cpp',
    members: { qptRc: QpType.RC, qptUc: QpType.UC, qptUd: QpType.UD },
  },
  {
    about: 'WV_CQ_NOTIFY_TYPE.',
    only: 'cpp',
    members: {
      cqNotifyErrors: CqNotifyType.ERROR,
      cqNotifyAny: CqNotifyType.NEXT_COMPLETION,
      cqNotifySolicited: CqNotifyType.SOLICITED,
    },
  },
];
