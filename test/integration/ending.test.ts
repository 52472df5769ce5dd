/**
 * Threads that block in native code end when V8 stops them by `worker.terminate()`, `process.exit()` or a script's timeout.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { waits } from '../helpers/blocked-program.js';
import { programFile } from '../helpers/programs.js';
import { firstIf } from '../helpers/tiers.js';
import { HANG_MS } from '../helpers/within.js';

const program = programFile(new URL('../helpers/blocked-program.js', import.meta.url));

async function run(mode: string, way: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [program, mode, way], { stdio: ['ignore', 'pipe', 'inherit'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), HANG_MS);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, output: output.trim() };
}

for (const [n, way] of Object.keys(waits).entries()) {
  /** The first tier has each wait and each end once. */
  const first = (nth: number) => firstIf(nth % Object.keys(waits).length === n, test);

  first(0)(`a Worker that waits for ${way} is terminated, and its HCA ends`, async () => {
    assert.equal(await run('terminate', way), { code: 7, output: '0' });
  });

  first(1)(`a process exits while a Worker of it waits for ${way}`, async () => {
    assert.equal(await run('exit', way), { code: 7, output: '' });
  });

  first(2)(`a Worker exits while a Worker of its own waits for ${way}`, async () => {
    assert.equal(await run('nested', way), { code: 7, output: '' });
  });

  first(3)(`a script that waits for ${way} ends with its timeout`, async () => {
    assert.equal(await run('vm', way), { code: 7, output: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
  });
}

test.run();
