export { allocate } from './allocate.js';
export { resolveKernelOptions } from './kernel-options.js';
export { openDeviceFile } from './soft-kernel.js';
