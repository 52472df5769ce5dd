/**
 * The user side of an HCA: the functions that the user-mode verbs provider (`uvp/`) needs. They are called on the
 * program's threads (each has its own instance), and do not involve the kernel. Posting writes a WQE into a ring and
 * polling reads a CQE from one; in between, these calls run native code that takes a few nanoseconds and allocates
 * nothing. Handles are those returned by the kernel side's create commands.
 *
 * The provider, and thereby the HCA, of a device is identified by the name that LIBRARY_QUERY returns (`uvp/index.ts`).
 */
import type { DirectOperation, DirectResult } from '../schema/generated/numbers.js';
import type { AddonBinding } from './soft-hca-binding.js';

/** The output of LIBRARY_QUERY for devices of the software HCA. */
export const SOFT_USER_LIBRARY = 'networkdirect_uvp';

/** Zeroed memory shared by JavaScript and the HCA, 64-byte aligned. Freed when both sides have released it. */
export interface NativeRing {
  buffer: ArrayBuffer;
  address: number;
}

export interface UserHca {
  /** @throws Error before the HCA is open (no device file was opened yet), RangeError for a size that cannot be allocated. */
  allocateRing(bytes: number): NativeRing;
  /**
   * Rejects the ring for new objects from now on. The memory is kept until its users in the HCA and the ArrayBuffer are
   * gone; the end of the ArrayBuffer releases it as well.
   */
  releaseRing(address: number): void;
  /**
   * Pins memory: holds it, whatever happens to its buffer, and lets registrations use its range. Never throws, but
   * returns a status: INVALID_PARAMETER for anything but a Uint8Array of at least one byte over a buffer of fixed
   * length; INVALID_DEVICE_STATE before the HCA is open; NOT_SUPPORTED if the runtime does not allow native code to
   * hold the memory of a buffer, except that of {@link AddonBinding.allocateShared}. `detachable`: JavaScript can
   * detach the buffer; the caller marks it as untransferable, which native code cannot do.
   */
  pin(view: Uint8Array): {
    status: number;
    pin: number;
    address: number;
    detachable: boolean;
    /** Whether the memory is that of {@link AddonBinding.allocateShared}. */
    allocated?: boolean;
  };
  unpin(pin: number): void;
  /**
   * This thread's doorbell: a word for the handle of the object that the following call refers to. Passing it as an
   * argument would double the time of the call.
   */
  readonly doorbell: Uint32Array;
  /** Signals new send requests on the queue pair in {@link doorbell}. */
  ringDoorbell(): void;
  /**
   * Signals new receives where the HCA requests this doorbell: on the queue pair in {@link doorbell}, or on a shared
   * receive queue whose header word is in it. The HCA requests it with a nonzero word in the ring's header
   * (`qpReceiveBell`, `srqReceiveBell`). The software HCA does so only while a message waits for a receive, and in
   * ERROR; an HCA that keeps its receives elsewhere sets the words permanently.
   */
  ringReceiveDoorbell(): void;
  /**
   * Executes a {@link DirectOperation} between any local bytes and memory of the peer of the queue pair in {@link
   * doorbell}, immediately, without a request and in no order with requests. Rights, bounds and keys are checked as for
   * a request. Returns a {@link DirectResult}; unless it is `done`, any part of the bytes may have been copied. Absent:
   * not supported by the HCA.
   */
  direct?(
    operation: (typeof DirectOperation)[keyof typeof DirectOperation],
    bytes: Uint8Array,
    remoteLow: number,
    remoteHigh: number,
    rkey: number,
  ): (typeof DirectResult)[keyof typeof DirectResult];
  /**
   * Maps `length` bytes of memory of the peer of the queue pair in {@link doorbell}, privately: reads show the peer's
   * memory, and writes stay in this process. The peer's key must have REMOTE_VIEW. `result` is a {@link DirectResult}.
   * `bytes` is present if it is `done` and the status is SUCCESS; other statuses are INSUFFICIENT_RESOURCES (no
   * descriptor, or too many views), NO_MEMORY, NOT_SUPPORTED (no external buffers). Absent: not supported by the HCA.
   */
  view?(
    remoteLow: number,
    remoteHigh: number,
    rkey: number,
    length: number,
  ): {
    status: number;
    result: (typeof DirectResult)[keyof typeof DirectResult];
    bytes: Uint8Array<ArrayBuffer> | null;
  };
  /**
   * Called when a poll has found the ring of the CQ in {@link doorbell} empty: the HCA writes finished completions
   * there. The software HCA treats all CQs alike; it advances the engine by one step unless another thread is doing so,
   * and marks this thread as polling. If called again immediately, it waits up to half a microsecond for packets from
   * other processes on this host before it returns without result. The word may also be a shared receive queue's
   * `srqReceiveBell`, when the queue is full; it then stands for the CQs of all of its queue pairs.
   */
  progress(): void;
  /**
   * Whether a program that waits for completions of the CQ in {@link doorbell} should poll once more before it arms the
   * CQ; called before each poll of a wait. False: the next poll is the last one of this wait. Missing: the HCA gives no
   * such hint.
   */
  shouldPoll?(): boolean;
  /** Requests an event for the next completion of a CQ (see HcaCommands::armCq). */
  armCq(cq: number, solicitedOnly: boolean): number;
  /** Requests an event after `count` completions of a CQ (see Engine::armCqBatch). */
  armCqBatch(cq: number, count: number): number;
}
