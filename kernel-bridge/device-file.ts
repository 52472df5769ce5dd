import type { Overlapped } from './overlapped.js';

/**
 * Door 1: a file on a device of the kernel, `\\.\WinVerbs` or `\\.\ibat`. Every request is a buffered IOCTL: bytes in,
 * bytes out, copied in both directions (METHOD_BUFFERED). The soft kernel and Windows take the same bytes.
 */
export interface DeviceFile {
  readonly name: string;
  readonly closed: boolean;

  /**
   * A blocking IOCTL: waits natively until the kernel has completed it, and returns the output, as many bytes as
   * `IoStatus.Information` says (never more than `outputLength`).
   *
   * @throws StatusError with the request's NTSTATUS for everything but SUCCESS; INVALID_PARAMETER for invalid
   *   arguments.
   */
  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array;

  /** An overlapped IOCTL: returns at once. `decode` makes the result from the output bytes on completion. */
  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T>;

  /** Closes the file: pending requests end in CANCELLED, and the kernel frees all objects of the file. */
  close(): void;
}
