import type { OverlappedSource } from '../door/overlapped.js';
import { ioctlName } from '../ioctl/codes.js';
import { Status, StatusError, statusText } from '../ioctl/status.js';
import { isError, type RequestBlock } from './request-memory.js';
import type { WindowsDoor } from './windows-door.js';

/** Creates the error for a request's final status, with the output of the driver. */
export function failure(status: number, code: number, output?: Uint8Array): StatusError {
  const error = new StatusError(status, `${ioctlName(code)}: ${statusText(status)}`);
  if (output !== undefined && output.length > 0) error.output = output;
  return error;
}

/** An overlapped request of a Windows driver. */
export class IoRequest<T> implements OverlappedSource<T> {
  #outcome: { readonly status: number; readonly output: Uint8Array } | undefined;

  constructor(
    private readonly door: WindowsDoor,
    readonly block: RequestBlock,
    private readonly code: number,
    private readonly decode: (output: Uint8Array) => T,
    private readonly onCancel: () => void,
  ) {}

  /** Processes the status of the call that started it. Returns false if the call failed, so that no packet follows. */
  started(status: number): boolean {
    if (isError(status)) return false;
    if (status !== Status.PENDING) this.block.status = status;
    return true;
  }

  /** Called when its packet has been dequeued. The driver no longer uses the block. */
  arrived(): void {
    this.#capture();
    this.door.memory.release(this.block);
  }

  completed(): boolean {
    return this.#outcome !== undefined || this.block.status !== Status.PENDING;
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
    if (this.#outcome === undefined) this.door.wait(this.block);
  }

  cancel(): void {
    if (this.#outcome === undefined) this.onCancel();
  }

  #capture(): { readonly status: number; readonly output: Uint8Array } {
    this.#outcome ??= { status: this.block.status, output: this.block.output() };
    return this.#outcome;
  }
}
