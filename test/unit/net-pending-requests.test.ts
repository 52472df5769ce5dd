/** The pending requests of a channel. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PendingRequests, type Waiting } from '../../nd/net/channel/pending-requests.js';

const waiting = (seen: string[] = [], name = ''): Waiting => ({
  resolve: () => seen.push(`${name} resolved`),
  reject: (error) => seen.push(`${name} ${String(error)}`),
});

test('the id of a waiting request is not reused although ids wrap', () => {
  const questions = new PendingRequests();
  assert.is(questions.nextId(), 1);
  // Settles the requests of the previous round.
  for (const id of [2, 3, 5]) questions.add(id, waiting());
  assert.equal([questions.nextId(), questions.nextId()], [4, 6]);
});

test('each waiting request is settled once, or rejected at the end', () => {
  const questions = new PendingRequests();
  const seen: string[] = [];
  for (const id of [1, 2, 3]) questions.add(id, waiting(seen, `${id}`));
  questions.take(2)?.resolve(Buffer.of(7));
  assert.is(questions.take(2), undefined);
  assert.equal([questions.has(1), questions.has(2), questions.size], [true, false, 2]);
  questions.reject('the end');
  assert.equal(seen, ['2 resolved', '1 the end', '3 the end']);
  assert.is(questions.size, 0);
});

test.run();
