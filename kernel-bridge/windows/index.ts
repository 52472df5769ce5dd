/** Device files of Windows drivers, and memory that they take. */
export { allocateWindows, wantsSteady } from './allocate.js';
export { openWindowsFile } from './open-windows-file.js';
