/** When the poller of `networkdirect/net` polls, and when it waits for a notification. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { IND2Adapter, Nd2Result } from '../../nd/index.js';
import { Poller, type ResultTaker } from '../../nd/net/connection/poller.js';
import { FakeRequest } from '../helpers/fake-winverbs.js';

const taker: ResultTaker = { completed: () => {}, delivered: () => {}, touched: false };

/** A completion queue that the test controls and that logs the calls. */
class Queue {
  entries = 256;
  log: string[] = [];
  /** The numbers of results of the next polls; then 0. */
  results: number[] = [];
  /** The results of the next calls of the hint; then false. */
  hints: boolean[] = [];
  readonly shouldPoll?: () => boolean;
  #notification = new FakeRequest<void>('notify');

  constructor(hint: boolean) {
    if (!hint) return;
    this.shouldPoll = () => {
      const more = this.hints.shift() ?? false;
      this.log.push(more ? 'more' : 'last');
      return more;
    };
  }

  getResults(results: Nd2Result[]): number {
    const count = this.results.shift() ?? 0;
    for (let n = 0; n < count; n += 1) results[n] = { queuePairContext: taker } as unknown as Nd2Result;
    this.log.push(`poll ${count}`);
    return count;
  }

  notify(): FakeRequest<void>['overlapped'] {
    this.log.push('notify');
    this.#notification = new FakeRequest<void>('notify');
    return this.#notification.overlapped;
  }

  /** Delivers an event with this many results. */
  async event(...results: number[]): Promise<void> {
    this.log = [];
    this.results = results;
    this.#notification.succeed(undefined);
    this.#notification.deliver();
    await turns();
  }
}

/** Waits for enough turns of the event loop for everything that is due. */
async function turns(): Promise<void> {
  for (let n = 0; n < 10; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The poller of one connection, and its queue. */
async function polled(hint: boolean, holds = true): Promise<{ poller: Poller; queue: Queue }> {
  const queue = new Queue(hint);
  const adapter = { query: () => ({ maxCompletionQueueDepth: 1024 }), createCompletionQueue: () => queue };
  const poller = new Poller(adapter as unknown as IND2Adapter, (error) => assert.unreachable(String(error)));
  if (holds) poller.hold(true);
  poller.add(taker, 8);
  await turns();
  return { poller, queue };
}

test('it polls as long as the hint is set, then once more, and then requests a notification', async () => {
  const { poller, queue } = await polled(true);
  assert.equal(queue.log, ['last', 'poll 0', 'notify']);
  queue.log = [];
  queue.hints = Array(20).fill(true);
  poller.wake();
  assert.equal(queue.log, [], 'not before its turn');
  await turns();
  // The notification of the first wait is still pending.
  assert.equal(queue.log, [...Array(20).fill(['more', 'poll 0']).flat(), 'last', 'poll 0']);
});

test('results start another wait in the next turn', async () => {
  const { poller, queue } = await polled(true);
  queue.log = [];
  queue.hints = [true, true];
  queue.results = [0, 3];
  poller.wake();
  await turns();
  assert.equal(queue.log, ['more', 'poll 0', 'more', 'poll 3', 'last', 'poll 0']);
});

test('without the hint, a post causes no poll, and an event only polls until the queue is empty', async () => {
  const { poller, queue } = await polled(false);
  assert.equal(queue.log, ['notify']);
  poller.wake();
  await turns();
  assert.equal(queue.log, ['notify']);
  await queue.event(2);
  assert.equal(queue.log, ['poll 2', 'poll 0', 'notify']);
  await queue.event();
  assert.equal(queue.log, ['poll 0', 'notify']);
});

test('after an event, the hint is only queried for the next wait', async () => {
  const { queue } = await polled(true);
  await queue.event(0);
  assert.equal(queue.log, ['poll 0', 'notify']);
  await queue.event(1);
  assert.equal(queue.log, ['poll 1', 'last', 'poll 0', 'notify']);
});

test('without connections that keep the process alive, it does not poll, regardless of the hint', async () => {
  const { poller, queue } = await polled(true, false);
  queue.hints = [true, true];
  poller.wake();
  await turns();
  assert.equal(queue.log, ['notify']);
});

test('all completions are delivered, at most as many as the queue has entries', async () => {
  const { poller, queue } = await polled(false);
  queue.log = [];
  queue.results = [64, 64, 64, 64, 64, 1, 0];
  poller.drainAll();
  assert.equal(queue.log, ['poll 64', 'poll 64', 'poll 64', 'poll 64']);
  queue.log = [];
  queue.results = [64, 64, 64, 63, 7];
  poller.drainAll();
  assert.equal(queue.log, ['poll 64', 'poll 64', 'poll 64', 'poll 63', 'poll 7']);
  queue.log = [];
  queue.results = [64, 2];
  poller.drainAll();
  assert.equal(queue.log, ['poll 64', 'poll 2', 'poll 0']);
});

test.run();
