/**
 * Counters of a shared map, separate from its entries so that additions and evictions cannot conflict. A counter has 16 bytes: the hash of
 * its name and its value. The first user of a name claims the first free position from its hash on with an atomic operation. Positions are
 * never freed.
 */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { outOfRange, wrongType } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import type { RemoteMemory } from '../memory/remote-memory.js';
import type { KeyHash } from './key-hash.js';

export const COUNTER_BYTES = 16;
/** Maximum number of positions to check for one name. They are all in use only if nearly all positions of the map are. */
const MOST_POSITIONS = 1024;
const VALUE = 8;

/** @throws TypeError, RangeError */
export function checkAmount(amount: number): void {
  if (typeof amount !== 'number') throw wrongType(`\`amount\` must be a number; got ${shown(amount)}.`);
  if (!Number.isSafeInteger(amount))
    throw outOfRange(
      `\`amount\` must be an integer from -(2 ** 53 - 1) to 2 ** 53 - 1; got ${shown(amount)}.`,
    );
}

/** The hash of a name as stored in memory; not 0. */
function idOf(hash: KeyHash): bigint {
  return BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt.asUintN(32, BigInt(hash.tag)));
}

function full(counters: number): NetError {
  return new NetError(
    'ENOBUFS',
    `All ${counters} counters of the map are in use. Increase its option \`counters\`.`,
  );
}

/** The counters in the owner's memory. */
export class OwnCounters {
  readonly #words: BigInt64Array;
  readonly #places = new Map<string, number>();

  constructor(
    memory: Uint8Array,
    private readonly hash: KeyHash,
  ) {
    this.#words = new BigInt64Array(memory.buffer, memory.byteOffset, memory.length / 8);
  }

  /** Adds to a counter and returns the sum. */
  add(name: string, amount: number): number {
    const added = BigInt(amount);
    return Number(Atomics.add(this.#words, 2 * this.#placeOf(name) + 1, added) + added);
  }

  #placeOf(name: string): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.hash.of(name, 'name');
    const id = idOf(this.hash);
    const counters = this.#words.length / 2;
    for (const place of placesBehind(this.hash, counters)) {
      const before = Atomics.compareExchange(this.#words, 2 * place, 0n, id);
      if (before !== 0n && before !== id) continue;
      this.#places.set(name, place);
      return place;
    }
    throw full(counters);
  }
}

/** The counters in another process's memory. */
export class RemoteCounters {
  readonly #places = new Map<string, number>();

  constructor(
    private readonly memory: RemoteMemory,
    private readonly counters: number,
    private readonly hash: KeyHash,
  ) {}

  /** Adds synchronously and returns the sum. @throws NetError `ENOTSUP` */
  add(name: string, amount: number): number {
    const place = this.#places.get(name) ?? this.#find(name);
    return this.memory.addSync(place * COUNTER_BYTES + VALUE, amount) + amount;
  }

  /** Adds to a counter and resolves with the sum. */
  async addAsync(name: string, amount: number): Promise<number> {
    const place = this.#places.get(name) ?? (await this.#findAsync(name));
    return Number(
      (await this.memory.fetchAdd(place * COUNTER_BYTES + VALUE, BigInt(amount))) + BigInt(amount),
    );
  }

  #find(name: string): number {
    this.hash.of(name, 'name');
    const id = idOf(this.hash);
    for (const place of placesBehind(this.hash, this.counters)) {
      const before = this.#exchange(place * COUNTER_BYTES, id);
      if (before === 0n || before === id) return this.#keep(name, place);
    }
    throw full(this.counters);
  }

  async #findAsync(name: string): Promise<number> {
    this.hash.of(name, 'name');
    const id = idOf(this.hash);
    for (const place of placesBehind(this.hash, this.counters)) {
      const before = await this.memory.compareExchange(place * COUNTER_BYTES, 0n, id);
      if (before === 0n || before === id) return this.#keep(name, place);
    }
    throw full(this.counters);
  }

  #exchange(offset: number, id: bigint): bigint {
    try {
      return this.memory.compareExchangeSync(offset, 0n, id);
    } catch (error) {
      if (!(error instanceof NetError) || error.code !== 'ENOTSUP') throw error;
      throw new NetError('ENOTSUP', 'add: the counters cannot be accessed directly. Use addAsync().', {
        cause: error,
      });
    }
  }

  #keep(name: string, place: number): number {
    this.#places.set(name, place);
    return place;
  }
}

/** Positions for a name, beginning with that of its hash. The hash object may change meanwhile. */
function* placesBehind({ high }: KeyHash, counters: number): Generator<number> {
  const first = Math.floor((high * counters) / 2 ** 32);
  for (let i = 0; i < Math.min(counters, MOST_POSITIONS); i += 1) yield (first + i) % counters;
}
