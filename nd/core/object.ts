import { type GetResultOptions, type Overlapped, Status } from '../../winverbs/index.js';
import type { NdOverlappedObject, NdUnknown } from '../spi/types.js';
import { refuse } from '../status.js';

/**
 * Reference counting of ND objects. The references of the client and those of other objects are counted separately:
 * children keep their parents even if the client releases them too often, and a released object cannot be used.
 */
export abstract class NdObject implements NdUnknown {
  #clients = 1;
  #holders = 0;

  addRef(): number {
    this.alive('AddRef');
    this.#clients += 1;
    return this.#clients;
  }

  release(): number {
    if (this.#clients === 0) return 0;
    this.#clients -= 1;
    if (this.#clients === 0) {
      this.released();
      if (this.#holders === 0) this.end();
    }
    return this.#clients;
  }

  [Symbol.dispose](): void {
    this.release();
  }

  /** Whether the client has released it. */
  get ended(): boolean {
    return this.#clients === 0;
  }

  /** Adds a reference of another object. */
  hold(): void {
    this.#holders += 1;
  }

  /** Releases a {@link hold}. */
  letGo(): void {
    this.#holders -= 1;
    if (this.#holders === 0 && this.#clients === 0) this.end();
  }

  /** Throws INVALID_HANDLE if the client has released it. */
  protected alive(what: string): void {
    if (this.#clients === 0) {
      throw refuse(Status.INVALID_HANDLE, what, `This ${this.constructor.name} was released before.`);
    }
  }

  /** The client has released it; other objects may still need it. Must not throw. */
  protected released(): void {}

  /** The last reference is gone: releases what it holds. Must not throw. */
  protected abstract end(): void;
}

/** An object with overlapped requests. */
export abstract class NdOverlappedBase extends NdObject implements NdOverlappedObject {
  abstract cancelOverlappedRequests(): void;

  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T {
    return request.getResult(options);
  }
}
