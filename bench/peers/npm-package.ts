/** Peers from npm, which scripts/install-bench-peers.sh installs into a separate folder. */
import { createRequire } from 'node:module';

/** The path is relative to dist/bench/peers. */
const load = createRequire(new URL('../../../.cache/bench/package.json', import.meta.url));

/** The package. The caller declares the part of its API that it uses. */
export function npmPackage<T>(name: string): T {
  return load(name) as T;
}

/** Why the package cannot be used on this machine; undefined if it can. */
export function missingPackage(name: string): string | undefined {
  try {
    load.resolve(name);
    return undefined;
  } catch {
    return `${name} is not installed (scripts/install-bench-peers.sh)`;
  }
}
