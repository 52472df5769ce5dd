import type { Overlapped } from './overlapped.js';

/**
 * Door 1: a file on a device of the kernel, `\\.\WinVerbs` or `\\.\ibat`. Every request is a buffered IOCTL:
 * bytes in, bytes out, copied in both directions (METHOD_BUFFERED). The same bytes go through the soft kernel's
 * door and through Windows'.
 */
export interface DeviceFile {
  readonly name: string;
  readonly closed: boolean;

  /**
   * A blocking IOCTL: waits natively until the kernel has completed it and answers the output bytes, as many as
   * `IoStatus.Information` says (never more than `outputLength`).
   *
   * @throws StatusError with the request's NTSTATUS, for everything but SUCCESS; INVALID_PARAMETER for arguments that are no request.
   */
  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array;

  /**
   * An overlapped IOCTL: returns at once. `decode` makes the result of the output bytes when it completes.
   */
  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T>;

  /** Closes the file: pending requests end in CANCELLED, and the kernel frees all that the file owned. */
  close(): void;
}
