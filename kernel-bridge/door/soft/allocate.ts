import { constants } from 'node:buffer';
import { freemem, constants as osConstants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../hca/index.js';
import { Status, StatusError, statusText } from '../../ioctl/status.js';

const { errno: system } = osConstants;

/** Options of `allocate()`. */
export interface AllocateOptions {
  /**
   * The array is on a SharedArrayBuffer, which a program can also pass to its Workers; default false. Node.js 24.16 or later, and from 25 on 26.1 or
   * later.
   */
  readonly shared?: boolean | undefined;
}

/** What both kinds of memory are on. */
export type AllocatedBytes = Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;

/** Allocates memory that another process of this host can map; see `allocate` of the package. */
export function allocate(bytes: number, { shared = false }: AllocateOptions = {}): AllocatedBytes {
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
  if (typeof shared !== 'boolean') {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `allocate: \`shared\` must be a boolean; got ${typeof shared}.`,
    );
  }
  const { status, errno, buffer } = loadAddon().allocateShared(bytes, shared);
  if (buffer === null) throw new StatusError(status, `allocate: ${reason(status, errno, bytes, shared)}`);
  return new Uint8Array(buffer) as AllocatedBytes;
}

/** 0: unknown. Node.js returns 0 without /proc, and if no file descriptor is left to read it. */
function availableBytes(): number {
  return process.availableMemory?.() || freemem();
}

function reason(status: number, errno: number, bytes: number, shared: boolean): string {
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
      if (errno === 0 && shared)
        return `a SharedArrayBuffer needs Node.js 24.16 or later, and from 25 on 26.1 or later; this is ${process.version}. Leave out \`shared\`.`;
      return errno === 0
        ? 'this runtime does not let native code make ArrayBuffers; use a buffer of its own.'
        : `the system refuses memory that processes can share (memfd_create: ${getSystemErrorName(-errno)}), as some sandboxes do; use a buffer of another kind.`;
    default:
      return statusText(status);
  }
}
