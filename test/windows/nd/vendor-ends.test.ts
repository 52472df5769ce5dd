// Processes and Workers that end with objects and pending requests of a vendor's provider. Nothing is called or written
// afterwards, and the remaining objects are released in a valid order.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { inTime, until } from '../standin.js';
import { Nd2Standin } from './nd2-standin.js';
import { onlyProvider } from './vendor-host.js';

const standin = new Nd2Standin();
const program = fileURLToPath(new URL('./nd2-ends-program.js', import.meta.url));
onlyProvider();

const running = new Set<ChildProcess>();
test.before.each(() => {
  // A terminated thread cannot deregister memory.
  standin.set({ default: 1, leaves: 1 });
  standin.violation();
});
test.after.each(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

/** Runs a process to its end. Returns its exit code and the line that the provider logged at its end. */
async function processThat(way: string, settings = 'leaves=1') {
  const log = join(mkdtempSync(join(tmpdir(), 'nd-ends-')), 'log');
  const env = { ...process.env, STANDIN_ND: settings, STANDIN_ND_LOG: log };
  const child = spawn(process.execPath, [program, way], { stdio: ['ignore', 'ignore', 'pipe'], env });
  running.add(child);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const [code] = (await inTime(`the process (${way}): ${errors}`, once(child, 'close'))) as [number | null];
  return { code, left: existsSync(log) ? readFileSync(log, 'utf8').trim() : '', errors };
}

const NOTHING = 'live=0 pending=0 bytes=0 violation=';
/** Windows releases the rest, because Node.js runs no cleanup hooks. The provider must not have recorded a violation. */
const ENDED = /^live=\d+ pending=\d+ bytes=\d+ violation=$/;

for (const settings of ['leaves=1', 'leaves=1,completion=2,delay=5']) {
  test(`a process that calls process.exit (${settings})`, async () => {
    const { code, left } = await processThat('exit', settings);
    assert.is(code, 7);
    assert.match(left, ENDED);
  });
}

test('a process that throws', async () => {
  const { code, left, errors } = await processThat('throw');
  assert.is(code, 1);
  assert.match(errors, /on purpose/);
  assert.match(left, ENDED);
});

test('a process that releases everything ends by itself', async () => {
  const { code, left, errors } = await processThat('natural', 'leaves=0');
  assert.is(code, 0, errors);
  assert.is(left, NOTHING);
});

test('a process that releases nothing ends by itself', async () => {
  const { code, left, errors } = await processThat('left');
  assert.is(code, 0, errors);
  assert.is(left, NOTHING);
});

test('process.exit while Workers have pending requests', async () => {
  const { code, left } = await processThat('workers');
  assert.is(code, 7);
  assert.match(left, ENDED);
});

for (const way of ['wait', 'blocked']) {
  test(`a Worker that is terminated (${way})`, async () => {
    for (let i = 0; i < 3; i++) {
      const worker = new Worker(program, { argv: [way] });
      await inTime('its objects', once(worker, 'message'));
      assert.ok(standin.live() > 10);
      await inTime('the Worker', worker.terminate());
      await until(() => standin.live() === 0 && standin.pending === 0).catch(() =>
        assert.equal([standin.live(), standin.pending], [0, 0]),
      );
      assert.is(standin.violation(), '');
    }
  });
}

test('a Worker whose requests complete while it is terminated', async () => {
  standin.set({ delay: 20 });
  for (let i = 0; i < 3; i++) {
    const worker = new Worker(program, { argv: ['wait'] });
    await inTime('its objects', once(worker, 'message'));
    await inTime('the Worker', worker.terminate());
    await until(() => standin.live() === 0 && standin.pending === 0);
    assert.is(standin.violation(), '');
  }
});

test('a Worker that ends by itself, and one that calls process.exit', async () => {
  standin.set({ leaves: 0 });
  assert.equal(await inTime('the Worker', once(new Worker(program, { argv: ['natural'] }), 'exit')), [0]);
  assert.is(standin.violation(), '');
  standin.set({ leaves: 1 });
  assert.equal(await inTime('the Worker', once(new Worker(program, { argv: ['exit'] }), 'exit')), [7]);
  await until(() => standin.live() === 0 && standin.pending === 0);
  assert.is(standin.violation(), '');
});

test.run();
