/** The native addon's part of the door: one channel per isolate that opens device files, served by one soft kernel. */

/** What a request asks of the kernel: open, close, an IOCTL, or cancelling an earlier request. */
export const ChannelMajor = { create: 0, close: 2, deviceControl: 14, cancel: 0x100 } as const;

/** Slot states, as found in {@link NativeChannel.states}. */
export const SlotState = { free: 0, pending: 1, done: 2 } as const;

/** How {@link NativeChannel.call} ended. */
export const CallOutcome = {
  /** Status, information and output are in `answer` and `answerBytes`. */
  done: 0,
  /** The output is too long for `answerBytes`: it is in the slot that `answer` names, which the caller releases. */
  long: 1,
  /** The kernel was asked to cancel the request; its answer is lost. */
  timedOut: 2,
  /** All slots are taken. */
  noSlot: 3,
  /**
   * V8 has asked this thread to stop (`worker.terminate()`, `process.exit()`, the timeout of a vm script), and it does so as soon as native
   * code has returned; the kernel was asked to cancel a {@link NativeChannel.call}.
   */
  stopped: 4,
} as const;

/** The user side of a channel. Slots are small integers; each holds one request until it is released. */
export interface NativeChannel {
  /** Names the channel to {@link AddonBinding.serveChannel}; process-wide. */
  readonly id: number;
  /** One word per slot, {@link SlotState}; changes without a call, from any thread. */
  readonly states: Int32Array;
  /** One word. A change of it invalidates the caches of the user side ({@link ServedChannel.newCacheEpoch}). */
  readonly cacheEpoch: Int32Array;
  /**
   * Copies the input and hands the request to the kernel. Returns the slot, or -1 when all slots are taken.
   * With `overlapped` the completion is delivered by `onComplete` on the event loop, finished as by {@link finish}, and
   * keeps the process alive until then; without it the caller must {@link wait}.
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
   * A blocking request: submit, wait, status, information, output and release in one. Answers a {@link CallOutcome};
   * {@link answer} and {@link answerBytes} hold what the kernel said until the next call. A timeout as of {@link wait}.
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
   * Of a request that has completed: status, information, output and release in one, as {@link call} answers them. The slot of
   * a `long` one stays to be asked and released.
   */
  finish(slot: number): number;
  /**
   * The overlapped request that completed first among those that `onComplete` has yet to tell of, or -1. It is not told then:
   * who asks finishes it.
   */
  nextCompletion(): number;
  /** {@link wait} without a bound, and {@link finish}, in one; or `stopped`, and the request goes on. */
  waitAndFinish(slot: number): number;
  /** Of the latest {@link call} or {@link finish}, or what `onComplete` tells of: status, information, bytes of output, slot. */
  readonly answer: Float64Array;
  /** Of the same: its output first. */
  readonly answerBytes: Uint8Array;
  /**
   * Blocks this thread until the slot is done; negative timeout: without a bound (a kernel that ends completes all
   * its slots with DEVICE_REMOVED, so it always returns). False: timed out, or the thread is to stop.
   */
  wait(slot: number, timeoutMs: number): boolean;
  status(slot: number): number;
  information(slot: number): number;
  /** The output bytes that the kernel returned (`information` of them, bounded by the buffer's size). */
  output(slot: number): Uint8Array;
  /** Asks the kernel to cancel the request in this slot; it may still complete otherwise. */
  cancel(slot: number): void;
  /** Gives the slot back. A pending one is given back when it completes, unseen. */
  release(slot: number): void;
  /** Fails everything pending with DEVICE_REMOVED and ends the channel; requests that follow end so at once. */
  close(): void;
  /** Why the channel has ended, a sentence without a full stop; '' while it lives. */
  readonly problem: string;
}

/**
 * A request as the kernel sees it. `input` is the kernel's own copy, until the next `take`: who keeps it copies it.
 *
 * The last request of a channel is `{ major: close, fileId: 0, slot: -1 }`: the user side is gone (its isolate ended,
 * or it closed the channel), every file is closed, and nobody waits for an answer.
 */
export interface ChannelRequest {
  /** -1: needs no completion. */
  slot: number;
  /** Changes whenever the slot is used again: completing an old request cannot hit a new one. */
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
   * The next request, or undefined; `onRequest` is called after it has answered undefined once. After a request it stays
   * for some microseconds until the next one comes, unless something else wants this thread's event loop.
   */
  take(): ChannelRequest | undefined;
  /**
   * Completes a request; output is copied, at most `outputLength` bytes. The user sees `information` bytes of it,
   * except for `create`, whose information is the file id and whose output is seen whole. False: it was completed
   * already (the HCA completed a notification natively, or the channel has ended).
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
   * Has `take` call this back when events of the HCA come while this thread serves requests or stays for the next: then they
   * do not go by the event loop, which it would have to go back to.
   */
  answerEvents(onEvent: () => void): void;
  /** Invalidates the caches of the user side. */
  newCacheEpoch(): void;
}
