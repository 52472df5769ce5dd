/** Device files of Windows drivers, and memory that they can use. */
export { allocateWindows, wantsSteady } from './allocate.js';
export { openWindowsFile } from './open-windows-file.js';
