/**
 * Enumerations and flags of WinVerbs, as they travel in IOCTL structures, work requests and completions.
 * Names are those of winverbs.h without their prefix.
 */

/** RNR retry counts: the infinite one and the largest finite one (IBA 1 §9.7.5.2.8). @enum */
export const RnrRetry = {
  /** Unlimited retries: the value 7 of the 3-bit field in packets. */
  FOR_EVER: 7,
  /** The largest finite count; after this many retries the request fails with RNR_RETRY_ERROR. */
  MOST: 6,
} as const;

/**
 * WV_ACCESS_*: access rights of a memory region, window or queue pair. REMOTE_WRITE includes LOCAL_WRITE. ZERO_BASED is this package's
 * addition (libibverbs' number): addresses of the region or window are offsets from its first byte.
 * @enum
 */
export const WvAccess = {
  /** Peers may read the memory with RDMA Reads. A queue pair with it serves RDMA Reads. */
  REMOTE_READ: 0x1,
  /** Peers may write the memory with RDMA Writes. Includes LOCAL_WRITE (0x2 | 0x8), because memory that a peer writes is writable. */
  REMOTE_WRITE: 0xa,
  /** Peers may change the memory with CompareExchange and FetchAdd, 8 aligned bytes at a time. */
  REMOTE_ATOMIC: 0x4,
  /** The HCA may write the memory for this side: receives, RDMA Reads and atomics place their data there. */
  LOCAL_WRITE: 0x8,
  /** Memory windows may be bound to the region. */
  MW_BIND: 0x10,
  /** Remote addresses are offsets from the first byte of the region or window, not virtual addresses. */
  ZERO_BASED: 0x20,
  /**
   * This package's addition: peers on this host may map the memory, which must come from `allocate()`, and keep their
   * mapping. Used together with REMOTE_READ; no effect where the device cannot do it (`view` of a queue pair).
   */
  REMOTE_VIEW: 0x4000_0000,
  /** The memory is not cached. Part of the WinVerbs interface; no effect on the software HCA. */
  NON_CACHABLE: 0x8000_0000,
  /** Every right of this side and of peers, and binding windows; this package's addition. */
  ALL: 0x1f,
} as const;

/** WV_SEND_*: flags of a send request. @enum */
export const WvSend = {
  /** 4 bytes of immediate data accompany the Send or RDMA Write; the peer's receive completes with WV_WC_IMMEDIATE. */
  IMMEDIATE: 0x1,
  /** The request starts only after all earlier RDMA Reads and atomics of the queue pair have completed. */
  FENCE: 0x2,
  /** The request generates a completion even when it succeeds; a failed request always does. */
  SIGNALED: 0x4,
  /**
   * The message is a solicited event, which also wakes those notifications of the peer that wait for solicited events
   * only.
   */
  SOLICITED: 0x8,
  /**
   * The data, at most `maxInlineSend` bytes, is copied when the request is posted, so its memory may be changed
   * immediately.
   */
  INLINE: 0x10,
} as const;

/** WV_WC_*: flags of a completion. INVALIDATED and SOLICITED are this package's additions. @enum */
export const WvWc = {
  /** The completion's immediate data is valid; receives only. */
  IMMEDIATE: 0x1,
  /** The immediate data is the rkey that the peer's Send with Invalidate has invalidated. */
  INVALIDATED: 0x2,
  /** The first 40 bytes of the receive's memory hold a GRH; receives of datagrams only. */
  GRH_VALID: 0x4,
  /** The peer sent the message as solicited. */
  SOLICITED: 0x8,
} as const;

/** WV_WC_STATUS: the result of a work request (IBA 1 §11.6.2). @enum */
export const WcStatus = {
  /** The request succeeded. With any other value, only context and status are defined. */
  SUCCESS: 0,
  /** The message is longer than the receive's memory, or a request longer than the port's largest message. */
  LOCAL_LENGTH_ERROR: 1,
  /** The HCA could not carry out a request of this side, such as one that the queue pair's state or type forbids. */
  LOCAL_OP_ERROR: 2,
  /** An SGE lies outside its region, or its key does not fit the protection domain or the access. */
  LOCAL_PROTECTION_ERROR: 3,
  /** The queue pair was in ERROR, or moved to it, before the request was executed. */
  FLUSHED: 4,
  /** A window was not bound: the region, range or access rights do not allow it. */
  MW_BIND_ERROR: 5,
  /** The peer's key does not grant the access, at these addresses (NAK code 2). */
  REMOTE_ACCESS_ERROR: 6,
  /** The peer failed to execute the request (NAK code 3). */
  REMOTE_OP_ERROR: 7,
  /** The peer posted no receive before the RNR retries were exhausted. */
  RNR_RETRY_ERROR: 8,
  /** The peer did not acknowledge before the retries were exhausted. */
  TIMEOUT_RETRY_ERROR: 9,
  /** The peer rejected the request: the operation is not enabled, or its receive is too short (NAK code 1). */
  REMOTE_INVALID_REQUEST: 10,
  /** The peer's response does not match the request. */
  BAD_RESPONSE: 11,
  /** A peer's request violated the protection of local memory; a receive that was in use completes with this status. */
  LOCAL_ACCESS_ERROR: 12,
  /** An error without a value of its own. */
  ERROR: 13,
} as const;

/**
 * WV_OPCODE: kind of a work request or completion. Bit 7 marks receives. INVALIDATE and FAST_REGISTER are this package's additions.
 * @enum
 */
export const WvOpcode = {
  /** A message into a receive of the peer. */
  SEND: 0,
  /** Writes to the peer's memory; consumes a receive only with immediate data. */
  RDMA_WRITE: 1,
  /** Reads from the peer's memory; reliable connections only. */
  RDMA_READ: 2,
  /** Replaces 8 bytes at the peer if they equal an expected value, and returns the previous value; reliable connections only. */
  COMPARE_EXCHANGE: 3,
  /** Adds to 8 bytes at the peer and returns the previous value; reliable connections only. */
  FETCH_ADD: 4,
  /** Binds a memory window to a range of a region; nothing is sent. */
  BIND_WINDOW: 5,
  /** Invalidates an rkey of this side, of a window or a fast region; nothing is sent. */
  INVALIDATE: 6,
  /** Registers memory under a new key, as a request on a queue pair with MEMORY_MANAGEMENT; nothing is sent. */
  FAST_REGISTER: 7,
  /** A receive completed by a Send of the peer. */
  RECEIVE: 128,
  /** A receive completed by an RDMA Write with immediate data: its memory is unused, `length` is the number of bytes written. */
  RECEIVE_RDMA_WRITE: 129,
} as const;

/** WV_QP_TYPE. @enum */
export const QpType = {
  /** Reliable connection: every message arrives once and in order, or an error is reported. */
  RC: 0,
  /** Unreliable connection: Sends and RDMA Writes only. Lost messages are not reported. */
  UC: 1,
  /** Unreliable datagrams: messages of one packet each, to any peer or group. */
  UD: 3,
} as const;

/** WV_QP_STATE (IBA 1 §10.3.1). @enum */
export const QpState = {
  /** The initial state: no requests and no packets are accepted. */
  RESET: 0,
  /** Receives may be posted; nothing is sent or received. */
  INIT: 1,
  /** Ready to receive: the peer's packets are processed, and nothing is sent. */
  RTR: 2,
  /** Ready to send: the state of an established connection. */
  RTS: 3,
  /** The send queue is drained: requests in progress finish, later ones wait. */
  SQD: 4,
  /** A send of an unreliable queue pair has failed: sends are flushed, receives still work. */
  SQERROR: 5,
  /** Failed or disconnected: all requests, pending and new ones, complete with FLUSHED. */
  ERROR: 6,
} as const;

/** WV_APM_STATE: path migration. @enum */
export const ApmState = {
  /** The connection uses its current path and has no alternate path ready. */
  MIGRATED: 1,
  /** The alternate path waits for the peer to become ready. */
  REARM: 2,
  /** Both sides may switch to the alternate path when the current one fails. */
  ARMED: 3,
} as const;

/** QP create flags (WV_QP_*). MEMORY_MANAGEMENT is this package's addition. @enum */
export const QpFlag = {
  /** Every send request generates a completion, as with WV_SEND_SIGNALED. */
  SIGNAL_SENDS: 0x1,
  /** The queue pair accepts fast registration requests. */
  MEMORY_MANAGEMENT: 0x2,
} as const;

/** WV_QP_ATTR_*: which attributes of WV_IO_QP_ATTRIBUTES a QP_MODIFY carries (its Options). @enum */
export const QpAttr = {
  /** SendDepth and ReceiveDepth: resizes the queues. */
  CAPABILITIES: 0x1,
  /** InitiatorDepth: maximum number of outstanding RDMA Reads and atomics of this side. */
  INITIATOR_DEPTH: 0x2,
  /** ResponderResources: maximum number of the peer's RDMA Reads and atomics served at a time. */
  RESPONDER_RESOURCES: 0x4,
  /** CurrentQpState: the state that the caller assumes. The request fails in any other. */
  CURRENT_STATE: 0x8,
  /** QpState: the state to move to. */
  STATE: 0x10,
  /** ApmState: a change of path migration. */
  PATH_MIG_STATE: 0x20,
  /** DestinationQpn, 24 bits. */
  DESTINATION_QPN: 0x40,
  /** Qkey, of a datagram queue pair. */
  QKEY: 0x80,
  /** SendPsn, 24 bits: the PSN of the first packet sent. */
  SEND_PSN: 0x100,
  /** ReceivePsn, 24 bits: the expected PSN of the first packet. */
  RECEIVE_PSN: 0x200,
  /** QpFlags; reported by QP_QUERY, cannot be changed. */
  FLAGS: 0x400,
  /** AccessFlags: operations that peers may perform through this queue pair. */
  ACCESS_FLAGS: 0x800,
  /** AddressVector: the path to the peer. */
  AV: 0x1000,
  /** AlternateAddressVector and the other alternate attributes. */
  ALTERNATE_AV: 0x2000,
  /** The port of AddressVector. */
  PORT_NUMBER: 0x4000,
  /** PkeyIndex: the partition, as an index of the port's P_Key table. */
  PKEY_INDEX: 0x8000,
  /** LocalAckTimeout: how long to wait for an acknowledgement. */
  ACK_TIMEOUT: 0x1_0000,
  /** RnrNakTimeout: how long RNR NAKs make the peer wait when no receive is posted here. */
  RNR_NAK_TIMEOUT: 0x2_0000,
  /** SequenceErrorRetryCount, 0 to 7: retries when no acknowledgement arrives. */
  ERROR_RETRY_COUNT: 0x4_0000,
  /** RnrRetryCount, 0 to 7: retries when the peer has no receive posted. */
  RNR_RETRY_COUNT: 0x8_0000,
} as const;

/** WV_CQ_NOTIFY_TYPE, the Data of CQ_NOTIFY: the event of the completion queue to wait for. @enum */
export const CqNotifyType = {
  /** The completion queue has failed: it overran, or its device was removed. */
  ERROR: 0,
  /** The next completion, of any kind. */
  NEXT_COMPLETION: 1,
  /** The next completion of a solicited message or of a failed request. */
  SOLICITED: 2,
} as const;

/** Endpoint type: high byte the RDMA CM's service prefix, low byte the IP protocol (IBA 1 Annex A11). @enum */
export const EpType = {
  /** Connections and their listeners, in the TCP port space. */
  CONNECT: 0x0106,
  /** Datagram peers, groups and listeners, in the UDP port space. */
  DATAGRAM: 0x0111,
} as const;

/** The IP protocols of {@link EpType}: TCP and UDP. @enum */
export const IpProtocol = {
  /** The protocol number of TCP in IP headers: the low byte of CONNECT. */
  TCP: 6,
  /** The protocol number of UDP in IP headers: the low byte of DATAGRAM. */
  UDP: 17,
} as const;

/** The P_Key of the default partition, full member (IBA 1 §10.9.1.2). */
export const DEFAULT_PKEY = 0xffff;

/** Values for datagrams that connection management sets up: WV_CM_UDP_QKEY, and the QPN of multicast groups. @enum */
export const WvDatagram = {
  /** The Q_Key that both sides use unless an application chooses another. */
  QKEY: 0x0123_4567,
  /** Not a queue pair: a packet to it reaches all queue pairs attached to the group. */
  MULTICAST_QPN: 0xff_ffff,
} as const;

/** WV_EP_OPTION_*, the Data of EP_MODIFY. ROUTE: an ib_path_rec_t follows the structure. @enum */
export const EpOption = {
  /** A path record. */
  ROUTE: 1,
  /**
   * This package's addition, 4 bytes. With 0, the default, a disconnect by the peer moves the queue pair to ERROR
   * immediately. With 1 the queue pair keeps its state until Disconnect.
   */
  KEEP_QP: 0x8000_0001,
  /**
   * This package's addition, for use before Listen: a P_Key (big-endian, 2 bytes). Requests from other partitions are
   * refused.
   */
  PARTITION: 0x8000_0002,
} as const;

/** WV_EVENT_*: an event of a port, the output of DEVICE_NOTIFY. @enum */
export const WvEvent = {
  /** The device has failed (IBA 1 §11.6.3.3, local catastrophic error). */
  ERROR: 0x1,
  /** The port went up or down. */
  STATE: 0x2,
  /** The GID table of the port has changed: an IP address was added or removed. */
  ADDRESS: 0x4,
  /** The link address of the port has changed: the LID or the MAC. */
  LINK_ADDRESS: 0x8,
  /** The P_Key table of the port has changed. */
  PARTITION: 0x10,
  /**
   * The management of the port has changed: the subnet manager, or the port's capabilities (CiModifyCa, CiModifyPort).
   */
  MANAGEMENT: 0x20,
} as const;

/** WV_DEVICE_TYPE. @enum */
export const DeviceType = {
  /** Not reported by the driver. */
  UNKNOWN: 0,
  /** InfiniBand or RoCE, such as the software HCA. */
  INFINIBAND: 1,
  /** RDMA over TCP: no immediate data, no datagrams. */
  IWARP: 2,
} as const;

/** WV_ATOMIC_CAPABILITIES: none, atomic among the device's own accesses, or atomic in the whole node. @enum */
export const AtomicCapability = {
  /** No atomic operations. */
  NONE: 0,
  /** Atomic among accesses through the same device; CPUs may interfere. */
  DEVICE: 1,
  /** Atomic among all accesses of the node, including those of its CPUs. */
  NODE: 2,
} as const;

/** WV_PORT_STATE. @enum */
export const PortState = {
  /** No state. In a request: no change (IBA 1 §14.2.5.6). */
  NOP: 0,
  /** No link: the network interface is down or has no carrier. */
  DOWN: 1,
  /** Link up, not yet configured by the subnet manager; InfiniBand only. */
  INIT: 2,
  /** Configured, but no data is passed yet; InfiniBand only. */
  ARMED: 3,
  /** Packets are sent and received. */
  ACTIVE: 4,
  /** Active with a link error that may be transient; InfiniBand only. */
  ACTIVE_DEFER: 5,
} as const;

/** WV_PORT_TRANSPORT; RoCE is RDMAOE. @enum */
export const PortTransport = {
  /** InfiniBand. */
  IB: 0,
  /** RDMA over TCP. */
  IWARP: 1,
  /** RDMA over Ethernet, RoCE; all ports of the software HCA. */
  RDMAOE: 2,
} as const;

/**
 * WV_DEVICE_* capability flags of devices and ports. Four are this package's additions: MEM_MGT_EXTENSIONS (numbered as
 * in libibverbs), IN_ORDER_DMA, LOOPBACK and FIXED_CQ.
 * @enum
 */
export const WvCapability = {
  /** Queue pairs can change the depths of their queues. */
  RESIZE_MAX_WR: 0x1,
  /** The port counts packets whose P_Key it does not have. */
  BAD_PKEY_COUNTER: 0x2,
  /** The port counts datagrams with a wrong Q_Key. */
  BAD_QKEY_COUNTER: 0x4,
  /** Queue pairs support alternate paths. */
  PATH_MIGRATION: 0x10,
  /** A queue pair can move to another port. */
  CHANGE_PHYSICAL_PORT: 0x20,
  /** The port number of an address handle is checked against that of the queue pair. */
  AH_PORT_CHECKING: 0x40,
  /** A modify may specify the expected state of the queue pair. */
  QP_STATE_MODIFIER: 0x80,
  /** The owner of a port can take it down. */
  SHUTDOWN_PORT: 0x100,
  /** A port supports requested types of initialisation. */
  INIT_TYPE: 0x200,
  /** The device reports when a port becomes active. */
  PORT_ACTIVE_EVENT: 0x400,
  /** The device has a system image GUID, shared by all devices of one piece of hardware. */
  SYSTEM_IMAGE_GUID: 0x800,
  /** Reliable connections send RNR NAKs when no receive is posted. */
  RC_RNR_NAK_GENERATION: 0x1000,
  /** Shared receive queues can be resized. */
  SRQ_RESIZE: 0x2000,
  /** A notification can wait for a number of completions. */
  BATCH_NOTIFY_CQ: 0x4000,
  /** Fast registration, local invalidation and Send with Invalidate (this package's addition). */
  MEM_MGT_EXTENSIONS: 0x20_0000,
  /** The last byte of a Read or Write is written last (this package's addition). */
  IN_ORDER_DMA: 0x1000_0000,
  /** Two queue pairs of the device can be connected to each other (this package's addition). */
  LOOPBACK: 0x2000_0000,
  /** Completion queues cannot be resized (this package's addition). */
  FIXED_CQ: 0x4000_0000,
} as const;

/** Address families in IOCTL structures (the numbers of Windows, on every platform). @enum */
export const AddressFamily = {
  /** The family of a SOCKADDR_IN of 16 bytes. */
  IPV4: 2,
  /** The family of a SOCKADDR_IN6 of 28 bytes. */
  IPV6: 23,
} as const;

/** Capacities of private data and names in IOCTLs, in bytes. @enum */
export const Capacity = {
  /** Private data of Connect, and of the structure of Accept. */
  CONNECT_DATA: 56,
  /** Private data of a REP: the maximum that Accept can send and its receiver gets. */
  REP_DATA: 196,
  /** Private data of a rejection. */
  REJ_DATA: 148,
  /** Private data of a datagram endpoint's Lookup. */
  LOOKUP_DATA: 180,
  /** Private data of a datagram endpoint's Accept or Reject. */
  LOOKUP_REPLY_DATA: 136,
  /** The output of LIBRARY_QUERY, including its NUL. */
  LIBRARY_NAME: 32,
  /** @deprecated EP_CREATE returns one id. */
  EP_CREATE_IDS: 16,
} as const;

/** The Version of IBAT requests. */
export const IBAT_VERSION = 6;
