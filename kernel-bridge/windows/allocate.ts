import { Status, StatusError } from '../ioctl/status.js';

/** Missing from the types of Node.js. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

const wasmPage = 65_536;
/** Maximum pages of a WebAssembly memory. */
const mostPages = 65_536;

const steady = new WeakSet<ArrayBufferLike>();

/** Whether this is memory of {@link allocateWindows}, which does not move while the buffer is referenced. */
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
 * Allocates memory that can be registered; see `allocate` of the package. It belongs to a WebAssembly.Memory that cannot grow and has no
 * other user. Its pages are aligned and zeroed. Neither a transfer nor a stream can detach it, and V8 frees it when it is unreferenced.
 */
export function allocateWindows(bytes: number): Uint8Array<ArrayBuffer> {
  const most = mostPages * wasmPage;
  if (!Number.isSafeInteger(bytes) || bytes < 1 || bytes > most) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `\`bytes\` must be an integer from 1 to ${most} on Windows; got ${String(bytes)}.`,
    );
  }
  const pages = Math.ceil(bytes / wasmPage);
  let buffer: ArrayBuffer;
  try {
    ({ buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages }));
  } catch (cause) {
    throw new StatusError(
      Status.NO_MEMORY,
      `Windows cannot allocate ${bytes} bytes. Release memory or request less.`,
      { cause },
    );
  }
  steady.add(buffer);
  return new Uint8Array(buffer, 0, bytes);
}
