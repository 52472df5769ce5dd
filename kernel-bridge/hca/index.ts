import { createRequire } from 'node:module';
import type { AddonBinding } from './binding.js';

const require = createRequire(import.meta.url);

/** Relative to the compiled file, `dist/kernel-bridge/hca/`. */
const builtAddon = '../../../build/Release/networkdirect_hca.node';

function load(): AddonBinding {
  const path = process.env.NETWORKDIRECT_HCA_ADDON ?? builtAddon;
  try {
    return require(path);
  } catch (cause) {
    throw new Error(
      `The software HCA's native addon cannot be loaded (${cause instanceof Error ? cause.message.split('\n')[0] : cause}). ` +
        'Installing the package builds it and takes a C++17 compiler, make and Python 3; `npm rebuild networkdirect` does it again.',
      { cause },
    );
  }
}

/** The native addon. */
export const addon: AddonBinding = load();

export * from './abi.js';
export * from './binding.js';
