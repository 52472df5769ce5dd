import { constants } from 'node:buffer';
import { freemem } from 'node:os';
import { addon } from '../hca/index.js';
import { Status, StatusError, statusText } from '../ioctl/status.js';

/** Allocates memory that another process of this host can map; see `allocate` of the package. */
export function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  const most = constants.MAX_LENGTH;
  if (!Number.isSafeInteger(bytes) || bytes < 1 || bytes > most) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `allocate: bytes is ${String(bytes)}; it must be a whole number from 1 to ${most}.`,
    );
  }
  // The pages are allocated at once: a request beyond the free memory would make the system kill a process.
  const available = availableBytes();
  if (bytes > available) {
    throw new StatusError(
      Status.NO_MEMORY,
      `allocate: ${bytes} bytes are more than this host has free (${available}); release something or ask for less.`,
    );
  }
  const { status, buffer } = addon.allocateShared(bytes);
  if (buffer === null) throw new StatusError(status, `allocate: ${reason(status, bytes)}`);
  return new Uint8Array(buffer);
}

function availableBytes(): number {
  return process.availableMemory?.() ?? freemem();
}

function reason(status: number, bytes: number): string {
  switch (status) {
    case Status.NO_MEMORY:
      return `the system has no ${bytes} bytes for it; release something or ask for less.`;
    case Status.INSUFFICIENT_RESOURCES:
      return 'the process or the system has no file descriptor left for it, or forbids memfd_create; close some, or raise RLIMIT_NOFILE.';
    case Status.NOT_SUPPORTED:
      return 'this runtime does not let native code make ArrayBuffers; use a buffer of its own.';
    default:
      return statusText(status);
  }
}
