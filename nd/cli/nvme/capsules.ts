/**
 * Messages between initiator and target: capsules, completions, and the private data of connections. Sources: NVMe Base Specification 2.0
 * ("Base"), NVMe RDMA Transport Specification 1.0 ("RDMA").
 */
import { big64, Layout, raw, text, u8, u16, u24, u32, u64 } from './little-endian.js';

/** The port of NVMe over RDMA, including discovery (IANA). */
export const NVME_PORT = 4420;
/** The name of every discovery subsystem (Base §3.1.2.1). */
export const DISCOVERY_NQN = 'nqn.2014-08.org.nvmexpress.discovery';
/** Maximum length of an NVMe qualified name, in bytes (Base §4.5). */
export const NQN_BYTES = 223;
/** Controller identifier that requests any controller (Base §3.3). */
export const ANY_CONTROLLER = 0xffff;
/** Namespace identifier for all namespaces (Base §3.2.1). */
export const ALL_NAMESPACES = 0xffff_ffff;
/** The unit of MDTS: the smallest memory page of a controller whose CAP.MPSMIN is 0. */
export const PAGE = 4096;

/** Private data of a connection request (RDMA §3.3). */
export const ConnectRequest = new Layout('RDMA_CM_REQUEST', 32, {
  recordFormat: u16(0),
  queueId: u16(2),
  /** Number of completions for which the host posts Receives. */
  hostReceiveSize: u16(4),
  /** Size of the host's submission queue, 0's based. */
  hostSendSize: u16(6),
  controllerId: u16(8),
});

/** Private data of an accepted request. */
export const ConnectAccept = new Layout('RDMA_CM_ACCEPT', 32, { recordFormat: u16(0), receiveSize: u16(2) });

/** Private data of a rejected request. */
export const ConnectReject = new Layout('RDMA_CM_REJECT', 4, { recordFormat: u16(0), status: u16(2) });

/** Statuses of {@link ConnectReject} (RDMA §3.3). */
export const RejectStatus = {
  INVALID_LENGTH: 1,
  INVALID_RECORD_FORMAT: 2,
  INVALID_QUEUE_ID: 3,
  INVALID_HOST_SEND_SIZE: 4,
  INVALID_HOST_RECEIVE_SIZE: 5,
  NO_RESOURCES: 6,
  INVALID_IRD: 7,
  INVALID_ORD: 8,
} as const;

const SGL_AT = 24;

/** Common part of all commands (Base §3.3.3.1): the submission queue entry with its single SGL descriptor. */
export const Command = new Layout('SQE', 64, {
  opcode: u8(0),
  flags: u8(1),
  commandId: u16(2),
  namespaceId: u32(4),
  address: big64(SGL_AT),
  /** Length in a data block descriptor. A keyed descriptor has {@link KeyedSgl} here. */
  blockLength: u32(SGL_AT + 8),
  keyedLength: u24(SGL_AT + 8),
  key: u32(SGL_AT + 11),
  /** Type in the upper, subtype in the lower four bits. */
  sglType: u8(SGL_AT + 15),
});

/** Flag of every fabrics transport command: it uses SGLs (PSDT 01b). */
export const USES_SGL = 0x40;

/** Types and subtypes of SGL descriptors (Base §4.1.2, RDMA §3.2). */
export const Sgl = {
  /** Data after the command in its capsule; the address is the offset from there. */
  IN_CAPSULE: 0x01,
  /** Memory of the host, identified by address and key. */
  KEYED: 0x40,
  /** The same as KEYED, but the completion also invalidates the key. */
  KEYED_INVALIDATE: 0x4f,
} as const;

/** Opcodes of the admin queue (Base §5). */
export const Admin = {
  GET_LOG_PAGE: 0x02,
  IDENTIFY: 0x06,
  ABORT: 0x08,
  SET_FEATURES: 0x09,
  GET_FEATURES: 0x0a,
  ASYNC_EVENT_REQUEST: 0x0c,
  KEEP_ALIVE: 0x18,
  FABRICS: 0x7f,
} as const;

/** Opcodes of I/O queues (NVM Command Set §3). */
export const Io = { FLUSH: 0x00, WRITE: 0x01, READ: 0x02, WRITE_ZEROES: 0x08, FABRICS: 0x7f } as const;

/** Types of fabrics commands (Base §6). */
export const Fabrics = { PROPERTY_SET: 0x00, CONNECT: 0x01, PROPERTY_GET: 0x04 } as const;

/** The part that all fabrics commands share. */
export const FabricsCommand = new Layout('fabrics command', 64, { type: u8(4) });

/** Connect (Base §6.3). */
export const ConnectCommand = new Layout('Connect', 64, {
  recordFormat: u16(40),
  queueId: u16(42),
  /** 0's based. */
  queueSize: u16(44),
  attributes: u8(46),
  /** In ms; 0: no keep-alive. */
  keepAliveTimeout: u32(48),
});

/** The data of Connect. */
export const ConnectData = new Layout('Connect data', 1024, {
  hostId: raw(0, 16),
  controllerId: u16(16),
  subsystem: text(256, 256),
  host: text(512, 256),
});

/** Property Get and Set (Base §6.4, §6.6). */
export const PropertyCommand = new Layout('Property', 64, {
  /** 1: the property has 8 bytes; 0: 4 bytes. */
  size: u8(40),
  offset: u32(44),
  value: u64(48),
});

/** Offsets of properties (Base §3.1.3). */
export const Property = { CAP: 0x00, VS: 0x08, CC: 0x14, CSTS: 0x1c } as const;

/** Capabilities. */
export const Cap = new Layout('CAP', 8, {
  /** Maximum entries of a queue, 0's based. */
  maxQueueEntries: u16(0),
  /** Bit 0: queues must be contiguous. */
  flags: u8(2),
  /** Time until a controller becomes ready, in units of 500 ms. */
  timeout: u8(3),
  /** Command sets from bit 5; the first is NVM. */
  commandSets: u8(4),
});
export const CAP_NVM = 0x20;

/** Controller configuration: enable, shutdown notification, and queue entry sizes of 2^6 and 2^4 bytes. */
export const Cc = { ENABLE: 0x1, SHUTDOWN: 0xc000, SHUTDOWN_NORMAL: 0x4000, ENTRY_SIZES: 0x46_0000 } as const;

/** Controller status. */
export const Csts = { READY: 0x1, FATAL: 0x2, SHUTDOWN_COMPLETE: 0x8 } as const;

/** Read, Write and Write Zeroes (NVM Command Set §3.2). */
export const BlockCommand = new Layout('block command', 64, {
  start: u64(40),
  /** 0's based. */
  count: u16(48),
});

export const IdentifyCommand = new Layout('Identify', 64, { structure: u8(40), controllerId: u16(42) });

export const LogCommand = new Layout('Get Log Page', 64, {
  page: u8(40),
  /** Number of dwords, 0's based. */
  dwordsLow: u16(42),
  dwordsHigh: u16(44),
  offset: u64(48),
});

export const FeatureCommand = new Layout('Features', 64, { feature: u8(40), value: u32(44) });

/** Features (Base §5.27.1). */
export const Feature = { QUEUES: 0x07, ASYNC_EVENTS: 0x0b, KEEP_ALIVE: 0x0f } as const;

/** Log pages (Base §5.16.1). */
export const Log = { ERRORS: 0x01, HEALTH: 0x02, FIRMWARE: 0x03, DISCOVERY: 0x70 } as const;

/** A completion queue entry (Base §3.3.3.2). */
export const Completion = new Layout('CQE', 16, {
  result: big64(0),
  head: u16(8),
  queueId: u16(10),
  commandId: u16(12),
  /** The status, starting at bit 1; bit 0 is unused in fabrics transports. */
  statusField: u16(14),
});

/** Statuses: type in bits 8 to 10, code in bits 0 to 7 (Base §3.3.3.2.1). */
export const NvmeStatus = {
  SUCCESS: 0x000,
  INVALID_OPCODE: 0x001,
  INVALID_FIELD: 0x002,
  DATA_TRANSFER_ERROR: 0x004,
  INTERNAL_ERROR: 0x006,
  ABORTED: 0x007,
  INVALID_NAMESPACE: 0x00b,
  COMMAND_SEQUENCE_ERROR: 0x00c,
  SGL_LENGTH_INVALID: 0x00f,
  SGL_TYPE_INVALID: 0x011,
  SGL_OFFSET_INVALID: 0x016,
  KEEP_ALIVE_TIMEOUT_INVALID: 0x019,
  WRITE_PROTECTED: 0x020,
  LBA_OUT_OF_RANGE: 0x080,
  INVALID_LOG_PAGE: 0x109,
  CONNECT_FORMAT: 0x180,
  CONNECT_BUSY: 0x181,
  CONNECT_INVALID_PARAMETERS: 0x182,
  CONNECT_INVALID_HOST: 0x184,
} as const;

/** Status flag: the command would fail again and must not be retried. */
export const DO_NOT_RETRY = 0x4000;
const STATUS_BITS = 0x7ff;

/** Returns the name of a status. */
export function nvmeStatusName(status: number): string {
  const code = status & STATUS_BITS;
  const name = Object.entries(NvmeStatus).find(([, value]) => value === code)?.[0];
  return name ?? `status 0x${code.toString(16)}`;
}

/** A command completed with a status other than SUCCESS. */
export class NvmeError extends Error {
  override readonly name = 'NvmeError';
  readonly code: string;

  constructor(
    what: string,
    /** The status as transmitted, with its flags. */
    readonly status: number,
  ) {
    super(`${what} failed with ${nvmeStatusName(status)}.`);
    this.code = nvmeStatusName(status);
  }

  /** Whether the same command may succeed if retried. */
  get retryable(): boolean {
    return (this.status & DO_NOT_RETRY) === 0;
  }
}

/** Error with the completion status of a command that the target rejects. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    /** A value of {@link NvmeStatus}. */
    readonly status: number,
    /** Result field of the completion. */
    readonly result = 0n,
  ) {
    super(nvmeStatusName(status));
  }
}

/** The connection or its controller is lost. Pending commands may or may not have been executed. */
export class NvmeConnectionError extends Error {
  override readonly name = 'NvmeConnectionError';
  readonly code = 'ECONNRESET';
}

/** The target rejected a connection with a reason. */
export class NvmeRefusedError extends NvmeConnectionError {}
