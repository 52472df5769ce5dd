/** Listeners and the requests that wait at them. */
import { gidEquals } from './address.js';
import type { CmListener, CmListenParameters, Gid } from './service.js';

/** Limits for requests that peers make this side store. */
export const ListenerLimits = {
  /** Waiting requests at one listener whose owner set no limit. */
  perListener: 1024,
  /** Waiting requests at all listeners of a manager. */
  total: 4096,
} as const;

/** A request that can wait: a connection, or a look-up of a service. */
export interface WaitingRequest<T> {
  /** The result of the listener's takeRequest(), once there is one. */
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

  /** A request has arrived; reports it to the owner at once. */
  add(request: WaitingRequest<T>): void {
    this.#waiting.add(request);
    this.#table.waiting += 1;
    this.parameters.onRequest();
  }

  /** The request was taken, or is over. */
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
  /** Number of waiting requests at all of them. */
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

  /** The listener at exactly this address, else one at all addresses that accepts this one. */
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
