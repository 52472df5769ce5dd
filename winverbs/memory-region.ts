import workers from 'node:worker_threads';
import type { UvpPin } from '../kernel-bridge/user-verbs.js';
import type { WvMemoryRegion } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Registered memory; requests name it in their SGEs, by offset. Made by IWVProtectionDomain.registerMemory. */
export class MemoryRegion implements WvMemoryRegion {
  readonly address: number;
  readonly length: number;
  /** @internal The memory by words, if it starts on one. */
  readonly words: Uint32Array | undefined;

  constructor(
    readonly lkey: number,
    readonly rkey: number,
    /** The memory itself. */
    readonly bytes: Uint8Array,
    /** @internal */
    readonly pin: UvpPin,
  ) {
    this.address = pin.address;
    this.length = bytes.byteLength;
    const { buffer, byteOffset, byteLength } = bytes;
    this.words =
      byteOffset % 4 === 0 ? new Uint32Array(buffer, byteOffset, Math.floor(byteLength / 4)) : undefined;
  }
}

function refuse(message: string): never {
  throw new WvError(Status.INVALID_PARAMETER, message);
}

/** Node.js 21 to 23 lets a buffer's own methods take away what is marked; later ones refuse, as these do here. */
const TRANSFERS = ['transfer', 'transferToFixedLength'];

function refuseTransfer(): never {
  throw new TypeError(
    'The memory of this ArrayBuffer has been registered with a device; it cannot be transferred.',
  );
}

/** Node.js 21 and later. */
const { isMarkedAsUntransferable } = workers as { isMarkedAsUntransferable?: (object: object) => boolean };

function keepInPlace(buffer: ArrayBuffer): void {
  // Memory from native code is marked by Node.js itself, whose end would abort over a mark of ours: it detaches such buffers
  // then, which later versions forbid for what a program has marked.
  if (isMarkedAsUntransferable?.(buffer) !== true) workers.markAsUntransferable(buffer);
  for (const name of TRANSFERS) {
    if (name in buffer && !Object.hasOwn(buffer, name))
      Reflect.defineProperty(buffer, name, { value: refuseTransfer });
  }
}

/**
 * The bytes of a buffer that can stay where they are for as long as they are registered. The buffer can then no longer
 * be transferred to another thread, which would take it away from this one.
 *
 * @throws WvError INVALID_PARAMETER, saying why it cannot be registered.
 */
export function registrableBytes(buffer: ArrayBufferLike | ArrayBufferView): Uint8Array {
  const isView = ArrayBuffer.isView(buffer);
  const memory: unknown = isView ? buffer.buffer : buffer;
  if (!(memory instanceof ArrayBuffer || memory instanceof SharedArrayBuffer)) {
    refuse('Only an ArrayBuffer, a SharedArrayBuffer or a view of one can be registered.');
  }
  const { resizable, growable } = memory as { resizable?: boolean; growable?: boolean };
  if (resizable === true || growable === true) {
    refuse(
      'A resizable buffer cannot be registered: shrinking it would take memory from the device. Use a buffer of fixed length.',
    );
  }
  let all: Uint8Array;
  try {
    all = new Uint8Array(memory);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    refuse('The buffer is detached: it was transferred elsewhere, and there is no memory to register.');
  }
  const bytes = isView ? new Uint8Array(memory, buffer.byteOffset, buffer.byteLength) : all;
  if (bytes.byteLength === 0) refuse('The buffer has no bytes; at least one can be registered.');
  if (memory instanceof ArrayBuffer) keepInPlace(memory);
  return bytes;
}
