import { createRequire } from 'node:module';
import type { AddonBinding } from './binding.js';

const require = createRequire(import.meta.url);

/** The native addon. Its path is relative to the compiled file, `dist/kernel-bridge/hca/`. */
export const addon: AddonBinding = require(
  process.env.NETWORKDIRECT_HCA_ADDON ?? '../../../build/Release/networkdirect_hca.node',
);

export * from './abi.js';
export * from './binding.js';
