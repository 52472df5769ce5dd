import { ChannelMajor } from '../../hca/index.js';
import { IoctlCode, ioctlName } from '../../ioctl/codes.js';
import { Status } from '../../ioctl/status.js';
import { epAttributesRoom } from '../../ioctl/structs.js';
import { closedError, type DeviceFile, wrongRequest } from '../device-file.js';
import { Overlapped } from '../overlapped.js';
import { AnswerCache, AttributePrefetch, cachedAnswers } from './caches.js';
import type { SoftKernel } from './soft-kernel.js';

const noBytes = new Uint8Array(0);

/**
 * How an IOCTL uses the user-side caches: `answer` is served from the cache of outputs, `query` from prefetched
 * attributes. The output of a `carrier` contains attributes, and an `endpoint` request may change them.
 */
type CacheUse = 'answer' | 'query' | 'carrier' | 'endpoint';

const { EP_CONNECT, EP_CREATE, EP_DISCONNECT_NOTIFY, EP_GET_REQUEST, EP_QUERY } = IoctlCode;

/** Requests that do not change attributes. */
const harmless: ReadonlySet<number> = new Set([EP_CREATE, EP_DISCONNECT_NOTIFY]);

/** Cache use by IOCTL code. Other IOCTLs, such as those that create objects, go to the kernel after one lookup here. */
export const cacheUses: ReadonlyMap<number, CacheUse> = new Map([
  ...Object.entries(IoctlCode)
    .filter(([name, code]) => name.startsWith('EP_') && !harmless.has(code))
    .map(([, code]): [number, CacheUse] => [code, 'endpoint']),
  [EP_CONNECT, 'carrier'],
  [EP_GET_REQUEST, 'carrier'],
  [EP_QUERY, 'query'],
  ...[...cachedAnswers.keys()].map((code): [number, CacheUse] => [code, 'answer']),
]);

/** A file of the soft kernel. Each request passes its bytes through a slot of the isolate's channel. */
export class SoftDeviceFile implements DeviceFile {
  readonly extended = true;
  #closed = false;
  readonly #answers: AnswerCache;
  readonly #prefetch: AttributePrefetch;

  constructor(
    private readonly kernel: SoftKernel,
    readonly name: string,
    private readonly fileId: number,
  ) {
    this.#answers = new AnswerCache(kernel.channel.cacheEpoch);
    this.#prefetch = new AttributePrefetch(kernel.channel.cacheEpoch);
  }

  get localOnly(): boolean {
    return this.kernel.options.link === 'local';
  }

  get closed(): boolean {
    return this.#closed;
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    if (this.#closed) throw closedError(this.name, code);
    const wrong = wrongRequest(code, input, outputLength);
    if (wrong !== undefined) throw wrong;
    switch (cacheUses.get(code)) {
      case 'answer':
        return this.#answers.answer(code, input, outputLength, () =>
          this.#request(code, input, outputLength),
        );
      case 'query':
        return this.#prefetch.take(input, outputLength) ?? this.#request(code, input, outputLength);
      case 'carrier':
      case 'endpoint':
        this.#prefetch.discard(input);
    }
    return this.#request(code, input, outputLength);
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
    const use = cacheUses.get(code);
    if (use === 'carrier' || use === 'endpoint') this.#prefetch.discard(input);
    if (use !== 'carrier' || outputLength !== 0)
      return this.kernel.start(this.fileId, code, input, outputLength, decode);
    const prefetched = this.#prefetch.expect(code, input);
    return this.kernel.start(this.fileId, code, input, epAttributesRoom, (output) => {
      prefetched(output);
      return decode(noBytes);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.kernel.forgetFile(this);
    // A kernel that has ended has already closed the file. The wait is bounded because a kernel may hang.
    this.kernel.call(ChannelMajor.close, this.fileId, 0, null, 0, this.kernel.options.startTimeoutMs);
  }

  /** Marks the file as closed and sends the close to the kernel without waiting. Returns the slot to wait for, or -1. */
  submitClose(): number {
    if (this.#closed) return -1;
    this.#closed = true;
    this.kernel.forgetFile(this);
    return this.kernel.submitClose(this.fileId);
  }
}
