/**
 * Partitions that change while the kernel runs: events, tables, and the end of connections whose partition was removed. Also ND's choice of
 * a partition. Runs in its own network namespace, because other processes would count its P_Keys.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type KernelOptionsInput, setPartitions } from '../../kernel-bridge/index.js';
import { NdError, openNetworkDirect, openNetworkDirect2 } from '../../nd/index.js';
import {
  openProvider,
  QpAttr,
  QpState,
  Status,
  statusName,
  WcStatus,
  WvEvent,
  WvSend,
} from '../../winverbs/index.js';
import { runApart } from '../helpers/apart.js';
import { acknowledged, rcPackets, valuesOf } from '../helpers/captured.js';
import { ADDRESS, connect, openSide, type Side, take } from '../helpers/loopback.js';
import { outcome, throwsWv } from '../helpers/outcome.js';
import { endPeers, Peer } from '../helpers/peer/peer.js';

const folder = mkdtempSync(join(tmpdir(), 'nd-partitions-'));
const capture = join(folder, 'all.pcapng');
process.env.ND_OPTIONS = JSON.stringify({ link: 'wire', capture, pkeys: [0xffff, 0x8001, 0x8002] });
test.before.each(() => setPartitions([0xffff, 0x8001, 0x8002]));
test.after(() => rmSync(folder, { recursive: true }));
test.after.each(() => endPeers());

/** The name of the status that a request ends in. */
const endOf = async (request: PromiseLike<unknown>): Promise<string> => statusName(await outcome(request));
const sgl = (side: Side) => [{ region: side.region, offset: 0, length: 8 }];

function tableOf({ device }: Side): number[] {
  return Array.from({ length: device.queryPort(1).pkeyTableLength }, (_, index) =>
    device.queryPkey(1, index),
  );
}

/** Moves the side's queue pair to INIT with an entry of the table. */
function inPartition(side: Side, pkeyIndex: number): Side {
  side.qp.modify(
    { qpState: QpState.INIT, pkeyIndex, portNumber: 1, accessFlags: 0 },
    QpAttr.STATE | QpAttr.PKEY_INDEX | QpAttr.PORT_NUMBER | QpAttr.ACCESS_FLAGS,
  );
  return side;
}

test('a new table raises an event of the port, and queries return it', async () => {
  const provider = openProvider();
  const side = openSide(provider);
  const event = side.device.notify(1);
  setPartitions([0x8001, 0xffff]);
  assert.is(await event, WvEvent.PARTITION);
  assert.equal(tableOf(side), [0x8001, 0xffff]);
  assert.is(provider.translateAddress(ADDRESS).pkey, 0x8001);
  setPartitions({ lo: [0x8003] });
  assert.is(await side.device.notify(1), WvEvent.PARTITION);
  assert.equal(tableOf(side), [0x8003]);
  setPartitions({ nothing0: [0x8004] });
  assert.equal(tableOf(side), [0xffff], 'what is not named has the default partition');
  side.release();
  provider.release();
});

test('invalid tables have no effect', () => {
  const provider = openProvider();
  const side = openSide(provider);
  const wrong: unknown[] = [
    [],
    [0],
    [0x8000],
    [0x1_0000],
    [1.5],
    [1, 1],
    { lo: [] },
    { lo: [0] },
    7,
    null,
    'a',
  ];
  for (const tables of wrong) {
    assert.throws(
      () => setPartitions(tables as number[]),
      /setPartitions: `pkeys[^`]*` must be 1 to 64 P_Keys/,
    );
  }
  assert.equal(tableOf(side), [0xffff, 0x8001, 0x8002]);
  side.release();
  provider.release();
});

test('a connection whose entry is removed ends on both sides, and one of another partition continues', async () => {
  const provider = openProvider();
  const [a, b] = [inPartition(openSide(provider), 1), inPartition(openSide(provider), 1)];
  const [c, d] = [inPartition(openSide(provider), 2), inPartition(openSide(provider), 2)];
  await connect(provider, a, b);
  await connect(provider, c, d);
  b.qp.postReceive('never', sgl(b));
  const ends = [a, b].map(({ ep }) => endOf(ep.notifyDisconnect()));
  // The third entry keeps its position. A limited member belongs to the same partition.
  setPartitions([0xffff, 0x8005, 0x0002]);
  assert.equal(await Promise.all(ends), ['CONNECTION_ABORTED', 'CONNECTION_ABORTED']);
  const [never] = await take(b.cq, 1);
  assert.equal([never!.context, never!.status], ['never', WcStatus.FLUSHED]);
  assert.equal(
    [a, b].map(({ qp }) => qp.query().qpState),
    [QpState.ERROR, QpState.ERROR],
  );
  setPartitions([0xffff, 0x8005, 0x8002]);
  d.qp.postReceive('r', sgl(d));
  c.qp.send('s', sgl(c), WvSend.SIGNALED);
  assert.is((await take(c.cq, 1))[0]!.status, WcStatus.SUCCESS);
  for (const side of [a, b, c, d]) side.release();
  provider.release();
});

/** Connects to another process, whose table does not change, up to the reply. */
async function repliedBy(server: Peer) {
  const listener = await server.listen('wv', ADDRESS);
  const provider = openProvider();
  const side = inPartition(openSide(provider), 2);
  side.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  const peer = { family: 4, address: ADDRESS, port: listener.port } as const;
  side.ep.resolveRoute(peer);
  const accepting = listener.accept();
  accepting.catch(() => {});
  await side.ep.connect(side.qp, peer, {});
  const release = () => {
    side.release();
    provider.release();
  };
  return { side, accepting, release };
}
const ofPeer: KernelOptionsInput = { link: 'wire', pkeys: [0xffff, 0x8001, 0x8002] };

test('a reply that arrives after the partition was removed is not accepted', async () => {
  const { side, accepting, release } = await repliedBy(await Peer.start({ kernel: ofPeer }));
  setPartitions([0xffff, 0x8001]);
  assert.is(await endOf(side.ep.accept(null, {})), 'CONNECTION_ABORTED');
  assert.is(side.qp.query().qpState, QpState.ERROR);
  const refused = await accepting.then(
    () => 'accepted',
    (error: Error) => error.message,
  );
  assert.match(refused, /rejected|refused|CONNECTION_REFUSED/i, refused);
  release();
});

test('the peer in another process is notified by a disconnect', async () => {
  const { side, accepting, release } = await repliedBy(await Peer.start({ kernel: ofPeer }));
  await side.ep.accept(null, {});
  const ended = (await accepting).notifyDisconnect();
  setPartitions([0xffff, 0x8001]);
  assert.is(await ended, 'CONNECTION_DISCONNECTED');
  assert.is(await endOf(side.ep.notifyDisconnect()), 'CONNECTION_ABORTED');
  release();
});

test('ND v1: an adapter of a partition connects and listens in that partition', async () => {
  const nd = openNetworkDirect();
  const [one, two] = [nd.openAdapter(ADDRESS, { pkey: 0x8001 }), nd.openAdapter(ADDRESS, { pkey: 0x8002 })];
  const listen = one.listen();
  const side = (adapter: typeof one) => {
    const cq = adapter.createCompletionQueue(4);
    const connector = adapter.createConnector();
    const options = {
      inboundCompletionQueue: cq,
      outboundCompletionQueue: cq,
      inboundEntries: 1,
      outboundEntries: 1,
    };
    return { cq, connector, endpoint: connector.createEndpoint(options) };
  };
  const [active, passive, foreign] = [side(one), side(one), side(two)];
  assert.is(
    await endOf(foreign.connector.connect(foreign.endpoint, listen.address)),
    'CONNECTION_REFUSED',
    'a request of another partition',
  );
  const before = rcPackets(capture).length;
  const accepted = listen
    .getConnectionRequest(passive.connector)
    .then(() => passive.connector.accept(passive.endpoint));
  await active.connector.connect(active.endpoint, listen.address);
  await Promise.all([active.connector.completeConnect(), accepted]);
  const result = () => ({ status: 0, bytesTransferred: 0 });
  passive.endpoint.receive(result(), []);
  active.endpoint.send(result(), []);
  await active.cq.notify('any');
  await active.connector.disconnect();
  assert.equal(valuesOf(await acknowledged(capture, before), 'pkey'), [0x8001]);
  // When the table changes, the instance can no longer use its partition.
  setPartitions([0xffff, 0x8002]);
  assert.throws(
    () => side(one),
    (error: unknown) => {
      return (
        error instanceof NdError &&
        error.status === Status.INVALID_DEVICE_STATE &&
        /0x8001/.test(error.message)
      );
    },
  );
  side(two);
  for (const each of [one, two, nd]) each.release();
});

test('ND v2: an adapter of a partition connects and listens in that partition; others accept all requests', async () => {
  const nd = openNetworkDirect2();
  const id = nd.resolveAddress(ADDRESS);
  const [one, any] = [nd.openAdapter(id, { pkey: 0x8002 }), nd.openAdapter(id)];
  const side = (adapter: typeof one) => {
    const cq = adapter.createCompletionQueue(4);
    const depths = {
      receiveQueueDepth: 1,
      initiatorQueueDepth: 1,
      maxReceiveRequestSge: 1,
      maxInitiatorRequestSge: 1,
    };
    const options = { receiveCompletionQueue: cq, initiatorCompletionQueue: cq, ...depths };
    return { cq, connector: adapter.createConnector(), pair: adapter.createQueuePair(options) };
  };
  const listenOn = (adapter: typeof one) => {
    const listener = adapter.createListener();
    listener.bind(`${ADDRESS}:0`);
    listener.listen();
    return listener;
  };
  const [strict, open] = [listenOn(one), listenOn(any)];
  const foreign = side(any);
  foreign.connector.bind(`${ADDRESS}:0`);
  const refused = await endOf(foreign.connector.connect(foreign.pair, strict.getLocalAddress()));
  assert.is(refused, 'CONNECTION_REFUSED', 'the default partition');
  const connects = async (from: typeof one, listener: typeof strict, to: typeof one, pkey: number) => {
    const [active, passive] = [side(from), side(to)];
    const before = rcPackets(capture).length;
    const accepted = listener
      .getConnectionRequest(passive.connector)
      .then(() => passive.connector.accept(passive.pair));
    active.connector.bind(`${ADDRESS}:0`);
    await active.connector.connect(active.pair, listener.getLocalAddress());
    await Promise.all([active.connector.completeConnect(), accepted]);
    passive.pair.receive('r', []);
    active.pair.send('x', []);
    await active.cq.notify('any');
    await active.connector.disconnect();
    assert.equal(valuesOf(await acknowledged(capture, before), 'pkey'), [pkey]);
  };
  await connects(one, strict, one, 0x8002);
  await connects(one, open, any, 0x8002);
  await connects(any, open, any, 0xffff);
  // The instance stays in the partition that was the port's first one when it was opened.
  setPartitions([0x8001, 0x8002, 0xffff]);
  await connects(any, open, any, 0xffff);
  for (const each of [one, any, nd]) each.release();
});

test('ND: an invalid partition, or one that the port does not belong to, is rejected, and the error names it', () => {
  const v1 = openNetworkDirect();
  const v2 = openNetworkDirect2();
  const id = v2.resolveAddress(ADDRESS);
  for (const pkey of [0, 0x8000, 0x1_0000, 1.5, 0x8009, '1' as unknown as number]) {
    for (const open of [() => v1.openAdapter(ADDRESS, { pkey }), () => v2.openAdapter(id, { pkey })]) {
      assert.throws(open, (error: unknown) => {
        return (
          error instanceof NdError &&
          error.status === Status.INVALID_PARAMETER &&
          /^OpenAdapter: `pkey` must be /.test(error.message)
        );
      });
    }
  }
  assert.throws(
    () => v1.openAdapter(ADDRESS, { pKey: 1 } as object),
    /`options` must contain only .*; got 'pKey'/,
  );
  v1.release();
  v2.release();
});

test('WinVerbs: a listener of one partition rejects requests for others', async () => {
  const provider = openProvider();
  const listener = provider.createConnectEndpoint();
  listener.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  throwsWv(() => listener.listen(1, 0x1_0000), Status.INVALID_PARAMETER);
  listener.listen(1, 0x8001);
  const { localAddress: peer } = listener.query();
  const results: string[] = [];
  for (const index of [0, 1, 2]) {
    const side = inPartition(openSide(provider), index);
    const request = provider.createConnectEndpoint();
    const waiting = listener.getRequest(request).then(
      () => request.reject(new Uint8Array(0)),
      () => {},
    );
    side.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    side.ep.resolveRoute(peer);
    await endOf(side.ep.connect(side.qp, peer, {}));
    await new Promise((resolve) => setImmediate(resolve));
    results.push(
      `${index}: ${request.query().peerAddress === undefined ? 'not seen' : statusName(Status.SUCCESS)}`,
    );
    request.release();
    await waiting;
    side.release();
  }
  assert.equal(results, ['0: not seen', '1: SUCCESS', '2: not seen']);
  listener.release();
  provider.release();
});

runApart(import.meta.url, () => test.run());
