import { Status } from '../../winverbs/index.js';
import type { NdUnknown } from '../spi/v1.js';
import { refuse } from '../status.js';

/** Reference counting of ND objects. The last release calls {@link end}, which must not fail. */
export abstract class NdObject implements NdUnknown {
  #references = 1;

  addRef(): number {
    this.alive('addRef');
    this.#references += 1;
    return this.#references;
  }

  release(): number {
    if (this.#references === 0) return 0;
    this.#references -= 1;
    if (this.#references === 0) this.end();
    return this.#references;
  }

  [Symbol.dispose](): void {
    this.release();
  }

  /** Whether the last reference is gone. */
  get ended(): boolean {
    return this.#references === 0;
  }

  /** Throws INVALID_HANDLE if the last reference is gone. */
  protected alive(what: string): void {
    if (this.#references === 0) {
      throw refuse(Status.INVALID_HANDLE, what, `This ${this.constructor.name} was released before.`);
    }
  }

  /** Lets go of what the object holds. */
  protected abstract end(): void;
}
