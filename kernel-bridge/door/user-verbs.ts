/**
 * The data path: the user-mode verbs provider (UVP). Like the kernel driver, it belongs to a device. It adds the
 * device's own bytes to the IOCTLs that create objects (pre and post hooks), and it posts requests and polls
 * completions without any IOCTL. The table is WinVerbs' `uvp_interface_t`, with the same names, as far as WinVerbs uses
 * it. Handles are the UVP's own objects, opaque to all other code.
 */
import { Status, StatusError } from '../ioctl/status.js';

/** An object of the UVP. Null if the UVP lacks the hook that would create it. */
export type UvpHandle = object | null;

const NO_BYTES = new Uint8Array(0);

/**
 * Data between the UVP and its kernel driver for one IOCTL (`ci_umv_buf_t`). The result of the IOCTL itself is not part
 * of it: it is the `status` argument of the post hook.
 * @hideconstructor
 */
export class UmvBuffer {
  /** Sent to the driver in VerbInfo. @category Devices */
  command = 0;
  /** VerbInfo of a successful output; 0 otherwise. @category Devices */
  status = 0;
  /**
   * IB_VERBS_PROCESSING_DONE of {@link UserVerbs.preCreateAv}: the UVP has done everything, and no IOCTL is needed.
   * @category Devices
   */
  processingDone = false;
  /** Bytes for the driver, behind the IOCTL's structure. @category Memory */
  input: Uint8Array = NO_BYTES;
  /** Maximum size of the driver's output in bytes. @category Memory */
  outputSize = 0;
  /** The driver's output; empty if the IOCTL failed. @category Memory */
  output: Uint8Array = NO_BYTES;
  /** Address where a native UVP keeps its bytes between its two hooks. @category Memory */
  address = 0;
}

/** Memory for requests: keys and address of a registration. */
export interface UvpMemory {
  /** The key that the HCA checks for SGEs. */
  readonly lkey: number;
  /** Native start address, below 2^47. */
  readonly address: number;
  /**
   * The same memory as JavaScript sees it, for INLINE requests. Throws ACCESS_VIOLATION if its buffer has been
   * detached.
   */
  readonly bytes?: Uint8Array | undefined;
  /** The same memory as words, if it is word-aligned. */
  readonly words?: Uint32Array | undefined;
}

/** `length` bytes at byte `offset` of the memory. */
export interface UvpSge {
  /** The registration that contains the bytes. */
  region: UvpMemory;
  /** Bytes from the start of the memory. */
  offset: number;
  /** Length in bytes; 0 is allowed. */
  length: number;
}

/**
 * One send request (WV_SEND_REQUEST). The caller owns and reuses it; the UVP reads it only during the call and never changes it.
 * @hideconstructor
 */
export class UvpSendRequest {
  /** The caller's value, returned in the completion. @category Post */
  context: unknown = undefined;
  /**
   * WV_OPCODE: 0 send, 1 write, 2 read, 3 compare-exchange, 4 fetch-add, 6 invalidate, 7 fast-register.
   * @category Post
   */
  opcode = 0;
  /** WV_SEND_*. @category Post */
  flags = 0;
  /**
   * The memory to send or, for reads and atomics, to fill; at most as many SGEs as the queue pair was created for.
   * @category Memory
   */
  sgl: readonly UvpSge[] = [];
  /** Immediate data, or the peer's rkey when `invalidate` is set, as it appears in packets. @category Post */
  immediate = 0;
  /** Whether the send also invalidates the peer's key `immediate`. @category Post */
  invalidate = false;
  /** The low 32 bits of the remote address; RDMA and atomics. @category Memory */
  remoteLow = 0;
  /** The high 32 bits of the remote address. @category Memory */
  remoteHigh = 0;
  /** Offset in bytes, added to the remote address. @category Memory */
  remoteOffset = 0;
  /** The peer's key for the remote memory, as a number. @category Memory */
  rkey = 0;
  /** The low 32 bits of the compare value, or of the operand of fetch-add. @category Atomics */
  compareLow = 0;
  /** The high 32 bits of the compare value or the operand. @category Atomics */
  compareHigh = 0;
  /** The low 32 bits of the value that compare-exchange writes. @category Atomics */
  swapLow = 0;
  /** The high 32 bits of the value that compare-exchange writes. @category Atomics */
  swapHigh = 0;
  /** UD: the address handle. @category Datagrams */
  av: UvpHandle = null;
  /** UD: the destination's QPN, 24 bits; 0xFFFFFF for a group. @category Datagrams */
  remoteQpn = 0;
  /** UD: the Q_Key of the destination. @category Datagrams */
  remoteQkey = 0;
  /**
   * FAST_REGISTER, INVALIDATE: the region as an object of the UVP, the `provider` of an IbFastRegion.
   * @category Memory
   */
  fastRegion: UvpHandle = null;
  /** FAST_REGISTER: WV_ACCESS_*. Its only SGE is the memory. @category Memory */
  access = 0;
  /** FAST_REGISTER: the low byte of the new key; -1: the successor of the current one. @category Memory */
  keyByte = -1;
}

/**
 * Gives fields their widest representation before other objects of the class exist. V8 stores a field that has only
 * held small integers differently from one with full 32-bit values. The first larger value gives all objects a new
 * hidden class, and functions compiled for the old one may never be optimized again: V8 in Node.js 20 retries endlessly
 * ("Maps became deprecated"), which cost half of the CPU time of a server with a thousand queue pairs.
 */
export function widen<T extends object>(object: T, fields: readonly (keyof T)[]): T {
  for (const field of fields) object[field] = 0xffff_ffff as T[keyof T];
  return object;
}

widen(new UvpSendRequest(), [
  'immediate',
  'remoteLow',
  'remoteHigh',
  'remoteOffset',
  'rkey',
  'compareLow',
  'compareHigh',
  'swapLow',
  'swapHigh',
  'remoteQpn',
  'remoteQkey',
  'access',
]);

/** The destination of datagrams (`ib_av_attr_t`). GIDs are 16 bytes. */
export interface UvpAddressVector {
  /** The local GID, from the port's table. @category Datagrams */
  readonly sourceGid: Uint8Array;
  /** The GID of the peer or the group. @category Datagrams */
  readonly destinationGid: Uint8Array;
  /** The flow label of IPv6 headers, 20 bits. @category Datagrams */
  readonly flowLabel: number;
  /** IPv4's TOS or IPv6's traffic class, 8 bits. @category Datagrams */
  readonly trafficClass: number;
  /** The hop limit, 8 bits; 0: chosen by the driver. @category Datagrams */
  readonly hopLimit: number;
  /** The local port, from 1. @category Datagrams */
  readonly portNumber: number;
  /**
   * Queries the driver for the index of the source GID in the port's table. @throws StatusError INVALID_ADDRESS: the
   * table does not have it.
   * @category Datagrams
   */
  sourceGidIndex(): number;
}

/**
 * A bind of a memory window; owned and reused by the caller like {@link UvpSendRequest}.
 * @hideconstructor
 */
export class UvpBindRequest {
  /** The caller's value, returned in the completion. @category Post */
  context: unknown = undefined;
  /** WV_SEND_*. @category Post */
  flags = 0;
  /** The region to bind the window to. @category Memory */
  region: UvpMemory = { lkey: 0, address: 0 };
  /** Offset of the window within the region, in bytes. @category Memory */
  offset = 0;
  /** Length of the window in bytes. @category Memory */
  length = 0;
  /** WV_ACCESS_*. @category Memory */
  access = 0;
}

widen(new UvpBindRequest(), ['offset', 'length', 'access']);

/** A completion (WV_COMPLETION); the fields of `WvCompletion` in winverbs/interfaces.ts. */
export interface UvpCompletion {
  /** The `context` of the request. */
  context: unknown;
  /** The `context` that the queue pair was created with. */
  qpContext: unknown;
  /** WV_OPCODE; bit 7 marks receives. */
  opcode: number;
  /** WV_WC_STATUS; 0 is success. */
  status: number;
  /** Length of the message in bytes; defined for successful receives. */
  length: number;
  /** WV_WC_*. */
  flags: number;
  /** Immediate data, or the invalidated rkey, depending on `flags`. */
  immediateData: number;
  /** The sender's QPN, 24 bits; receives of datagrams. */
  sourceQpn: number;
  /** The device's own error number; 0 on success. */
  vendorCode: number;
  /** The index of the packet's P_Key in the port's table; receives of datagrams. */
  pkeyIndex: number;
  /** The sender's LID; 0 on RoCE. */
  sLid: number;
  /** The service level of the packet; 0 on RoCE. */
  sl: number;
  /** The low bits of the LID that the packet was sent to; 0 on RoCE. */
  dLidPathBits: number;
}

/** Attributes of a shared receive queue (`ib_srq_attr_t`); the UVP may raise `maxWr` to the size of the ring. */
export interface UvpSrqAttributes {
  /** The number of receives. */
  maxWr: number;
  /** SGEs of a receive. */
  maxSge: number;
  /** The limit: one event is reported when fewer receives are left; 0: no event. */
  srqLimit: number;
}

/** Attributes of a new queue pair (`uvp_qp_create_t`); the UVP may change the granted values. */
export interface UvpQpCreate {
  /** WV_QP_TYPE. */
  readonly type: number;
  /** The UVP's object of the completion queue of send requests. */
  readonly sendCq: UvpHandle;
  /** The UVP's object of the completion queue of receives. */
  readonly receiveCq: UvpHandle;
  /** The shared receive queue of the queue pair, whose own receive depth and SGEs are then ignored. */
  readonly srq?: UvpHandle | undefined;
  /** The caller's value, returned as `qpContext` of completions. */
  readonly context: unknown;
  /**
   * Maximum number of outstanding send requests. `preCreateQp` may raise this and the next four to the granted values,
   * which QP_CREATE then requests.
   */
  sendDepth: number;
  /** SGEs of a send request. */
  sendSge: number;
  /** Maximum number of outstanding receives. */
  receiveDepth: number;
  /** SGEs of a receive. */
  receiveSge: number;
  /** Maximum size of an INLINE request, in bytes. */
  maxInlineSend: number;
  /** Maximum number of outstanding RDMA Reads and atomics of this side; 0 if omitted. */
  readonly initiatorDepth?: number | undefined;
  /** Maximum number of the peer's RDMA Reads and atomics served at a time; 0 if omitted. */
  readonly responderResources?: number | undefined;
  /** Whether every send generates a completion, with or without SIGNALED. */
  readonly signalSends?: boolean | undefined;
  /** Whether the queue pair accepts fast registration requests. */
  readonly memoryManagement?: boolean | undefined;
}

/**
 * Receives a queue pair's new state from the driver (`nd_modify_qp`): the output bytes of QP_MODIFY, EP_ACCEPT and
 * EP_DISCONNECT.
 */
export interface UvpQpState {
  /** Number of output bytes that the driver has for the UVP. */
  readonly size: number;
  /** Address where the driver writes them, for a native UVP. Valid until the queue pair is destroyed. */
  readonly address?: number | undefined;
  /**
   * Called when such an IOCTL has succeeded, with its output, which is empty if it went to {@link address}, and with
   * the requested WV_QP_STATE, if any.
   */
  moved(output: Uint8Array, state?: number): void;
}

/** Memory pinned for the HCA. */
export interface UvpPin {
  /** The number for unpinning the memory. */
  readonly pin: number;
  /** The native address of the first byte, below 2^47. */
  readonly address: number;
  /** Whether JavaScript can detach the buffer. WebAssembly memory can be detached only by WebAssembly itself. */
  readonly detachable: boolean;
  /** Whether the memory is from `allocate()`, so that peers can map it; absent: it is not. */
  readonly allocated?: boolean | undefined;
}

/**
 * The functions of a UVP. A pre hook throws a StatusError to refuse the operation; in that case neither the IOCTL nor
 * its post hook runs. A post hook receives the NTSTATUS of the IOCTL; if it throws after a success, WinVerbs destroys
 * the new object and reports the error. Missing hooks do nothing, and the handle is null.
 */
export interface UserVerbs {
  // ── Data path: no defaults. Failures throw a StatusError and leave nothing queued.
  /**
   * Queues one send request.
   *
   * @throws StatusError INVALID_DEVICE_STATE (before RTS), NO_MORE_ENTRIES (queue full), DATA_OVERRUN (too many SGEs),
   *   BUFFER_OVERFLOW (too long, or too long for INLINE), INVALID_PARAMETER, ACCESS_VIOLATION (a region whose
   *   ArrayBuffer was detached, an INLINE SGE that ends beyond its region).
   * @category Post
   */
  postSend(qp: UvpHandle, request: UvpSendRequest): void;
  /**
   * Executes an operation (0 write, 1 read, 2 fetch and add, 3 compare and exchange) between any local bytes and the
   * peer's memory, immediately and without a request. Returns 0 done, 1 not mapped yet, 2 refused, 3 unknown. This
   * package's addition to `uvp_interface_t`; absent if the device does not support it.
   * @category Memory
   */
  direct?(
    qp: UvpHandle,
    operation: 0 | 1 | 2 | 3,
    bytes: Uint8Array,
    remoteLow: number,
    remoteHigh: number,
    rkey: number,
  ): 0 | 1 | 2 | 3;
  /**
   * Maps memory of a queue pair's peer, privately. Returns 1 not mapped yet, 2 refused. This package's addition to
   * `uvp_interface_t`; absent if the device does not support it.
   *
   * @throws StatusError INSUFFICIENT_RESOURCES, NO_MEMORY, NOT_SUPPORTED.
   * @category Memory
   */
  view?(
    qp: UvpHandle,
    remoteLow: number,
    remoteHigh: number,
    rkey: number,
    length: number,
  ): Uint8Array<ArrayBuffer> | 1 | 2;
  /** Queues one receive; statuses as {@link postSend}, allowed from INIT on. @category Post */
  postReceive(qp: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
  /**
   * Fills at most `n` completions from the start, creating objects where the array has none. Returns their number;
   * negative: the CQ has failed.
   * @category Complete
   */
  pollCq(cq: UvpHandle, completions: UvpCompletion[], n: number): number;
  /** Requests one event for the next completion, or the next solicited one; returns a status. @category Complete */
  rearmCq(cq: UvpHandle, solicitedOnly: boolean): number;
  /** `nd_modify_qp`. @category Queues */
  ndModifyQp(qp: UvpHandle): UvpQpState;
  /** `wv_pre_create_qp`. @category Queues */
  preCreateQp(pd: UvpHandle, create: UvpQpCreate, umv: UmvBuffer): UvpHandle;
  /** Pins memory and returns its native address. This addition to the table replaces C's pointers. @category Memory */
  pinMemory(view: Uint8Array): UvpPin;
  /** Unpins memory pinned by {@link pinMemory}. @category Memory */
  unpinMemory(pin: UvpPin): void;

  // ── Optional part of the data path.
  /** `post_srq_recv`. Missing: the device has no shared receive queues. @category Post */
  postSrqReceive?(srq: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
  /** Number of waiting completions. Missing: Peek is NOT_SUPPORTED. @category Complete */
  peekCq?(cq: UvpHandle): number;
  /**
   * Whether a program that waits for completions should poll once more before {@link rearmCq}; called before each poll
   * of a wait. Missing: the device gives no such hint.
   *
   * @internal
   */
  shouldPoll?(cq: UvpHandle): boolean;
  /**
   * `rearm_n_cq`: as {@link rearmCq}, for `n` completions. Missing: WinVerbs requests an event for the next one.
   * @category Complete
   */
  rearmNCq?(cq: UvpHandle, n: number): number;
  /** `nd_get_qp_state`: WV_QP_STATE. Missing: WinVerbs uses QP_QUERY. @category Queues */
  ndGetQpState?(qp: UvpHandle): number;
  /** The queue pair number, if the UVP knows it. Missing: WinVerbs uses QP_QUERY. @category Queues */
  ndGetQpn?(qp: UvpHandle): number;
  /**
   * Requests posted between startBatch and submitBatch are published together. Missing: each is published when it is posted.
   * @category Post
   */
  startBatch?(qp: UvpHandle): void;
  /** Publishes the requests posted since {@link startBatch}. @category Post */
  submitBatch?(qp: UvpHandle): void;
  /**
   * `bind_mw`: queues a Bind request and returns the window's new rkey. Missing: windows are NOT_SUPPORTED. @category
   * Post
   */
  bindMw?(mw: UvpHandle, qp: UvpHandle, request: UvpBindRequest): number;
  /**
   * The UVP's part of a region created by MEMORY_ALLOCATE, for the requests FAST_REGISTER and INVALIDATE of {@link
   * postSend}. Missing: fast registration is NOT_SUPPORTED.
   * @category Post
   */
  fastRegion?(lkey: number): UvpHandle;
  /** The region's key after the latest FAST_REGISTER. @category Memory */
  fastRegionKey?(region: UvpHandle): number;
  /** The window's key after its latest bind. @category Memory */
  mwRkey?(mw: UvpHandle): number;
  /** Queues a request that invalidates a window. @category Post */
  invalidateMw?(mw: UvpHandle, qp: UvpHandle, context: unknown, flags: number): void;

  // ── Hooks around the IOCTLs of the same names.
  /** `pre_open_ca`: fills the input of the IOCTL and returns the provider's object. @category Devices */
  preOpenCa?(guid: bigint, umv: UmvBuffer): UvpHandle;
  /** `post_open_ca`: after the IOCTL, with its status and the HCA's output. @category Devices */
  postOpenCa?(guid: bigint, status: number, ca: UvpHandle, umv: UmvBuffer): void;
  /** `pre_close_ca`: before the IOCTL. @category Devices */
  preCloseCa?(ca: UvpHandle): void;
  /** `post_close_ca`: after the IOCTL, with its status. @category Devices */
  postCloseCa?(ca: UvpHandle, status: number): void;
  /** `pre_allocate_pd`: fills the input of the IOCTL and returns the provider's object. @category Devices */
  preAllocatePd?(ca: UvpHandle, umv: UmvBuffer): UvpHandle;
  /** `post_allocate_pd`: after the IOCTL, with its status and the HCA's output. @category Devices */
  postAllocatePd?(ca: UvpHandle, status: number, pd: UvpHandle, umv: UmvBuffer): void;
  /** `pre_deallocate_pd`: before the IOCTL. @category Devices */
  preDeallocatePd?(pd: UvpHandle): void;
  /** `post_deallocate_pd`: after the IOCTL, with its status. @category Devices */
  postDeallocatePd?(pd: UvpHandle, status: number): void;
  /** `pre_create_cq`: `size.entries` may be raised to the size of the ring. @category Queues */
  preCreateCq?(ca: UvpHandle, size: { entries: number }, umv: UmvBuffer): UvpHandle;
  /** `post_create_cq`: after the IOCTL, with its status and the HCA's output. @category Queues */
  postCreateCq?(ca: UvpHandle, status: number, entries: number, cq: UvpHandle, umv: UmvBuffer): void;
  /** `pre_resize_cq`: fills the input of the IOCTL. @category Queues */
  preResizeCq?(cq: UvpHandle, size: { entries: number }, umv: UmvBuffer): void;
  /** `post_resize_cq`: after the IOCTL, with its status and the HCA's output. @category Queues */
  postResizeCq?(cq: UvpHandle, status: number, entries: number, umv: UmvBuffer): void;
  /** `pre_destroy_cq`: before the IOCTL. @category Queues */
  preDestroyCq?(cq: UvpHandle): void;
  /** `post_destroy_cq`: after the IOCTL, with its status. @category Queues */
  postDestroyCq?(cq: UvpHandle, status: number): void;
  /** `pre_create_srq`: fills the input of the IOCTL and returns the provider's object. @category Queues */
  preCreateSrq?(pd: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): UvpHandle;
  /** `post_create_srq`: after the IOCTL, with its status and the HCA's output. @category Queues */
  postCreateSrq?(pd: UvpHandle, status: number, srq: UvpHandle, umv: UmvBuffer): void;
  /** `pre_modify_srq`: fills the input of the IOCTL. @category Queues */
  preModifySrq?(srq: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
  /** `post_modify_srq`: after the IOCTL, with its status and the HCA's output. @category Queues */
  postModifySrq?(srq: UvpHandle, status: number, umv: UmvBuffer): void;
  /** `pre_query_srq`: fills the input of the IOCTL. @category Queues */
  preQuerySrq?(srq: UvpHandle, umv: UmvBuffer): void;
  /** `post_query_srq`: may correct the driver's values. @category Queues */
  postQuerySrq?(srq: UvpHandle, status: number, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
  /** `pre_destroy_srq`: before the IOCTL. @category Queues */
  preDestroySrq?(srq: UvpHandle): void;
  /** `post_destroy_srq`: after the IOCTL, with its status. @category Queues */
  postDestroySrq?(srq: UvpHandle, status: number): void;
  /** `post_create_qp`: after the IOCTL, with its status and the HCA's output. @category Queues */
  postCreateQp?(pd: UvpHandle, status: number, qp: UvpHandle, umv: UmvBuffer): void;
  /** `pre_destroy_qp`: before the IOCTL. @category Queues */
  preDestroyQp?(qp: UvpHandle): void;
  /** `post_destroy_qp`: after the IOCTL, with its status. @category Queues */
  postDestroyQp?(qp: UvpHandle, status: number): void;
  /** `pre_create_mw`: fills the input of the IOCTL and returns the provider's object. @category Memory */
  preCreateMw?(pd: UvpHandle, umv: UmvBuffer): UvpHandle;
  /** `post_create_mw`: after the IOCTL, with its status and the HCA's output. @category Memory */
  postCreateMw?(pd: UvpHandle, status: number, rkey: number, mw: UvpHandle, umv: UmvBuffer): void;
  /** `pre_create_av`: address handles need no kernel if the UVP sets `umv.processingDone`. @category Datagrams */
  preCreateAv?(pd: UvpHandle, av: UvpAddressVector, umv: UmvBuffer): UvpHandle;
  /** `post_create_av`: after the IOCTL, with its status and the HCA's output. @category Datagrams */
  postCreateAv?(pd: UvpHandle, status: number, av: UvpHandle, umv: UmvBuffer): void;
  /**
   * `pre_destroy_av`. Returns true if the UVP has done everything; then there is neither an IOCTL nor a post hook.
   * @category Datagrams
   */
  preDestroyAv?(av: UvpHandle): boolean | undefined;
  /** `post_destroy_av`: after the IOCTL, with its status. @category Datagrams */
  postDestroyAv?(av: UvpHandle, status: number): void;
  /** `pre_destroy_mw`: before the IOCTL. @category Memory */
  preDestroyMw?(mw: UvpHandle): void;
  /** `post_destroy_mw`: after the IOCTL, with its status. @category Memory */
  postDestroyMw?(mw: UvpHandle, status: number): void;
}

/** The functions that every device needs. */
export const mandatoryUserVerbs = [
  'postSend',
  'postReceive',
  'pollCq',
  'rearmCq',
  'ndModifyQp',
  'preCreateQp',
  'pinMemory',
  'unpinMemory',
] as const satisfies readonly (keyof UserVerbs)[];

/**
 * Checks a UVP's table before its first use.
 *
 * @throws StatusError NOT_SUPPORTED, with the names of missing functions.
 */
export function requireUserVerbs(library: string, table: Partial<UserVerbs> | undefined): UserVerbs {
  if (table === undefined) {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `The device requires the user-mode verbs provider '${library}', which does not exist.`,
    );
  }
  const missing = mandatoryUserVerbs.filter((name) => typeof table[name] !== 'function');
  if (missing.length > 0) {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `The user-mode verbs provider '${library}' lacks ${missing.join(', ')}; a provider must implement ` +
        `${mandatoryUserVerbs.join(', ')}.`,
    );
  }
  return table as UserVerbs;
}
