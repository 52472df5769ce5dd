/** Controls the stand-in for a vendor's NetworkDirect provider through its exports (provider/modes.cc). */
import { createRequire } from 'node:module';
import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import { inTime, until } from '../standin.js';

/** Paths to which scripts/test-windows.sh copies the DLLs. */
export const PROVIDER = 'C:\\windows\\system32\\standin-nd2.dll';
export const CATALOGUE = 'C:\\windows\\system32\\standin-catalogue.dll';
/** Id of its only adapter. */
export const ADAPTER_ID = 0x8123_4567_89ab_cdefn;

/** Settings, see provider/modes.h. */
export type Setting =
  | 'completion'
  | 'delay'
  | 'resize'
  | 'reads'
  | 'windows'
  | 'srq'
  | 'inline'
  | 'sge'
  | 'transfer'
  | 'flush'
  | 'affinity'
  | 'rnr'
  | 'ipv6'
  | 'listed'
  | 'factory'
  | 'hollow'
  | 'padding'
  | 'leaves'
  | 'removed'
  | 'single'
  | 'purge'
  | 'unreachable'
  | 'usb4'
  | 'default';

type Call = (...values: unknown[]) => unknown;
interface Library {
  func(convention: string, name: string, result: string, parameters: readonly string[]): Call;
}

const { load } = createRequire(import.meta.url)('koffi') as { load(path: string): Library };

export class Nd2Standin {
  readonly #function: (name: string, result: string, ...parameters: string[]) => Call;
  readonly #set: Call;
  readonly #fail: Call;
  readonly #end: Call;
  readonly #calls: Call;
  readonly #violation: Call;
  readonly #live: Call;
  readonly #pending: Call;

  /** @param path - the DLL. A copy of it has its own settings and objects. */
  constructor(path = PROVIDER) {
    const library = load(path);
    this.#function = (name, result, ...parameters) => library.func('__cdecl', name, result, parameters);
    this.#set = this.#function('standin_set', 'int', 'str', 'int64_t');
    this.#fail = this.#function('standin_fail', 'void', 'str', 'uint32_t', 'uint32_t');
    this.#end = this.#function('standin_end', 'void', 'str', 'uint32_t', 'uint32_t');
    this.#calls = this.#function('standin_calls', 'uint32_t', 'str');
    this.#violation = this.#function('standin_violation', 'str');
    this.#live = this.#function('standin_live', 'uint32_t', 'str');
    this.#pending = this.#function('standin_pending', 'uint32_t');
  }

  set(settings: Partial<Readonly<Record<Setting, number>>>): void {
    for (const [name, value] of Object.entries(settings)) {
      if (this.#set(name, value) === 0) throw new Error(`The stand-in has no setting '${name}'.`);
    }
  }

  /** Makes the next call of a method (`IND2Adapter::Query`), or the one after `skip` others, fail with this status. */
  fail(method: string, status: number, skip = 0): void {
    this.#fail(method, status, skip);
  }

  /** Makes the next overlapped request of a method, or the one after `skip` others, pend and complete with this status. */
  end(method: string, status: number, skip = 0): void {
    this.#end(method, status, skip);
  }

  calls(method: string): number {
    return this.#calls(method) as number;
  }

  /** Returns the first violation since the last call; empty if there was none. */
  violation(): string {
    return this.#violation() as string;
  }

  /** Returns the number of live objects of a kind (`IND2QueuePair`), or of all kinds. */
  live(kind = ''): number {
    return this.#live(kind) as number;
  }

  /** Number of pending overlapped requests. */
  get pending(): number {
    return this.#pending() as number;
  }

  /** Returns the time of a Send and a GetResults of hollow objects, called from compiled code, in ns. */
  bare(queuePair: number, queue: number, sge: number, results: number, rounds: number): number {
    const call = this.#function(
      'standin_bare',
      'double',
      'uintptr_t',
      'uintptr_t',
      'uintptr_t',
      'uintptr_t',
      'uint32_t',
    );
    return call(queuePair, queue, sge, results, rounds) as number;
  }
}

/**
 * A test that starts with default settings. After it, the stand-in must not have recorded a violation, and all objects of
 * the test must be released.
 */
export function clean(suite: Test, standin: Nd2Standin, name: string, run: () => unknown): void {
  suite(name, async () => {
    standin.set({ default: 1 });
    standin.violation();
    const left = () => ({ objects: standin.live() - standin.live('IND2Provider'), pending: standin.pending });
    const before = left();
    try {
      await inTime(name, Promise.resolve(run()));
      assert.is(standin.violation(), '');
      await until(() => JSON.stringify(left()) === JSON.stringify(before)).catch(() =>
        assert.equal(left(), before),
      );
    } finally {
      standin.set({ default: 1 });
    }
  });
}
