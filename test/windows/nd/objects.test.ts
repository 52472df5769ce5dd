// 10,000 objects of each kind and thousands of requests leave no object in the provider and no handle in the process.
import { createRequire } from 'node:module';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BareAdapter, BareSide } from './bare-side.js';
import { clean, Nd2Standin } from './nd2-standin.js';

const standin = new Nd2Standin();
const COUNT = process.env.ND_WINDOWS_QUICK === '1' ? 1000 : 10_000;

interface Kernel32 {
  func(
    convention: string,
    name: string,
    result: string,
    types: readonly string[],
  ): (...values: unknown[]) => unknown;
}
const kernel32 = (createRequire(import.meta.url)('koffi') as { load(path: string): Kernel32 }).load(
  'kernel32.dll',
);
const countHandles = kernel32.func('__stdcall', 'GetProcessHandleCount', 'int', ['intptr_t', 'uint32_t *']);

function handles(): number {
  const count = new Uint32Array(1);
  assert.is.not(countHandles(-1, count), 0);
  return count[0]!;
}

for (const kind of [
  'IND2CompletionQueue',
  'IND2SharedReceiveQueue',
  'IND2MemoryRegion',
  'IND2MemoryWindow',
  'IND2QueuePair',
  'IND2Connector',
  'IND2Listener',
] as const) {
  clean(test, standin, `${COUNT} of ${kind}`, () => {
    const at = new BareAdapter();
    const queue = at.completionQueue();
    const make = {
      IND2CompletionQueue: () => at.completionQueue(),
      IND2SharedReceiveQueue: () => at.overlapped('IND2SharedReceiveQueue', 16, 1, 0, 0, 0),
      IND2MemoryRegion: () => at.overlapped('IND2MemoryRegion'),
      IND2MemoryWindow: () => at.plain('IND2MemoryWindow'),
      IND2QueuePair: () => at.queuePair(queue),
      IND2Connector: () => at.overlapped('IND2Connector'),
      IND2Listener: () => at.overlapped('IND2Listener'),
    }[kind];
    const before = { live: standin.live(kind), handles: handles() };
    for (let i = 0; i < COUNT; i++) make().release();
    assert.is(standin.live(kind), before.live);
    assert.ok(handles() < before.handles + 10, `${handles()} handles, ${before.handles} before`);
    at.release();
  });
}

clean(test, standin, 'adapters with their own files and requests', async () => {
  for (const round of ['first', 'second']) {
    const before = handles();
    for (let i = 0; i < COUNT / 100; i++) {
      const at = new BareAdapter();
      const side = new BareSide(at, i);
      const notified = side.queue.start('Notify', () => [1]);
      side.queuePair.run('Receive', i, 0, 0);
      side.queuePair.run('Flush');
      await notified;
      assert.is(side.results().length, 1);
      side.end();
      at.release();
    }
    // The first requests allocate memory that later ones reuse.
    if (round === 'second') assert.ok(handles() < before + 10, `${handles()} handles, ${before} before`);
  }
});

test.run();
