import { IoctlCode } from '../ioctl/codes.js';
import { epAttributesRoom, WvIoEpAttributes } from '../ioctl/structs.js';

interface Prefetch {
  /** The cache epoch when the request was sent. */
  readonly epoch: number;
  /** The attributes, once the request has succeeded. */
  output: Uint8Array | undefined;
}

/** The object id at this offset; -1 if the kernel gives no object such an id. */
function idAt(input: Uint8Array | null, at: number): number {
  if (input === null || input.length < at + 8 || input[at + 7] !== 0 || (input[at + 6] ?? 0) > 15) return -1;
  let id = 0;
  for (let i = 6; i >= 0; i--) id = id * 256 + input[at + i]!;
  return id;
}

/**
 * Prefetch for EP_QUERY: an endpoint's attributes ride on EP_CONNECT and EP_GET_REQUEST and serve one later EP_QUERY. A program
 * sends that query next, because the attributes hold the peer's private data. The kernel returns them where the output has room. Any
 * other request for the endpoint discards them, and so does a new cache epoch, which the kernel begins when they change otherwise.
 */
export class AttributePrefetch {
  readonly #cacheEpoch: Int32Array;
  readonly #prefetched = new Map<number, Prefetch>();

  constructor(cacheEpoch: Int32Array) {
    this.#cacheEpoch = cacheEpoch;
  }

  /** Call before a request is sent: it discards the attributes of the endpoint that the request may change. */
  discard(input: Uint8Array | null): void {
    if (this.#prefetched.size > 0) this.#prefetched.delete(idAt(input, 0));
  }

  /**
   * Call before an EP_CONNECT or EP_GET_REQUEST is sent with room for {@link epAttributesRoom} bytes. Returns the function that takes its
   * output.
   */
  expect(code: number, input: Uint8Array | null): (output: Uint8Array) => void {
    const id = idAt(input, code === IoctlCode.EP_GET_REQUEST ? 8 : 0);
    const prefetch: Prefetch = { epoch: Atomics.load(this.#cacheEpoch, 0), output: undefined };
    if (id > 0) this.#prefetched.set(id, prefetch);
    return (output) => {
      if (this.#prefetched.get(id) !== prefetch) return;
      if (output.length >= WvIoEpAttributes.size) prefetch.output = output;
      else this.#prefetched.delete(id);
    };
  }

  /** The answer to an EP_QUERY; undefined: send the request to the kernel. */
  take(input: Uint8Array | null, outputLength: number): Uint8Array | undefined {
    if (outputLength !== epAttributesRoom || this.#prefetched.size === 0) return undefined;
    const id = idAt(input, 0);
    const prefetch = this.#prefetched.get(id);
    if (prefetch?.output === undefined) return undefined;
    this.#prefetched.delete(id);
    return prefetch.epoch === Atomics.load(this.#cacheEpoch, 0) ? prefetch.output : undefined;
  }
}
