// Pending requests do not prevent a process or a Worker from ending in any way, and leave no files or requests behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { inTime, Standin, TestCode, u32, until, words } from './standin.js';

const standin = new Standin();
const program = fileURLToPath(new URL('./ends-program.js', import.meta.url));

const running = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

function start(way: string): { child: ChildProcess; ended: Promise<number | null> } {
  const child = spawn(process.execPath, [program, way], { stdio: 'ignore' });
  running.add(child);
  return { child, ended: once(child, 'exit').then(([code]) => code as number | null) };
}

/** Waits until no request is pending and no file is open that was not before. */
async function nothingLeft(before: ReturnType<Standin['stats']>): Promise<void> {
  await until(() => {
    const now = standin.stats();
    return now.waiting === before.waiting && now.opens - now.closes === before.opens - before.closes;
  });
}

test('a process that calls process.exit', async () => {
  const before = standin.stats();
  assert.is(await inTime('the process', start('exit').ended), 7);
  await nothingLeft(before);
});

test('a process that ends by itself when its requests have completed', async () => {
  const before = standin.stats();
  const { ended } = start('natural');
  await until(() => standin.stats().waiting === before.waiting + 10);
  standin.complete(10);
  assert.is(await inTime('the process', ended), 0);
  await nothingLeft(before);
});

test('a process that is killed', async () => {
  const before = standin.stats();
  const { child, ended } = start('wait');
  await until(() => standin.stats().waiting === before.waiting + 10);
  child.kill('SIGKILL');
  await inTime('the process', ended);
  await nothingLeft(before);
});

test('a process that throws', async () => {
  const before = standin.stats();
  assert.is(await inTime('the process', start('throw').ended), 1);
  await nothingLeft(before);
});

for (const way of ['wait', 'blocked']) {
  test(`a Worker that is terminated (${way})`, async () => {
    const before = standin.stats();
    for (let i = 0; i < 5; i++) {
      const worker = new Worker(program, { argv: [way] });
      await until(() => standin.stats().waiting >= before.waiting + (way === 'wait' ? 10 : 1));
      const begun = performance.now();
      await inTime('the Worker', worker.terminate());
      if (i === 4)
        console.log(`Windows (Wine): terminate, ${way}: ${(performance.now() - begun).toFixed(0)} ms`);
      await nothingLeft(before);
    }
  });
}

test('a Worker that calls process.exit, and one that ends by itself', async () => {
  const before = standin.stats();
  assert.equal(await inTime('the Worker', once(new Worker(program, { argv: ['exit'] }), 'exit')), [7]);
  const worker = new Worker(program, { argv: ['natural'] });
  const ended = once(worker, 'exit');
  await until(() => standin.stats().waiting === before.waiting + 10);
  standin.complete(10);
  assert.equal(await inTime('the Worker', ended), [0]);
  await nothingLeft(before);
});

test('a process whose Workers have pending requests', async () => {
  const before = standin.stats();
  assert.is(await inTime('the process', start('workers').ended), 7);
  await nothingLeft(before);
});

test('more Workers than libuv has threads: all receive their completions and end', async () => {
  const before = standin.stats();
  const workers = Array.from({ length: 8 }, () => new Worker(program, { argv: ['natural'] }));
  const first = workers.slice(0, 4).map((worker) => once(worker, 'exit'));
  await until(() => standin.stats().waiting === before.waiting + 80);
  await inTime('terminate', Promise.all(workers.slice(4).map((worker) => worker.terminate())));
  await until(() => standin.stats().waiting === before.waiting + 40);
  const more = Array.from({ length: 4 }, () => new Worker(program, { argv: ['natural'] }));
  const second = more.map((worker) => once(worker, 'exit'));
  await until(() => standin.stats().waiting === before.waiting + 80);
  standin.complete(80);
  for (const end of [...first, ...second]) assert.equal(await inTime('the Worker', end), [0]);
  await nothingLeft(before);
});

test('this thread can still send requests afterwards', async () => {
  const pending = standin.file.ioctlOverlapped(TestCode.PEND, u32(50, 3), 8, words);
  assert.equal(await pending, [50, 3]);
});

test.run();
