import { ioctlName } from '../ioctl/codes.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { Overlapped } from './overlapped.js';

/**
 * Door 1: a file on a device of the kernel, `\\.\WinVerbs` or `\\.\ibat`. Every request is a buffered IOCTL: bytes in,
 * bytes out, copied in both directions (METHOD_BUFFERED). The soft kernel and Windows take the same bytes.
 */
export interface DeviceFile {
  /** The name that it was opened by. */
  readonly name: string;
  /** {@link close} was called, or the kernel has ended: requests throw INVALID_HANDLE. */
  readonly closed: boolean;
  /**
   * Whether the kernel takes this package's extensions of WinVerbs' inputs: private data of an Accept that is longer than its
   * structure. The soft kernel does; a Windows driver does not.
   */
  readonly extended: boolean;

  /** The kernel has the option `link: 'local'`: no UDP socket, so that requests which need one end in NOT_SUPPORTED. */
  readonly localOnly: boolean;

  /**
   * A blocking IOCTL: waits natively until the kernel has completed it, and returns the output, as many bytes as
   * `IoStatus.Information` says (never more than `outputLength`). A driver of the system writes the output to the native address
   * `outputAt`, if there is one, and nothing is returned.
   *
   * @throws StatusError with the request's NTSTATUS for everything but SUCCESS; INVALID_PARAMETER for invalid
   *   arguments.
   */
  ioctl(code: number, input: Uint8Array | null, outputLength: number, outputAt?: number): Uint8Array;

  /** An overlapped IOCTL: returns at once. `decode` makes the result from the output bytes on completion. */
  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    outputAt?: number,
  ): Overlapped<T>;

  /** Closes the file: pending requests end in CANCELED, and the kernel frees all objects of the file. */
  close(): void;
}

/** The error of a request on a closed file. */
export function closedError(name: string, code: number): StatusError {
  return new StatusError(
    Status.INVALID_HANDLE,
    `${ioctlName(code)}: the file ${name} is closed; open a new one.`,
  );
}

/** The error for arguments that cannot be handed to the kernel. */
export function wrongRequest(code: number, input: unknown, outputLength: number): StatusError | undefined {
  if (code >>> 0 !== code)
    return invalid(`The code of an IOCTL is ${shown(code)}; it is a whole number of 32 bits.`);
  if (outputLength >>> 0 !== outputLength) {
    return invalid(
      `${ioctlName(code)}: the output length is ${shown(outputLength)}; it is a whole number of bytes below 2^32.`,
    );
  }
  if (input === null || input instanceof Uint8Array) return undefined;
  return invalid(`${ioctlName(code)}: the input is ${shown(input)}; it is a Uint8Array, or null for none.`);
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : `of type ${typeof value}`;
}

function invalid(message: string): StatusError {
  return new StatusError(Status.INVALID_PARAMETER, message);
}
