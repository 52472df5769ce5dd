import { Status, StatusError } from '../ioctl/status.js';

/** Node.js has it, its types have not. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

const wasmPage = 65_536;
/** A WebAssembly memory has at most so many pages. */
const mostPages = 65_536;

const steady = new WeakSet<ArrayBufferLike>();

/** Whether it is memory of {@link allocateWindows}, which stays in place as long as somebody holds the buffer. */
export function isSteady(buffer: ArrayBufferLike): boolean {
  return steady.has(buffer);
}

let wanted = false;

/** Makes `allocate()` of this thread return memory of {@link allocateWindows}, because a provider is open that requires it. */
export function wantSteady(): void {
  wanted = true;
}

/** Whether {@link wantSteady} was called. */
export function wantsSteady(): boolean {
  return wanted;
}

/**
 * Allocates memory that can be registered; see `allocate` of the package. It is the memory of a WebAssembly.Memory that nobody else has, and
 * that cannot grow. Its pages are the system's, aligned and zeroed. Neither a transfer nor a stream can take them away, and the engine frees
 * them once nobody holds them.
 */
export function allocateWindows(bytes: number): Uint8Array<ArrayBuffer> {
  const most = mostPages * wasmPage;
  if (!Number.isSafeInteger(bytes) || bytes < 1 || bytes > most) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `allocate: bytes is ${String(bytes)}; on Windows it must be a whole number from 1 to ${most}.`,
    );
  }
  const pages = Math.ceil(bytes / wasmPage);
  let buffer: ArrayBuffer;
  try {
    ({ buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages }));
  } catch (cause) {
    throw new StatusError(
      Status.NO_MEMORY,
      `allocate: Windows cannot allocate ${bytes} bytes; release memory or request less.`,
      { cause },
    );
  }
  steady.add(buffer);
  return new Uint8Array(buffer, 0, bytes);
}
