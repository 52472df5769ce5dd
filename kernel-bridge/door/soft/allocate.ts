import { constants } from 'node:buffer';
import { freemem, constants as osConstants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../hca/index.js';
import { Status, StatusError, statusText } from '../../ioctl/status.js';

const { errno: system } = osConstants;

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
  if (available > 0 && bytes > available) {
    throw new StatusError(
      Status.NO_MEMORY,
      `allocate: ${bytes} bytes are more than this host has free (${available}); release something or ask for less.`,
    );
  }
  const { status, errno, buffer } = loadAddon().allocateShared(bytes);
  if (buffer === null) throw new StatusError(status, `allocate: ${reason(status, errno, bytes)}`);
  return new Uint8Array(buffer);
}

/** 0: unknown. Node.js returns 0 without /proc, and if no file descriptor is left to read it. */
function availableBytes(): number {
  return process.availableMemory?.() || freemem();
}

function reason(status: number, errno: number, bytes: number): string {
  switch (errno) {
    case system.EMFILE:
      return 'this process has no file descriptor left for it; close some, or raise its limit (RLIMIT_NOFILE, ulimit -n).';
    case system.ENFILE:
      return 'the system has no file descriptor left for it; close some, or raise fs.file-max.';
    case system.EFBIG:
      return `this process may not make files of ${bytes} bytes; raise its limit (RLIMIT_FSIZE, ulimit -f).`;
  }
  switch (status) {
    case Status.NO_MEMORY:
      return `the system has no ${bytes} bytes for it; release something or ask for less.`;
    case Status.NOT_SUPPORTED:
      return errno === 0
        ? 'this runtime does not let native code make ArrayBuffers; use a buffer of its own.'
        : `the system refuses memory that processes can share (memfd_create: ${getSystemErrorName(-errno)}), as some sandboxes do; use a buffer of another kind.`;
    default:
      return statusText(status);
  }
}
