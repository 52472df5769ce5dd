import { allocate as allocateFromWinVerbs, StatusError } from '../winverbs/index.js';
import { NdError } from './status.js';

/**
 * Memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages where the system has them. Register it
 * like any other buffer, with either version of the SPI. It is a memfd. When a process of the same user on this host
 * receives data from it, that process maps all of it for reading and copies from there, two to three times as fast as
 * from other memory. The pages are allocated at once. They are freed when the array was collected, nothing of it is
 * registered any more, and such processes, which are notified, have unmapped it. Not a part of the SPI, where C has any
 * allocator.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`. Cut small buffers from one large allocation, because each
 *   allocation takes whole pages and a file descriptor.
 * @throws NdError INVALID_PARAMETER; NO_MEMORY: the host has not enough memory; INSUFFICIENT_RESOURCES: no file
 *   descriptor is left, or a limit of the process is lower; NOT_SUPPORTED: the system refuses memfds, or the runtime
 *   has no external ArrayBuffers.
 *
 * @example
 * ```ts
 * const memory = allocate(64 * 2 ** 20);
 * await region.register(memory, NdMrFlag.ALLOW_LOCAL_WRITE);
 * ```
 */
export function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  try {
    return allocateFromWinVerbs(bytes);
  } catch (error) {
    throw error instanceof StatusError ? new NdError(error.status, error.message, { cause: error }) : error;
  }
}
