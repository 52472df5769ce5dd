/** Providers to test: this package's, or an export of a module. */
import { createRequire } from 'node:module';
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { IND2Provider, INDProvider } from '../index.js';
import type { Half, Spi } from './half.js';
import { HalfV1 } from './half-v1.js';
import { HalfV2 } from './half-v2.js';
import { type Allocate, ChunkedMemory, type MemorySource } from './memory-source.js';

/** Names of the exports that open a provider, by version of the SPI. */
export const openerNames: Readonly<Record<Spi, string>> = {
  v1: 'openNetworkDirect',
  v2: 'openNetworkDirect2',
};

/** A provider to test. */
export interface Subject {
  readonly spi: Spi;
  /** Opens the provider; every half opens its own. */
  readonly open: () => unknown;
  /** Memory of the module's export `allocate`; undefined if it does not export it. */
  readonly allocated: (() => MemorySource) | undefined;
}

/**
 * Loads the provider that a module exports: a function `openNetworkDirect` for SPI v1, `openNetworkDirect2` for v2,
 * that returns it. A module is a package name, or a path that begins with `.` or `/`. Packages are searched from here,
 * and then from the working directory.
 *
 * @throws Error if the module does not exist, cannot be loaded, or does not have the function
 */
export async function loadSubject(spi: Spi, module?: string): Promise<Subject> {
  const exported: Record<string, unknown> = await (module === undefined
    ? import('../index.js')
    : load(module));
  const name = openerNames[spi];
  const find = (what: string): unknown =>
    exported[what] ?? (exported.default as Record<string, unknown> | undefined)?.[what];
  const open = find(name);
  if (typeof open !== 'function') {
    throw new Error(
      `${module ?? 'This version'} must export a function '${name}', which opens a provider of SPI ${spi}.`,
    );
  }
  const allocate = find('allocate');
  return {
    spi,
    open: () => (open as () => unknown)(),
    allocated: typeof allocate === 'function' ? () => new ChunkedMemory(allocate as Allocate) : undefined,
  };
}

async function load(module: string): Promise<Record<string, unknown>> {
  try {
    if (module.startsWith('.') || isAbsolute(module)) {
      return await import(pathToFileURL(resolve(module)).href);
    }
    return await import(module).catch((error: unknown) => {
      const found = isMissing(error) ? inWorkingDirectory(module) : undefined;
      if (found === undefined) throw error;
      return import(found);
    });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // The importer is already named.
    const reason = message.replace(/ imported from .*$/s, '');
    const hint = isMissing(error)
      ? " It must be the name of an installed package, or the path of a module, which begins with '.' or '/'."
      : '';
    throw new Error(`Cannot load the provider '${module}': ${reason}.${hint}`, { cause: error });
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_MODULE_NOT_FOUND';
}

/** Returns the package's URL as seen from the working directory. */
function inWorkingDirectory(name: string): string | undefined {
  try {
    return pathToFileURL(createRequire(resolve('program.js')).resolve(name)).href;
  } catch {
    return undefined;
  }
}

/** Creates a half over an open provider; by default its memory is plain arrays. */
export function makeHalf(
  spi: Spi,
  provider: unknown,
  address: string,
  stepTimeoutMs: number,
  source?: MemorySource,
): Half {
  if (spi === 'v1') return new HalfV1(provider as INDProvider, address, stepTimeoutMs, source);
  return new HalfV2(provider as IND2Provider, address, stepTimeoutMs, source);
}
