// A shared receive queue whose senders are in another process. It is refilled after limit events, until that process is killed.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type IWVConnectEndpoint, openProvider, QpState, WcStatus } from '../../winverbs/index.js';
import { openListener, openSide, type Side, take, toInit } from '../helpers/loopback.js';
import { programFile } from '../helpers/programs.js';
import { nothingLeft } from '../helpers/verbs-model-outcome.js';

const program = programFile(new URL('../helpers/srq-sender.js', import.meta.url));
const PAIRS = 3;
const MESSAGES = 40;
const DEPTH = 8;

test('a process sends on several connections, the queue is refilled after limit events, and the process is killed', async () => {
  const provider = openProvider();
  const home = openSide(provider);
  const srq = home.pd.createSharedReceiveQueue(DEPTH, 1);
  const { listener, peer } = openListener(provider);
  const child = fork(program, [String(peer.port), String(PAIRS), String(MESSAGES)]);
  const sent = once(child, 'message');
  const ends: { ep: IWVConnectEndpoint; qp: Side['qp']; number: number }[] = [];
  for (let i = 0; i < PAIRS; i++) {
    const ep = provider.createConnectEndpoint();
    await listener.getRequest(ep);
    const number = ep.query().privateData[0]!;
    const qp = home.pd.createConnectQueuePair({
      sendCq: home.cq,
      receiveCq: home.cq,
      srq,
      context: number,
      sendDepth: 1,
      sendSge: 1,
      receiveDepth: 0,
      receiveSge: 0,
    });
    toInit(qp);
    await ep.accept(qp, {});
    ends.push({ ep, qp, number });
  }

  // The queue was empty until now, so the senders got RNR NAKs.
  let posted = 0;
  let refills = 0;
  const post = (count: number) => {
    for (let i = 0; i < count; i++, posted++) {
      srq.postReceive(posted, [{ region: home.region, offset: (posted % 128) * 64, length: 64 }]);
    }
  };
  let done = false;
  const refilled = (async () => {
    while (!done) {
      srq.modify(DEPTH, DEPTH / 2);
      if ((await srq.notify().catch(() => 'cancelled')) !== 'limit') return;
      refills++;
      post(DEPTH / 2);
    }
  })();
  const next = new Array<number>(PAIRS).fill(0);
  for (let i = 0; i < PAIRS * MESSAGES; i++) {
    const [completion] = await take(home.cq, 1);
    const number = completion!.qpContext as number;
    const at = ((completion!.context as number) % 128) * 64;
    const message = next[number]!++;
    assert.equal([completion!.status, completion!.length], [WcStatus.SUCCESS, 4 + message]);
    assert.is(home.memory.readUInt32LE(at), number * MESSAGES + message, 'each connection in its order');
  }
  await sent;
  done = true;
  srq.cancelOverlappedRequests();
  await refilled;
  assert.ok(refills >= (PAIRS * MESSAGES) / DEPTH, `${refills} refills`);

  const gone = ends.map(({ ep }) => ep.notifyDisconnect().catch(() => undefined));
  child.kill('SIGKILL');
  await Promise.all(gone);
  while (ends.some(({ qp }) => qp.state !== QpState.ERROR)) assert.is(await srq.notify(), 'lastWqe');
  // Receives that wait in the shared queue do not belong to a queue pair and are not flushed.
  assert.is(home.cq.peek(), 0);
  for (const { ep, qp } of ends) {
    ep.release();
    qp.release();
  }
  srq.release();
  listener.release();
  home.release();
  provider.release();
  await nothingLeft();
});

test.run();
