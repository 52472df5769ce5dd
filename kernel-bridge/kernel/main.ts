/**
 * Entry of the soft kernel's Worker in a source tree, where modules are loaded one by one. The package has them in one
 * file (scripts/bundle-kernel.mjs).
 */
import { startKernel } from './start-kernel.js';

startKernel();
