export { openDeviceFile } from './soft-kernel.js';
