export { allocate } from './allocate.js';
export { resolveKernelOptions } from './kernel-options.js';
export { type Observed, observe } from './observe.js';
export { openDeviceFile } from './soft-kernel.js';
