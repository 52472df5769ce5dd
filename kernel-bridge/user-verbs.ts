/**
 * Door 2: the user-mode verbs provider (UVP). It belongs to a device as its kernel driver does: it adds the device's
 * own bytes to the IOCTLs that create objects (pre and post hooks), and it posts requests and polls completions
 * without any IOCTL (the speed path). The table is that of WinVerbs' `uvp_interface_t`, by the same names, as far as
 * WinVerbs uses it; handles are the UVP's own objects and opaque to everybody else.
 */
import { Status, StatusError } from './ioctl/status.js';

/** An object of the UVP. Null where the UVP leaves out the hook that would have made one. */
export type UvpHandle = object | null;

const NO_BYTES = new Uint8Array(0);

/**
 * What travels between the UVP and its kernel driver around one IOCTL (`ci_umv_buf_t`). How the IOCTL itself ended is
 * told apart from it, as the `status` argument of the post hook.
 */
export class UmvBuffer {
  /** Travels in VerbInfo towards the driver. */
  command = 0;
  /** VerbInfo of a successful answer; 0 otherwise. */
  status = 0;
  /** IB_VERBS_PROCESSING_DONE of {@link UserVerbs.preCreateAv}: the UVP has done it all, and there is no IOCTL. */
  processingDone = false;
  /** Bytes for the driver, behind the IOCTL's structure. */
  input: Uint8Array = NO_BYTES;
  /** Bytes of the driver's answer that there is room for. */
  outputSize = 0;
  /** The driver's answer; empty when the IOCTL failed. */
  output: Uint8Array = NO_BYTES;
}

/** Memory that a request may name: keys and place of a registration. */
export interface UvpMemory {
  readonly lkey: number;
  /** Native start address, below 2^47. */
  readonly address: number;
  /** The same memory as JavaScript sees it; INLINE requests read it. Throws ACCESS_VIOLATION where the program has lost it. */
  readonly bytes?: Uint8Array | undefined;
  /** The same by words, of memory that starts on one. */
  readonly words?: Uint32Array | undefined;
}

/** `length` bytes at `offset` bytes into the memory. */
export interface UvpSge {
  region: UvpMemory;
  offset: number;
  length: number;
}

/**
 * One send request (WV_SEND_REQUEST). The caller owns it and reuses it; the UVP reads it during the call only and
 * never changes it.
 */
export class UvpSendRequest {
  context: unknown = undefined;
  /** WV_OPCODE: 0 send, 1 write, 2 read, 3 compare-exchange, 4 fetch-add. */
  opcode = 0;
  /** WV_SEND_*. */
  flags = 0;
  sgl: readonly UvpSge[] = [];
  /** Immediate data, or the peer's rkey when `invalidate` is set; the number on the wire. */
  immediate = 0;
  /** A send that also invalidates the peer's `immediate` key. */
  invalidate = false;
  remoteLow = 0;
  remoteHigh = 0;
  /** Bytes added to the remote address. */
  remoteOffset = 0;
  rkey = 0;
  /** Compare value, or the operand of fetch-add. */
  compareLow = 0;
  compareHigh = 0;
  swapLow = 0;
  swapHigh = 0;
  /** UD: the address handle, and the destination's QPN and Q_Key. */
  av: UvpHandle = null;
  remoteQpn = 0;
  remoteQkey = 0;
}

/** Where datagrams go (`ib_av_attr_t`). GIDs are 16 bytes. */
export interface UvpAddressVector {
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
  readonly flowLabel: number;
  readonly trafficClass: number;
  /** 0: the driver's choice. */
  readonly hopLimit: number;
  readonly portNumber: number;
}

/** A bind of a memory window; owned and reused by the caller as {@link UvpSendRequest}. */
export class UvpBindRequest {
  context: unknown = undefined;
  /** WV_SEND_*. */
  flags = 0;
  region: UvpMemory = { lkey: 0, address: 0 };
  offset = 0;
  length = 0;
  /** WV_ACCESS_*. */
  access = 0;
}

/** A completion (WV_COMPLETION); the fields of `WvCompletion` in winverbs/interfaces.ts. */
export interface UvpCompletion {
  context: unknown;
  qpContext: unknown;
  opcode: number;
  status: number;
  length: number;
  flags: number;
  immediateData: number;
  sourceQpn: number;
  vendorCode: number;
  pkeyIndex: number;
  sLid: number;
  sl: number;
  dLidPathBits: number;
}

/** What a shared receive queue is to be, or has (`ib_srq_attr_t`); the UVP may raise `maxWr` to what the ring will have. */
export interface UvpSrqAttributes {
  maxWr: number;
  maxSge: number;
  srqLimit: number;
}

/** What a queue pair is to be (`uvp_qp_create_t`); the UVP may change the granted values. */
export interface UvpQpCreate {
  /** WV_QP_TYPE. */
  readonly type: number;
  readonly sendCq: UvpHandle;
  readonly receiveCq: UvpHandle;
  /** The shared receive queue it receives from; its receive depth and SGEs mean nothing then. */
  readonly srq?: UvpHandle | undefined;
  readonly context: unknown;
  /** `preCreateQp` may raise these to what it grants; QP_CREATE then asks for that. */
  sendDepth: number;
  sendSge: number;
  receiveDepth: number;
  receiveSge: number;
  maxInlineSend: number;
}

/**
 * Where the driver puts a queue pair's state when it moves it (`nd_modify_qp`): the output bytes of QP_MODIFY,
 * EP_ACCEPT and EP_DISCONNECT.
 */
export interface UvpQpState {
  readonly size: number;
  /** The output of such an IOCTL that succeeded. */
  moved(output: Uint8Array): void;
}

/** Memory held in place for the HCA. */
export interface UvpPin {
  readonly pin: number;
  readonly address: number;
  /** Whether JavaScript can detach the buffer. What WebAssembly made only it itself can. */
  readonly detachable: boolean;
}

/**
 * The functions of a UVP. A pre hook throws a StatusError to refuse, and then neither the IOCTL nor its post hook
 * happens. A post hook gets the NTSTATUS of the IOCTL; one that throws after a success makes WinVerbs destroy the
 * new object and report that. Hooks left out do nothing, and the handle stays null.
 */
export interface UserVerbs {
  // ── Speed path: no defaults. Failures throw a StatusError and leave nothing queued.
  /**
   * Queues one send request.
   *
   * @throws StatusError INVALID_DEVICE_STATE (before RTS), NO_MORE_ENTRIES (queue full), DATA_OVERRUN (too many SGEs),
   * BUFFER_OVERFLOW (too long, or too long for INLINE), INVALID_PARAMETER, ACCESS_VIOLATION (a region whose ArrayBuffer was detached).
   */
  postSend(qp: UvpHandle, request: UvpSendRequest): void;
  /** Queues one receive; statuses as {@link postSend}, allowed from INIT on. */
  postReceive(qp: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
  /** Fills at most `n` completions from the start, making objects where the array has none. Negative: the CQ is dead. */
  pollCq(cq: UvpHandle, completions: UvpCompletion[], n: number): number;
  /** Asks for one event on the next completion, or the next solicited one; answers a status. */
  rearmCq(cq: UvpHandle, solicitedOnly: boolean): number;
  /** `nd_modify_qp`. */
  ndModifyQp(qp: UvpHandle): UvpQpState;
  /** `wv_pre_create_qp`. */
  preCreateQp(pd: UvpHandle, create: UvpQpCreate, umv: UmvBuffer): UvpHandle;
  /**
   * Holds memory in place, keeps it alive, and tells its native address. This addition to the table is what
   * JavaScript needs where C has pointers.
   */
  pinMemory(view: Uint8Array): UvpPin;
  unpinMemory(pin: UvpPin): void;

  // ── Optional speed path.
  /** `post_srq_recv`. Left out: the device has no shared receive queues. */
  postSrqReceive?(srq: UvpHandle, context: unknown, sgl: readonly UvpSge[]): void;
  /** Completions waiting. Left out: Peek is NOT_SUPPORTED. */
  peekCq?(cq: UvpHandle): number;
  /** `rearm_n_cq`: as {@link rearmCq}, for `n` completions. Left out: WinVerbs asks for the next one. */
  rearmNCq?(cq: UvpHandle, n: number): number;
  /** `nd_get_qp_state`: WV_QP_STATE. Left out: WinVerbs asks by QP_QUERY. */
  ndGetQpState?(qp: UvpHandle): number;
  /** The queue pair number, where the UVP knows it. Left out: WinVerbs asks by QP_QUERY. */
  ndGetQpn?(qp: UvpHandle): number;
  /** Requests posted between the two are published together. Left out: each is published as it is posted. */
  startBatch?(qp: UvpHandle): void;
  submitBatch?(qp: UvpHandle): void;
  /** `bind_mw`: queues a bind, answers the window's new rkey. Left out: windows are NOT_SUPPORTED. */
  bindMw?(mw: UvpHandle, qp: UvpHandle, request: UvpBindRequest): number;
  /** The window's key by its latest bind. */
  mwRkey?(mw: UvpHandle): number;
  /** Queues the invalidation of a window. */
  invalidateMw?(mw: UvpHandle, qp: UvpHandle, context: unknown, flags: number): void;

  // ── Hooks around the IOCTLs of the same names.
  preOpenCa?(guid: bigint, umv: UmvBuffer): UvpHandle;
  postOpenCa?(guid: bigint, status: number, ca: UvpHandle, umv: UmvBuffer): void;
  preCloseCa?(ca: UvpHandle): void;
  postCloseCa?(ca: UvpHandle, status: number): void;
  preAllocatePd?(ca: UvpHandle, umv: UmvBuffer): UvpHandle;
  postAllocatePd?(ca: UvpHandle, status: number, pd: UvpHandle, umv: UmvBuffer): void;
  preDeallocatePd?(pd: UvpHandle): void;
  postDeallocatePd?(pd: UvpHandle, status: number): void;
  /** `size.entries` may be raised to what the ring will have. */
  preCreateCq?(ca: UvpHandle, size: { entries: number }, umv: UmvBuffer): UvpHandle;
  postCreateCq?(ca: UvpHandle, status: number, entries: number, cq: UvpHandle, umv: UmvBuffer): void;
  preResizeCq?(cq: UvpHandle, size: { entries: number }, umv: UmvBuffer): void;
  postResizeCq?(cq: UvpHandle, status: number, entries: number, umv: UmvBuffer): void;
  preDestroyCq?(cq: UvpHandle): void;
  postDestroyCq?(cq: UvpHandle, status: number): void;
  preCreateSrq?(pd: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): UvpHandle;
  postCreateSrq?(pd: UvpHandle, status: number, srq: UvpHandle, umv: UmvBuffer): void;
  preModifySrq?(srq: UvpHandle, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
  postModifySrq?(srq: UvpHandle, status: number, umv: UmvBuffer): void;
  preQuerySrq?(srq: UvpHandle, umv: UmvBuffer): void;
  /** May put right what the driver says. */
  postQuerySrq?(srq: UvpHandle, status: number, attributes: UvpSrqAttributes, umv: UmvBuffer): void;
  preDestroySrq?(srq: UvpHandle): void;
  postDestroySrq?(srq: UvpHandle, status: number): void;
  postCreateQp?(pd: UvpHandle, status: number, qp: UvpHandle, umv: UmvBuffer): void;
  preDestroyQp?(qp: UvpHandle): void;
  postDestroyQp?(qp: UvpHandle, status: number): void;
  preCreateMw?(pd: UvpHandle, umv: UmvBuffer): UvpHandle;
  postCreateMw?(pd: UvpHandle, status: number, rkey: number, mw: UvpHandle, umv: UmvBuffer): void;
  /** Address handles need no kernel if the UVP says so: `umv.processingDone`. */
  preCreateAv?(pd: UvpHandle, av: UvpAddressVector, umv: UmvBuffer): UvpHandle;
  postCreateAv?(pd: UvpHandle, status: number, av: UvpHandle, umv: UmvBuffer): void;
  /** True: the UVP has done it all, and there is neither IOCTL nor post hook. */
  preDestroyAv?(av: UvpHandle): boolean | undefined;
  postDestroyAv?(av: UvpHandle, status: number): void;
  preDestroyMw?(mw: UvpHandle): void;
  postDestroyMw?(mw: UvpHandle, status: number): void;
}

/** The functions without which no device works. */
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
 * @throws StatusError NOT_SUPPORTED, naming what is missing.
 */
export function requireUserVerbs(library: string, table: Partial<UserVerbs> | undefined): UserVerbs {
  if (table === undefined) {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `The device asks for the user-mode verbs provider '${library}', and there is none of that name.`,
    );
  }
  const missing = mandatoryUserVerbs.filter((name) => typeof table[name] !== 'function');
  if (missing.length > 0) {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `The user-mode verbs provider '${library}' lacks ${missing.join(', ')}; a provider must have all of ` +
        `${mandatoryUserVerbs.join(', ')}.`,
    );
  }
  return table as UserVerbs;
}
