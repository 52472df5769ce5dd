// Completion notification on the whole stack, including the races between arming, waiting and polling.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openProvider, QpAttr, QpState, Status, type WvError, WvSend } from '../../winverbs/index.js';
import { ADDRESS, connectedPair, type Side, take } from '../helpers/loopback.js';
import { outcome } from '../helpers/outcome.js';

const { SIGNALED, SOLICITED } = WvSend;

function receives(side: Side, n: number): void {
  for (let i = 0; i < n; i++) side.qp.postReceive(i, []);
}

/** Polls until a completion arrives, without returning to the event loop. */
function spin(side: Side): void {
  while (side.cq.poll([], 1) === 0);
}

test('a completion polled while its notification is in transit leaves the notification armed', async () => {
  const { a, b, release } = await connectedPair();
  for (let round = 0; round < 300; round++) {
    receives(b, 2);
    const type = round % 2 === 0 ? 'any' : 'solicited';
    const flags = SIGNALED | (round % 2 === 0 ? 0 : SOLICITED);
    const next = b.cq.notify(type);
    // The completion may arrive before or after the kernel has received the request, and may or may not cause an event.
    a.qp.send('first', [], flags);
    spin(b);
    a.qp.send('second', [], flags);
    await next;
    if (b.cq.poll([], 1) === 0) spin(b);
    await take(a.cq, 2);
  }
  release();
});

test('two notifications in transit at once both complete, no matter which event reached the first', async () => {
  const { a, b, release } = await connectedPair();
  for (let round = 0; round < 200; round++) {
    receives(b, 2);
    const requests = [b.cq.notify('any'), b.cq.notify('any')];
    a.qp.send('first', [], SIGNALED);
    spin(b);
    a.qp.send('second', [], SIGNALED);
    await Promise.all(requests);
    if (b.cq.poll([], 1) === 0) spin(b);
    await take(a.cq, 2);
  }
  release();
});

test('a consumer that sleeps whenever the queue is empty gets every completion, no matter what happens in between', async () => {
  const { a, b, release } = await connectedPair();
  const total = 2000;
  const consumer = (async () => {
    for (let got = 0; got < total; got += (await take(b.cq, 1)).length) receives(b, 1);
  })();
  const producer = (async () => {
    for (let sent = 0; sent < total; sent++) {
      a.qp.send(sent, [], SIGNALED);
      await take(a.cq, 1);
    }
  })();
  await Promise.all([producer, consumer]);
  release();
});

test('batchNotify waits for the requested number of completions, and peek returns it', async () => {
  const { a, b, release } = await connectedPair();
  receives(b, 12);
  const batch = b.cq.batchNotify(4);
  const send = async (n: number): Promise<void> => {
    for (let i = 0; i < n; i++) a.qp.send(i, [], SIGNALED);
    await take(a.cq, n);
  };
  await send(3);
  assert.is(b.cq.peek(), 3);
  // A later overlapped request has passed the kernel, so the batch had enough time.
  assert.is(batch.status, Status.PENDING);
  await send(1);
  await batch;
  assert.is(b.cq.poll([], 64), 4);
  await send(2);
  batchOf(2).getResult({ wait: true });
  const cancelled = batchOf(8);
  b.cq.cancelOverlappedRequests();
  assert.is(await outcome(cancelled), Status.CANCELED);
  // A later wait for the next completion makes that completion also end the batch.
  await take(b.cq, 2);
  const early = batchOf(6);
  const next = b.cq.notify('any');
  await send(1);
  await Promise.all([early, next]);
  release();

  function batchOf(n: number) {
    return b.cq.batchNotify(n);
  }
});

test('a resize keeps pending waits and their conditions', async () => {
  const { a, b, release } = await connectedPair();
  for (let round = 0; round < 40; round++) {
    receives(b, 2);
    const next = b.cq.notify('any');
    b.cq.resize(round % 2 === 0 ? 128 : 32);
    a.qp.send('one', [], SIGNALED);
    await next;
    const batch = b.cq.batchNotify(1);
    a.qp.send('two', [], SIGNALED);
    b.cq.resize(64);
    await batch;
    await take(b.cq, 2);
    await take(a.cq, 2);
  }
  release();
});

test('an overrun ends every wait, including later ones, in BUFFER_OVERFLOW', async () => {
  const provider = openProvider();
  const device = provider.openDevice(provider.translateAddress(ADDRESS).deviceGuid);
  const cq = device.createCompletionQueue(2);
  const pd = device.allocateProtectionDomain();
  const depths = { sendDepth: 4, sendSge: 0, receiveDepth: 8, receiveSge: 0 };
  const qp = pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...depths });
  qp.modify({ qpState: QpState.INIT, portNumber: 1 }, QpAttr.STATE);
  for (let i = 0; i < 3; i++) qp.postReceive(i, []);
  const waits = [cq.notify('errors'), cq.notify('errors'), cq.batchNotify(2)];
  // Only waits for errors are certain to end with the overrun. Flushed requests are solicited and may end other waits before it.
  qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE);
  assert.is(await outcome(waits[0]!), Status.BUFFER_OVERFLOW);
  assert.is(await outcome(waits[1]!), Status.BUFFER_OVERFLOW);
  await outcome(waits[2]!);
  for (const late of [cq.notify('errors'), cq.notify('any'), cq.notify('solicited'), cq.batchNotify(1)]) {
    assert.is(await outcome(late), Status.BUFFER_OVERFLOW);
  }
  for (const object of [qp, pd, cq, device, provider]) object.release();
});

test('cancelled notifications end in the order they were issued, with or without the kernel', async () => {
  const { a, release } = await connectedPair();
  for (let round = 0; round < 5; round++) {
    const ended: number[] = [];
    const note = (n: number) => {
      // The handler is attached immediately. By a later await, all requests would have ended.
      return a.cq.notify(n % 2 === 0 ? 'any' : 'errors').then(undefined, (error) => {
        assert.is((error as WvError).status, Status.CANCELED);
        ended.push(n);
      });
    };
    const requests = [note(0)];
    // After this query, the kernel has processed the first request, and the following ones bypass it.
    a.device.query();
    for (let n = 1; n < 9; n++) requests.push(note(n));
    a.cq.cancelOverlappedRequests();
    await Promise.all(requests);
    assert.equal(ended, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  }
  release();
});

test.run();
