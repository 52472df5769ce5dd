/** Results and completions whose setters poll the queue again. The outer call continues unaffected. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type Nd2Result, type NdResult, Status } from '../../nd/index.js';
import { endpointOf, endsIn, openFake, result } from '../helpers/nd-fixture.js';
import { openFake2, queuePairOf } from '../helpers/nd2-fixture.js';

const DEPTH = 4;

/** Returns `target` with setters that call `written` whenever one of the fields is written. */
function withSetters<R extends object>(target: R, fields: readonly (keyof R)[], written: () => void): R {
  for (const field of fields) {
    let held = target[field];
    Object.defineProperty(target, field, {
      get: () => held,
      set: (value) => {
        held = value;
        written();
      },
    });
  }
  return target;
}

test('v1: the setter of a result may call getResults', () => {
  const { adapter, pd } = openFake();
  const { endpoint, qp, outbound } = endpointOf(adapter, pd, { outbound: DEPTH });
  const fillQueue = (make: (context: number) => NdResult): NdResult[] => {
    const made = Array.from({ length: DEPTH }, (_, i) => make(i));
    for (const one of made) endpoint.send(one, []);
    endsIn(() => endpoint.send(result(), []), Status.NO_MORE_ENTRIES);
    return made;
  };
  let nesting = false;
  const counts: number[] = [];
  const all = fillQueue((context) =>
    withSetters(result(context), ['status', 'bytesTransferred'], () => {
      if (nesting) counts.push(outbound.getResults([], DEPTH));
    }),
  );
  for (const posted of qp.posted.splice(0)) qp.complete(posted);
  nesting = true;
  const results: NdResult[] = [];
  // Fewer results than available, so that later ones are left for the inner calls.
  assert.is(outbound.getResults(results, 2), 2);
  assert.is(outbound.getResults(results, 1), 1);
  assert.is(results[0], all[2]);
  assert.is(outbound.getResults(results, DEPTH), 1);
  assert.is(results[0], all[3]);
  assert.equal(counts, Array(2 * DEPTH).fill(0));
  // The number of outstanding requests is correct.
  nesting = false;
  const next = fillQueue(result);
  for (const posted of qp.posted.splice(0)) qp.complete(posted);
  assert.is(outbound.getResults(results, DEPTH), DEPTH);
  assert.equal(results, next);
});

test('v2: the setter of a reused result object may call getResults', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp, initiators } = queuePairOf(adapter, pd, { depth: DEPTH });
  const fillQueue = (name: string): void => {
    for (let i = 0; i < DEPTH; i += 1) queuePair.send(`${name} ${i}`, []);
    endsIn(() => queuePair.send('full', []), Status.NO_MORE_ENTRIES);
    for (const posted of qp.posted.splice(0)) qp.complete(posted);
  };
  fillQueue('plain');
  const results: Nd2Result[] = [];
  assert.is(initiators.getResults(results, DEPTH), DEPTH);
  const counts: number[] = [];
  for (const one of results) {
    withSetters(
      one,
      ['requestType', 'requestContext', 'queuePairContext', 'status', 'bytesTransferred'],
      () => {
        counts.push(initiators.getResults([], DEPTH));
      },
    );
  }
  const contexts = () => results.map(({ requestContext }) => requestContext);
  fillQueue('nested');
  assert.is(initiators.getResults(results, 2), 2);
  assert.equal(contexts().slice(0, 2), ['nested 0', 'nested 1']);
  assert.is(initiators.getResults(results, DEPTH), 2);
  assert.equal(contexts().slice(0, 2), ['nested 2', 'nested 3']);
  assert.equal(counts, Array(5 * DEPTH).fill(0));
  fillQueue('next');
  assert.is(initiators.getResults(results, DEPTH), DEPTH);
  assert.equal(contexts(), ['next 0', 'next 1', 'next 2', 'next 3']);
});

test('a read-only array leaves the queue usable, and no result is lost', () => {
  const { adapter, pd } = openFake();
  const { endpoint, qp, outbound } = endpointOf(adapter, pd);
  endpoint.send(result('first'), []);
  endpoint.send(result('kept'), []);
  const [first, second] = qp.posted;
  qp.complete(first!);
  assert.throws(() => outbound.getResults(Object.freeze([]) as never), /`results` must be writable/);
  qp.complete(second!);
  const results: NdResult[] = [];
  assert.is(outbound.getResults(results, 2), 2);
  assert.equal(
    results.map(({ context }) => context),
    ['first', 'kept'],
  );
});

test.run();
