import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import {
  CallOutcome,
  ChannelMajor,
  checkThreadsAllowed,
  loadAddon,
  type NativeChannel,
} from '../../hca/index.js';
import { IoctlCode, ioctlName } from '../../ioctl/codes.js';
import { Status, StatusError, statusText } from '../../ioctl/status.js';
import type { KernelOptions, KernelOptionsInput } from '../../option-checks/option-schemas.js';
import { optionsDelivery } from '../../option-checks/options-delivery.js';
import type { DeviceFile } from '../device-file.js';
import { Overlapped } from '../overlapped.js';
import { checkSameOptions, resolveKernelOptions } from './resolve-options.js';
import { SlotRequest } from './slot-request.js';
import { SoftDeviceFile } from './soft-device-file.js';

/**
 * Warnings of the soft kernel, emitted as process warnings (event `warning`, `--no-warnings`). Node.js emits a warning
 * on the next turn of the event loop, which a program that exits immediately never reaches.
 */
class Warnings {
  #pending: Error[] = [];

  add(text: string): void {
    const warning = new Error(text);
    warning.name = 'NetworkDirectWarning';
    this.#pending.push(warning);
    process.emitWarning(warning);
    process.nextTick(() => {
      this.#pending = this.#pending.filter((other) => other !== warning);
    });
  }

  /** Emits the pending warnings immediately, because the process is exiting. */
  emitNow(): void {
    for (const warning of this.#pending) process.emit('warning', warning);
    this.#pending = [];
  }
}

/** Maximum number of outstanding requests of one isolate. An idle slot costs about 100 bytes. */
const defaultSlots = 16_384;
/** Maximum length of the reason returned by a failed open, in bytes. */
const maxReason = 1024;
/** Time limit of an exiting process for closing all of its files, in milliseconds. */
const exitBudgetMs = 2_000;

/**
 * The soft kernel and the HCA need up to 20 file descriptors when they start, some of them only briefly. A Worker
 * without descriptors ends before it runs, and a thread waiting for it in `open` is not notified.
 */
const startDescriptors = 24;

/** @throws StatusError TOO_MANY_OPENED_FILES */
function checkDescriptors(): void {
  const opened: number[] = [];
  try {
    while (opened.length < startDescriptors) opened.push(openSync(devNull, 'r'));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'EMFILE' && code !== 'ENFILE') return;
    const text = `The soft kernel needs ${startDescriptors} free file descriptors to start (${code}); close some, or raise the limit.`;
    throw new StatusError(Status.TOO_MANY_OPENED_FILES, text, { cause });
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** Settings that tests of the channel replace. */
export interface SoftKernelSetup {
  /** The module that serves the channel. Default: the soft kernel. */
  readonly entry?: URL;
  readonly slots?: number;
}

const noBytes = new Uint8Array(0);

/** A finished request. */
export interface Answer {
  readonly status: number;
  readonly information: number;
  readonly output: Uint8Array;
}

/**
 * The user side of this isolate's soft kernel: a Worker and the channel to it. The Worker does not keep the process
 * alive; pending overlapped requests do.
 */
export class SoftKernel {
  readonly channel: NativeChannel;
  /** Views of the channel, read once, because a getter of a native object is a native call. */
  readonly #answer: Float64Array;
  readonly #answerBytes: Uint8Array;
  readonly states: Int32Array;
  readonly #worker: Worker;
  /**
   * Requests by slot. A Map is not used: when a Map grows, its old table refers to the new one, so the contents of both
   * survive the scavenger.
   */
  readonly #requests: (SlotRequest<unknown> | undefined)[] = [];
  #outstanding = 0;
  readonly #files = new Set<SoftDeviceFile>();
  readonly #warnings = new Warnings();
  readonly #takeWarnings: () => string[];
  readonly #hearWarnings: (onWarning: (text: string) => void) => void;
  readonly #onExit = (): void => {
    this.#addWarnings();
    this.#warnings.emitNow();
    this.closeFiles(exitBudgetMs);
    if (process.platform === 'win32' && isMainThread) loadAddon().endHcas();
  };
  #workerError: unknown;
  #answered = false;

  readonly options: KernelOptions;

  /** `options` may be a function that checks them while the thread starts. If it throws, the thread is terminated. */
  constructor(options: KernelOptions | (() => KernelOptions), setup: SoftKernelSetup = {}) {
    const onComplete = (slot: number, outcome: number) => this.#settle(slot, outcome);
    const addon = loadAddon();
    checkThreadsAllowed();
    checkDescriptors();
    this.channel = addon.createChannel(setup.slots ?? defaultSlots, onComplete, IoctlCode.CQ_NOTIFY);
    this.#answer = this.channel.answer;
    this.#answerBytes = this.channel.answerBytes;
    this.states = this.channel.states;
    const here = import.meta.url;
    const { delivery, deliver, warnings, hear } = optionsDelivery();
    this.#takeWarnings = warnings;
    this.#hearWarnings = hear;
    this.#worker = new Worker(new URL('./kernel-thread.cjs', here), {
      name: 'networkdirect-kernel',
      workerData: {
        channel: this.channel.id,
        options: delivery,
        entry: (setup.entry ?? new URL('../../kernel/main.js', here)).href,
        addon: new URL('../../hca/index.js', here).href,
        bundle: setup.entry ? undefined : fileURLToPath(new URL('../../kernel/bundle.cjs', here)),
      },
      transferList: [delivery.port],
      // The program's flags (--input-type, loaders, inspectors) do not apply to this thread.
      execArgv: [],
    });
    this.#worker.unref();
    this.#worker.on('error', (error) => {
      this.#workerError = error;
      addon.failChannel(this.channel.id, `the soft kernel failed with ${String(error)}`);
    });
    this.#worker.on('exit', (code) => {
      addon.failChannel(this.channel.id, `the soft kernel's thread ended with code ${code}`);
      process.off('exit', this.#onExit);
    });
    process.on('exit', this.#onExit);
    try {
      this.options = typeof options === 'function' ? options() : options;
    } catch (error) {
      this.#discard();
      throw error;
    }
    deliver(this.options);
  }

  /** Whether a new kernel may replace this one, because it did not start, has failed, or was discarded. */
  get ended(): boolean {
    return this.channel.problem !== '';
  }

  /** Number of open files. */
  get openFiles(): number {
    return this.#files.size;
  }

  /** Number of overlapped requests whose outcome has not been copied yet. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /**
   * Opens a device file; waits at most `timeout` ms for the kernel.
   *
   * @throws StatusError with the kernel's status and reason; DEVICE_REMOVED with the reason if the kernel has ended;
   * IO_TIMEOUT if it does not reply.
   */
  open(name: string, timeout = this.options.startTimeoutMs): DeviceFile {
    const answer = this.call(ChannelMajor.create, 0, 0, new TextEncoder().encode(name), maxReason, timeout);
    if (answer === undefined) {
      if (!this.#answered) this.#discard();
      throw new StatusError(
        Status.IO_TIMEOUT,
        `Opening ${name}: the soft kernel did not answer within ${timeout} ms (option startTimeoutMs).`,
      );
    }
    if (answer.status !== Status.SUCCESS) {
      if (answer.status === Status.DEVICE_NOT_READY && !this.#answered) this.#discard();
      const reason = new TextDecoder().decode(answer.output);
      throw reason === ''
        ? this.failure(answer.status, `Opening ${name}`)
        : new StatusError(answer.status, `Opening ${name}: ${reason}`);
    }
    if (!this.#answered) {
      this.#addWarnings();
      this.#hearWarnings((text) => this.#warnings.add(text));
    }
    this.#answered = true;
    const file = new SoftDeviceFile(this, name, answer.information);
    this.#files.add(file);
    return file;
  }

  /** Called when a file has been closed. */
  forgetFile(file: SoftDeviceFile): void {
    this.#files.delete(file);
  }

  /** Called when a request's slot has been freed. */
  forget(slot: number): void {
    this.#requests[slot] = undefined;
    this.#outstanding -= 1;
  }

  /** A blocking request. A negative timeout waits until the kernel completes it or ends. Returns undefined on timeout. */
  call(
    major: number,
    fileId: number,
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    timeoutMs: number,
  ): Answer | undefined {
    const { channel } = this;
    let outcome = channel.call(major, fileId, code, input, outputLength, timeoutMs);
    if (outcome === CallOutcome.noSlot && this.#sweep()) {
      outcome = channel.call(major, fileId, code, input, outputLength, timeoutMs);
    }
    if (outcome === CallOutcome.timedOut) return undefined;
    if (outcome === CallOutcome.stopped) throw stopped();
    if (outcome === CallOutcome.noSlot) {
      return { status: Status.INSUFFICIENT_RESOURCES, information: 0, output: noBytes };
    }
    return this.#answerOf(outcome);
  }

  deliverNext(): boolean {
    const slot = this.channel.nextCompletion();
    if (slot < 0) return false;
    this.#settle(slot, this.channel.finish(slot));
    return true;
  }

  #settle(slot: number, outcome: number): void {
    this.#keep(slot, outcome)?.overlapped.settle();
  }

  /** Copies the outcome of a completed request, whose slot is then free. */
  #keep(slot: number, outcome: number): SlotRequest<unknown> | undefined {
    const answer = this.#answerOf(outcome);
    const request = this.#requests[slot];
    request?.keep(answer);
    return request;
  }

  /** The outcome of a completed request; frees its slot. */
  finish(slot: number): Answer {
    return this.#answerOf(this.channel.finish(slot));
  }

  /** Waits for the request, then returns the same as {@link finish}. */
  waitAndFinish(slot: number): Answer {
    const outcome = this.channel.waitAndFinish(slot);
    if (outcome === CallOutcome.stopped) throw stopped();
    return this.#answerOf(outcome);
  }

  #answerOf(outcome: number): Answer {
    const answer = this.#answer;
    const status = answer[0]!;
    const information = answer[1]!;
    if (outcome === CallOutcome.done) {
      const length = answer[2]!;
      return { status, information, output: length === 0 ? noBytes : this.#answerBytes.slice(0, length) };
    }
    const slot = answer[3]!;
    try {
      return { status, information, output: this.channel.output(slot) };
    } catch {
      // If there is no memory for a long output, the request fails with that status instead of waiting.
      return { status: Status.INSUFFICIENT_RESOURCES, information: 0, output: noBytes };
    } finally {
      this.channel.release(slot);
    }
  }

  /** An overlapped IOCTL. */
  start<T>(
    fileId: number,
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    const slot = this.#submit(ChannelMajor.deviceControl, fileId, code, input, outputLength, true);
    if (slot < 0) return Overlapped.failed<T>(this.failure(Status.INSUFFICIENT_RESOURCES, ioctlName(code)));
    const request = new SlotRequest<T>(this, slot, decode, (status, output) =>
      this.failure(status, ioctlName(code), output),
    );
    this.#requests[slot] = request;
    this.#outstanding += 1;
    return request.overlapped;
  }

  /** The error of a request that completed with this status, including the output returned with it. */
  failure(status: number, what: string, output?: Uint8Array): StatusError {
    const error = this.#failure(status, what);
    if (output !== undefined && output.length > 0) error.output = output;
    return error;
  }

  #failure(status: number, what: string): StatusError {
    if (status === Status.DEVICE_REMOVED && this.channel.problem !== '') {
      const options = this.#workerError === undefined ? undefined : { cause: this.#workerError };
      return new StatusError(status, `${what}: the device is gone, ${this.channel.problem}.`, options);
    }
    if (status === Status.INSUFFICIENT_RESOURCES && this.#outstanding > 0) {
      const text = `${what}: ${statusText(status)} (${this.#outstanding} requests are outstanding in this thread)`;
      return new StatusError(status, text);
    }
    return new StatusError(status, `${what}: ${statusText(status)}`);
  }

  /** Closes all files: submits every close, then waits for all of them within the budget. */
  closeFiles(budgetMs: number): void {
    const { channel } = this;
    const end = performance.now() + budgetMs;
    const closing: number[] = [];
    for (const file of this.#files) {
      const slot = file.submitClose();
      if (slot >= 0) closing.push(slot);
    }
    for (const slot of closing) {
      channel.wait(slot, Math.max(0, end - performance.now()));
      channel.release(slot);
    }
  }

  #addWarnings(): void {
    for (const text of this.#takeWarnings()) this.#warnings.add(text);
  }

  /** Ends the kernel's thread and all of its files immediately; for tests and for a discarded kernel. */
  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Submits a close. Returns its slot, or -1 if none is free. */
  submitClose(fileId: number): number {
    return this.#submit(ChannelMajor.close, fileId, 0, null, 0, false);
  }

  #submit(
    major: number,
    fileId: number,
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    overlapped: boolean,
  ): number {
    const slot = this.channel.submit(major, fileId, code, input, outputLength, overlapped);
    if (slot >= 0 || !this.#sweep()) return slot;
    return this.channel.submit(major, fileId, code, input, outputLength, overlapped);
  }

  /**
   * Frees the slots of completed requests that have not been observed yet, so that a thread that never returns to its
   * event loop does not run out of slots. Their handlers run later, on the event loop.
   */
  #sweep(): boolean {
    const { channel } = this;
    let swept = false;
    for (let slot = channel.nextCompletion(); slot >= 0; slot = channel.nextCompletion()) {
      const request = this.#keep(slot, channel.finish(slot));
      setImmediate(() => request?.overlapped.settle());
      swept = true;
    }
    return swept;
  }

  #discard(): void {
    this.channel.close();
    void this.#worker.terminate();
  }
}

/** V8 stops the thread before most of the following code runs; this is for the code that still runs. */
function stopped(): StatusError {
  return new StatusError(Status.CANCELED, 'The wait ended because this thread is being stopped.');
}

let current: SoftKernel | undefined;

/**
 * Opens a device file of this isolate's soft kernel, `\\.\WinVerbs` or `\\.\ibat`. The first open starts the kernel; an
 * open after it has ended starts a new one. The options of the open that starts the kernel apply to all later ones,
 * which must not pass others.
 *
 * @throws StatusError INVALID_PARAMETER for options (with the field), otherwise as {@link SoftKernel.open}.
 */
export function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile {
  if (typeof name !== 'string' || name === '') {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `The name of a device file must be a string such as \\\\.\\WinVerbs; got ${name === '' ? 'an empty string' : typeof name}.`,
    );
  }
  if (current === undefined || current.ended) current = new SoftKernel(() => resolveKernelOptions(options));
  else if (options !== undefined) checkSameOptions(options, current.options);
  return current.open(name, options?.startTimeoutMs);
}
