/** The user-side caches of a device file: addresses and P_Keys, and attributes of endpoints. */
import { IbatCode, IoctlCode } from '../../ioctl/codes.js';
import { epAttributesRoom, WvIoEpAttributes } from '../../ioctl/structs.js';

/**
 * The cached IOCTLs, whose outputs hardly ever change and which have no side effects. Each has the byte offsets of the
 * sockaddr ports in its input; the cache key ignores them, because no output depends on a port.
 */
export const cachedAnswers: ReadonlyMap<number, readonly number[]> = new Map<number, readonly number[]>([
  [IbatCode.IP_TO_PORT, [6, 7]],
  [IbatCode.PATH, [6, 7, 34, 35]],
  [IoctlCode.DEVICE_PKEY_QUERY, []],
]);

/** Lifetime of an entry in ms, equal to the interval of the kernel's scans of the host's interfaces. */
const lifetimeMs = 1000;
/** A program has few addresses and connects to few peers at a time. */
const maxEntries = 16;

interface Entry {
  readonly code: number;
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  readonly outputLength: number;
  readonly expiresAt: number;
}

function sameInput(a: Uint8Array, b: Uint8Array, ignored: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) {
    if (a[index] !== b[index] && !ignored.includes(index)) return false;
  }
  return true;
}

/**
 * A file's cache of {@link cachedAnswers}, so that a connection need not query its device, P_Keys and path again. An
 * entry expires after a second, or when the cache epoch changes. The epoch is a word shared by the kernel and its user.
 * The kernel increments it when an interface, a route or a P_Key table changes, when a peer gives up a connection that
 * is being established, when an endpoint loses its device, and when the kernel ends.
 */
export class AnswerCache {
  readonly #cacheEpoch: Int32Array;
  readonly #now: () => number;
  #entries: Entry[] = [];
  #epoch = 0;

  constructor(cacheEpoch: Int32Array, now: () => number = () => performance.now()) {
    this.#cacheEpoch = cacheEpoch;
    this.#now = now;
  }

  /** Returns the cached output, or that of `query`, which is then cached. */
  answer(code: number, input: Uint8Array | null, outputLength: number, query: () => Uint8Array): Uint8Array {
    const ignored = cachedAnswers.get(code);
    if (input === null || ignored === undefined) return query();
    // The epoch is read before the query, because a change during the query must invalidate its output.
    const epoch = Atomics.load(this.#cacheEpoch, 0);
    if (epoch !== this.#epoch) this.#entries = [];
    this.#epoch = epoch;
    const now = this.#now();
    const found = this.#entries.find(
      (entry) =>
        entry.code === code && entry.outputLength === outputLength && sameInput(entry.input, input, ignored),
    );
    if (found !== undefined && now < found.expiresAt) return found.output.slice();
    const output = query();
    if (found !== undefined || this.#entries.length >= maxEntries) {
      const evicted = found ?? this.#entries[0];
      this.#entries = this.#entries.filter((entry) => entry !== evicted);
    }
    this.#entries.push({
      code,
      input: input.slice(),
      output: output.slice(),
      outputLength,
      expiresAt: now + lifetimeMs,
    });
    return output;
  }
}

interface Prefetch {
  /** The cache epoch when the request was sent. */
  readonly epoch: number;
  /** The attributes, once the request has succeeded. */
  output: Uint8Array | undefined;
}

/** The object id at this offset; -1 if it is out of range for an id of the kernel. */
function idAt(input: Uint8Array | null, at: number): number {
  if (input === null || input.length < at + 8 || input[at + 7] !== 0 || (input[at + 6] ?? 0) > 15) return -1;
  let id = 0;
  for (let i = 6; i >= 0; i--) id = id * 256 + input[at + i]!;
  return id;
}

/**
 * Prefetch for EP_QUERY: the attributes of an endpoint are returned with EP_CONNECT and EP_GET_REQUEST and serve later
 * EP_QUERYs. Programs send these next, because the attributes contain the peer's private data. The kernel returns the
 * attributes if the output has room. They are discarded by any request that may change them, and by a new cache epoch,
 * which the kernel begins when they change for another reason.
 */
export class AttributePrefetch {
  readonly #cacheEpoch: Int32Array;
  readonly #prefetched = new Map<number, Prefetch>();

  constructor(cacheEpoch: Int32Array) {
    this.#cacheEpoch = cacheEpoch;
  }

  /** Discards the attributes of the endpoint that the request may change. Call it before the request is sent. */
  discard(input: Uint8Array | null): void {
    if (this.#prefetched.size > 0) this.#prefetched.delete(idAt(input, 0));
  }

  /**
   * Call it before an EP_CONNECT or EP_GET_REQUEST is sent with room for {@link epAttributesRoom} bytes. Returns the
   * function that accepts its output.
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

  /** The output of an EP_QUERY. Undefined: send the request to the kernel. */
  take(input: Uint8Array | null, outputLength: number): Uint8Array | undefined {
    if (outputLength !== epAttributesRoom || this.#prefetched.size === 0) return undefined;
    const id = idAt(input, 0);
    const prefetch = this.#prefetched.get(id);
    if (prefetch?.output === undefined) return undefined;
    if (prefetch.epoch === Atomics.load(this.#cacheEpoch, 0)) return prefetch.output.slice();
    this.#prefetched.delete(id);
    return undefined;
  }
}
