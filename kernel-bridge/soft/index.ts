export { allocate } from './allocate.js';
export { openDeviceFile } from './soft-kernel.js';
