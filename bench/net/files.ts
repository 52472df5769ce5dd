/** Files that exist before the copy, so that the row does not measure how the page cache zeroes new pages. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WRITE_BYTES } from './job.js';

/** Creates a file of `bytes` bytes and removes it when the process exits. Returns its path. */
export function temporaryFile(bytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'nd-bench-net-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'file');
  const file = openSync(path, 'w');
  const piece = Buffer.alloc(WRITE_BYTES, 7);
  for (let left = bytes; left > 0; left -= piece.length)
    writeSync(file, piece, 0, Math.min(left, piece.length));
  closeSync(file);
  return path;
}
