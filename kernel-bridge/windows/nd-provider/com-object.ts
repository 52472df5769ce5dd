import { Status, StatusError, statusText } from '../../ioctl/status.js';
import { libraryLoader } from '../library-loader.js';
import { nativeBytes, type SteadyMemory } from '../steady-memory.js';
import { type Address, loadNative, type NativeFunction } from '../win32.js';
import { guidBytes, type InterfaceName, interfaces, type SlotOf } from './slots.js';

const POINTER_BYTES = 8;
const RELEASE = 2;
/** Maximum number of slots of an interface. */
const MOST_SLOTS = 16;

/** The methods of an interface, and its Release. */
interface Functions {
  readonly slots: Readonly<Record<string, NativeFunction>>;
  readonly release: NativeFunction;
  readonly releaseAt: Address;
}

/** Scratch memory for output pointers and vtables. Calls do not nest, so one suffices. */
let scratch: SteadyMemory | undefined;
/** Functions by vtable and interface, because koffi never frees a declared function. */
const known = new Map<string, Functions>();
/** Number of references by object. A provider may return an object more than once, but Node.js calls it only once at the end. */
const references = new Map<Address, number>();
const iids = new Map<InterfaceName, SteadyMemory>();

function outMemory(): SteadyMemory {
  scratch ??= nativeBytes().memory(MOST_SLOTS * POINTER_BYTES);
  return scratch;
}

/** The address of an interface's IID. */
export function iidAddress(name: InterfaceName): Address {
  let memory = iids.get(name);
  if (memory === undefined) {
    memory = nativeBytes().memory(16);
    memory.bytes.set(guidBytes(interfaces[name].iid));
    iids.set(name, memory);
  }
  return memory.address;
}

/** Returns the pointer at an index of 32-bit words. */
export function pointerAt(words: Uint32Array, at: number): Address {
  return words[at]! + words[at + 1]! * 2 ** 32;
}

function functionsOf(address: Address, name: InterfaceName): Functions {
  const { words, address: to } = outMemory();
  const { copy } = nativeBytes();
  copy(to, address, POINTER_BYTES);
  const table = pointerAt(words, 0);
  const key = `${table} ${name}`;
  let functions = known.get(key);
  if (functions === undefined) {
    const entries = Object.entries(interfaces[name].slots as Record<string, readonly [number, ...string[]]>);
    copy(to, table, POINTER_BYTES * (1 + Math.max(RELEASE, ...entries.map(([, [slot]]) => slot))));
    const addresses = Array.from({ length: MOST_SLOTS }, (_, slot) => pointerAt(words, 2 * slot));
    const { functionAt } = libraryLoader();
    functions = {
      release: functionAt(BigInt(addresses[RELEASE]!), 'uint32_t', ['uintptr_t']),
      releaseAt: addresses[RELEASE]!,
      slots: Object.fromEntries(
        entries.map(([method, [slot, ...types]]) => [
          method,
          functionAt(BigInt(addresses[slot]!), 'uint32_t', ['uintptr_t', ...types]),
        ]),
      ),
    };
    known.set(key, functions);
  }
  return functions;
}

/** Returns the error for the result of a function or method of a DLL. */
export function comFailure(library: string, method: string, result: number): StatusError {
  const hex = `0x${result.toString(16).padStart(8, '0')}`;
  return new StatusError(result, `${method} of ${library} returned ${hex}. ${statusText(result)}`);
}

/**
 * A reference to an object of a provider, with one of its interfaces, until {@link release}. If the thread ends before
 * that, the runtime releases its remaining references, newest first.
 */
export class ComObject<I extends InterfaceName = InterfaceName> {
  /** The methods, without checks of their results. The first argument is {@link address}. */
  readonly slots: { readonly [S in SlotOf<I>]: NativeFunction };
  readonly #release: NativeFunction;
  readonly #releaseAt: Address;
  #released = false;

  /** Takes over the caller's reference. `library` appears in errors. */
  constructor(
    readonly name: I,
    readonly address: Address,
    readonly library: string,
  ) {
    const { slots, release, releaseAt } = functionsOf(address, name);
    this.slots = slots as { readonly [S in SlotOf<I>]: NativeFunction };
    this.#release = release;
    this.#releaseAt = releaseAt;
    const others = references.get(address) ?? 0;
    references.set(address, others + 1);
    if (others === 0) loadNative().atEnd(releaseAt, address);
  }

  get released(): boolean {
    return this.#released;
  }

  /** Calls a method and returns its result, unsigned. */
  call(method: SlotOf<I>, ...values: readonly unknown[]): number {
    return (this.slots[method](this.address, ...values) as number) >>> 0;
  }

  /** Calls a method. @throws StatusError with its result unless it succeeds */
  run(method: SlotOf<I>, ...values: readonly unknown[]): void {
    const result = this.call(method, ...values);
    if (result !== Status.SUCCESS) throw this.failure(method, result);
  }

  /** Calls a method whose first argument is an IID and whose last one receives the object. Returns the object's address. */
  make(method: SlotOf<I>, name: InterfaceName, ...values: readonly unknown[]): Address {
    const { words, address } = outMemory();
    words[0] = 0;
    words[1] = 0;
    this.run(method, iidAddress(name), ...values, address);
    const made = pointerAt(words, 0);
    if (made !== 0) return made;
    throw new StatusError(
      Status.INTERNAL_ERROR,
      `${this.name}::${method} of ${this.library} returned no object.`,
    );
  }

  failure(method: string, result: number): StatusError {
    return comFailure(this.library, `${this.name}::${method}`, result);
  }

  /** Releases the reference. Later calls have no effect. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    const others = references.get(this.address)! - 1;
    if (others > 0) references.set(this.address, others);
    else {
      references.delete(this.address);
      loadNative().notAtEnd(this.#releaseAt, this.address);
    }
    this.#release(this.address);
  }

  /** Moves the object to the front of the order of releases at the end of the thread. */
  endFirst(): void {
    const native = loadNative();
    native.notAtEnd(this.#releaseAt, this.address);
    native.atEnd(this.#releaseAt, this.address);
  }
}
