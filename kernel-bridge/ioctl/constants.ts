/**
 * Enumerations and flags of WinVerbs, as they travel in IOCTL structures, work requests and completions.
 * Names are those of winverbs.h without their prefix.
 */

/** RNR retry counts: the infinite one, and the largest finite one (IBA 1 §9.7.5.2.8). */
export const RnrRetry = {
  /** The sender repeats without end; the field on the wire has 3 bits, and 7 has this meaning. */
  FOR_EVER: 7,
  /** The most repetitions that a sender counts: after them the request ends in RNR_RETRY_ERROR. */
  MOST: 6,
} as const;

/**
 * WV_ACCESS_*: access rights of a memory region, window or queue pair. REMOTE_WRITE includes LOCAL_WRITE. ZERO_BASED is this stack's
 * addition (libibverbs' number): addresses of the region or window count from 0, its first byte.
 */
export const WvAccess = {
  /** Peers may read the memory by RDMA read; on a queue pair: it answers RDMA reads. */
  REMOTE_READ: 0x1,
  /** Peers may write the memory by RDMA write; it includes LOCAL_WRITE (0x2 | 0x8), as memory that a peer writes is writable. */
  REMOTE_WRITE: 0xa,
  /** Peers may change the memory by CompareExchange and FetchAdd, 8 aligned bytes at a time. */
  REMOTE_ATOMIC: 0x4,
  /** The HCA may write the memory for this side: receives, RDMA reads and atomics place their data there. */
  LOCAL_WRITE: 0x8,
  /** Memory windows may be bound to the region. */
  MW_BIND: 0x10,
  /** Remote addresses count from 0, the first byte of the region or window, instead of being virtual addresses. */
  ZERO_BASED: 0x20,
  /**
   * Ours: peers of this host may map the memory, which is one of `allocate()`, and keep what they have mapped. It goes with REMOTE_READ, and has no
   * effect where the device cannot do it (`view` of a queue pair).
   */
  REMOTE_VIEW: 0x4000_0000,
  /** The memory is not cached; of the WinVerbs interface, without effect on the software HCA. */
  NON_CACHABLE: 0x8000_0000,
  /** Ours: every right, for this side and for peers, and that of binding windows. */
  ALL: 0x1f,
} as const;

/** WV_SEND_*: flags of a send request. */
export const WvSend = {
  /** 4 bytes of immediate data go with the Send or RDMA write; the peer's receive completes with WV_WC_IMMEDIATE. */
  IMMEDIATE: 0x1,
  /** The request begins only after all earlier RDMA reads and atomics of the queue pair have ended. */
  FENCE: 0x2,
  /** The request makes a completion also when it succeeds; a failed one always makes one. */
  SIGNALED: 0x4,
  /** The receive that the message ends at the peer is a solicited event: it wakes a notification that waits for such events only. */
  SOLICITED: 0x8,
  /** The data is copied when the request is posted, so that its memory may be changed at once; at most `maxInlineSend` bytes. */
  INLINE: 0x10,
} as const;

/** WV_WC_*: flags of a completion. INVALIDATED and SOLICITED are this stack's additions. */
export const WvWc = {
  /** The completion's immediate data is valid; receives only. */
  IMMEDIATE: 0x1,
  /** The immediate data is the rkey that the peer's Send with Invalidate has made invalid. */
  INVALIDATED: 0x2,
  /** The first 40 bytes of the receive's memory hold a GRH; receives of datagrams only. */
  GRH_VALID: 0x4,
  /** The peer has posted the message as solicited. */
  SOLICITED: 0x8,
} as const;

/** WV_WC_STATUS: the result of a work request (IBA 1 §11.6.2). */
export const WcStatus = {
  /** The request succeeded; of all other values the fields besides context and status may be undefined. */
  SUCCESS: 0,
  /** The message is longer than the receive's memory, or a request longer than the port's largest message. */
  LOCAL_LENGTH_ERROR: 1,
  /** The HCA could not carry out a request of this side, such as one that the queue pair's state or type forbids. */
  LOCAL_OP_ERROR: 2,
  /** An SGE lies outside its region, or its key does not fit the protection domain or the access. */
  LOCAL_PROTECTION_ERROR: 3,
  /** The queue pair was in ERROR, or went there, before the request was carried out. */
  FLUSHED: 4,
  /** A window was not bound: region, range or access rights do not allow it. */
  MW_BIND_ERROR: 5,
  /** The peer's key does not grant the access, at these addresses (NAK code 2). */
  REMOTE_ACCESS_ERROR: 6,
  /** The peer could not carry out the request, for a reason of its own (NAK code 3). */
  REMOTE_OP_ERROR: 7,
  /** The peer had no receive until the RNR retries were spent. */
  RNR_RETRY_ERROR: 8,
  /** The peer acknowledged nothing until the retries were spent. */
  TIMEOUT_RETRY_ERROR: 9,
  /** The peer does not take the request: the operation is not enabled, or its receive is too short (NAK code 1). */
  REMOTE_INVALID_REQUEST: 10,
  /** The peer's answer does not belong to what was asked. */
  BAD_RESPONSE: 11,
  /** A peer's request broke the protection of this side's memory; a receive that was in use ends by it. */
  LOCAL_ACCESS_ERROR: 12,
  /** An error for which there is no other value. */
  ERROR: 13,
} as const;

/** WV_OPCODE: kind of a work request or completion; bit 7 marks receives. INVALIDATE and FAST_REGISTER are this stack's additions. */
export const WvOpcode = {
  /** A message into a receive of the peer. */
  SEND: 0,
  /** Writes into the peer's memory; no receive is used up, unless immediate data goes with it. */
  RDMA_WRITE: 1,
  /** Reads from the peer's memory; reliable connections only. */
  RDMA_READ: 2,
  /** Replaces 8 bytes at the peer if they have an expected value, and reads what they were; reliable connections only. */
  COMPARE_EXCHANGE: 3,
  /** Adds to 8 bytes at the peer, and reads what they were; reliable connections only. */
  FETCH_ADD: 4,
  /** Binds a memory window to a range of a region; nothing is sent. */
  BIND_WINDOW: 5,
  /** Ends what an rkey of this side grants, that of a window or a fast region; nothing is sent. */
  INVALIDATE: 6,
  /** Registers memory by a request of a queue pair with MEMORY_MANAGEMENT, under a new key; nothing is sent. */
  FAST_REGISTER: 7,
  /** A receive that a Send of the peer has ended. */
  RECEIVE: 128,
  /** A receive that an RDMA write with immediate data has ended: its memory is unused, `length` counts the bytes of the write. */
  RECEIVE_RDMA_WRITE: 129,
} as const;

/** WV_QP_TYPE. */
export const QpType = {
  /** Reliable connection: every message arrives once and in order, or an error is reported. */
  RC: 0,
  /** Unreliable connection: sends and RDMA writes only; lost messages are not reported. */
  UC: 1,
  /** Unreliable datagrams: messages of one packet each, to any peer or group. */
  UD: 3,
} as const;

/** WV_QP_STATE (IBA 1 §10.3.1). */
export const QpState = {
  /** As made: it takes no requests and no packets. */
  RESET: 0,
  /** Receives may be posted; nothing is sent or received. */
  INIT: 1,
  /** Ready to receive: packets of the peer are processed, and nothing of its own is sent. */
  RTR: 2,
  /** Ready to send: the state of an established connection. */
  RTS: 3,
  /** The send queue is drained: requests that have begun end, later ones wait. */
  SQD: 4,
  /** A send of an unreliable queue pair has failed: sends are flushed, receives still work. */
  SQERROR: 5,
  /** Failed or disconnected: all requests, waiting and new ones, end in FLUSHED. */
  ERROR: 6,
} as const;

/** WV_APM_STATE: path migration. */
export const ApmState = {
  /** The connection uses its present path, and has no alternate path ready. */
  MIGRATED: 1,
  /** The alternate path waits until the peer is ready for it, too. */
  REARM: 2,
  /** Both sides may change to the alternate path when the present one fails. */
  ARMED: 3,
} as const;

/** QP create flags (WV_QP_*). MEMORY_MANAGEMENT: the queue pair takes requests of fast registration. */
export const QpFlag = {
  /** Every send request makes a completion, as if it had WV_SEND_SIGNALED. */
  SIGNAL_SENDS: 0x1,
  /** The queue pair takes requests of fast registration. */
  MEMORY_MANAGEMENT: 0x2,
} as const;

/** WV_QP_ATTR_*: which attributes of WV_IO_QP_ATTRIBUTES a QP_MODIFY carries (its Options). */
export const QpAttr = {
  /** SendDepth and ReceiveDepth: the queues are to be resized. */
  CAPABILITIES: 0x1,
  /** InitiatorDepth: how many RDMA reads and atomics this side may have outstanding. */
  INITIATOR_DEPTH: 0x2,
  /** ResponderResources: how many RDMA reads and atomics of the peer this side answers at once. */
  RESPONDER_RESOURCES: 0x4,
  /** CurrentQpState: the state that the caller believes the queue pair to be in; the request fails in another. */
  CURRENT_STATE: 0x8,
  /** QpState: the state to move to. */
  STATE: 0x10,
  /** ApmState: a change of path migration. */
  PATH_MIG_STATE: 0x20,
  /** DestinationQpn, 24 bits. */
  DESTINATION_QPN: 0x40,
  /** Qkey, of a datagram queue pair. */
  QKEY: 0x80,
  /** SendPsn, 24 bits: the number of the first packet to be sent. */
  SEND_PSN: 0x100,
  /** ReceivePsn, 24 bits: the number of the first packet that is expected. */
  RECEIVE_PSN: 0x200,
  /** QpFlags; answered by QP_QUERY, not to be changed. */
  FLAGS: 0x400,
  /** AccessFlags: what peers may do by this queue pair. */
  ACCESS_FLAGS: 0x800,
  /** AddressVector: the path to the peer. */
  AV: 0x1000,
  /** AlternateAddressVector and the other alternate attributes. */
  ALTERNATE_AV: 0x2000,
  /** The port of AddressVector. */
  PORT_NUMBER: 0x4000,
  /** PkeyIndex: the partition, by its place in the port's table. */
  PKEY_INDEX: 0x8000,
  /** LocalAckTimeout: how long to wait for an acknowledgement. */
  ACK_TIMEOUT: 0x1_0000,
  /** RnrNakTimeout: how long the peer is told to wait when no receive is posted here. */
  RNR_NAK_TIMEOUT: 0x2_0000,
  /** SequenceErrorRetryCount, 0 to 7: repetitions when nothing is acknowledged. */
  ERROR_RETRY_COUNT: 0x4_0000,
  /** RnrRetryCount, 0 to 7: repetitions when the peer has no receive. */
  RNR_RETRY_COUNT: 0x8_0000,
} as const;

/** WV_CQ_NOTIFY_TYPE, the Data of CQ_NOTIFY: the event of the completion queue to wait for. */
export const CqNotifyType = {
  /** The completion queue has failed: it overran, or its device is gone. */
  ERROR: 0,
  /** The next completion, of any kind. */
  NEXT_COMPLETION: 1,
  /** The next completion of a solicited message, or that of a request that failed. */
  SOLICITED: 2,
} as const;

/** Endpoint type: high byte the RDMA CM's service prefix, low byte the IP protocol (IBA 1 Annex A11). */
export const EpType = {
  /** Connections and their listeners, in the port space of TCP. */
  CONNECT: 0x0106,
  /** Datagram peers, groups and listeners, in the port space of UDP. */
  DATAGRAM: 0x0111,
} as const;

/** The IP protocols of {@link EpType}: TCP and UDP. */
export const IpProtocol = {
  /** The number of TCP in IP headers: the low byte of CONNECT. */
  TCP: 6,
  /** The number of UDP in IP headers: the low byte of DATAGRAM. */
  UDP: 17,
} as const;

/** The P_Key of the default partition, full member (IBA 1 §10.9.1.2). */
export const DEFAULT_PKEY = 0xffff;

/** Of datagrams that connection management sets up: WV_CM_UDP_QKEY, and the QPN that stands for multicast groups. */
export const WvDatagram = {
  /** The Q_Key that both sides use unless an application chooses its own. */
  QKEY: 0x0123_4567,
  /** Not a queue pair: a packet to it goes to all queue pairs that are attached to the group. */
  MULTICAST_QPN: 0xff_ffff,
} as const;

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
export const DeviceType = {
  /** The driver does not tell. */
  UNKNOWN: 0,
  /** InfiniBand or RoCE; the software HCA is one. */
  INFINIBAND: 1,
  /** RDMA over TCP: without immediate data and datagrams. */
  IWARP: 2,
} as const;

/** WV_ATOMIC_CAPABILITIES: none, atomic among the device's own accesses, or atomic in the whole node. */
export const AtomicCapability = {
  /** No atomic operations. */
  NONE: 0,
  /** Atomics exclude each other if they come by the same device; processors may come between. */
  DEVICE: 1,
  /** Atomics exclude each other and all other accesses of the node, also those of its processors. */
  NODE: 2,
} as const;

/** WV_PORT_STATE. */
export const PortState = {
  /** No state; in a request: no change (IBA 1 §14.2.5.6). */
  NOP: 0,
  /** No link: the network interface is down or has no carrier. */
  DOWN: 1,
  /** There is a link, and the subnet manager has not configured it yet; InfiniBand only. */
  INIT: 2,
  /** Configured, but data is not passed yet; InfiniBand only. */
  ARMED: 3,
  /** Packets are sent and received. */
  ACTIVE: 4,
  /** Active, but the link has an error that may be passing; InfiniBand only. */
  ACTIVE_DEFER: 5,
} as const;

/** WV_PORT_TRANSPORT; RoCE is RDMAOE. */
export const PortTransport = {
  /** InfiniBand. */
  IB: 0,
  /** RDMA over TCP. */
  IWARP: 1,
  /** RDMA over Ethernet, RoCE; every port of the software HCA. */
  RDMAOE: 2,
} as const;

/**
 * WV_DEVICE_* capability flags of devices and ports. Four are this stack's additions: MEM_MGT_EXTENSIONS (libibverbs' number),
 * IN_ORDER_DMA, LOOPBACK and FIXED_CQ.
 */
export const WvCapability = {
  /** Queue pairs can change the depths of their queues. */
  RESIZE_MAX_WR: 0x1,
  /** The port counts packets with a P_Key that it does not have. */
  BAD_PKEY_COUNTER: 0x2,
  /** The port counts datagrams with a wrong Q_Key. */
  BAD_QKEY_COUNTER: 0x4,
  /** Queue pairs have alternate paths. */
  PATH_MIGRATION: 0x10,
  /** A queue pair can move to another port. */
  CHANGE_PHYSICAL_PORT: 0x20,
  /** The port number of an address handle is checked against that of the queue pair. */
  AH_PORT_CHECKING: 0x40,
  /** A modify may name the state that the queue pair is expected to be in. */
  QP_STATE_MODIFIER: 0x80,
  /** A port can be taken down by its owner. */
  SHUTDOWN_PORT: 0x100,
  /** A port takes a requested type of initialisation. */
  INIT_TYPE: 0x200,
  /** The device reports when a port becomes active. */
  PORT_ACTIVE_EVENT: 0x400,
  /** The device has a system image GUID, which those of one piece of hardware share. */
  SYSTEM_IMAGE_GUID: 0x800,
  /** Reliable connections answer with RNR NAKs when no receive is posted. */
  RC_RNR_NAK_GENERATION: 0x1000,
  /** Shared receive queues can be resized. */
  SRQ_RESIZE: 0x2000,
  /** A notification can wait for a number of completions. */
  BATCH_NOTIFY_CQ: 0x4000,
  /** Fast registration, local invalidation and Send with Invalidate (this stack's addition). */
  MEM_MGT_EXTENSIONS: 0x20_0000,
  /** Of a Read or Write the last byte is written last (this stack's addition). */
  IN_ORDER_DMA: 0x1000_0000,
  /** A queue pair of the device can be connected with another one of it (this stack's addition). */
  LOOPBACK: 0x2000_0000,
  /** Completion queues cannot be resized (this stack's addition). */
  FIXED_CQ: 0x4000_0000,
} as const;

/** Address families inside IOCTL structures (Windows' numbers, on every platform). */
export const AddressFamily = {
  /** The family of a SOCKADDR_IN of 16 bytes. */
  IPV4: 2,
  /** The family of a SOCKADDR_IN6 of 28 bytes. */
  IPV6: 23,
} as const;

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
  /** @deprecated EP_CREATE returns one id. */
  EP_CREATE_IDS: 16,
} as const;

/** The Version that IBAT requests carry. */
export const IBAT_VERSION = 6;
