/** Peers that come from npm: scripts/install-bench-peers.sh installs them into a folder of their own. */
import { createRequire } from 'node:module';

/** From dist/bench/peers. */
const load = createRequire(new URL('../../../.cache/bench/package.json', import.meta.url));

/** The package, of which the caller declares the part that it uses. */
export function npmPackage<T>(name: string): T {
  return load(name) as T;
}

/** Why the package cannot be used on this machine; undefined: it can be. */
export function missingPackage(name: string): string | undefined {
  try {
    load.resolve(name);
    return undefined;
  } catch {
    return `${name} is not installed (scripts/install-bench-peers.sh)`;
  }
}
