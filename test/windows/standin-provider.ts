/** Controls the stand-in provider (uvp/uvp.c), and opens WinVerbs over it. */
import { createRequire } from 'node:module';
import { type UvpSlotName, uvpSlots } from '../../kernel-bridge/uvp/vendor/uvp-slots.js';
import { allocate, openProvider } from '../../winverbs/index.js';
import { ADDRESS, connect, openSide, type Side, type SideWvOptions } from '../helpers/loopback.js';

interface Library {
  func(
    convention: string,
    name: string,
    result: string,
    parameters: readonly string[],
  ): (...values: unknown[]) => unknown;
}

const { load } = createRequire(import.meta.url)('koffi') as { load(path: string): Library };

/** The exports of the provider's DLL. It is the same instance as the device's, because a process loads a DLL once. */
export class StandinProvider {
  readonly #functions: Library = load('C:\\windows\\system32\\standin.dll');
  readonly #fail = this.#functions.func('__cdecl', 'standin_fail', 'void', ['uint32_t', 'uint32_t']);
  readonly #lack = this.#functions.func('__cdecl', 'standin_lack', 'void', ['uint32_t', 'uint32_t']);
  readonly #calls = this.#functions.func('__cdecl', 'standin_calls', 'uint32_t', ['uint32_t']);
  readonly #live = this.#functions.func('__cdecl', 'standin_live', 'uint32_t', []);
  readonly #fault = this.#functions.func('__cdecl', 'standin_fault', 'str', []);

  /** Makes the next call of a function return this `ib_api_status_t`. */
  fail(slot: UvpSlotName, status: number): void {
    this.#fail(indexOf(slot), status);
  }

  /** Removes a function from the table from the next load on. */
  lack(slot: UvpSlotName, lacking = true): void {
    this.#lack(indexOf(slot), lacking ? 1 : 0);
  }

  calls(slot: UvpSlotName): number {
    return this.#calls(indexOf(slot)) as number;
  }

  /** Number of allocated objects and buffers of the provider. */
  get live(): number {
    return this.#live() as number;
  }

  /** Returns the first fault since the last call; empty if there was none. */
  fault(): string {
    return this.#fault() as string;
  }
}

function indexOf(slot: UvpSlotName): number {
  return uvpSlots.findIndex(({ name }) => name === slot);
}

/** Creates two connected sides of this process, each with its own memory. */
export async function pairOf(change: SideWvOptions = {}) {
  const provider = openProvider();
  const side = () => openSide(provider, { ...change, bytes: change.bytes ?? allocate(8192) });
  const [a, b] = [side(), side()];
  const exchanged = await connect(provider, a, b);
  const release = (): void => {
    a.release();
    b.release();
    provider.release();
  };
  return { provider, a, b, release, ...exchanged };
}

/** Disconnects as programs do: one side starts, and the other is notified and follows. */
export async function disconnectPair(a: Side, b: Side): Promise<void> {
  const notified = b.ep.notifyDisconnect();
  const ending = a.ep.disconnect();
  await notified;
  await b.ep.disconnect();
  await ending;
}

export { ADDRESS };
