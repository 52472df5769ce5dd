/** The helpers around the SPI: the next result, connecting in one call, and releasing everything of an adapter. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import {
  acceptEndpoint,
  acceptQueuePair,
  connectEndpoint,
  connectQueuePair,
  firstResult,
  type IND2Adapter,
  Nd2MrFlag,
  Nd2RemoteMemory,
  nextResult,
  openNetworkDirect,
  openNetworkDirect2,
  Status,
} from '../../nd/index.js';
import { firstCompletion, nextCompletion, openProvider, WvSend } from '../../winverbs/index.js';
import { connect, connectedPair, openSide } from '../helpers/loopback.js';
import { rejectsWith } from '../helpers/outcome.js';

const ADDRESS = '127.0.0.1';

/** The live objects, without rings that are kept for reuse. */
function objects(): Record<string, number> {
  const { ring: _, ...live } = readCounters().objects;
  return live;
}

async function sideOf(adapter: IND2Adapter) {
  const bytes = new Uint8Array(64);
  const memory = adapter.createMemoryRegion();
  await memory.register(bytes, Nd2MrFlag.ALL);
  const inbound = adapter.createCompletionQueue(8);
  const outbound = adapter.createCompletionQueue(8);
  const queuePair = adapter.createQueuePair({
    receiveCompletionQueue: inbound,
    initiatorCompletionQueue: outbound,
    receiveQueueDepth: 4,
    initiatorQueueDepth: 4,
  });
  return { bytes, memory, inbound, outbound, queuePair };
}

/** Two connected sides on one adapter. */
async function pairOf(adapter: IND2Adapter) {
  const [server, client] = [await sideOf(adapter), await sideOf(adapter)];
  const listener = adapter.createListener();
  listener.bind(ADDRESS);
  listener.listen();
  const privateData = Nd2RemoteMemory.of(server.memory).encode();
  const accepting = acceptQueuePair(adapter, listener, server.queuePair, { privateData });
  const connected = await connectQueuePair(adapter, client.queuePair, listener.getLocalAddress(), {
    privateData: Uint8Array.of(1, 2, 3),
  });
  return { server, client, listener, accepted: await accepting, connected };
}

test('v2: connecting and accepting in one call each, an address in private data, and the next result', async () => {
  await using adapter = openNetworkDirect2().openAdapter(ADDRESS);
  const { server, client, accepted, connected } = await pairOf(adapter);
  assert.equal([...accepted.privateData.subarray(0, 3)], [1, 2, 3]);
  const remote = Nd2RemoteMemory.decode(connected.privateData);
  client.bytes[0] = 42;
  client.queuePair.write('w', [{ memory: client.memory, offset: 0, length: 1 }], remote, 63);
  assert.is((await nextResult(client.outbound)).requestContext, 'w');
  assert.is(server.bytes[63], 42);
  await connected.connector.disconnect();
});

test('v2: the first of two queues; no notification remains, and no completion is lost', async () => {
  await using adapter = openNetworkDirect2().openAdapter(ADDRESS);
  const { server, client } = await pairOf(adapter);
  const sge = (side: typeof server) => [{ memory: side.memory, offset: 0, length: 4 }];
  const post = (n: number) => {
    server.queuePair.receive(n, sge(server));
    client.queuePair.send(n, sge(client));
  };
  for (let n = 0; n < 50; n += 1) {
    const waiting = firstResult([client.inbound, server.inbound]);
    if (n % 2 === 0) await Promise.resolve();
    post(n);
    const { queue, result } = await waiting;
    assert.is(queue, server.inbound);
    assert.is(result.requestContext, n);
    // A leftover notification would have consumed this event.
    if (client.outbound.getResults([], 1) === 0) await client.outbound.notify('any');
    client.outbound.getResults([]);
  }
  // Both queues have a completion at the same time, and both are found.
  const both = firstResult([server.inbound, client.outbound]);
  post(99);
  const found = new Set([(await both).queue, (await firstResult([server.inbound, client.outbound])).queue]);
  assert.is(found.size, 2);
  const controller = new AbortController();
  const aborted = firstResult([server.inbound, client.outbound], { signal: controller.signal });
  controller.abort(new Error('enough'));
  assert.is(await aborted.catch((error: Error) => error.message), 'enough');
  const pending = server.inbound.notify('any');
  assert.not(pending.completed, 'nothing has happened, and nothing was waiting');
  post(100);
  await pending;
  const queue = adapter.createCompletionQueue(1);
  const failed = rejectsWith(nextResult(queue), Status.CANCELED, /./);
  queue.cancelOverlappedRequests();
  await failed;
});

test('v2: an aborted or refused connect releases its connector, and leaves the queue pair reusable', async () => {
  await using adapter = openNetworkDirect2().openAdapter(ADDRESS);
  const { queuePair } = await sideOf(adapter);
  const listener = adapter.createListener();
  listener.bind(ADDRESS);
  await rejectsWith(
    connectQueuePair(adapter, queuePair, listener.getLocalAddress()),
    Status.CONNECTION_REFUSED,
    /./,
  );
  listener.listen();
  const controller = new AbortController();
  const connecting = connectQueuePair(adapter, queuePair, listener.getLocalAddress(), {
    signal: controller.signal,
  });
  controller.abort(new Error('enough'));
  assert.is(await connecting.then(undefined, (error: Error) => error.message), 'enough');
  const accepting = acceptQueuePair(adapter, listener, queuePair, {
    signal: AbortSignal.abort(new Error('no')),
  });
  assert.is(await accepting.then(undefined, (error: Error) => error.message), 'no');
  await rejectsWith(connectQueuePair(adapter, queuePair, 'nowhere'), Status.INVALID_ADDRESS, /./);
});

test('v1: connecting and accepting in one call each', async () => {
  await using adapter = openNetworkDirect().openAdapter(ADDRESS);
  const queue = adapter.createCompletionQueue(16);
  const side = () => {
    const connector = adapter.createConnector();
    const queues = { inboundCompletionQueue: queue, outboundCompletionQueue: queue };
    return {
      connector,
      endpoint: connector.createEndpoint({ ...queues, inboundEntries: 4, outboundEntries: 4 }),
    };
  };
  const listen = adapter.listen();
  const [server, client] = [side(), side()];
  const memory = await adapter.registerMemory(new Uint8Array(8));
  const result = { status: -1, bytesTransferred: 0 };
  server.endpoint.receive(result, [{ memory, offset: 0, length: 8 }]);
  const accepting = acceptEndpoint(listen, server.connector, server.endpoint, {
    privateData: Uint8Array.of(9),
  });
  const reply = await connectEndpoint(client.connector, client.endpoint, listen.address);
  await accepting;
  assert.is(reply[0], 9);
  client.endpoint.send({ status: -1, bytesTransferred: 0 }, [{ memory, offset: 0, length: 5 }]);
  const results = [await nextResult(queue), await nextResult(queue)];
  assert.ok(results.includes(result));
  assert.equal(result, { status: Status.SUCCESS, bytesTransferred: 5 });
});

test('WinVerbs: the next completion of one and of several queues', async () => {
  const { a, b, release } = await connectedPair();
  a.qp.send('no Receive is posted yet', [], WvSend.SIGNALED);
  b.qp.postReceive('r', []);
  const { cq, completion } = await firstCompletion([b.cq, a.cq]);
  assert.ok(cq === a.cq || cq === b.cq);
  const other = await nextCompletion(cq === a.cq ? b.cq : a.cq);
  assert.equal(new Set([completion.context, other.context]), new Set(['r', 'no Receive is posted yet']));
  release();
});

test('`await using` with an adapter or a device leaves no objects, connected or not', async () => {
  const before = objects();
  {
    await using adapter = openNetworkDirect2().openAdapter(ADDRESS);
    const { server, listener } = await pairOf(adapter);
    void listener.getConnectionRequest(adapter.createConnector()).then(undefined, () => undefined);
    server.inbound.addRef();
    void server.inbound.notify('any').then(undefined, () => undefined);
    adapter.createMemoryWindow();
    adapter.createSharedReceiveQueue({ depth: 4 });
  }
  assert.equal(objects(), before, 'v2');
  {
    await using provider = openProvider();
    const [a, b] = [openSide(provider), openSide(provider)];
    await connect(provider, a, b);
    a.pd.registerMemory(new Uint8Array(8), 0);
    a.pd.allocateMemoryWindow().addRef();
    assert.not.equal(objects(), before, 'there is something to end');
    await b.pd[Symbol.asyncDispose]();
  }
  assert.equal(objects(), before, 'WinVerbs');
});

test.run();
