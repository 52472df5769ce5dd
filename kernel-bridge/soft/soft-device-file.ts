import { closedError, type DeviceFile, wrongRequest } from '../device-file.js';
import { ChannelMajor } from '../hca/index.js';
import { ioctlName } from '../ioctl/codes.js';
import { Status } from '../ioctl/status.js';
import { Overlapped } from '../overlapped.js';
import { AttributePrefetch } from './attribute-prefetch.js';
import { EndpointIdPool } from './endpoint-id-pool.js';
import type { SoftKernel } from './soft-kernel.js';

const noBytes = new Uint8Array(0);

/** A file of the soft kernel. Each request passes bytes both ways through a slot of the isolate's channel. */
export class SoftDeviceFile implements DeviceFile {
  readonly extended = true;
  #closed = false;
  readonly #prefetch: AttributePrefetch;
  readonly #endpointIds: EndpointIdPool;

  constructor(
    private readonly kernel: SoftKernel,
    readonly name: string,
    private readonly fileId: number,
  ) {
    const { cacheEpoch } = kernel.channel;
    this.#prefetch = new AttributePrefetch(cacheEpoch);
    this.#endpointIds = new EndpointIdPool(cacheEpoch, () => kernel.ended);
  }

  get closed(): boolean {
    return this.#closed;
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    if (this.#closed) throw closedError(this.name, code);
    const wrong = wrongRequest(code, input, outputLength);
    if (wrong !== undefined) throw wrong;
    this.#prefetch.discard(code, input);
    const answer =
      this.#prefetch.take(code, input, outputLength) ?? this.#endpointIds.take(code, input, outputLength);
    if (answer !== undefined) return answer;
    const room = this.#endpointIds.roomFor(code, input, outputLength);
    if (room !== outputLength) return this.#endpointIds.fill(this.#request(code, input, room));
    return this.kernel.ibatCache.answer(code, input, outputLength, () =>
      this.#request(code, input, outputLength),
    );
  }

  #request(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    const answer = this.kernel.call(ChannelMajor.deviceControl, this.fileId, code, input, outputLength, -1);
    if (answer === undefined) return noBytes; // an unbounded wait does not time out
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
    if (this.#closed) return Overlapped.failed<T>(closedError(this.name, code));
    const wrong = wrongRequest(code, input, outputLength);
    if (wrong !== undefined) return Overlapped.failed<T>(wrong);
    this.#prefetch.discard(code, input);
    const room = outputLength === 0 ? this.#prefetch.roomFor(code) : 0;
    if (room === 0) return this.kernel.start(this.fileId, code, input, outputLength, decode);
    const prefetched = this.#prefetch.expect(code, input);
    return this.kernel.start(this.fileId, code, input, room, (output) => {
      prefetched(output);
      return decode(noBytes);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.kernel.forgetFile(this);
    // A kernel that has ended has closed the file already. The wait is bounded, because a kernel may hang.
    this.kernel.call(ChannelMajor.close, this.fileId, 0, null, 0, this.kernel.options.startTimeoutMs);
  }

  /** Marks the file closed and sends the close to the kernel without waiting. Returns the slot to wait for, or -1. */
  submitClose(): number {
    if (this.#closed) return -1;
    this.#closed = true;
    this.kernel.forgetFile(this);
    return this.kernel.submitClose(this.fileId);
  }
}
