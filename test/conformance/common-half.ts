import type { GetResultOptions } from '../../nd/index.js';
import { Status } from '../../nd/index.js';
import type { Outcome } from './half.js';
import { patternByte } from './half.js';

/** What halves use of an overlapped request. */
export interface Request extends PromiseLike<unknown> {
  readonly completed: boolean;
  readonly status: number;
  getResult(options?: GetResultOptions): unknown;
  cancel(): void;
}

interface Tracked {
  /** The object it was made on. */
  readonly owner: number;
  /** Undefined: it was refused at once. */
  readonly request: Request | undefined;
  readonly status: number;
}

/** The status of an error that a provider has thrown. What carries none is a defect and stays an error. */
export function statusOfError(error: unknown): number {
  const status = (error as { status?: unknown } | null)?.status;
  if (typeof status !== 'number') throw error;
  return status;
}

/** Numbers for objects, requests and their outcomes, memory: what halves of both versions do alike. */
export abstract class CommonHalf {
  /** How long anything may take that should come at once. */
  protected readonly patienceMs: number;
  readonly #requests = new Map<number, Tracked>();
  protected readonly bytes = new Map<number, Uint8Array>();
  #last = 0;

  constructor(patienceMs: number) {
    this.patienceMs = patienceMs;
  }

  protected next(): number {
    this.#last += 1;
    return this.#last;
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

  /** The status a request ends in; PENDING if it does not in time. */
  protected async wait(request: Request): Promise<number> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<number>((resolve) => {
      timer = setTimeout(() => resolve(Status.PENDING), this.patienceMs);
    });
    try {
      return await Promise.race([request.then(() => Status.SUCCESS, statusOfError), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  abstract poll(cq: number, max: number): Outcome[];
  protected abstract notifyAny(cq: number): Request;

  async take(cq: number, count: number): Promise<Outcome[]> {
    const taken: Outcome[] = [];
    const deadline = performance.now() + this.patienceMs;
    for (;;) {
      taken.push(...this.poll(cq, count - taken.length));
      if (taken.length >= count || performance.now() > deadline) return taken;
      const notification = this.notifyAny(cq);
      const status = await this.wait(notification);
      if (status === Status.PENDING) {
        // Whoever looks now would find what the provider has kept silent about.
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
    const deadline = performance.now() + this.patienceMs;
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
      throw new Error(`This half has no memory ${memory} with ${length} bytes at ${at}.`);
    }
    return bytes.subarray(at, at + length);
  }

  protected forget(): void {
    this.#requests.clear();
    this.bytes.clear();
  }

  #tracked(id: number): Tracked {
    const tracked = this.#requests.get(id);
    if (tracked === undefined) throw new Error(`This half has made no request ${id}.`);
    return tracked;
  }
}

/** An object by its number and kind. */
export function lookUp<T>(table: ReadonlyMap<number, T>, id: number, kind: string): T {
  const found = table.get(id);
  if (found === undefined) throw new Error(`This half has no ${kind} ${id}.`);
  return found;
}
