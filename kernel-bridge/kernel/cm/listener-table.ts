/** Listeners and the requests that wait at them. */
import { gidEquals } from './gids.js';
import type { CmListener, CmListenParameters, Gid } from './service.js';
import { Shares } from './shares.js';

/** Limits for stored requests of peers. */
export const ListenerLimits = {
  /** Requests waiting at a listener whose owner set no limit. */
  perListener: 1024,
  /** Requests waiting at all listeners of a manager. */
  total: 4096,
} as const;

/** A request that can wait: for a connection, or for a datagram service. */
export interface WaitingRequest<T> {
  /** The result of the listener's takeRequest(), once there is one. */
  readonly taken: T | undefined;
  /** The source of the request, as returned by {@link sourceOf}. */
  readonly source: string;
  abandon(): void;
  /** Drops the request without a reply because another source needs its slot; the peer repeats it. */
  displace(): void;
}

/** Decides which requests may be accepted now. */
export interface TakeGate<L> {
  /** Whether a request of this source may be accepted. */
  admits(source: string): boolean;
  /** Called for a listener with requests that may not be accepted yet; its owner is notified when they may. */
  hold(listener: L): void;
  /** Called when the listener is closed. */
  forget(listener: L): void;
}

/**
 * The outcome for a new request. It waits, or is refused because the owner's limit is reached, or is dropped because a
 * limit of this side is reached. The peer repeats a dropped request.
 */
export type Admission = 'waits' | 'refused' | 'dropped';

export class Listener<T> implements CmListener {
  readonly parameters: CmListenParameters;
  readonly #table: ListenerTable<T>;
  readonly #waiting = new Shares<WaitingRequest<T>>();

  constructor(table: ListenerTable<T>, parameters: CmListenParameters) {
    this.#table = table;
    this.parameters = {
      ...parameters,
      address: parameters.address && Uint8Array.from(parameters.address),
    };
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Makes room for one more request of a source. If no slot is free, the source with the most waiting requests loses its
   * newest one, provided that it has at least two more than this source. A source with few requests therefore finds
   * room.
   */
  admit(source: string): Admission {
    const { backlog } = this.parameters;
    const limit = backlog > 0 ? Math.min(backlog, ListenerLimits.perListener) : ListenerLimits.perListener;
    if (this.waiting >= limit && !this.#displaceFor(this.#waiting.count(source)))
      return limit === backlog ? 'refused' : 'dropped';
    return this.#table.hasRoomFor(this, source) ? 'waits' : 'dropped';
  }

  /** Displaces a request of the source with the most, for a source with `own` requests. */
  #displaceFor(own: number): boolean {
    const { largest } = this.#waiting;
    if (largest === undefined || this.#waiting.count(largest) < own + 2) return false;
    this.#waiting.youngest(largest)!.displace();
    return true;
  }

  /** If all listeners together are full, the one with the most requests yields a slot to one with fewer. */
  giveWayTo(other: Listener<T>, source: string): boolean {
    if (other === this) return this.#displaceFor(this.#waiting.count(source));
    return this.waiting >= other.waiting + 2 && this.#displaceFor(-1);
  }

  /** The oldest request of the source whose turn it is. */
  takeRequest(): T | undefined {
    const { gate } = this.#table;
    let held = false;
    for (const source of this.#waiting.sources) {
      if (gate?.admits(source) === false) {
        held = true;
        continue;
      }
      for (const waiting of this.#waiting.of(source)) {
        this.forget(waiting);
        if (!waiting.taken) continue;
        this.#waiting.hadTurn(source);
        return waiting.taken;
      }
    }
    if (held) gate?.hold(this);
    return undefined;
  }

  /** Adds a request that has arrived and reports it to the owner immediately. */
  add(request: WaitingRequest<T>): void {
    this.#waiting.add(request.source, request);
    this.#table.waiting += 1;
    this.parameters.onRequest();
  }

  /** Removes a request that was accepted or has ended. */
  forget(request: WaitingRequest<T>): void {
    if (this.#waiting.delete(request.source, request)) this.#table.waiting -= 1;
  }

  close(): void {
    this.#table.remove(this);
    this.#table.gate?.forget(this);
    for (const source of [...this.#waiting.sources])
      for (const request of [...this.#waiting.of(source)]) request.abandon();
  }
}

/** All listeners of a manager, by service id. */
export class ListenerTable<T> {
  /** Number of requests waiting at all listeners. */
  waiting = 0;
  readonly gate: TakeGate<Listener<T>> | undefined;
  readonly #byService = new Map<bigint, Listener<T>[]>();

  constructor(gate?: TakeGate<Listener<T>>) {
    this.gate = gate;
  }

  add(parameters: CmListenParameters): Listener<T> {
    const listener = new Listener<T>(this, parameters);
    this.#byService.set(parameters.serviceId, [
      ...(this.#byService.get(parameters.serviceId) ?? []),
      listener,
    ]);
    return listener;
  }

  remove(listener: Listener<T>): void {
    const { serviceId } = listener.parameters;
    const left = (this.#byService.get(serviceId) ?? []).filter((other) => other !== listener);
    if (left.length > 0) this.#byService.set(serviceId, left);
    else this.#byService.delete(serviceId);
  }

  /** Whether there is a listener for this service id, on any address. */
  has(serviceId: bigint): boolean {
    return this.#byService.has(serviceId);
  }

  /** The listener at exactly this address, otherwise one at all addresses that accepts this one. */
  find(serviceId: bigint, address: Gid): Listener<T> | undefined {
    const listeners = this.#byService.get(serviceId) ?? [];
    return (
      listeners.find(({ parameters }) => parameters.address && gidEquals(parameters.address, address)) ??
      listeners.find(({ parameters }) => !parameters.address && parameters.accepts?.(address) !== false)
    );
  }

  /** Whether one more request of this source may wait at this listener; makes room like {@link Listener.admit}. */
  hasRoomFor(listener: Listener<T>, source: string): boolean {
    if (this.waiting < ListenerLimits.total) return true;
    let fullest = listener;
    for (const other of this.all) if (other.waiting > fullest.waiting) fullest = other;
    return fullest.giveWayTo(listener, source);
  }

  get all(): Listener<T>[] {
    return [...this.#byService.values()].flat();
  }
}
