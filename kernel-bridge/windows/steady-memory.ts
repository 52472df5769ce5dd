import { type Address, type Koffi, loadKoffi } from './win32.js';

/** Memory that native code reads and writes during a call. It is of this thread's JavaScript, and does not move. */
export interface SteadyMemory {
  readonly address: Address;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
}

/** What calls of native code need for their arguments. */
export interface NativeBytes {
  /** Zeroed memory, in words. */
  memory(bytes: number): SteadyMemory;
  /** The address of a buffer's bytes; it stays as long as the buffer is not detached. */
  addressOf(bytes: Uint8Array): Address;
  /** Copies bytes between addresses. */
  copy(to: Address, from: Address, length: number): void;
}

let native: NativeBytes | undefined;

/** @throws StatusError NOT_SUPPORTED: there is no koffi. */
export function nativeBytes(): NativeBytes {
  native ??= bind(loadKoffi());
  return native;
}

function bind(koffi: Koffi): NativeBytes {
  const move = koffi
    .load('ntdll.dll')
    .func('__stdcall', 'RtlMoveMemory', 'void', ['uintptr_t', 'uintptr_t', 'uintptr_t']);
  const addressOf = (bytes: Uint8Array): Address => Number(koffi.address(bytes));
  return {
    memory(size) {
      // V8 moves small arrays that it has made itself, but not those over an ArrayBuffer.
      const buffer = new ArrayBuffer(Math.ceil(size / 8) * 8);
      const bytes = new Uint8Array(buffer);
      return { address: addressOf(bytes), bytes, words: new Uint32Array(buffer) };
    },
    addressOf,
    copy: (to, from, length) => {
      move(to, from, length);
    },
  };
}
