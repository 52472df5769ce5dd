// A Python program reads memory from allocate() in place, without a copy. The memory is an unnamed file that processes of this user can
// map. The file cannot shrink, so the reader is safe whatever this process does, and it does not need this package.
//
//   node dist/examples/recipes/python-reads.js
import { spawn } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { on, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { allocate } from 'networkdirect/net';

const COUNT = 1_000_000;
const TAG_BYTES = 16;

// The reader identifies this memory by a random tag at its start.
const memory = allocate(TAG_BYTES + 8 * COUNT);
const tag = randomFillSync(Buffer.from(memory.buffer, memory.byteOffset, TAG_BYTES));
const numbers = new Float64Array(memory.buffer, memory.byteOffset + TAG_BYTES, COUNT);
numbers[COUNT - 1] = 0.5;

const program = fileURLToPath(new URL('../../../examples/recipes/python-reads.py', import.meta.url));
const words = [program, String(process.pid), String(memory.length), tag.toString('hex')];
const python = spawn('python3', words, { stdio: ['pipe', 'pipe', 'inherit'] });
for await (const [line] of on(createInterface(python.stdout), 'line', { close: ['close'] })) {
  console.log(line);
  if (numbers[COUNT - 1] !== 0.5) continue;
  numbers[COUNT - 1] = 1.5;
  python.stdin.end('look again\n');
}
if (python.exitCode === null) await once(python, 'exit');
process.exitCode = python.exitCode!;
