/**
 * The user side of the seam: what the user-mode verbs provider (`uvp/`) asks of an HCA. Called on the program's threads, each of which
 * has an instance of its own; nothing of it goes through the kernel. Posting writes a WQE into a ring and polling reads a CQE from
 * one: these calls come in between, and are native code of a few nanoseconds that allocates nothing. Handles are those that the
 * kernel side's create commands have answered.
 *
 * Which provider, and so which HCA, belongs to a device is the name that LIBRARY_QUERY answers (`uvp/index.ts`).
 */
import type { DirectOperation, DirectResult } from '../schema/generated/numbers.js';
import type { AddonBinding } from './soft-hca-binding.js';

/** LIBRARY_QUERY's answer for the devices of the software HCA. */
export const SOFT_USER_LIBRARY = 'networkdirect_uvp';

/** Zeroed memory that JavaScript and the HCA share, 64-byte aligned. Freed when both sides have let go. */
export interface NativeRing {
  buffer: ArrayBuffer;
  address: number;
}

export interface UserHca {
  /** @throws Error before the HCA is open (no device file was opened yet), RangeError for a size it cannot give. */
  allocateRing(bytes: number): NativeRing;
  /**
   * The HCA accepts the ring for no new object any more. The memory stays until its users in the HCA and the
   * ArrayBuffer are gone; the ArrayBuffer's end releases it, too.
   */
  releaseRing(address: number): void;
  /**
   * Pins memory: holds it, whatever becomes of its buffer, and lets registrations use its range. Throws nothing: INVALID_PARAMETER for
   * anything but a Uint8Array of at least one byte over a buffer of fixed length; INVALID_DEVICE_STATE before the
   * HCA is open; NOT_SUPPORTED where the runtime does not let native code hold the memory of a buffer, for all but what
   * {@link AddonBinding.allocateShared} has made. `detachable`: JavaScript can detach the buffer; the caller marks it as untransferable, which native
   * code cannot.
   */
  pin(view: Uint8Array): {
    status: number;
    pin: number;
    address: number;
    detachable: boolean;
    /** Memory of {@link AddonBinding.allocateShared}. */
    allocated?: boolean;
  };
  unpin(pin: number): void;
  /**
   * This thread's doorbell: a word for the handle of the object that the call which follows is about. An argument would double the
   * time of the call.
   */
  readonly doorbell: Uint32Array;
  /** New send requests are on the queue pair in {@link doorbell}. */
  ringDoorbell(): void;
  /**
   * New receives have been posted where the HCA asks for this doorbell: on the queue pair in {@link doorbell}, or on a shared
   * receive queue whose header word is in it. The HCA asks by a word in the ring's header that is not 0 (`qpReceiveBell`,
   * `srqReceiveBell`). The software HCA does so only while a message waits for a receive, and in ERROR; an HCA that reads receives
   * from elsewhere sets the words once and for all.
   */
  ringReceiveDoorbell(): void;
  /**
   * Executes a value of {@link DirectOperation} between bytes of any memory and memory of the peer of the queue pair in {@link doorbell},
   * now: in no order with requests, of which it is none. Rights, bounds and keys are checked as for a request. A value of
   * {@link DirectResult}; unless it is `done`, any part of the bytes may have been copied. Missing: the HCA cannot.
   */
  direct?(
    operation: (typeof DirectOperation)[keyof typeof DirectOperation],
    bytes: Uint8Array,
    remoteLow: number,
    remoteHigh: number,
    rkey: number,
  ): (typeof DirectResult)[keyof typeof DirectResult];
  /**
   * Maps `length` bytes of memory of the peer of the queue pair in {@link doorbell}, privately: they show what the peer has there, and what is
   * written to them stays in this process. The peer's key must have REMOTE_VIEW. `result` is a value of {@link DirectResult}, and
   * `bytes` are there if it is `done` and the status is SUCCESS: else INSUFFICIENT_RESOURCES (no descriptor, or too many
   * views), NO_MEMORY, NOT_SUPPORTED (no external buffers). Missing: the HCA cannot.
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
   * A poll has found the ring of the CQ in {@link doorbell} empty: the HCA puts there what has completed. The software HCA, for
   * which one CQ is as good as another, moves the engine one step if nobody else does, and marks this thread as polling. Asked
   * again at once, it looks out for what other processes of this host send for half a microsecond before it returns in vain.
   * The word may also be a shared receive queue's `srqReceiveBell`, when the queue is full: then of all its queue pairs' CQs.
   */
  progress(): void;
  /**
   * Whether a program that waits for completions of the CQ in {@link doorbell} should poll once more before it arms the CQ; called
   * before each poll of a wait. False: the next poll is the last one of this wait. Missing: the HCA gives no such hint.
   */
  shouldPoll?(): boolean;
  /** Asks for an event on the next completion of a CQ (see HcaCommands::armCq). */
  armCq(cq: number, solicitedOnly: boolean): number;
  /** Asks for an event when `count` completions have come of a CQ (see Engine::armCqBatch). */
  armCqBatch(cq: number, count: number): number;
}
