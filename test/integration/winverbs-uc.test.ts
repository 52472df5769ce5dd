// Unreliable connections (UC): connection management, Sends and Writes, and the rejection of requests that need a response.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  openProvider,
  QpAttr,
  QpState,
  QpType,
  Status,
  WcStatus,
  WvOpcode,
  WvSend,
} from '../../winverbs/index.js';
import {
  connect,
  connectedPair,
  openListener,
  openSide,
  remoteOf,
  type Side,
  take,
} from '../helpers/loopback.js';
import { throwsWv } from '../helpers/outcome.js';
import { nothingLeft } from '../helpers/verbs-model-outcome.js';

const { SIGNALED, IMMEDIATE, INLINE } = WvSend;
const UC = { type: QpType.UC };
const sgl = (side: Side, offset: number, length: number) => [{ region: side.region, offset, length }];

test('a UC connection is established by REQ, REP and RTU, and only has the attributes of that QP type', async () => {
  const { a, b, atB, release } = await connectedPair({ ...UC, initiatorDepth: 5 }, UC);
  assert.equal([atB.responderResources, atB.initiatorDepth, atB.retryCount, atB.rnrRetryCount], [0, 0, 0, 0]);
  for (const [here, there] of [
    [a, b],
    [b, a],
  ] as const) {
    const found = here.qp.query();
    assert.equal([found.qpType, found.qpState, found.currentQpState], [QpType.UC, QpState.RTS, QpState.RTS]);
    assert.is(found.destinationQpn, there.qp.qpn);
    assert.equal(
      [found.localAckTimeout, found.retryCount, found.rnrRetryCount, found.rnrNakTimeout],
      [0, 0, 0, 0],
    );
  }
  release();
  await nothingLeft();
});

test('Sends and Writes, with and without immediate data, of several packets and of zero bytes', async () => {
  const { a, b, release } = await connectedPair(UC, UC);
  for (let i = 0; i < 5; i++) b.qp.postReceive(i, sgl(b, 0, 8192));
  for (let i = 0; i < a.memory.length; i++) a.memory[i] = i * 7;
  a.qp.send('long', sgl(a, 0, 8000), SIGNALED | IMMEDIATE, 77);
  const [long] = await take(b.cq, 1);
  assert.equal(
    [long!.context, long!.opcode, long!.length, long!.immediateData],
    [0, WvOpcode.RECEIVE, 8000, 77],
  );
  assert.is(Buffer.compare(a.memory.subarray(0, 8000), b.memory.subarray(0, 8000)), 0);
  b.memory.fill(0);
  a.qp.write('w', sgl(a, 100, 5000), SIGNALED, remoteOf(b.region), 3000);
  a.qp.write('wi', sgl(a, 0, 1), SIGNALED | IMMEDIATE, remoteOf(b.region), 0, 88);
  a.qp.send('none', [], SIGNALED);
  a.qp.send('inline', sgl(a, 5, 6), SIGNALED | INLINE);
  const done = await take(b.cq, 3);
  assert.equal(
    done.map(({ context, opcode, immediateData, length }) => [context, opcode, immediateData, length]),
    [
      [1, WvOpcode.RECEIVE_RDMA_WRITE, 88, 1],
      [2, WvOpcode.RECEIVE, 0, 0],
      [3, WvOpcode.RECEIVE, 0, 6],
    ],
  );
  assert.is(Buffer.compare(a.memory.subarray(100, 5100), b.memory.subarray(3000, 8000)), 0);
  assert.equal(
    (await take(a.cq, 5)).map(({ context, status }) => [context, status]),
    ['long', 'w', 'wi', 'none', 'inline'].map((context) => [context, WcStatus.SUCCESS]),
  );
  release();
});

test('a request that needs a response is rejected when it is posted, and nothing is queued', async () => {
  const { a, b, release } = await connectedPair(UC, UC);
  const window = a.pd.allocateMemoryWindow();
  const remote = remoteOf(b.region);
  const eight = { region: a.region, offset: 0, length: 8 };
  const refused = (post: () => void) => throwsWv(post, Status.INVALID_PARAMETER);
  for (let i = 0; i < 20; i++) {
    refused(() => a.qp.read('r', [eight], 0, remote, 0));
    refused(() => a.qp.compareExchange('c', eight, 0, 1n, 2n, remote, 0));
    refused(() => a.qp.fetchAdd('f', eight, 0, 1n, remote, 0));
    refused(() => a.qp.bindMemoryWindow(window, 'b', a.region, 0, 8, 1, 0));
    refused(() => a.qp.invalidateMemoryWindow(window, 'i', 0));
    refused(() => a.qp.sendAndInvalidate('s', [eight], 0, 5));
  }
  b.qp.postReceive('r', sgl(b, 0, 8));
  a.qp.send('s', [eight], SIGNALED);
  assert.is((await take(b.cq, 1))[0]!.status, WcStatus.SUCCESS);
  assert.is((await take(a.cq, 1))[0]!.context, 's');
  window.release();
  release();
});

test('a message without a Receive is lost, and the sender is not notified', async () => {
  const { a, b, release } = await connectedPair(UC, UC);
  a.qp.send('lost', sgl(a, 0, 8), SIGNALED);
  assert.equal((await take(a.cq, 1))[0]!.status, WcStatus.SUCCESS);
  b.qp.postReceive('r', sgl(b, 0, 8));
  a.memory.write('arrives');
  a.qp.send('good', sgl(a, 0, 7), SIGNALED);
  const [done] = await take(b.cq, 1);
  assert.equal([done!.context, done!.length], ['r', 7]);
  assert.is(b.memory.toString('latin1', 0, 7), 'arrives');
  release();
});

test('a local error only stops the send queue (SQError), and RTS restarts it', async () => {
  const { a, b, release } = await connectedPair(UC, UC);
  a.qp.postReceive('still here', sgl(a, 0, 8));
  const gone = a.pd.registerMemory(new Uint8Array(8), 0);
  a.pd.deregisterMemory(gone);
  a.qp.send('bad', [{ region: gone, offset: 0, length: 8 }], SIGNALED);
  const [bad] = await take(a.cq, 1);
  assert.equal([bad!.context, bad!.status], ['bad', WcStatus.LOCAL_PROTECTION_ERROR]);
  assert.is(a.qp.state, QpState.SQERROR);
  assert.is(a.qp.query().qpState, QpState.SQERROR);
  a.qp.send('flushed', [], SIGNALED);
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.FLUSHED);
  b.qp.send('to a', sgl(b, 0, 8), 0);
  assert.equal((await take(a.cq, 1))[0]!.context, 'still here');
  throwsWv(
    () =>
      a.qp.modify({ qpState: QpState.RTS, currentQpState: QpState.RTS }, QpAttr.STATE | QpAttr.CURRENT_STATE),
    Status.INVALID_DEVICE_STATE,
  );
  a.qp.modify({ qpState: QpState.RTS, currentQpState: QpState.SQERROR }, QpAttr.STATE | QpAttr.CURRENT_STATE);
  b.qp.postReceive('again', sgl(b, 0, 8));
  a.qp.send('good', sgl(a, 0, 8), SIGNALED);
  assert.equal((await take(b.cq, 1))[0]!.context, 'again');
  release();
});

test('both sides must have the same type, and other types cannot connect at all', async () => {
  const provider = openProvider();
  const a = openSide(provider, UC);
  const b = openSide(provider);
  const c = openSide(provider, UC);
  const { listener, peer } = openListener(provider);
  const request = listener.getRequest(b.ep);
  a.ep.bindAddress({ family: 4, address: '127.0.0.1', port: 0 });
  a.ep.resolveRoute(peer);
  const connecting = a.ep.connect(a.qp, peer, {});
  await request;
  throwsWv(() => b.ep.accept(b.qp, {}).getResult({ wait: true }), Status.INVALID_PARAMETER);
  // The connection request still waits for a suitable queue pair.
  const accepting = b.ep.accept(c.qp, {});
  await connecting;
  await a.ep.accept(null, {});
  await accepting;
  throwsWv(
    () =>
      a.pd.createConnectQueuePair({
        sendCq: a.cq,
        receiveCq: a.cq,
        type: 3,
        sendDepth: 1,
        sendSge: 1,
        receiveDepth: 1,
        receiveSge: 1,
      }),
    Status.INVALID_PARAMETER,
  );
  listener.release();
  for (const side of [a, b, c]) side.release();
  provider.release();
  await nothingLeft();
});

test('UC queue pairs can use a shared receive queue', async () => {
  const provider = openProvider();
  const home = openSide(provider);
  const srq = home.pd.createSharedReceiveQueue(4, 1);
  const sides = [0, 1].map((i) => {
    const peer = openSide(provider, UC);
    const ep = provider.createConnectEndpoint();
    const qp = home.pd.createConnectQueuePair({
      sendCq: home.cq,
      receiveCq: home.cq,
      srq,
      context: i,
      type: QpType.UC,
      sendDepth: 1,
      sendSge: 1,
      receiveDepth: 0,
      receiveSge: 0,
    });
    return { peer, ep, qp };
  });
  for (const { peer, ep, qp } of sides) await connect(provider, peer, home.with(qp, ep));
  for (let i = 0; i < 2; i++) srq.postReceive(i, sgl(home, i * 8, 8));
  for (const [i, { peer }] of sides.entries()) {
    peer.qp.send('s', sgl(peer, 0, 8), 0);
    const [done] = await take(home.cq, 1);
    assert.equal([done!.context, done!.qpContext], [i, i]);
  }
  for (const { peer, ep, qp } of sides) {
    ep.release();
    qp.release();
    peer.release();
  }
  srq.release();
  home.release();
  provider.release();
  await nothingLeft();
});

test.run();
