/**
 * Accepted connections whose peers have not replied yet. To accept a connection, a program creates a queue pair and
 * memory, so requests from strangers must not cause an unlimited number of them: while a source has its share, or there
 * are too many in total, further requests wait at their listeners. Only a peer that has received the REP can end the
 * wait: with an RTU, with its first packet, or with an MRA, which announces that its program is about to decide.
 */
import type { Connection } from './connection.js';
import type { Listener, TakeGate } from './listener-table.js';
import type { CmConnection, CmPlatform, CmRequest, CmState, CmTimer } from './service.js';
import { Shares } from './shares.js';

/** Limits of accepted connections without a reply. */
export const HalfOpenLimits = {
  /** Maximum for one source; at this limit, none of its requests is accepted. */
  perSource: 32,
  /** Maximum for a manager; at this limit, no request is accepted. */
  total: 128,
  /**
   * In milliseconds. While a request waits for a slot, the REP to the owners of slots is repeated after this time at
   * most; an owner that does not reply within the same time again loses its slot.
   */
  answerMs: 250,
} as const;

type TakingListener = Listener<{ connection: CmConnection; request: CmRequest }>;

export class HalfOpen implements TakeGate<TakingListener> {
  readonly #platform: CmPlatform;
  readonly #count: (counter: string) => void;
  readonly #accepted = new Shares<Connection>();
  /** Connections whose REP was repeated because others wait. */
  readonly #reminded = new Set<Connection>();
  /** Listeners with requests that may not be accepted yet. */
  readonly #held = new Set<TakingListener>();
  /** Sources with requests that wait for other connections of the same source. */
  readonly #crowded = new Set<string>();
  /** Timer for the replies. */
  #replyTimer: CmTimer | undefined;
  /** Timer that wakes the listeners on the next turn. */
  #wake: CmTimer | undefined;

  constructor(platform: CmPlatform, count: (counter: string) => void) {
    this.#platform = platform;
    this.#count = count;
  }

  get size(): number {
    return this.#accepted.size;
  }

  /** Updates the counts after a state change of a passive connection. */
  changed(connection: Connection, before: CmState): void {
    const { source } = connection;
    if (connection.state === 'repSent') this.#accepted.add(source, connection);
    else if (before === 'repSent') {
      this.#accepted.delete(source, connection);
      this.#reminded.delete(connection);
      if (this.#held.size > 0) this.#wake ??= this.#platform.setTimer(0, () => this.#notifyListeners());
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
    this.#replyTimer ??= this.#platform.setTimer(HalfOpenLimits.answerMs, () => this.#demandAnswers());
  }

  forget(listener: TakingListener): void {
    this.#held.delete(listener);
    if (this.#held.size === 0) this.clear();
  }

  /** Forgets the held listeners and stops the timers. */
  clear(): void {
    this.#held.clear();
    this.#crowded.clear();
    this.#replyTimer?.cancel();
    this.#wake?.cancel();
    this.#replyTimer = undefined;
    this.#wake = undefined;
  }

  /** Sources whose slots others need: the crowded ones and, if no slot is left, all with at least half as many as the largest. */
  #demanded(): Set<string> {
    const demanded = new Set(this.#crowded);
    const { largest, size, sources } = this.#accepted;
    if (largest === undefined || size < HalfOpenLimits.total) return demanded;
    const half = this.#accepted.count(largest) / 2;
    for (const source of sources) if (this.#accepted.count(source) >= half) demanded.add(source);
    return demanded;
  }

  #demandAnswers(): void {
    this.#replyTimer = undefined;
    for (const source of this.#demanded()) {
      for (const connection of [...this.#accepted.of(source)]) {
        if (this.#reminded.has(connection)) {
          this.#count('halfOpen.displaced');
          connection.dispatch('exhausted');
        } else {
          this.#reminded.add(connection);
          connection.dispatch('timeout');
        }
      }
    }
    this.#notifyListeners();
  }

  /** Lets owners of listeners accept requests again. Listeners without a free slot are held anew. */
  #notifyListeners(): void {
    this.#wake?.cancel();
    this.#wake = undefined;
    const held = [...this.#held];
    this.#held.clear();
    this.#crowded.clear();
    for (const listener of held) if (listener.waiting > 0) listener.parameters.onRequest();
    if (this.#held.size === 0) this.clear();
  }
}
