/** Counts, by source, what strangers can make this side keep. */
import { BY_WIRE } from '../../hca/soft-hca-binding.js';
import { gidKey } from './gids.js';
import type { Gid } from './service.js';

/**
 * The source of a message: a process on this host is identified by its slot, because all of them may have one address;
 * every other sender by its address. The engine's queue of MADs has the same rule.
 */
export function sourceOf(address: Gid, sender: number): string {
  return sender === BY_WIRE ? gidKey(address) : String(sender);
}

/** Items by source. Operations take constant time for any number of sources; {@link Shares.youngest} iterates over one source. */
export class Shares<T> {
  #size = 0;
  /** The items of each source, oldest first; the sources in round-robin order. */
  readonly #bySource = new Map<string, Set<T>>();
  /** Sources by their number of items; the last set is not empty. */
  readonly #byCount: Set<string>[] = [];

  get size(): number {
    return this.#size;
  }

  count(source: string): number {
    return this.#bySource.get(source)?.size ?? 0;
  }

  /** The items of a source, oldest first. */
  of(source: string): Iterable<T> {
    return this.#bySource.get(source) ?? [];
  }

  /** The sources, in round-robin order. */
  get sources(): Iterable<string> {
    return this.#bySource.keys();
  }

  /** A source with the most items. */
  get largest(): string | undefined {
    for (const source of this.#byCount.at(-1) ?? []) return source;
    return undefined;
  }

  /** The newest item of a source. */
  youngest(source: string): T | undefined {
    let last: T | undefined;
    for (const thing of this.of(source)) last = thing;
    return last;
  }

  add(source: string, thing: T): void {
    let things = this.#bySource.get(source);
    if (things === undefined) {
      things = new Set();
      this.#bySource.set(source, things);
    }
    if (things.has(thing)) return;
    things.add(thing);
    this.#size += 1;
    this.#counted(source, things.size - 1, things.size);
  }

  delete(source: string, thing: T): boolean {
    const things = this.#bySource.get(source);
    if (things?.delete(thing) !== true) return false;
    if (things.size === 0) this.#bySource.delete(source);
    this.#size -= 1;
    this.#counted(source, things.size + 1, things.size);
    return true;
  }

  /** Moves a source to the end of the round-robin order. */
  hadTurn(source: string): void {
    const things = this.#bySource.get(source);
    if (things === undefined) return;
    this.#bySource.delete(source);
    this.#bySource.set(source, things);
  }

  clear(): void {
    this.#size = 0;
    this.#bySource.clear();
    this.#byCount.length = 0;
  }

  #counted(source: string, before: number, after: number): void {
    const all = this.#byCount;
    all[before]?.delete(source);
    while (all.length <= after) all.push(new Set());
    if (after > 0) all[after]!.add(source);
    while (all.length > 0 && all.at(-1)!.size === 0) all.pop();
  }
}
