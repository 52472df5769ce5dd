/** Shared receive queues of ND SPI v2 through the whole stack. T and G: see nd2-coverage.test.ts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, take } from '../../nd/cli/sides/connected-side.js';
import { HostV2, SideV2 } from '../../nd/cli/sides/v2-side.js';
import {
  type IND2CompletionQueue,
  type IND2SharedReceiveQueue,
  type Nd2SharedReceiveQueueOptions,
  Status,
  statusName,
} from '../../nd/index.js';
import { endsIn } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const test = suite<{ host: HostV2 }>('ND v2 shared receive queues');

test.before((context) => {
  context.host = new HostV2();
});
test.after(({ host }) => {
  host.release();
});

/** A shared receive queue, and queue pairs on it that are connected to sending sides. */
class Shared {
  readonly queue: IND2CompletionQueue;
  readonly srq: IND2SharedReceiveQueue;

  readonly memory: SideV2;

  constructor(
    readonly host: HostV2,
    options: Partial<Nd2SharedReceiveQueueOptions> = {},
  ) {
    this.memory = new SideV2(host.adapter);
    this.queue = host.adapter.createCompletionQueue(64);
    this.srq = host.adapter.createSharedReceiveQueue({ depth: 16, ...options });
  }

  /** The sending side of a new queue pair. */
  async connect(): Promise<SideV2> {
    const { adapter, listener } = this.host;
    const queuePair = adapter.createQueuePairWithSrq({
      receiveCompletionQueue: this.queue,
      initiatorCompletionQueue: this.queue,
      sharedReceiveQueue: this.srq,
      initiatorQueueDepth: 8,
    });
    const sender = new SideV2(adapter);
    const passive = adapter.createConnector();
    const requested = listener.getConnectionRequest(passive);
    sender.connector.bind(ADDRESS);
    const connected = sender.connector.connect(sender.queuePair, this.host.target);
    await requested;
    const accepted = passive.accept(queuePair);
    await connected;
    await sender.connector.completeConnect();
    await accepted;
    return sender;
  }

  post(count: number, from = 0): void {
    for (let i = from; i < from + count; i += 1) this.srq.receive(i, this.memory.sge(i * 16, 16));
  }
}

test('T21 G8 a message for an empty shared receive queue waits until a Receive is posted', async ({
  host,
}) => {
  const shared = new Shared(host);
  const sender = await shared.connect();
  sender.queuePair.send('s', sender.sge(0, 5));
  // Longer than the RNR time limit of a Send to a queue pair without a shared receive queue.
  const { active, passive } = await host.pair();
  active.queuePair.send('unheard', active.sge(0, 4));
  assert.is((await active.initiated())[0]!.status, Status.IO_TIMEOUT);
  assert.is(sender.outbound.getResults([], 1), 0, 'still waiting');
  shared.post(1);
  assert.is((await take(shared.queue, 1))[0]!.status, 0);
  assert.is((await sender.initiated())[0]!.status, 0);
  active.release();
  passive.release();
});

test('Notify: all waiting requests end together, once each time that the count falls below the threshold', async ({
  host,
}) => {
  const shared = new Shared(host, { notifyThreshold: 3 });
  const sender = await shared.connect();
  shared.post(4);
  const waiting = [shared.srq.notify(), shared.srq.notify()];
  const send = async () => {
    sender.queuePair.send('s', sender.sge(0, 1));
    await take(shared.queue, 1);
    await sender.initiated();
  };
  await send();
  assert.equal(
    waiting.map(({ completed }) => completed),
    [false, false],
    'three are left, which is not below',
  );
  await send();
  for (const one of waiting) assert.is(await outcome(one), Status.SUCCESS);
  // The count is already below the threshold, so the request completes immediately.
  await shared.srq.notify();
  shared.post(8, 4);
  const next = shared.srq.notify();
  await send();
  assert.is(next.completed, false, 'nothing from before is taken for news');
  shared.srq.cancelOverlappedRequests();
  assert.is(next.status, Status.CANCELED, 'complete when the call returns');
  // The queue was armed before the request was cancelled, and has fallen below since. The next request must use the current count.
  for (let i = 0; i < 7; i += 1) await send();
  shared.post(10, 0);
  const fresh = shared.srq.notify();
  await send();
  assert.is(fresh.completed, false);
  fresh.cancel();
  assert.is(await outcome(fresh), Status.CANCELED);
});

test('Notify can block a thread, and ends when the queue is released', async ({ host }) => {
  const shared = new Shared(host, { notifyThreshold: 1 });
  shared.srq.notify().getResult({ wait: true });
  shared.post(2);
  const left = shared.srq.notify();
  const never = new Shared(host);
  const silent = never.srq.notify();
  assert.is(silent.completed, false, 'threshold 0: no event, though there is no Receive');
  never.srq.release();
  shared.srq.release();
  assert.is(await outcome(left), Status.CANCELED);
  assert.is(await outcome(silent), Status.CANCELED);
});

test('Modify: zeros change nothing; limits; outstanding requests must fit', async ({ host }) => {
  const shared = new Shared(host, { depth: 4 });
  const { srq } = shared;
  const { maxSharedReceiveQueueDepth } = host.adapter.query();
  shared.post(4);
  endsIn(() => srq.receive('more', []), Status.NO_MORE_ENTRIES);
  srq.modify(8, 0);
  shared.post(4, 4);
  for (const [depth, threshold] of [
    [maxSharedReceiveQueueDepth + 1, 0],
    [-1, 0],
    [1.5, 0],
    [0, 9],
    [0, -1],
  ] as const) {
    endsIn(() => srq.modify(depth, threshold), Status.INVALID_PARAMETER);
  }
  endsIn(() => srq.modify(4, 0), Status.BUFFER_OVERFLOW);
  srq.modify(0, 8);
  const waiting = srq.notify();
  const sender = await shared.connect();
  for (let i = 0; i < 8; i += 1) sender.queuePair.send(i, sender.sge(0, 1));
  await waiting;
  const results = await take(shared.queue, 8);
  assert.equal(
    results.map(({ requestContext }) => requestContext),
    [0, 1, 2, 3, 4, 5, 6, 7],
    'no Receive was lost by the change of size',
  );
  srq.modify(maxSharedReceiveQueueDepth, 0);
});

test('G7 numeric arguments of both Create methods', ({ host }) => {
  const { adapter } = host;
  const { maxSharedReceiveQueueDepth: most, maxReceiveSge } = adapter.query();
  for (const [options, status] of [
    [{ depth: 0 }, Status.INVALID_PARAMETER_3],
    [{ depth: most + 1 }, Status.INVALID_PARAMETER_3],
    [{ depth: 1, maxRequestSge: maxReceiveSge + 1 }, Status.INVALID_PARAMETER_4],
    [{ depth: 1, notifyThreshold: 2 }, Status.INVALID_PARAMETER_5],
    [{ depth: 1, depht: 2 } as never, Status.INVALID_PARAMETER],
  ] as const) {
    endsIn(() => adapter.createSharedReceiveQueue(options), status, statusName(status));
  }
  adapter.createSharedReceiveQueue({ depth: most, maxRequestSge: maxReceiveSge }).release();
  const queue = adapter.createCompletionQueue(4);
  const srq = adapter.createSharedReceiveQueue({ depth: 1 });
  assert.ok(srq.getNotifyAffinity().mask > 0n);
  const good = {
    receiveCompletionQueue: queue,
    initiatorCompletionQueue: queue,
    sharedReceiveQueue: srq,
    initiatorQueueDepth: 1,
  };
  for (const [change, status] of [
    [{ receiveCompletionQueue: undefined }, Status.INVALID_PARAMETER_2],
    [{ initiatorCompletionQueue: undefined }, Status.INVALID_PARAMETER_3],
    [{ sharedReceiveQueue: undefined }, Status.INVALID_PARAMETER_4],
    [{ initiatorQueueDepth: 0 }, Status.INVALID_PARAMETER_6],
    [{ maxInitiatorRequestSge: 0 }, Status.INVALID_PARAMETER_7],
    [{ inlineDataSize: 1 << 20 }, Status.INVALID_PARAMETER_8],
  ] as const) {
    endsIn(() => adapter.createQueuePairWithSrq({ ...good, ...change } as never), status);
  }
  const queuePair = adapter.createQueuePairWithSrq(good);
  endsIn(() => queuePair.receive('its own', []), Status.INVALID_DEVICE_REQUEST);
  queuePair.release();
  for (const object of [srq, queue]) object.release();
});

test.run();
