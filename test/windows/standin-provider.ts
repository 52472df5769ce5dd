/** The stand-in provider as tests see it (uvp/uvp.c), and WinVerbs over it. */
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

/** The DLL that the device's provider is in, too: it is the same one, because the process has loaded it already. */
export class StandinProvider {
  readonly #functions: Library = load('C:\\windows\\system32\\standin.dll');
  readonly #fail = this.#functions.func('__cdecl', 'standin_fail', 'void', ['uint32_t', 'uint32_t']);
  readonly #lack = this.#functions.func('__cdecl', 'standin_lack', 'void', ['uint32_t', 'uint32_t']);
  readonly #calls = this.#functions.func('__cdecl', 'standin_calls', 'uint32_t', ['uint32_t']);
  readonly #live = this.#functions.func('__cdecl', 'standin_live', 'uint32_t', []);
  readonly #fault = this.#functions.func('__cdecl', 'standin_fault', 'str', []);

  /** The next call of a function answers this `ib_api_status_t`. */
  fail(slot: UvpSlotName, status: number): void {
    this.#fail(indexOf(slot), status);
  }

  /** From the next load on. */
  lack(slot: UvpSlotName, lacking = true): void {
    this.#lack(indexOf(slot), lacking ? 1 : 0);
  }

  calls(slot: UvpSlotName): number {
    return this.#calls(indexOf(slot)) as number;
  }

  /** Objects and buffers of the provider that are allocated. */
  get live(): number {
    return this.#live() as number;
  }

  /** The first thing that was wrong since the last question. */
  fault(): string {
    return this.#fault() as string;
  }
}

function indexOf(slot: UvpSlotName): number {
  return uvpSlots.findIndex(({ name }) => name === slot);
}

/** Two connected sides of this process, each with memory of its own. */
export async function pairOf(change: SideWvOptions = {}) {
  const provider = openProvider();
  const side = () => openSide(provider, { ...change, bytes: change.bytes ?? allocate(8192) });
  const [a, b] = [side(), side()];
  const heard = await connect(provider, a, b);
  const release = (): void => {
    a.release();
    b.release();
    provider.release();
  };
  return { provider, a, b, release, ...heard };
}

/** Both ends, in the order of a program: one begins, the other hears of it and answers. */
export async function disconnectPair(a: Side, b: Side): Promise<void> {
  const heard = b.ep.notifyDisconnect();
  const ending = a.ep.disconnect();
  await heard;
  await b.ep.disconnect();
  await ending;
}

export { ADDRESS };
