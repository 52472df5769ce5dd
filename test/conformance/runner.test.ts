/** Runs of the suite with a provider that misbehaves outside the steps of a case. */
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type CaseResult, loadSubject, localParty, makeHalf, runCases } from '../../nd/conformance/index.js';
import type { Case } from '../../nd/conformance/runner.js';

const STEP_TIMEOUT_MS = 500;
const never = new Promise<never>(() => {});

async function results(...bodies: Case['body'][]): Promise<Pick<CaseResult, 'outcome' | 'got'>[]> {
  const subject = await loadSubject('v1');
  const half = () => makeHalf('v1', subject.open(), '127.0.0.1', 1000);
  const ended = await runCases(
    bodies.map((body, i) => ({ name: `group.case-${i}`, clause: '', spi: ['v1'], body })),
    {
      local: { provider: subject.open(), half: half() },
      far: localParty(half()),
      stepTimeoutMs: STEP_TIMEOUT_MS,
    },
  );
  return ended.map(({ outcome, got }) => (got === undefined ? { outcome } : { outcome, got }));
}

test('an uncaught error fails the current case at once, and the run continues', async () => {
  const before = process.listenerCount('uncaughtException');
  assert.equal(
    await results(
      () => {
        queueMicrotask(() => {
          throw new RangeError('thrown by a callback');
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
      { outcome: 'failed', got: 'Uncaught: RangeError: thrown by a callback' },
      { outcome: 'failed', got: 'Uncaught: TypeError: rejected' },
      { outcome: 'passed' },
    ],
  );
  assert.is(process.listenerCount('uncaughtException'), before, 'listeners are removed');
});

test('a case that times out does not affect the next', async () => {
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

test('an error after the end of a case fails its release', async () => {
  assert.equal(
    await results(async () => {
      queueMicrotask(() => queueMicrotask(() => void Promise.reject(new Error('late'))));
    }),
    [{ outcome: 'failed', got: 'Uncaught: Error: late' }],
  );
});

test.run();
