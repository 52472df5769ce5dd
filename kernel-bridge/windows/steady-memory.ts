import { type Address, type Koffi, loadKoffi } from './win32.js';

/** Memory of this thread that native code reads and writes during a call. V8 does not move it. */
export interface SteadyMemory {
  readonly address: Address;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
}

/** Memory for the arguments of native calls. */
export interface NativeBytes {
  /** Allocates zeroed memory, rounded up to 8 bytes. */
  memory(bytes: number): SteadyMemory;
  /** Returns the address of a buffer's bytes, which is valid until the buffer is detached. */
  addressOf(bytes: Uint8Array): Address;
  /** Copies bytes between addresses. */
  copy(to: Address, from: Address, length: number): void;
}

/** Maximum allocations for the arguments of one call. */
const MOST_OF_CALL = 8;

let native: NativeBytes | undefined;

/** @throws StatusError NOT_SUPPORTED if koffi is not installed */
export function nativeBytes(): NativeBytes {
  native ??= bind(loadKoffi());
  return native;
}

function bind(koffi: Koffi): NativeBytes {
  const move = koffi
    .load('ntdll.dll')
    .func('__stdcall', 'RtlMoveMemory', 'void', ['uintptr_t', 'uintptr_t', 'uintptr_t']);
  // A call refers to memory by its address, which does not keep the memory alive.
  const recent: ArrayBuffer[] = [];
  const addressOf = (bytes: Uint8Array): Address => Number(koffi.address(bytes));
  return {
    memory(size) {
      // V8 moves small typed arrays with memory of their own, but not those over an ArrayBuffer.
      const buffer = new ArrayBuffer(Math.ceil(size / 8) * 8);
      if (recent.push(buffer) > MOST_OF_CALL) recent.shift();
      const bytes = new Uint8Array(buffer);
      return { address: addressOf(bytes), bytes, words: new Uint32Array(buffer) };
    },
    addressOf,
    copy: (to, from, length) => {
      move(to, from, length);
    },
  };
}
