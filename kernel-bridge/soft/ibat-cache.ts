import { IbatCode } from '../ioctl/codes.js';

/**
 * The IOCTLs that are cached: their answers hardly ever change, and they have no side effects. With the byte offsets of the sockaddr
 * ports in their inputs, which the cache key ignores, because no answer depends on a port.
 */
export const cachedAddresses: ReadonlyMap<number, readonly number[]> = new Map([
  [IbatCode.IP_TO_PORT, [6, 7]],
  [IbatCode.PATH, [6, 7, 34, 35]],
]);

/** Lifetime of an entry, in ms: the interval at which the kernel scans the host's interfaces. */
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
 * Cache of IBAT answers, so that a connection need not query its device and path again. An entry expires after a second, or when
 * the cache epoch changes. The epoch is a word that the kernel and its user share; the kernel increments it when an interface has
 * changed and when the kernel ends.
 */
export class IbatCache {
  readonly #cacheEpoch: Int32Array;
  readonly #now: () => number;
  #entries: Entry[] = [];
  #epoch = 0;

  constructor(cacheEpoch: Int32Array, now: () => number = () => performance.now()) {
    this.#cacheEpoch = cacheEpoch;
    this.#now = now;
  }

  /** The cached answer, or else that of `query`, which is cached. */
  answer(code: number, input: Uint8Array | null, outputLength: number, query: () => Uint8Array): Uint8Array {
    const ignored = cachedAddresses.get(code);
    if (input === null || ignored === undefined) return query();
    // Read before the query: a change during the query must invalidate its answer.
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
