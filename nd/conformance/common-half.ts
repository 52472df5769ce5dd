import type { GetResultOptions, NdNotifyType, SocketAddress } from '../index.js';
import { Status } from '../index.js';
import type { HalfAddress, Outcome, Post, Posted, Target } from './half.js';
import { patternByte } from './half.js';
import { type MemorySource, plainMemory } from './memory-source.js';

/** Members of an overlapped request that halves use. */
export interface Request extends PromiseLike<unknown> {
  readonly completed: boolean;
  readonly status: number;
  getResult(options?: GetResultOptions): unknown;
  cancel(): void;
}

/** Members of an object with overlapped requests that halves use. */
export interface Owner {
  cancelOverlappedRequests(): void;
  release(): number;
}

/** Members of a completion queue, common to both versions, that halves use. */
export interface AnyQueue extends Owner {
  readonly entries: number;
  resize(entries: number): void;
  notify(type: NdNotifyType): Request;
}

/** Members of a connector, common to both versions, that halves use. */
export interface AnyConnector extends Owner {
  completeConnect(): Request;
  reject(privateData?: Uint8Array): void;
  getLocalAddress(): SocketAddress;
  getPeerAddress(): SocketAddress;
  notifyDisconnect(): Request;
  disconnect(): Request;
}

/** A connection of a half of either version. */
export interface AnyLink {
  readonly connector: AnyConnector;
  readonly inbound: number;
  readonly outbound: number;
  readonly memory: number;
  /** Objects that the link has created itself, and releases. */
  readonly own: readonly { release(): number }[];
}

interface Tracked {
  /** The object of the request. */
  readonly owner: number;
  /** Undefined if the request failed immediately. */
  readonly request: Request | undefined;
  readonly status: number;
}

/** Returns the status of an error of the provider. An error without a status is a defect and is thrown. */
export function statusOfError(error: unknown): number {
  const status = (error as { status?: unknown } | null)?.status;
  if (typeof status !== 'number') throw error;
  return status;
}

/**
 * Base of the halves of both versions: assigns numbers to objects, requests and their outcomes, memory and connections.
 */
export abstract class CommonHalf<
  Queue extends AnyQueue,
  Listener extends Owner,
  Window extends { release(): number },
  Link extends AnyLink,
> {
  /** Time limit of steps that should be immediate, in milliseconds. */
  protected readonly stepTimeoutMs: number;
  protected readonly source: MemorySource;
  readonly #requests = new Map<number, Tracked>();
  protected readonly bytes = new Map<number, Uint8Array>();
  protected readonly cqs = new Map<number, Queue>();
  protected readonly listeners = new Map<number, Listener>();
  protected readonly windows = new Map<number, Window>();
  protected readonly links = new Map<number, Link>();
  #last = 0;

  constructor(stepTimeoutMs: number, source: MemorySource = plainMemory) {
    this.stepTimeoutMs = stepTimeoutMs;
    this.source = source;
  }

  protected next(): number {
    this.#last += 1;
    return this.#last;
  }

  protected add<T>(table: Map<number, T>, object: T): number {
    const id = this.next();
    table.set(id, object);
    return id;
  }

  protected queueOf(id: number): Queue {
    return lookUp(this.cqs, id, 'completion queue');
  }

  protected listenerOf(id: number): Listener {
    return lookUp(this.listeners, id, 'listener');
  }

  protected linkOf(id: number): Link {
    return lookUp(this.links, id, 'link');
  }

  protected windowOf({ window = 0 }: Post): Window {
    return lookUp(this.windows, window, 'window');
  }

  protected request(owner: number, issue: () => Request): number {
    const id = this.next();
    try {
      this.#requests.set(id, { owner, request: issue(), status: Status.PENDING });
    } catch (error) {
      this.#requests.set(id, { owner, request: undefined, status: statusOfError(error) });
    }
    return id;
  }

  protected cancelWith(owner: number, cancel: () => void): number[] {
    const pending = [...this.#requests.values()].filter(
      (tracked) => tracked.owner === owner && tracked.request?.completed === false,
    );
    cancel();
    return pending.map(({ request }) => request!.status);
  }

  async settled(id: number): Promise<number> {
    const { request, status } = this.#tracked(id);
    if (request === undefined) return status;
    return await this.wait(request);
  }

  statusNow(id: number): number {
    const { request, status } = this.#tracked(id);
    return request === undefined ? status : request.status;
  }

  /** Returns the status of a request; PENDING if it does not complete in time. */
  protected async wait(request: Request): Promise<number> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<number>((resolve) => {
      timer = setTimeout(() => resolve(Status.PENDING), this.stepTimeoutMs);
    });
    try {
      return await Promise.race([request.then(() => Status.SUCCESS, statusOfError), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  abstract poll(cq: number, max: number): Outcome[];

  cqEntries(cq: number): number {
    return this.queueOf(cq).entries;
  }

  resize(cq: number, entries: number): void {
    this.queueOf(cq).resize(entries);
  }

  notify(cq: number, type: NdNotifyType): number {
    return this.request(cq, () => this.queueOf(cq).notify(type));
  }

  complete(link: number): number {
    return this.request(link, () => this.linkOf(link).connector.completeConnect());
  }

  reject(link: number, data?: readonly number[]): void {
    this.linkOf(link).connector.reject(bytesOf(data));
  }

  localAddress(link: number): HalfAddress {
    const { address, port } = this.linkOf(link).connector.getLocalAddress();
    return { address, port };
  }

  peerAddress(link: number): HalfAddress {
    const { address, port } = this.linkOf(link).connector.getPeerAddress();
    return { address, port };
  }

  notifyDisconnect(link: number): number {
    return this.request(link, () => this.linkOf(link).connector.notifyDisconnect());
  }

  disconnect(link: number): number {
    return this.request(link, () => this.linkOf(link).connector.disconnect());
  }

  /** Issues a request; returns the target of a Bind. */
  protected abstract issue(link: Link, post: Post): Target | undefined;

  post(link: number, posts: readonly Post[]): Posted[] {
    return posts.map((post) => {
      const on = this.linkOf(link);
      try {
        const target = this.issue(on, post);
        return target === undefined ? { status: Status.SUCCESS } : { status: Status.SUCCESS, target };
      } catch (error) {
        return { status: statusOfError(error) };
      }
    });
  }

  /**
   * Releases all objects: windows, links, listeners, queues, and those of these tables. The other numbers are
   * forgotten. Windows are released first: on rdma_rxe the destruction of a queue pair waits 50 seconds for windows
   * bound on it (rxe_mw.c, rxe_do_bind_mw).
   */
  protected releaseAll(...tables: Map<number, { release(): number }>[]): void {
    const release = (table: Map<number, { release(): number }>): void => {
      for (const object of table.values()) object.release();
      table.clear();
    };
    release(this.windows);
    for (const { own } of this.links.values()) for (const object of own) object.release();
    for (const table of [this.listeners, this.cqs, ...tables]) release(table);
    this.links.clear();
    this.#requests.clear();
    this.bytes.clear();
  }

  async take(cq: number, count: number): Promise<Outcome[]> {
    const taken: Outcome[] = [];
    const deadline = performance.now() + this.stepTimeoutMs;
    for (;;) {
      taken.push(...this.poll(cq, count - taken.length));
      if (taken.length >= count || performance.now() > deadline) return taken;
      const notification = this.queueOf(cq).notify('any');
      const status = await this.wait(notification);
      if (status === Status.PENDING) {
        // Reading the state now would reveal results that the provider has not reported.
        notification.cancel();
        return taken;
      }
      if (status !== Status.SUCCESS) return taken;
    }
  }

  fill(memory: number, at: number, length: number, seed: number): void {
    const bytes = this.bytesOf(memory, at, length);
    for (let i = 0; i < length; i += 1) bytes[i] = patternByte(i, seed);
  }

  mismatch(memory: number, at: number, length: number, seed: number): number {
    return this.bytesOf(memory, at, length).findIndex((byte, i) => byte !== patternByte(i, seed));
  }

  peek(memory: number, at: number, length: number): number[] {
    return [...this.bytesOf(memory, at, length)];
  }

  async spinUntil(memory: number, at: number, value: number): Promise<boolean> {
    const bytes = this.bytesOf(memory, at, 1);
    const deadline = performance.now() + this.stepTimeoutMs;
    while (performance.now() < deadline) {
      const slice = performance.now() + 2;
      while (performance.now() < slice) if (bytes[0] === value) return true;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return false;
  }

  protected bytesOf(memory: number, at: number, length: number): Uint8Array {
    const bytes = this.bytes.get(memory);
    if (bytes === undefined || at + length > bytes.length) {
      throw new Error(`Unknown memory ${memory}, or not ${length} bytes long at ${at}.`);
    }
    return bytes.subarray(at, at + length);
  }

  #tracked(id: number): Tracked {
    const tracked = this.#requests.get(id);
    if (tracked === undefined) throw new Error(`Unknown request ${id}.`);
    return tracked;
  }
}

/** Returns an object by its number and kind. */
export function lookUp<T>(table: ReadonlyMap<number, T>, id: number, kind: string): T {
  const found = table.get(id);
  if (found === undefined) throw new Error(`Unknown ${kind} ${id}.`);
  return found;
}

export function familyOf(address: string): 4 | 6 {
  return address.includes(':') ? 6 : 4;
}

export function bytesOf(data: readonly number[] | undefined): Uint8Array | undefined {
  return data === undefined ? undefined : Uint8Array.from(data);
}
