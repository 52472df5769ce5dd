/** Loads a driver's module, and runs its code with a time limit. */
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { atSameLevel } from '../io-manager/irql.js';

const require = createRequire(import.meta.url);

/** Loads an ES module by its URL. `import()` does not work in the kernel's own code, which is one script. */
export type ImportModule = (url: string) => Promise<unknown>;

/** The reason for refusing a module. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message.split('\n')[0]}` : String(error);
}

/** The code of an error, which may belong to another realm. */
const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;

/**
 * Runs code that must return within a time limit. An endless loop is interrupted, and its `finally` blocks do not run,
 * so the asynchronous context of the code must have been entered before.
 *
 * @throws LoadError with `what` if it takes longer; otherwise any exception of the code.
 */
export function runBounded<T>(code: () => T, timeoutMs: number, what: string): T {
  try {
    return atSameLevel(() => vm.runInNewContext('code()', { code }, { timeout: timeoutMs }) as T);
  } catch (error) {
    if (codeOf(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new LoadError(`${what} has not returned within ${timeoutMs} ms`);
  }
}

/** Waits for a promise with a time limit. @throws LoadError with `what` after it. */
export async function awaitBounded<T>(promise: PromiseLike<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const error = new LoadError(`${what} has not ended within ${timeoutMs} ms`);
    timer = setTimeout(() => reject(error), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Maximum size of a driver's file in bytes: it is read before its code runs, and no time limit ends a read. */
const MOST_MODULE_BYTES = 16 * 2 ** 20;

/** Refuses files that could be read endlessly: devices, pipes, and files of any length. @throws LoadError */
function checkFile(path: string): void {
  const file = statSync(path);
  const got = file.isFile()
    ? file.size > MOST_MODULE_BYTES
      ? `${file.size} bytes`
      : ''
    : 'another kind of file';
  if (got !== '')
    throw new LoadError(`a driver must be a regular file of at most ${MOST_MODULE_BYTES} bytes; got ${got}`);
}

/** Errors for an ES module with a top-level `await`, or for any if `require` does not support them. */
const notRequired: readonly unknown[] = ['ERR_REQUIRE_ASYNC_MODULE', 'ERR_REQUIRE_ESM'];

/**
 * The exports of an ES module or CommonJS file of at most 16 MiB. Its code is evaluated once in a kernel, within
 * `timeoutMs`.
 *
 * @param url - A `file:` URL.
 * @throws LoadError with the reason.
 */
export async function loadModule(
  url: string,
  timeoutMs: number,
  importModule: ImportModule,
): Promise<unknown> {
  const what = 'evaluating the module';
  try {
    const path = require.resolve(fileURLToPath(url));
    checkFile(path);
    try {
      return runBounded((): unknown => require(path), timeoutMs, what);
    } catch (error) {
      if (!notRequired.includes(codeOf(error))) throw error;
    }
    return await awaitBounded(importModule(url), timeoutMs, what);
  } catch (error) {
    throw error instanceof LoadError ? error : new LoadError(reasonOf(error), { cause: error });
  }
}

function isFunction(value: unknown): value is (...parameters: never[]) => unknown {
  return typeof value === 'function';
}

/**
 * A function that a module exports by name, or as a member of its default export, as CommonJS files do.
 *
 * @throws LoadError if it does not exist.
 */
export function exportedFunction(module: unknown, name: string): (...parameters: never[]) => unknown {
  for (const place of [module, (module as { default?: unknown } | undefined)?.default]) {
    if (typeof place !== 'object' || place === null) continue;
    const value: unknown = Reflect.get(place, name);
    if (isFunction(value)) return value;
  }
  throw new LoadError(`the module exports no function '${name}'`);
}
