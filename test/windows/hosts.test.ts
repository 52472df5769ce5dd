// Several processes of one host.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readProcesses } from '../../kernel-bridge/index.js';

const running = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

function start(program: string, options: object = {}): ChildProcess {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), {
    env: { ...process.env, ND_OPTIONS: JSON.stringify({ kernel: 'soft', ...options }) },
  });
  running.add(child);
  return child;
}

test('a process reads what the others of its user have', async () => {
  const program = '../helpers/observed-program.js';
  const children = [start(program), start(program), start(program, { statistics: false })];
  await Promise.all(children.map((child) => once(child, 'message')));
  const seen = await readProcesses({ timeoutMs: 60_000 });
  for (const [n, { pid }] of children.entries()) {
    const one = seen.find((kernel) => kernel.pid === pid);
    assert.ok(one, `process ${pid} is not seen`);
    if (n === 2) {
      assert.equal([one.problem, one.statistics], ['refused', undefined]);
      continue;
    }
    const statistics = one.statistics!;
    assert.equal([statistics.pid, statistics.queuePairs.length, statistics.connections.length], [pid, 2, 2]);
    assert.ok(statistics.queuePairs.every(({ state }) => state === 'RTS'));
  }
  assert.is(new Set(seen.map(({ slot }) => slot)).size, seen.length);
});

test.run();
