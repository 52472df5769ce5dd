/** Runs with a provider that misbehaves where no case looks. */
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type CaseResult, loadSubject, localParty, makeHalf, runCases } from '../../nd/conformance/index.js';
import type { Case } from '../../nd/conformance/runner.js';

const PATIENCE_MS = 500;
const never = new Promise<never>(() => {});

async function results(...bodies: Case['body'][]): Promise<Pick<CaseResult, 'outcome' | 'got'>[]> {
  const subject = await loadSubject('v1');
  const half = () => makeHalf('v1', subject.open(), '127.0.0.1', 1000);
  const ended = await runCases(
    bodies.map((body, i) => ({ name: `group.case-${i}`, clause: '', spi: ['v1'], body })),
    { local: { provider: subject.open(), half: half() }, far: localParty(half()), patienceMs: PATIENCE_MS },
  );
  return ended.map(({ outcome, got }) => (got === undefined ? { outcome } : { outcome, got }));
}

test('an error that nobody catches fails the case at hand, at once, and the run goes on', async () => {
  const before = process.listenerCount('uncaughtException');
  assert.equal(
    await results(
      () => {
        queueMicrotask(() => {
          throw new RangeError('thrown by a call-back');
        });
        return never;
      },
      () => {
        Promise.reject(new TypeError('rejected'));
        return never;
      },
      () => setImmediate(),
    ),
    [
      { outcome: 'failed', got: 'Uncaught: RangeError: thrown by a call-back' },
      { outcome: 'failed', got: 'Uncaught: TypeError: rejected' },
      { outcome: 'passed' },
    ],
  );
  assert.is(process.listenerCount('uncaughtException'), before, 'listeners are taken back');
});

test('a case that ends when its time is up takes nothing from the next', async () => {
  let endFirst = (): void => {};
  const [first, second] = await results(
    () =>
      new Promise<void>((resolve) => {
        endFirst = resolve;
      }),
    () => {
      endFirst();
      setTimeout(() => {
        throw new RangeError('after the first has ended');
      }, 10);
      return never;
    },
  );
  assert.is(first?.got, 'none');
  assert.is(second?.got, 'Uncaught: RangeError: after the first has ended');
});

test('one that comes when a case has ended fails what is released then', async () => {
  assert.equal(
    await results(async () => {
      queueMicrotask(() => queueMicrotask(() => void Promise.reject(new Error('late'))));
    }),
    [{ outcome: 'failed', got: 'Uncaught: Error: late' }],
  );
});

test.run();
