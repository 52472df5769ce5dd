import { isSharedArrayBuffer } from 'node:util/types';
import { Status, StatusError } from '../ioctl/status.js';
import { isSteady } from './allocate.js';
import type { NativeBytes } from './steady-memory.js';

/** Memory that stays in place until it is unpinned. */
export interface MemoryPin {
  readonly pin: number;
  /** The native address of the first byte, below 2^47. */
  readonly address: number;
  readonly detachable: false;
}

/**
 * Keeps registered memory in place. A reference to a buffer is not enough, because streams can detach an ArrayBuffer, and
 * V8 may then free memory that the device still writes to. Therefore only two kinds of memory can be pinned: that of
 * `allocate()` and SharedArrayBuffers. Neither can be detached.
 */
export class MemoryPins {
  readonly #held = new Map<number, Uint8Array>();
  #last = 0;

  constructor(private readonly native: NativeBytes) {}

  /** @throws StatusError NOT_SUPPORTED for any other kind of memory */
  pin(view: Uint8Array): MemoryPin {
    if (!isSharedArrayBuffer(view.buffer) && !isSteady(view.buffer)) {
      throw new StatusError(
        Status.NOT_SUPPORTED,
        'On Windows, registered memory must be that of allocate(), called after opening, or of a SharedArrayBuffer; got an ordinary ArrayBuffer.',
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
