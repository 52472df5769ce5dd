import { type AllocateOptions, allocate as allocateFromKernel } from '../kernel-bridge/index.js';
import { guarded } from './status.js';

/**
 * Allocates memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages where Linux has them. Register
 * it like any other buffer. The memory is a memfd. A connected process of the same user on this host maps all of it:
 * for reading when it receives data from it, and for writing if a registered key allows remote writes or atomics. Such
 * a peer executes its RDMA Writes, Reads and atomics directly in this memory, without using this process's CPU time
 * (option `direct`). All pages are allocated during the call. They are freed when the array has been collected, no part
 * of it is registered, and those processes, which are notified, have unmapped it.
 *
 * On Windows the memory is private to this process and cannot be detached. Each allocation uses at least 64 KiB and
 * some GiB of address space.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`; on Windows at most 4 GiB. Cut small buffers from one large
 *   allocation, because each allocation uses whole pages and a file descriptor.
 * @param options - `shared`: allocate a SharedArrayBuffer, which the program can also pass to its Workers
 * @throws WvError INVALID_PARAMETER, NO_MEMORY (the host does not have enough memory), INSUFFICIENT_RESOURCES (no file
 *   descriptor is left, or a limit of the process is lower), NOT_SUPPORTED (the OS refuses memfds, or the runtime has
 *   no external ArrayBuffers or SharedArrayBuffers)
 *
 * @example
 * ```ts
 * const memory = allocate(64 * 2 ** 20);
 * const region = pd.registerMemory(memory, WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ);
 * ```
 */
export function allocate(
  bytes: number,
  options?: { readonly shared?: false | undefined },
): Uint8Array<ArrayBuffer>;
/** Allocates a SharedArrayBuffer. Requires Node.js 24.16 or later in the 24.x line, otherwise 26.1 or later. */
export function allocate(bytes: number, options: { readonly shared: true }): Uint8Array<SharedArrayBuffer>;
/** Allocates an ArrayBuffer or a SharedArrayBuffer, depending on `options`. */
export function allocate(
  bytes: number,
  options?: AllocateOptions,
): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;
/** @internal */
export function allocate(
  bytes: number,
  options?: AllocateOptions,
): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer> {
  return guarded('allocate', () => allocateFromKernel(bytes, options));
}
