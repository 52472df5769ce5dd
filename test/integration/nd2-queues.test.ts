/** ND SPI v2: capacity of queues, flushing, and notification. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, take } from '../../nd/cli/sides/connected-side.js';
import { HostV2, SideV2 } from '../../nd/cli/sides/v2.js';
import { Nd2OpFlag, type Overlapped, Status, statusName } from '../../nd/index.js';
import { outcome } from '../helpers/outcome.js';

const test = suite<{ host: HostV2 }>('ND v2 in one process: queues');
const { SILENT_SUCCESS } = Nd2OpFlag;

test.before((context) => {
  context.host = new HostV2();
});
test.after(({ host }) => {
  host.release();
});

const names = (results: readonly { status: number }[]) => results.map(({ status }) => statusName(status));

test('the hint to poll ends with each wait that brings nothing', ({ host }) => {
  using queue = host.adapter.createCompletionQueue(4);
  assert.type(queue.shouldPoll, 'function');
  let waits = 0;
  for (; waits < 10; waits += 1) while (queue.shouldPoll!()) assert.is(queue.getResults([]), 0);
  assert.is(waits, 10);
});

test('T17 flushed requests come back, the silent ones too, in the order of each queue', async ({ host }) => {
  const { active, passive } = await host.pair();
  for (let i = 0; i < 4; i += 1) active.queuePair.receive(i, active.sge(0, 10));
  // There are no Receives: all of them are outstanding at the flush.
  for (let i = 0; i < 4; i += 1)
    active.queuePair.send(i, active.sge(0, 10), i % 2 === 0 ? SILENT_SUCCESS : 0);
  active.queuePair.flush();
  for (const results of [await active.received(4), await active.initiated(4)]) {
    assert.equal(
      results.map(({ status, requestContext }) => [status, requestContext]),
      [0, 1, 2, 3].map((i) => [Status.CANCELED, i]),
    );
  }
  active.release();
  passive.release();
});

test('T18 a completion queue may be smaller than the queues bound to it', async ({ host }) => {
  const small = host.adapter.createCompletionQueue(4);
  const { active, passive } = await host.pair({
    active: { initiatorCompletionQueue: small, initiatorQueueDepth: 32 },
  });
  for (let i = 0; i < 20; i += 1) {
    passive.queuePair.receive(i, []);
    active.queuePair.send(i, []);
    assert.equal(names(await take(small, 1)), ['SUCCESS']);
  }
  active.release();
  passive.release();
  small.release();
});

test('a completion queue that overran is dead, and its Notify says so', async ({ host }) => {
  const small = host.adapter.createCompletionQueue(1);
  const entries = small.entries;
  const { active, passive } = await host.pair({ active: { initiatorCompletionQueue: small } });
  const error = small.notify('errors');
  for (let i = 0; i <= entries; i += 1) passive.queuePair.receive(i, []);
  for (let i = 0; i <= entries; i += 1) active.queuePair.send(i, []);
  assert.is(await outcome(error), Status.BUFFER_OVERFLOW);
  active.release();
  passive.release();
  small.release();
});

test('T8 cancelling a completion queue: all Notify are done on return, in order, and it can be armed again', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const order: number[] = [];
  const requests = (['any', 'solicited', 'errors', 'any'] as const).map((type, i) => {
    const request = passive.inbound.notify(type);
    request.catch(() => order.push(i));
    return request;
  });
  const elsewhere = passive.outbound.notify('any');
  passive.inbound.cancelOverlappedRequests();
  for (const request of requests) {
    assert.is(request.completed, true);
    assert.is(request.status, Status.CANCELED);
  }
  assert.is(elsewhere.completed, false, 'requests of other objects go on');
  await outcome(requests[3]!);
  assert.equal(order, [0, 1, 2, 3]);
  const again = passive.inbound.notify('any');
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await again;
  passive.inbound.cancelOverlappedRequests();
  passive.outbound.cancelOverlappedRequests();
  active.release();
  passive.release();
});

test('T7 what is known at once is delivered all the same: exactly once, after the call', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await active.initiated();
  // The completion is there already, and so is that of the failed Connect.
  const connector = host.adapter.createConnector();
  connector.bind(ADDRESS);
  const lonely = new SideV2(host.adapter);
  const requests: Overlapped<void>[] = [
    passive.inbound.notify('any'),
    connector.connect(lonely.queuePair, '0.0.0.0:1'),
  ];
  const calls: string[] = [];
  for (const [i, request] of requests.entries()) {
    request.then(
      () => calls.push(`${i} done`),
      () => calls.push(`${i} failed`),
    );
  }
  assert.equal(calls, [], 'not during the calls');
  for (const request of requests) await outcome(request);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(calls.sort(), ['0 done', '1 failed']);
  assert.is(requests[1]!.status, Status.BAD_NETWORK_NAME);
  for (const side of [active, passive, lonely]) side.release();
  connector.release();
});

test.run();
