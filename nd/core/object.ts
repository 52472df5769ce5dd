import { type GetResultOptions, type Overlapped, Status } from '../../winverbs/index.js';
import type { NdOverlappedObject, NdUnknown } from '../spi/types.js';
import { refuse } from '../status.js';

/**
 * Reference counting of ND objects. The client's references and those of other objects are counted apart: children
 * keep their parents, but releasing too often takes nothing from them, and a released object is not for use.
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

  /** A reference of another object. */
  hold(): void {
    this.#holders += 1;
  }

  /** Gives up {@link hold}. */
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

  /** The client has released it; others may still need it. Must not throw. */
  protected released(): void {}

  /** Nobody needs it: lets go of what it holds. Must not throw. */
  protected abstract end(): void;
}

/** An object that overlapped requests are made on. */
export abstract class NdOverlappedBase extends NdObject implements NdOverlappedObject {
  abstract cancelOverlappedRequests(): void;

  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T {
    return request.getResult(options);
  }
}
