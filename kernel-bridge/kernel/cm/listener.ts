/** Listeners and the requests that wait at them. */
import { gidEquals } from './address.js';
import type { Connection } from './connection.js';
import type { CmConnection, CmListenerControl, CmListenParameters, CmRequest, Gid } from './service.js';

/** Bounds of what peers can make this side keep. */
export const ListenerLimits = {
  /** Requests waiting at one listener whose owner set no limit. */
  perListener: 1024,
  /** Requests waiting at all listeners of a manager. */
  total: 4096,
} as const;

export class Listener implements CmListenerControl {
  readonly parameters: CmListenParameters;
  readonly #table: ListenerTable;
  /** In order of arrival. */
  readonly #waiting = new Set<Connection>();

  constructor(table: ListenerTable, parameters: CmListenParameters) {
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

  takeRequest(): { connection: CmConnection; request: CmRequest } | undefined {
    for (const connection of this.#waiting) {
      this.forget(connection);
      if (connection.received) return { connection, request: connection.received.request };
    }
    return undefined;
  }

  /** A request arrived. The owner is told at once. */
  add(connection: Connection): void {
    this.#waiting.add(connection);
    this.#table.waiting += 1;
    this.parameters.onRequest();
  }

  /** The request is taken, or is none any more. */
  forget(connection: Connection): void {
    if (this.#waiting.delete(connection)) this.#table.waiting -= 1;
  }

  close(): void {
    this.#table.remove(this);
    for (const connection of [...this.#waiting]) connection.abandon();
  }
}

/** All listeners of a manager, by service id. */
export class ListenerTable {
  /** Requests waiting at all of them. */
  waiting = 0;
  readonly #byService = new Map<bigint, Listener[]>();

  add(parameters: CmListenParameters): Listener {
    const listener = new Listener(this, parameters);
    this.#byService.set(parameters.serviceId, [
      ...(this.#byService.get(parameters.serviceId) ?? []),
      listener,
    ]);
    return listener;
  }

  remove(listener: Listener): void {
    const { serviceId } = listener.parameters;
    const left = (this.#byService.get(serviceId) ?? []).filter((other) => other !== listener);
    if (left.length > 0) this.#byService.set(serviceId, left);
    else this.#byService.delete(serviceId);
  }

  /** Whether anybody listens for this service id, on any address. */
  has(serviceId: bigint): boolean {
    return this.#byService.has(serviceId);
  }

  /** The listener on this very address, else the one on all addresses. */
  find(serviceId: bigint, address: Gid): Listener | undefined {
    const listeners = this.#byService.get(serviceId) ?? [];
    return (
      listeners.find(({ parameters }) => parameters.address && gidEquals(parameters.address, address)) ??
      listeners.find(({ parameters }) => !parameters.address)
    );
  }

  get all(): Listener[] {
    return [...this.#byService.values()].flat();
  }
}
