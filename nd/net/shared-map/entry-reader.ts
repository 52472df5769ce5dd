import { outOfRange } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import { ABSENT, CHANGING, type EntryLookup } from './entry-lookup.js';
import type { KeyHash } from './key-hash.js';

/** Looks at an entry that the owner is changing, before the reader sleeps between them. */
const SPINS = 100;
const SLEEP_MS = 0.05;
/** Sleeps until a reader gives up: 100 ms and more. The longest change takes less than 1 ms, but the owner may have been stopped in it. */
const SLEEPS = 2000;

/** Bytes that are copied one by one faster than by a call. */
const SHORT = 96;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Copies values out of memory in which the owner may change them at any time. */
export class EntryReader {
  constructor(
    private readonly lookup: EntryLookup,
    private readonly hash: KeyHash,
  ) {}

  /** Whether there is an entry with the key. */
  has(key: string): boolean {
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length !== CHANGING) return length >= 0;
      waitFor(looks);
    }
  }

  /** A copy of the value. */
  get(key: string): Buffer | undefined {
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return undefined;
      if (length >= 0) {
        const value = Buffer.allocUnsafe(length);
        this.#copy(value, length);
        if (this.lookup.whole) return value;
      }
      waitFor(looks);
    }
  }

  /** Copies the value. Returns its length; -1: there is none. */
  getInto(key: string, target: Uint8Array): number {
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return -1;
      if (length >= 0) {
        const fits = length <= target.length;
        if (fits) this.#copy(target, length);
        if (this.lookup.whole) {
          if (fits) return length;
          throw outOfRange(
            `\`target\` must have at least the ${length} bytes of the value; got ${target.length}.`,
          );
        }
      }
      waitFor(looks);
    }
  }

  #copy(target: Uint8Array, length: number): void {
    const { bytes, at } = this.lookup;
    if (length <= SHORT) for (let i = 0; i < length; i += 1) target[i] = bytes[at + i]!;
    else target.set(bytes.subarray(at, at + length));
  }
}

/** The owner is changing the entry. @throws NetError `EBUSY`: for a long time */
function waitFor(looks: number): void {
  if (looks < SPINS) return;
  if (looks < SPINS + SLEEPS) {
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
    return;
  }
  throw new NetError(
    'EBUSY',
    "The map's owner has stopped while it was changing this entry. Use getAsync(), which waits for it.",
  );
}
