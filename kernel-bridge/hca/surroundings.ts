/** Checks the environment of the package: Node.js itself, and the files that it was installed with. */
import { statSync } from 'node:fs';

/** Runtimes that load Node.js's addons but lack functions of libuv called by this package's; the call ends the process. */
const UNSUITABLE = { bun: 'Bun', deno: 'Deno' } as const;

/** The file of the soft kernel's thread, which bundlers do not include. */
const threadFile = new URL('../door/soft/kernel-thread.cjs', import.meta.url);

/** How to bundle programs without this package. The ES modules of the packed package contain the same text (scripts/pack-code.mjs). */
export const OUTSIDE_OF_BUNDLES =
  "networkdirect cannot be part of a bundle, because it loads native addons and starts a thread from a file of its own. Mark networkdirect as external (esbuild: --external:networkdirect; webpack: externals: /^networkdirect/, externalsType: 'commonjs'), and install it where the program runs.";

/** @throws Error: another runtime, or a bundle that contains this module */
export function checkSurroundings(): void {
  for (const [key, name] of Object.entries(UNSUITABLE)) {
    const version = process.versions[key];
    if (version === undefined) continue;
    throw new Error(
      `The runtime must be Node.js; got ${name} ${version}, which lacks functions of libuv that the native addons call. Run the program with node.`,
    );
  }
  try {
    statSync(threadFile);
  } catch (cause) {
    // Other errors, such as that of Node.js's permission model, are reported by the code that needs the file.
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') throw new Error(OUTSIDE_OF_BUNDLES, { cause });
  }
}
