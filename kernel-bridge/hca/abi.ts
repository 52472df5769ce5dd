/**
 * The memory that JavaScript and the HCA share: rings of queue pairs and completion queues.
 *
 * The same bytes as in `engine/base/abi.h`, which documents each word; a unit test compares the two tables. Word
 * constants are indexes into a `Uint32Array`/`Int32Array` over the structure.
 */
export const abi = {
  // Completion queue ring: header, then the CQEs
  cqHeaderBytes: 128,
  cqProducer: 0,
  cqState: 1,
  cqConsumer: 16,

  cqeBytes: 64,
  cqeToken: 0,
  cqeWqe: 1,
  cqeOpcode: 2,
  cqeStatus: 3,
  cqeLength: 4,
  cqeFlags: 5,
  cqeImmediate: 6,
  cqeSourceQpn: 7,
  cqeVendor: 8,
  cqePkeyIndex: 9,

  cqeFlagImmediate: 0x1,
  cqeFlagInvalidated: 0x2,
  cqeFlagGrh: 0x4,
  cqeFlagSolicited: 0x8,
  cqeFlagReceiveQueue: 0x80,
  cqeFlagSharedReceive: 0x100,

  // Queue pair ring: header, send queue, receive queue
  qpHeaderBytes: 128,
  qpSendProducer: 0,
  qpReceiveProducer: 1,
  qpState: 16,
  qpUnfenced: 17,
  qpReceiveBell: 18,

  sendWqeHeaderBytes: 64,
  swOpcode: 0,
  swFlags: 1,
  swSgeCount: 2,
  swImmediate: 3,
  swRemoteLo: 4,
  swRemoteHi: 5,
  swRkey: 6,
  swAccess: 7,
  swCompareLo: 8,
  swCompareHi: 9,
  swSwapLo: 10,
  swSwapHi: 11,
  swAh: 12,
  swRemoteQpn: 13,
  swRemoteQkey: 14,

  opSend: 0,
  opWrite: 1,
  opRead: 2,
  opCompareExchange: 3,
  opFetchAdd: 4,
  opBindWindow: 5,
  opLocalInvalidate: 6,
  opFastRegister: 7,
  opReceive: 128,
  opReceiveRdmaWrite: 129,

  sendFlagImmediate: 0x1,
  sendFlagFence: 0x2,
  sendFlagSignaled: 0x4,
  sendFlagSolicited: 0x8,
  sendFlagInline: 0x10,
  sendFlagInvalidate: 0x100,

  receiveWqeHeaderBytes: 16,
  rwSgeCount: 0,

  grhBytes: 40,

  // Shared receive queue ring: header, then receive WQEs
  srqHeaderBytes: 128,
  srqProducer: 0,
  srqConsumer: 16,
  srqReceiveBell: 17,

  sgeBytes: 16,
  sgeAddressLo: 0,
  sgeAddressHi: 1,
  sgeLength: 2,
  sgeLkey: 3,
} as const;
