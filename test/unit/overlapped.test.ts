import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Overlapped, type OverlappedSource } from '../../kernel-bridge/door/overlapped.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { thrownStatus, throwsStatus } from '../helpers/outcome.js';

/** A request that the test completes. */
class Manual<T> implements OverlappedSource<T> {
  #result: (() => T) | undefined;
  #next: (() => T) | undefined;
  taken = 0;
  cancelled = 0;
  completed(): boolean {
    return this.#result !== undefined;
  }
  complete(result: () => T): void {
    this.#result = result;
  }
  /** The result of a blocking wait. */
  completeOnWait(result: () => T): void {
    this.#next = result;
  }
  take(): T {
    this.taken++;
    if (this.#result === undefined) throw new Error('taken before completion');
    return this.#result();
  }
  wait(): void {
    this.#result ??= this.#next;
  }
  cancel(): void {
    this.cancelled++;
  }
}

const fail = (status: number) => (): never => {
  throw new StatusError(status);
};
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('pending: no result, status PENDING; completed: the result, which can be taken once', () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  assert.is(o.completed, false);
  assert.is(o.status, Status.PENDING);
  throwsStatus(() => o.getResult(), Status.PENDING);
  source.complete(() => 5);
  assert.is(o.completed, true);
  assert.is(source.taken, 0, 'checking does not take the result');
  assert.is(o.getResult(), 5);
  assert.is(o.getResult(), 5);
  assert.is(o.status, Status.SUCCESS);
  assert.is(source.taken, 1);
});

test('getResult({ wait: true }) blocks in the source, even through layers', () => {
  const source = new Manual<number>();
  source.completeOnWait(() => 5);
  assert.is(
    new Overlapped(source)
      .map((n) => n + 1)
      .map((n) => n * 2)
      .getResult({ wait: true }),
    12,
  );
});

test('it can be awaited before and after completion', async () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  const early = o.then((n) => n + 1);
  source.complete(() => 5);
  o.settle();
  assert.is(await early, 6);
  assert.is(await o, 5);
  assert.is(await Promise.race([o, new Promise(() => {})]), 5);
  let finals = 0;
  await o.finally(() => finals++);
  assert.is(finals, 1);
});

test('a status other than SUCCESS rejects, including TIMEOUT and warnings', async () => {
  for (const status of [Status.TIMEOUT, Status.BUFFER_OVERFLOW, Status.CANCELED]) {
    const source = new Manual<number>();
    const o = new Overlapped(source);
    const caught = o.catch((error: unknown) => (error as StatusError).status);
    source.complete(fail(status));
    o.settle();
    assert.is(await caught, status);
    assert.is(o.status, status);
    assert.is(
      thrownStatus(() => o.getResult()),
      status,
    );
  }
});

test('map() runs once, no matter where the result is observed first: parent, child, blocking wait or event loop', async () => {
  for (const look of ['parent', 'child', 'wait', 'loop', 'await'] as const) {
    const source = new Manual<number>();
    const o = new Overlapped(source);
    let runs = 0;
    const child = o.map((n) => {
      runs++;
      return `${n}`;
    });
    const grandchild = child.map((s) => `${s}!`);
    source.complete(() => 5);
    assert.is(runs, 0);
    if (look === 'parent') o.settle();
    if (look === 'child') grandchild.settle();
    if (look === 'wait') grandchild.getResult({ wait: true });
    if (look === 'loop') {
      o.settle(); // the door's delivery
      await nextTurn();
    }
    if (look === 'await') await grandchild;
    assert.is(runs, 1, look);
    assert.is(grandchild.getResult(), '5!');
    assert.is(child.getResult(), '5');
    assert.is(runs, 1, look);
  }
});

test('map() attached after completion runs at the latest on the event loop', async () => {
  let runs = 0;
  Overlapped.succeeded(1).map(() => runs++);
  assert.is(runs, 0);
  await nextTurn();
  assert.is(runs, 1);
});

test('map() translates failures, and its own failures become the result', async () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  const translated = o.map(
    () => 1,
    () => new StatusError(Status.CANCELED, 'mine'),
  );
  const passed = o.map(() => 1);
  source.complete(fail(Status.CONNECTION_DISCONNECTED));
  assert.is(translated.status, Status.CANCELED);
  assert.is(passed.status, Status.CONNECTION_DISCONNECTED);
  const broken = Overlapped.succeeded(1).map(() => {
    throw new TypeError('a defect');
  });
  assert.is(broken.status, Status.INTERNAL_ERROR);
  const refused = Overlapped.succeeded(1).map(fail(Status.DATA_OVERRUN));
  assert.is(refused.status, Status.DATA_OVERRUN);
});

test('a map function that checks its own Overlapped sees it pending and does not recurse', () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  let seen = -1;
  const child: Overlapped<number> = o.map((n) => {
    seen = child.status;
    return n;
  });
  source.complete(() => 5);
  assert.is(child.getResult(), 5);
  assert.is(seen, Status.PENDING);
});

test('cancel() reaches the source from every layer while pending, and not afterwards', () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  const child = o.map((n) => n);
  child.cancel();
  assert.is(source.cancelled, 1);
  source.complete(() => 5);
  child.settle();
  child.cancel();
  o.cancel();
  assert.is(source.cancelled, 1);
});

test('abortOn() releases the signal when the request has completed', () => {
  const source = new Manual<number>();
  const o = new Overlapped(source);
  const abort = new AbortController();
  assert.is(o.abortOn(abort.signal), o);
  source.complete(() => 5);
  o.settle();
  abort.abort();
  assert.is(source.cancelled, 0);
  const aborted = new Manual<number>();
  new Overlapped(aborted).abortOn(abort.signal);
  assert.is(aborted.cancelled, 1);
});

test('an unobserved failure causes no unhandledRejection', async () => {
  let unhandled = 0;
  const count = (): void => {
    unhandled++;
  };
  process.on('unhandledRejection', count);
  const o = Overlapped.failed(new StatusError(Status.CANCELED));
  o.map(() => 1);
  assert.is(o.completed, true);
  await nextTurn();
  await nextTurn();
  assert.is(unhandled, 0);
  process.off('unhandledRejection', count);
});

test('translateFailure: the same request reports a translated failure, once', async () => {
  const source = new Manual<number>();
  let translated = 0;
  const o = new Overlapped(source);
  const reported = o.translateFailure((error) => {
    translated++;
    return new StatusError(error.status + 1);
  });
  assert.is(reported, o);
  assert.is(translated, 0);
  source.complete(fail(Status.CANCELED));
  assert.is(o.status, Status.CANCELED + 1);
  throwsStatus(() => o.getResult(), Status.CANCELED + 1);
  await nextTurn();
  assert.is(translated, 1);

  const good = new Manual<number>();
  good.complete(() => 3);
  const fine = new Overlapped(good).translateFailure(() => new StatusError(Status.CANCELED));
  assert.is(await fine, 3);
});

test('translateFailure: runs for a request that failed at once, even if the result is not observed', async () => {
  const heard: number[] = [];
  Overlapped.failed(new StatusError(Status.INVALID_HANDLE)).translateFailure((error) => {
    heard.push(error.status);
    return error;
  });
  // The result is not delivered before the caller has the request.
  assert.equal(heard, []);
  await Promise.resolve();
  assert.equal(heard, [Status.INVALID_HANDLE]);
});

test('translateFailure: requests that failed at once, and functions that throw', async () => {
  const refused = Overlapped.failed(new StatusError(Status.INVALID_HANDLE));
  const other = refused.translateFailure(() => new StatusError(Status.DEVICE_REMOVED));
  assert.is(
    await other.then(
      () => 0,
      (error: unknown) => (error as StatusError).status,
    ),
    Status.DEVICE_REMOVED,
  );
  const cause = new RangeError('a defect');
  const broken = Overlapped.failed(new StatusError(Status.INVALID_HANDLE)).translateFailure(() => {
    throw cause;
  });
  assert.is(broken.status, Status.INTERNAL_ERROR);
  try {
    broken.getResult();
  } catch (error) {
    assert.is((error as Error).cause, cause);
  }
});

test('translateFailure: results that could not be used', async () => {
  const cause = new RangeError('a defect');
  const source = new Manual<number>();
  const reported = new Overlapped(source).translateFailure(
    (error) => new StatusError(Status.DEVICE_REMOVED, undefined, { cause: error }),
  );
  source.complete(() => {
    throw cause;
  });
  assert.is(reported.status, Status.DEVICE_REMOVED);
  try {
    reported.getResult();
    assert.unreachable();
  } catch (error) {
    const first = (error as Error).cause as StatusError;
    assert.is(first.status, Status.INTERNAL_ERROR);
    assert.is(first.cause, cause);
  }
});

test.run();
