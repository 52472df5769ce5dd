import { ioctlName } from '../ioctl/codes.js';
import { kindOf, shown } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { Overlapped } from './overlapped.js';

/**
 * The control path: a file on a device of the kernel, `\\.\WinVerbs` or `\\.\ibat`. Every request is a buffered IOCTL,
 * whose bytes are copied in and out (METHOD_BUFFERED). The soft kernel and Windows accept the same bytes.
 */
export interface DeviceFile {
  /** The name that the file was opened with. */
  readonly name: string;
  /** Whether {@link close} was called or the kernel has ended. If so, requests throw INVALID_HANDLE. */
  readonly closed: boolean;
  /**
   * Whether the kernel supports this package's extension of WinVerbs' inputs: private data of an Accept beyond its
   * structure. The soft kernel does; Windows drivers do not.
   */
  readonly extended: boolean;

  /**
   * Whether the kernel has the option `link: 'local'`. It then has no UDP socket, and requests that need one fail with
   * NOT_SUPPORTED.
   */
  readonly localOnly: boolean;

  /**
   * A blocking IOCTL: waits natively until the kernel has completed it. Returns the output, whose length is
   * `IoStatus.Information` bytes (at most `outputLength`). With `outputAt`, a Windows driver writes the output to that
   * native address, and nothing is returned.
   *
   * @throws StatusError with the request's NTSTATUS for everything but SUCCESS; INVALID_PARAMETER for invalid
   * arguments.
   */
  ioctl(code: number, input: Uint8Array | null, outputLength: number, outputAt?: number): Uint8Array;

  /** An overlapped IOCTL: returns without waiting. `decode` derives the result from the output bytes on completion. */
  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    outputAt?: number,
  ): Overlapped<T>;

  /** Closes the file: pending requests complete with CANCELED, and the kernel destroys all objects of the file. */
  close(): void;
}

/** The error of a request on a closed file. */
export function closedError(name: string, code: number): StatusError {
  return new StatusError(
    Status.INVALID_HANDLE,
    `${ioctlName(code)}: the file ${name} is closed; open a new one.`,
  );
}

/** The error for arguments that cannot be passed to the kernel. */
export function wrongRequest(code: number, input: unknown, outputLength: number): StatusError | undefined {
  if (code >>> 0 !== code) return invalid(`\`code\` must be an unsigned 32-bit integer; got ${shown(code)}.`);
  if (outputLength >>> 0 !== outputLength) {
    return invalid(
      `${ioctlName(code)}: \`outputLength\` must be an unsigned 32-bit integer; got ${shown(outputLength)}.`,
    );
  }
  if (input === null || input instanceof Uint8Array) return undefined;
  return invalid(`${ioctlName(code)}: \`input\` must be a Uint8Array or null; got ${kindOf(input)}.`);
}

function invalid(message: string): StatusError {
  return new StatusError(Status.INVALID_PARAMETER, message);
}
