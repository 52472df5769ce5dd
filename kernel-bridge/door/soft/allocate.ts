import { constants } from 'node:buffer';
import { freemem, constants as osConstants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { loadAddon } from '../../hca/index.js';
import { shown } from '../../ioctl/shown.js';
import { Status, StatusError, statusText } from '../../ioctl/status.js';

const { errno: system } = osConstants;

/** Options of `allocate()`. */
export interface AllocateOptions {
  /**
   * Whether the array is backed by a SharedArrayBuffer, which a program can also pass to its Workers; default false.
   * Requires Node.js 24.16 or later in the 24.x line, otherwise 26.1 or later.
   */
  readonly shared?: boolean | undefined;
}

/** An array on either kind of buffer. */
export type AllocatedBytes = Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;

/** Allocates memory that another process on this host can map; see `allocate` of the package. */
export function allocate(bytes: number, options: AllocateOptions = {}): AllocatedBytes {
  const shared = sharedOf(options);
  const most = constants.MAX_LENGTH;
  if (!Number.isSafeInteger(bytes) || bytes < 1 || bytes > most) {
    invalid(`\`bytes\` must be an integer from 1 to ${most}; got ${shown(bytes)}`);
  }
  // All pages are allocated during the call. A request that exceeds the free memory would make the OS kill a process.
  const available = availableBytes();
  if (available > 0 && bytes > available) {
    throw new StatusError(
      Status.NO_MEMORY,
      `allocate: ${bytes} bytes exceed the free memory of this host (${available}); release memory or request less.`,
    );
  }
  const { status, errno, buffer } = loadAddon().allocateShared(bytes, shared);
  if (buffer === null) throw new StatusError(status, `allocate: ${reason(status, errno, bytes, shared)}`);
  return new Uint8Array(buffer) as AllocatedBytes;
}

function invalid(sentence: string): never {
  throw new StatusError(Status.INVALID_PARAMETER, `allocate: ${sentence}.`);
}

/** Checks the options, and returns the only one. @throws StatusError INVALID_PARAMETER */
export function sharedOf(options: AllocateOptions): boolean {
  if (typeof options !== 'object' || options === null)
    invalid(`\`options\` must be an object with shared; got ${shown(options)}`);
  for (const name of Object.keys(options))
    if (name !== 'shared') invalid(`\`options\` must contain only shared; got ${shown(name)}`);
  const { shared = false } = options;
  if (typeof shared !== 'boolean') invalid(`\`shared\` must be a boolean; got ${shown(shared)}`);
  return shared;
}

/** Free memory in bytes; 0: unknown. Node.js returns 0 without /proc, and if no file descriptor is left to read it. */
function availableBytes(): number {
  return process.availableMemory?.() || freemem();
}

function reason(status: number, errno: number, bytes: number, shared: boolean): string {
  switch (errno) {
    case system.EMFILE:
      return 'this process has no file descriptor left; close some, or raise its limit (RLIMIT_NOFILE, ulimit -n).';
    case system.ENFILE:
      return 'this host has no file descriptor left; close some, or raise fs.file-max.';
    case system.EFBIG:
      return `this process may not create files of ${bytes} bytes; raise its limit (RLIMIT_FSIZE, ulimit -f).`;
  }
  switch (status) {
    case Status.NO_MEMORY:
      return `this host does not have ${bytes} bytes of free memory; release memory or request less.`;
    case Status.NOT_SUPPORTED:
      if (errno === 0 && shared)
        return `a SharedArrayBuffer needs Node.js 24.16 or later 24.x, or 26.1 or later; got ${process.version}. Omit \`shared\`.`;
      return errno === 0
        ? 'this runtime does not allow native code to create ArrayBuffers; use an ordinary buffer.'
        : `the OS refuses memory that processes can share (memfd_create: ${getSystemErrorName(-errno)}), as some sandboxes do; use an ordinary buffer.`;
    default:
      return statusText(status);
  }
}
