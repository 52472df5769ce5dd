/**
 * Enumerations and flags of WinVerbs, as they travel in IOCTL structures, work requests and completions.
 * Names are those of winverbs.h without their prefix.
 */

/** RNR retry counts: the infinite one, and the largest finite one (IBA 1 §9.7.5.2.8). */
export const RnrRetry = { FOR_EVER: 7, MOST: 6 } as const;

/**
 * WV_ACCESS_*: access rights of a memory region, window or queue pair. REMOTE_WRITE includes LOCAL_WRITE. ZERO_BASED is this stack's
 * addition (libibverbs' number): addresses of the region or window count from 0, its first byte.
 */
export const WvAccess = {
  REMOTE_READ: 0x1,
  REMOTE_WRITE: 0xa,
  REMOTE_ATOMIC: 0x4,
  LOCAL_WRITE: 0x8,
  MW_BIND: 0x10,
  ZERO_BASED: 0x20,
  NON_CACHABLE: 0x8000_0000,
  /** Ours: every right, for this side and for peers, and that of binding windows. */
  ALL: 0x1f,
} as const;

/** WV_SEND_*: flags of a send request. */
export const WvSend = {
  IMMEDIATE: 0x1,
  FENCE: 0x2,
  SIGNALED: 0x4,
  SOLICITED: 0x8,
  INLINE: 0x10,
} as const;

/** WV_WC_*: flags of a completion. INVALIDATED and SOLICITED are this stack's additions. */
export const WvWc = {
  IMMEDIATE: 0x1,
  INVALIDATED: 0x2,
  GRH_VALID: 0x4,
  SOLICITED: 0x8,
} as const;

/** WV_WC_STATUS: the result of a work request (IBA 1 §11.6.2). */
export const WcStatus = {
  SUCCESS: 0,
  LOCAL_LENGTH_ERROR: 1,
  LOCAL_OP_ERROR: 2,
  LOCAL_PROTECTION_ERROR: 3,
  FLUSHED: 4,
  MW_BIND_ERROR: 5,
  REMOTE_ACCESS_ERROR: 6,
  REMOTE_OP_ERROR: 7,
  RNR_RETRY_ERROR: 8,
  TIMEOUT_RETRY_ERROR: 9,
  REMOTE_INVALID_REQUEST: 10,
  BAD_RESPONSE: 11,
  LOCAL_ACCESS_ERROR: 12,
  ERROR: 13,
} as const;

/** WV_OPCODE: kind of a work request or completion; bit 7 marks receives. INVALIDATE and FAST_REGISTER are this stack's additions. */
export const WvOpcode = {
  SEND: 0,
  RDMA_WRITE: 1,
  RDMA_READ: 2,
  COMPARE_EXCHANGE: 3,
  FETCH_ADD: 4,
  BIND_WINDOW: 5,
  INVALIDATE: 6,
  FAST_REGISTER: 7,
  RECEIVE: 128,
  RECEIVE_RDMA_WRITE: 129,
} as const;

/** WV_QP_TYPE. */
export const QpType = { RC: 0, UC: 1, UD: 3 } as const;

/** WV_QP_STATE (IBA 1 §10.3.1). */
export const QpState = { RESET: 0, INIT: 1, RTR: 2, RTS: 3, SQD: 4, SQERROR: 5, ERROR: 6 } as const;

/** WV_APM_STATE: path migration. */
export const ApmState = { MIGRATED: 1, REARM: 2, ARMED: 3 } as const;

/** QP create flags (WV_QP_*). MEMORY_MANAGEMENT: the queue pair takes requests of fast registration. */
export const QpFlag = { SIGNAL_SENDS: 0x1, MEMORY_MANAGEMENT: 0x2 } as const;

/** WV_QP_ATTR_*: which attributes of WV_IO_QP_ATTRIBUTES a QP_MODIFY carries (its Options). */
export const QpAttr = {
  CAPABILITIES: 0x1,
  INITIATOR_DEPTH: 0x2,
  RESPONDER_RESOURCES: 0x4,
  CURRENT_STATE: 0x8,
  STATE: 0x10,
  PATH_MIG_STATE: 0x20,
  DESTINATION_QPN: 0x40,
  QKEY: 0x80,
  SEND_PSN: 0x100,
  RECEIVE_PSN: 0x200,
  FLAGS: 0x400,
  ACCESS_FLAGS: 0x800,
  AV: 0x1000,
  ALTERNATE_AV: 0x2000,
  PORT_NUMBER: 0x4000,
  PKEY_INDEX: 0x8000,
  ACK_TIMEOUT: 0x1_0000,
  RNR_NAK_TIMEOUT: 0x2_0000,
  ERROR_RETRY_COUNT: 0x4_0000,
  RNR_RETRY_COUNT: 0x8_0000,
} as const;

/** WV_CQ_NOTIFY_TYPE, the Data of CQ_NOTIFY: the event of the completion queue to wait for. */
export const CqNotifyType = { ERROR: 0, NEXT_COMPLETION: 1, SOLICITED: 2 } as const;

/** Endpoint type: high byte the RDMA CM's service prefix, low byte the IP protocol (IBA 1 Annex A11). */
export const EpType = { CONNECT: 0x0106, DATAGRAM: 0x0111 } as const;

/** The IP protocols of {@link EpType}: TCP and UDP. */
export const IpProtocol = { TCP: 6, UDP: 17 } as const;

/** The P_Key of the default partition, full member (IBA 1 §10.9.1.2). */
export const DEFAULT_PKEY = 0xffff;

/** Of datagrams that connection management sets up: WV_CM_UDP_QKEY, and the QPN that stands for multicast groups. */
export const WvDatagram = { QKEY: 0x0123_4567, MULTICAST_QPN: 0xff_ffff } as const;

/** WV_EP_OPTION_*, the Data of EP_MODIFY. ROUTE: an ib_path_rec_t follows the structure. */
export const EpOption = {
  /** A path record. */
  ROUTE: 1,
  /**
   * Of this stack only. 4 bytes: 0, a disconnect by the peer moves the queue pair to ERROR at once (default); 1, it stays
   * as it is until Disconnect.
   */
  KEEP_QP: 0x8000_0001,
  /** Of this stack only, before Listen. A P_Key (big-endian, 2 bytes): requests of other partitions are refused. */
  PARTITION: 0x8000_0002,
} as const;

/** WV_EVENT_*: an event of a port; output of DEVICE_NOTIFY. */
export const WvEvent = {
  /** The device has failed (IBA 1 §11.6.3.3, local catastrophic error). */
  ERROR: 0x1,
  /** The port went up or down. */
  STATE: 0x2,
  /** Its GID table has changed: an IP address came or went. */
  ADDRESS: 0x4,
  /** Its link address has changed: the LID, or the MAC. */
  LINK_ADDRESS: 0x8,
  /** Its P_Key table has changed. */
  PARTITION: 0x10,
  /** Its management has changed: the subnet manager, or the port's capabilities (CiModifyCa, CiModifyPort). */
  MANAGEMENT: 0x20,
} as const;

/** WV_DEVICE_TYPE. */
export const DeviceType = { UNKNOWN: 0, INFINIBAND: 1, IWARP: 2 } as const;

/** WV_ATOMIC_CAPABILITIES: none, atomic among the device's own accesses, or atomic in the whole node. */
export const AtomicCapability = { NONE: 0, DEVICE: 1, NODE: 2 } as const;

/** WV_PORT_STATE. */
export const PortState = { NOP: 0, DOWN: 1, INIT: 2, ARMED: 3, ACTIVE: 4, ACTIVE_DEFER: 5 } as const;

/** WV_PORT_TRANSPORT; RoCE is RDMAOE. */
export const PortTransport = { IB: 0, IWARP: 1, RDMAOE: 2 } as const;

/**
 * WV_DEVICE_* capability flags of devices and ports. Two are this stack's additions: MEM_MGT_EXTENSIONS (libibverbs' number): fast
 * registration, local invalidation, Send with Invalidate; FIXED_CQ: the device's completion queues stay as large as they were made.
 */
export const WvCapability = {
  RESIZE_MAX_WR: 0x1,
  BAD_PKEY_COUNTER: 0x2,
  BAD_QKEY_COUNTER: 0x4,
  PATH_MIGRATION: 0x10,
  CHANGE_PHYSICAL_PORT: 0x20,
  AH_PORT_CHECKING: 0x40,
  QP_STATE_MODIFIER: 0x80,
  SHUTDOWN_PORT: 0x100,
  INIT_TYPE: 0x200,
  PORT_ACTIVE_EVENT: 0x400,
  SYSTEM_IMAGE_GUID: 0x800,
  RC_RNR_NAK_GENERATION: 0x1000,
  SRQ_RESIZE: 0x2000,
  BATCH_NOTIFY_CQ: 0x4000,
  MEM_MGT_EXTENSIONS: 0x20_0000,
  FIXED_CQ: 0x4000_0000,
} as const;

/** Address families inside IOCTL structures (Windows' numbers, on every platform). */
export const AddressFamily = { IPV4: 2, IPV6: 23 } as const;

/** Capacities in bytes of private data and of names that IOCTLs carry. */
export const Capacity = {
  /** Connect, and the structure of Accept. */
  CONNECT_DATA: 56,
  /** A REP: what an Accept may have, and its receiver gets. */
  REP_DATA: 196,
  /** A rejection. */
  REJ_DATA: 148,
  /** A datagram endpoint's Lookup. */
  LOOKUP_DATA: 180,
  /** A datagram endpoint's Accept or Reject. */
  LOOKUP_ANSWER_DATA: 136,
  /** LIBRARY_QUERY's answer, its NUL included. */
  LIBRARY_NAME: 32,
  /** Maximum of connect endpoint ids that one EP_CREATE returns, if its output has room for more than one. */
  EP_CREATE_IDS: 16,
} as const;

/** The Version that IBAT requests carry. */
export const IBAT_VERSION = 6;
