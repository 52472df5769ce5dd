/** The native addon's request channel: one per isolate that opens device files, served by one soft kernel. */

import type { CallOutcome, SlotState } from '../schema/generated/numbers.js';

export { CallOutcome, ChannelMajor, SlotState } from '../schema/generated/numbers.js';

/** The user side of a channel. Slots are small integers; each holds one request until it is released. */
export interface NativeChannel {
  /** The channel's number for {@link AddonBinding.serveChannel}; process-wide. */
  readonly id: number;
  /** One word per slot, a {@link SlotState}, which any thread may change without a call. */
  readonly states: Int32Array;
  /** One word, whose change invalidates the user-side caches ({@link ServedChannel.newCacheEpoch}). */
  readonly cacheEpoch: Int32Array;
  /**
   * Copies the input and passes the request to the kernel. Returns the slot, or -1 if all slots are in use. With
   * `overlapped`, the event loop delivers the completion through `onComplete`, finished as by {@link finish}, and the
   * request keeps the process alive until then (see {@link hold}); without it the caller must {@link wait}.
   */
  submit(
    major: number,
    fileId: number,
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    overlapped: boolean,
  ): number;
  /**
   * A blocking request: submit, wait, status, information, output and release in one. Returns a {@link CallOutcome};
   * {@link answer} and {@link answerBytes} hold the result until the next call. Timeout as in {@link wait}.
   */
  call(
    major: number,
    fileId: number,
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    timeoutMs: number,
  ): number;
  /**
   * For a completed request: status, information, output and release in one, returned as by {@link call}. The slot of a
   * `long` output is kept and must be read and released.
   */
  finish(slot: number): number;
  /**
   * The slot of the overlapped request that completed first among those not reported by `onComplete`, or -1. That
   * request is not reported any more: the caller finishes it.
   */
  nextCompletion(): number;
  /**
   * {@link wait} without limit and {@link finish} in one; returns `stopped` if the thread must stop, while the request
   * continues.
   */
  waitAndFinish(slot: number): number;
  /**
   * Status, information, bytes of output and slot of the latest {@link call} or {@link finish}, or of the `onComplete`
   * call.
   */
  readonly answer: Float64Array;
  /** The output of the same request, from the start. */
  readonly answerBytes: Uint8Array;
  /**
   * Blocks this thread until the slot is done. Negative timeout: without limit (a kernel that ends completes all of its
   * slots with DEVICE_REMOVED, so this always returns). False: timed out, or the thread must stop.
   */
  wait(slot: number, timeoutMs: number): boolean;
  status(slot: number): number;
  information(slot: number): number;
  /** The output bytes of the kernel (`information` bytes, at most the buffer's size). */
  output(slot: number): Uint8Array;
  /** Requests cancellation of the request in this slot; it may still complete with another status. */
  cancel(slot: number): void;
  /** Sets whether this overlapped request keeps the process alive until it is delivered. Initially true. */
  hold(slot: number, holds: boolean): void;
  /** Releases the slot. The slot of a pending request is released when the request completes, which is not reported. */
  release(slot: number): void;
  /**
   * Completes pending requests with DEVICE_REMOVED and ends the channel; later requests immediately complete with the
   * same status.
   */
  close(): void;
  /** The reason why the channel has ended, without a full stop; '' while it exists. */
  readonly problem: string;
}

/**
 * A request on the kernel side. `input` is the kernel's own copy, valid only until the next `take`.
 *
 * The last request of a channel is `{ major: close, fileId: 0, slot: -1 }`. The user side is gone (its isolate has
 * ended, or has closed the channel), and every file is closed. It needs no completion.
 */
export interface ChannelRequest {
  /** -1: needs no completion. */
  slot: number;
  /** Changes with each use of the slot, so that completing an old request cannot affect a new one. */
  serial: number;
  major: number;
  fileId: number;
  code: number;
  input: Uint8Array;
  outputLength: number;
}

/** The kernel side of a channel. */
export interface NativeChannelServer {
  /**
   * The next request, or undefined; `onRequest` is called for the next one after this method has returned undefined.
   * After a request, the method waits some microseconds for the next one, unless this thread's event loop has other
   * work.
   */
  take(): ChannelRequest | undefined;
  /**
   * Completes a request; output is copied, at most `outputLength` bytes. The user gets `information` bytes of it,
   * except for `create`, whose information is the file id and whose output is passed completely. Returns false if it
   * had already been completed (natively by the HCA, or because the channel has ended).
   *
   * @throws TypeError for the status PENDING and for arguments of the wrong type.
   */
  complete(
    slot: number,
    serial: number,
    status: number,
    information: number,
    output: Uint8Array | null,
  ): boolean;
  close(): void;
}

/** The kernel side of a channel in the thread that serves it. */
export interface ServedChannel extends NativeChannelServer {
  /**
   * Makes `take` call `onEvent` for events of the HCA that arrive while this thread serves requests or waits for one.
   * Otherwise it would have to return to its event loop for them.
   */
  answerEvents(onEvent: () => void): void;
  /** Invalidates the user-side caches. */
  newCacheEpoch(): void;
}
