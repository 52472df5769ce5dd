import { closedError, type DeviceFile, wrongRequest } from '../door/device-file.js';
import { Overlapped } from '../door/overlapped.js';
import { Status, StatusError } from '../ioctl/status.js';
import { failure, IoRequest } from './io-request.js';
import type { RequestBlock } from './request-memory.js';
import type { Handle } from './win32.js';
import type { WindowsDoor } from './windows-door.js';

/**
 * A file of a Windows driver. It uses `NtDeviceIoControlFile`, which returns the driver's own NTSTATUS even if the call fails immediately.
 */
export class WindowsDeviceFile implements DeviceFile {
  readonly extended = false;
  readonly localOnly = false;
  #closed = false;

  constructor(
    private readonly door: WindowsDoor,
    readonly name: string,
    private readonly handle: Handle,
  ) {}

  get closed(): boolean {
    return this.#closed;
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number, outputAt = 0): Uint8Array {
    if (this.#closed) throw closedError(this.name, code);
    const wrong = wrongRequest(code, input, outputLength);
    if (wrong !== undefined) throw wrong;
    const { door } = this;
    const block = door.memory.allocate(input, outputLength, outputAt);
    // A request without a context never causes a packet.
    const returned = this.#control(block.event, 0, block, code);
    if (returned === Status.PENDING) door.wait(block);
    else block.status = returned;
    const { status } = block;
    const output = block.output();
    door.memory.release(block);
    if (status !== Status.SUCCESS) throw failure(status, code, output);
    return output;
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    outputAt = 0,
  ): Overlapped<T> {
    if (this.#closed) return Overlapped.failed<T>(closedError(this.name, code));
    const wrong = wrongRequest(code, input, outputLength);
    if (wrong !== undefined) return Overlapped.failed<T>(wrong);
    const { door } = this;
    let request: IoRequest<T>;
    let context: number;
    try {
      const block = door.memory.allocate(input, outputLength, outputAt);
      const cancel = (): void => this.#cancel(block.ioStatus);
      request = new IoRequest<T>(door, block, code, decode, cancel);
      context = door.port.expect(() => {
        request.arrived();
        overlapped.settle();
      });
    } catch (error) {
      if (error instanceof StatusError) return Overlapped.failed<T>(error);
      throw error;
    }
    const overlapped = new Overlapped<T>(request);
    const returned = this.#control(request.block.event, context, request.block, code);
    if (request.started(returned)) return overlapped;
    door.port.forget(context);
    door.memory.release(request.block);
    return Overlapped.failed<T>(failure(returned, code));
  }

  /** Cancels pending requests. Their memory remains allocated until their packets have arrived. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.door.native.cancelIo(this.handle, 0, this.door.scratch);
    this.door.native.close(this.handle);
  }

  #control(event: Handle, context: number, block: RequestBlock, code: number): number {
    const { ioStatus, inputAt, inputLength, outputAt, outputLength } = block;
    return this.door.native.deviceIoControl(
      this.handle,
      event,
      context,
      ioStatus,
      code,
      inputAt,
      inputLength,
      outputAt,
      outputLength,
    );
  }

  #cancel(ioStatus: number): void {
    if (!this.#closed) this.door.native.cancelIo(this.handle, ioStatus, this.door.scratch);
  }
}
