/** Providers that are tested: this package's, or what a module exports. */
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { IND2Provider, INDProvider } from '../../nd/index.js';
import type { Half, Spi } from './half.js';
import { HalfV1 } from './half-v1.js';
import { HalfV2 } from './half-v2.js';

/** What opens a provider, by version of the SPI: names of a module's exports. */
export const openerNames: Readonly<Record<Spi, string>> = {
  v1: 'openNetworkDirect',
  v2: 'openNetworkDirect2',
};

/** A provider to be tested. */
export interface Subject {
  readonly spi: Spi;
  /** Opens the provider; every half has one of its own. */
  readonly open: () => unknown;
}

/**
 * The provider that a module exports: a function `openNetworkDirect` for SPI v1, `openNetworkDirect2` for v2, that
 * answers it. A module is a package name, or a path that begins with `.` or `/`.
 *
 * @throws Error if there is no such module, or it has no such function.
 */
export async function loadSubject(spi: Spi, module?: string): Promise<Subject> {
  const exported = (await import(module === undefined ? '../../nd/index.js' : specifierOf(module))) as Record<
    string,
    unknown
  >;
  const name = openerNames[spi];
  const open = exported[name] ?? (exported.default as Record<string, unknown> | undefined)?.[name];
  if (typeof open !== 'function') {
    throw new Error(
      `${module ?? 'This version'} has no provider of SPI ${spi}: it should export a function '${name}' that opens one.`,
    );
  }
  return { spi, open: () => (open as () => unknown)() };
}

function specifierOf(module: string): string {
  if (!module.startsWith('.') && !isAbsolute(module)) return module;
  return pathToFileURL(resolve(module)).href;
}

/** A half over a provider that is open. */
export function makeHalf(spi: Spi, provider: unknown, address: string, patienceMs: number): Half {
  if (spi === 'v1') return new HalfV1(provider as INDProvider, address, patienceMs);
  return new HalfV2(provider as IND2Provider, address, patienceMs);
}
