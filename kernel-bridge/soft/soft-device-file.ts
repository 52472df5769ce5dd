import type { DeviceFile } from '../device-file.js';
import { ChannelMajor } from '../hca/index.js';
import { ioctlName } from '../ioctl/codes.js';
import { Status, StatusError } from '../ioctl/status.js';
import { Overlapped } from '../overlapped.js';
import { PromisedEndpoints } from './promised-endpoints.js';
import type { SoftKernel } from './soft-kernel.js';
import { ToldAttributes } from './told-attributes.js';

const noBytes = new Uint8Array(0);

/** A file of the soft kernel: bytes in, bytes out, through a slot of the isolate's channel. */
export class SoftDeviceFile implements DeviceFile {
  #closed = false;
  readonly #told: ToldAttributes;
  readonly #promised: PromisedEndpoints;

  constructor(
    private readonly kernel: SoftKernel,
    readonly name: string,
    private readonly fileId: number,
  ) {
    const { era } = kernel.channel;
    this.#told = new ToldAttributes(era);
    this.#promised = new PromisedEndpoints(era, () => kernel.ended);
  }

  get closed(): boolean {
    return this.#closed;
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    if (this.#closed) throw this.#closedError(code);
    this.#told.forget(code, input);
    const told = this.#told.take(code, input, outputLength) ?? this.#promised.take(code, input, outputLength);
    if (told !== undefined) return told;
    const room = this.#promised.roomFor(code, input, outputLength);
    if (room !== outputLength) return this.#promised.keep(this.#ask(code, input, room));
    return this.kernel.kept.answer(code, input, outputLength, () => this.#ask(code, input, outputLength));
  }

  #ask(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    const answer = this.kernel.call(ChannelMajor.deviceControl, this.fileId, code, input, outputLength, -1);
    if (answer === undefined) return noBytes; // a wait without a bound does not time out
    if (answer.status !== Status.SUCCESS) {
      throw this.kernel.failure(answer.status, ioctlName(code), answer.output);
    }
    return answer.output;
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    if (this.#closed) return Overlapped.failed<T>(this.#closedError(code));
    this.#told.forget(code, input);
    const room = outputLength === 0 ? this.#told.roomFor(code) : 0;
    if (room === 0) return this.kernel.start(this.fileId, code, input, outputLength, decode);
    const keep = this.#told.expect(code, input);
    return this.kernel.start(this.fileId, code, input, room, (output) => {
      keep(output);
      return decode(noBytes);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.kernel.forgetFile(this);
    // A kernel that has ended has closed it already; one that hangs is not waited for without a bound.
    this.kernel.call(ChannelMajor.close, this.fileId, 0, null, 0, this.kernel.options.startTimeoutMs);
  }

  /** Marks the file closed and asks the kernel for it without waiting; the slot to wait for, or -1. */
  submitClose(): number {
    if (this.#closed) return -1;
    this.#closed = true;
    this.kernel.forgetFile(this);
    return this.kernel.submitClose(this.fileId);
  }

  #closedError(code: number): StatusError {
    return new StatusError(
      Status.INVALID_HANDLE,
      `${ioctlName(code)}: the file ${this.name} is closed; open a new one.`,
    );
  }
}
