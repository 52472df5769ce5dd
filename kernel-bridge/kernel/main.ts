/** Entry of the soft kernel's Worker, where it loads the modules one by one; else it has them in one file (scripts/bundle-kernel.mjs). */
import { startKernel } from './start-kernel.js';

startKernel();
