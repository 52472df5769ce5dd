/** Listeners and the requests that wait at them. */
import { gidEquals } from './address.js';
import type { CmListener, CmListenParameters, Gid } from './service.js';

/** Bounds of what peers can make this side keep. */
export const ListenerLimits = {
  /** Requests waiting at one listener whose owner set no limit. */
  perListener: 1024,
  /** Requests waiting at all listeners of a manager. */
  total: 4096,
} as const;

/** A request that may wait: a connection, or a question for a service. */
export interface WaitingRequest<T> {
  /** What its listener's owner gets. */
  readonly taken: T | undefined;
  abandon(): void;
}

export class Listener<T> implements CmListener {
  readonly parameters: CmListenParameters;
  readonly #table: ListenerTable<T>;
  /** In order of arrival. */
  readonly #waiting = new Set<WaitingRequest<T>>();

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

  /** Whether one more request may wait here. */
  get hasRoom(): boolean {
    const { backlog } = this.parameters;
    const limit = backlog > 0 ? Math.min(backlog, ListenerLimits.perListener) : ListenerLimits.perListener;
    return this.#waiting.size < limit && this.#table.waiting < ListenerLimits.total;
  }

  takeRequest(): T | undefined {
    for (const waiting of this.#waiting) {
      this.forget(waiting);
      if (waiting.taken) return waiting.taken;
    }
    return undefined;
  }

  /** A request arrived. The owner is told at once. */
  add(request: WaitingRequest<T>): void {
    this.#waiting.add(request);
    this.#table.waiting += 1;
    this.parameters.onRequest();
  }

  /** The request is taken, or is none any more. */
  forget(request: WaitingRequest<T>): void {
    if (this.#waiting.delete(request)) this.#table.waiting -= 1;
  }

  close(): void {
    this.#table.remove(this);
    for (const request of [...this.#waiting]) request.abandon();
  }
}

/** All listeners of a manager, by service id. */
export class ListenerTable<T> {
  /** Requests waiting at all of them. */
  waiting = 0;
  readonly #byService = new Map<bigint, Listener<T>[]>();

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

  /** Whether anybody listens for this service id, on any address. */
  has(serviceId: bigint): boolean {
    return this.#byService.has(serviceId);
  }

  /** The listener on this very address, else one on all addresses that takes this one. */
  find(serviceId: bigint, address: Gid): Listener<T> | undefined {
    const listeners = this.#byService.get(serviceId) ?? [];
    return (
      listeners.find(({ parameters }) => parameters.address && gidEquals(parameters.address, address)) ??
      listeners.find(({ parameters }) => !parameters.address && parameters.accepts?.(address) !== false)
    );
  }

  get all(): Listener<T>[] {
    return [...this.#byService.values()].flat();
  }
}
