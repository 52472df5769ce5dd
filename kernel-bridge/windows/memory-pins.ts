import { isSharedArrayBuffer } from 'node:util/types';
import { Status, StatusError } from '../ioctl/status.js';
import { isSteady } from './allocate.js';
import type { NativeBytes } from './steady-memory.js';

/** Memory that is held until it is unpinned. */
export interface MemoryPin {
  readonly pin: number;
  /** The native address of the first byte, below 2^47. */
  readonly address: number;
  readonly detachable: false;
}

/**
 * Registered memory. Holding a buffer keeps its bytes only if nothing can take them from it: streams detach an ArrayBuffer whatever it is
 * marked as, and the engine may then free bytes that the device still writes. So only two kinds are taken: memory of `allocate()`, which nobody can
 * detach, and SharedArrayBuffers, which cannot be detached at all.
 */
export class MemoryPins {
  readonly #held = new Map<number, Uint8Array>();
  #last = 0;

  constructor(private readonly native: NativeBytes) {}

  /** @throws StatusError NOT_SUPPORTED: memory of another kind. */
  pin(view: Uint8Array): MemoryPin {
    if (!isSharedArrayBuffer(view.buffer) && !isSteady(view.buffer)) {
      throw new StatusError(
        Status.NOT_SUPPORTED,
        'On Windows the memory of an ordinary ArrayBuffer cannot be held for the device; register memory that allocate() makes once the provider is open, or a SharedArrayBuffer.',
      );
    }
    const pin = ++this.#last;
    this.#held.set(pin, view);
    return { pin, address: this.native.addressOf(view), detachable: false };
  }

  unpin({ pin }: Pick<MemoryPin, 'pin'>): void {
    this.#held.delete(pin);
  }
}
