import type { OverlappedSource } from '../door/overlapped.js';
import { ioctlName } from '../ioctl/codes.js';
import { Status, StatusError, statusText } from '../ioctl/status.js';
import { isError, type RequestBlock } from './request-memory.js';
import type { WindowsDoor } from './windows-door.js';

/** The error of a request that has ended in this status, with what the driver wrote. */
export function failure(status: number, code: number, output?: Uint8Array): StatusError {
  const error = new StatusError(status, `${ioctlName(code)}: ${statusText(status)}`);
  if (output !== undefined && output.length > 0) error.output = output;
  return error;
}

/** An overlapped request of a Windows driver. */
export class IoRequest<T> implements OverlappedSource<T> {
  #answer: { readonly status: number; readonly output: Uint8Array } | undefined;

  constructor(
    private readonly door: WindowsDoor,
    readonly block: RequestBlock,
    private readonly code: number,
    private readonly decode: (output: Uint8Array) => T,
    private readonly onCancel: () => void,
  ) {}

  /** What the call that started it answered. False: it has failed, and there is no packet. */
  started(answer: number): boolean {
    if (isError(answer)) return false;
    if (answer !== Status.PENDING) this.block.status = answer;
    return true;
  }

  /** Its packet was dequeued: the driver has done with the block. */
  arrived(): void {
    this.#capture();
    this.door.memory.give(this.block);
  }

  completed(): boolean {
    return this.#answer !== undefined || this.block.status !== Status.PENDING;
  }

  take(): T {
    const { status, output } = this.#capture();
    if (status !== Status.SUCCESS) throw failure(status, this.code, output);
    return this.decode(output);
  }

  deliver(): void {
    this.door.port.drain();
  }

  wait(): void {
    if (this.#answer === undefined) this.door.wait(this.block);
  }

  cancel(): void {
    if (this.#answer === undefined) this.onCancel();
  }

  #capture(): { readonly status: number; readonly output: Uint8Array } {
    this.#answer ??= { status: this.block.status, output: this.block.output() };
    return this.#answer;
  }
}
