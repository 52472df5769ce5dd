/**
 * Accepted connections whose peers have not answered yet. Whoever accepts a connection has made a queue pair and memory
 * for it, so a stranger's requests must not bring about any number of them: as long as a source has its share of them,
 * or all together are too many, further requests wait at their listeners. Only a peer that has seen the REP can end the
 * wait: by an RTU, by its first packet, or by an MRA, which says that its program is about to decide.
 */
import type { Connection } from './connection.js';
import type { Listener, TakeGate } from './listener-table.js';
import type { CmConnection, CmPlatform, CmRequest, CmState, CmTimer } from './service.js';
import { Shares } from './shares.js';

/** Limits of connections that were accepted and not answered. */
export const HalfOpenLimits = {
  /** Of one source: while it has so many, none of its requests is taken. */
  perSource: 32,
  /** Of a manager: while it has so many, no request is taken. */
  total: 128,
  /**
   * Milliseconds. While a request waits for a place, the places' owners are asked again after this time at most, by
   * another REP; who does not answer that within the same time again gives the place up.
   */
  answerMs: 250,
} as const;

type TakingListener = Listener<{ connection: CmConnection; request: CmRequest }>;

export class HalfOpen implements TakeGate<TakingListener> {
  readonly #platform: CmPlatform;
  readonly #count: (counter: string) => void;
  readonly #accepted = new Shares<Connection>();
  /** Those whose REP was repeated because others wait. */
  readonly #asked = new Set<Connection>();
  /** Listeners with requests that may not be taken yet. */
  readonly #held = new Set<TakingListener>();
  /** Sources with requests that wait for other connections of the same source. */
  readonly #crowded = new Set<string>();
  /** Ends the wait for answers. */
  #patience: CmTimer | undefined;
  /** Wakes the listeners, soon. */
  #wake: CmTimer | undefined;

  constructor(platform: CmPlatform, count: (counter: string) => void) {
    this.#platform = platform;
    this.#count = count;
  }

  get size(): number {
    return this.#accepted.size;
  }

  /** Follows a state change of a passive connection. */
  changed(connection: Connection, before: CmState): void {
    const { source } = connection;
    if (connection.state === 'repSent') this.#accepted.add(source, connection);
    else if (before === 'repSent') {
      this.#accepted.delete(source, connection);
      this.#asked.delete(connection);
      if (this.#held.size > 0) this.#wake ??= this.#platform.setTimer(0, () => this.#tellListeners());
    }
  }

  admits(source: string): boolean {
    if (this.#accepted.size >= HalfOpenLimits.total) return false;
    if (this.#accepted.count(source) < HalfOpenLimits.perSource) return true;
    this.#crowded.add(source);
    return false;
  }

  hold(listener: TakingListener): void {
    this.#held.add(listener);
    this.#patience ??= this.#platform.setTimer(HalfOpenLimits.answerMs, () => this.#demandAnswers());
  }

  forget(listener: TakingListener): void {
    this.#held.delete(listener);
    if (this.#held.size === 0) this.clear();
  }

  /** Nothing is held back any more. */
  clear(): void {
    this.#held.clear();
    this.#crowded.clear();
    this.#patience?.cancel();
    this.#wake?.cancel();
    this.#patience = undefined;
    this.#wake = undefined;
  }

  /** Whose places others wait for: the crowded sources, and if no place is left, all that have half of the largest one's at least. */
  #demanded(): Set<string> {
    const demanded = new Set(this.#crowded);
    const { largest, size, sources } = this.#accepted;
    if (largest === undefined || size < HalfOpenLimits.total) return demanded;
    const half = this.#accepted.count(largest) / 2;
    for (const source of sources) if (this.#accepted.count(source) >= half) demanded.add(source);
    return demanded;
  }

  #demandAnswers(): void {
    this.#patience = undefined;
    for (const source of this.#demanded()) {
      for (const connection of [...this.#accepted.of(source)]) {
        if (this.#asked.has(connection)) {
          this.#count('halfOpen.displaced');
          connection.dispatch('exhausted');
        } else {
          this.#asked.add(connection);
          connection.dispatch('timeout');
        }
      }
    }
    this.#tellListeners();
  }

  /** Their owners may take requests again. Those for which there is no place yet are held anew. */
  #tellListeners(): void {
    this.#wake?.cancel();
    this.#wake = undefined;
    const held = [...this.#held];
    this.#held.clear();
    this.#crowded.clear();
    for (const listener of held) if (listener.waiting > 0) listener.parameters.onRequest();
    if (this.#held.size === 0) this.clear();
  }
}
