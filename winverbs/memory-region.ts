import { isAnyArrayBuffer, isArrayBuffer } from 'node:util/types';
import workers from 'node:worker_threads';
import type { UvpPin } from '../kernel-bridge/door/user-verbs.js';
import { kindOf } from '../kernel-bridge/ioctl/shown.js';
import type { WvMemoryRegion } from './interfaces.js';
import { Status, WvError } from './status.js';

/**
 * Registered memory, created by IWVProtectionDomain.registerMemory. SGEs of requests refer to it by offset.
 * @hideconstructor
 */
export class MemoryRegion implements WvMemoryRegion {
  /** The native address, or 0 with ZERO_BASED. @category Memory */
  readonly address: number;
  /** @internal The memory as 32-bit words, if it is aligned to them. */
  readonly words: Uint32Array | undefined;
  readonly #bytes: Uint8Array;

  constructor(
    readonly lkey: number,
    readonly rkey: number,
    bytes: Uint8Array,
    readonly length: number,
    /** @internal */
    readonly pin: UvpPin,
    address = pin.address,
  ) {
    this.address = address;
    this.#bytes = bytes;
    const { buffer, byteOffset } = bytes;
    // The buffer may have been detached while the registration was in progress.
    const hasWords = byteOffset % 4 === 0 && bytes.length === length;
    this.words = hasWords ? new Uint32Array(buffer, byteOffset, Math.floor(length / 4)) : undefined;
  }

  /**
   * The memory itself. Posting a request also reads this property.
   *
   * @throws WvError ACCESS_VIOLATION (its ArrayBuffer was detached)
   * @category Memory
   */
  get bytes(): Uint8Array {
    const bytes = this.#bytes;
    // Registered memory is never empty.
    if (bytes.length === 0) detached(this.length);
    return bytes;
  }
}

// Gives its fields their widest representation from the start (`widen` in kernel-bridge/door/user-verbs.ts).
new MemoryRegion(0xffff_ffff, 0xffff_ffff, new Uint8Array(4), 2 ** 33, {
  pin: 0,
  address: 2 ** 47,
  detachable: false,
});

function detached(length: number): never {
  throw new WvError(
    Status.ACCESS_VIOLATION,
    `The ArrayBuffer of these ${length} registered bytes was detached by a stream, a transfer or a growing WebAssembly memory. ` +
      'The program can no longer access this memory. Deregister it, and register a buffer that is not transferred.',
  );
}

function refuse(message: string): never {
  throw new WvError(Status.INVALID_PARAMETER, message);
}

/**
 * Uses the built-in getters, because a buffer may have own properties of these names. Node.js 20 has no types for them.
 */
const isResizable = getterOf(ArrayBuffer.prototype, 'resizable');
const isGrowable = getterOf(SharedArrayBuffer.prototype, 'growable');

function getterOf(prototype: object, name: string): (this: ArrayBufferLike) => boolean {
  return Reflect.getOwnPropertyDescriptor(prototype, name)?.get ?? (() => false);
}

/**
 * In Node.js 21 to 23 a buffer's own methods also transfer marked buffers; later versions refuse to, as the
 * replacements below do.
 */
const TRANSFERS = ['transfer', 'transferToFixedLength'];

function refuseTransfer(): never {
  throw new TypeError(
    'This ArrayBuffer cannot be transferred, because its memory has been registered with a device.',
  );
}

/** Node.js 21 and later. */
const { isMarkedAsUntransferable } = workers as { isMarkedAsUntransferable?: (object: object) => boolean };

/**
 * Makes transfers of a pinned, detachable buffer fail where possible. This only reports mistakes early: streams detach
 * a buffer anyway, and the pin holds the memory. Marking the buffer of a WebAssembly memory would end the process when
 * the memory grows.
 */
export function refuseTransfers(buffer: ArrayBuffer): void {
  // Node.js itself marks memory from native code and would abort at its end if we had marked it as well. It detaches
  // such buffers then, which later versions forbid for buffers that a program has marked.
  if (isMarkedAsUntransferable?.(buffer) !== true) workers.markAsUntransferable(buffer);
  for (const name of TRANSFERS) {
    if (name in buffer && !Object.hasOwn(buffer, name))
      Reflect.defineProperty(buffer, name, { value: refuseTransfer });
  }
}

/**
 * Returns the bytes of a buffer that can be pinned.
 *
 * @throws WvError INVALID_PARAMETER with the reason why it cannot be registered.
 */
export function registrableBytes(buffer: ArrayBufferLike | ArrayBufferView): Uint8Array {
  const isView = ArrayBuffer.isView(buffer);
  const memory: unknown = isView ? buffer.buffer : buffer;
  if (!isAnyArrayBuffer(memory)) {
    refuse(`\`buffer\` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got ${kindOf(buffer)}.`);
  }
  if ((isArrayBuffer(memory) ? isResizable : isGrowable).call(memory)) {
    refuse(
      '`buffer` must not be resizable, because shrinking it would take memory from the device. Use a buffer of fixed length.',
    );
  }
  let bytes: Uint8Array;
  try {
    const all = new Uint8Array(memory);
    bytes = isView ? new Uint8Array(memory, buffer.byteOffset, buffer.byteLength) : all;
  } catch (error) {
    if (error instanceof RangeError)
      refuse(`\`buffer\` must be a view within its ArrayBuffer: ${error.message}.`);
    if (!(error instanceof TypeError)) throw error;
    refuse('`buffer` must not be detached; it was transferred elsewhere.');
  }
  if (bytes.byteLength === 0) refuse('`buffer` must not be empty.');
  return bytes;
}
