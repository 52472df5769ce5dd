// Resources shared by connections of networkdirect/net are released exactly once, no matter in which order their users end.

import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { injectDeviceFault, readCounters } from '../../kernel-bridge/index.js';
import { ndCleanup, ndQueryAddressList, ndStartup, openNetworkDirect2 } from '../../nd/index.js';
import { type Answering, IncomingRequests } from '../../nd/net/channel/incoming-requests.js';
import { Outbox } from '../../nd/net/channel/outbox.js';
import { encodeHello, Frame } from '../../nd/net/connection/frames.js';
import type { Link } from '../../nd/net/connection/link.js';
import { LocalContext } from '../../nd/net/connection/local-context.js';
import { type Channel, connectChannel, createChannelServer } from '../../nd/net/index.js';
import { exposeAt } from '../../nd/net/memory/exposed-memory.js';
import { lendAt } from '../../nd/net/memory/lent-memory.js';
import { Adapter } from '../../nd/v2/adapter.js';
import { rejection } from '../helpers/net-pair.js';
import { honest, RawPeer } from '../helpers/net-raw.js';

const LOOPBACK = '127.0.0.1';

test('a request that reuses the id of one whose reply was withdrawn is not dropped with that one', () => {
  const over: (() => void)[] = [];
  const answering = {
    limit: 1,
    answer: (_id: number, _bytes: Uint8Array, gone: () => void) => {
      over.push(gone);
      return { withdraw: () => true };
    },
    full: () => false,
    whenReleased: () => {},
    idle: () => {},
  } as unknown as Answering;
  const responder = new IncomingRequests(answering, () => 'answer');
  responder.serve(1, Buffer.from('first'));
  responder.cancel(1);
  assert.not(responder.has(1));
  responder.serve(1, Buffer.from('second'));
  over[0]!(); // the memory of the first reply is free
  assert.ok(responder.has(1));
  assert.not(responder.free, 'the second counts against the limit');
  over[1]!();
  assert.not(responder.has(1));
});

for (const [what, share] of [
  ['lent', (context: LocalContext) => lendAt(context, new Uint8Array(4096))],
  ['exposed', (context: LocalContext) => exposeAt([context], new Uint8Array(4096))],
] as const) {
  test(`memory that is being ${what} keeps its adapter when the last connection ends`, async () => {
    const context = LocalContext.at(LOOPBACK);
    const sharing = share(context);
    context.releaseRef(); // the connection has ended
    const shared = await sharing;
    const again = LocalContext.at(LOOPBACK);
    assert.is(again, context, 'the adapter is open');
    again.releaseRef();
    shared.release();
    const next = LocalContext.at(LOOPBACK);
    assert.is.not(next, context);
    await next.blank(8).then(({ region }) => region.release());
    next.releaseRef();
  });

  test(`memory that cannot be ${what} leaves the adapter to its connections`, async () => {
    const context = LocalContext.at(LOOPBACK);
    const create = context.adapter.createMemoryRegion.bind(context.adapter);
    context.adapter.createMemoryRegion = () => {
      throw new Error('no memory');
    };
    assert.is((await rejection(share(context))).message, 'no memory');
    context.adapter.createMemoryRegion = create;
    assert.is(LocalContext.at(LOOPBACK), context);
    context.releaseRef();
    context.releaseRef();
    const next = LocalContext.at(LOOPBACK);
    assert.is.not(next, context);
    next.releaseRef();
  });
}

test('memory for small Reads is requested again after a failure', async () => {
  const context = LocalContext.at(LOOPBACK);
  const create = context.adapter.createMemoryRegion.bind(context.adapter);
  context.adapter.createMemoryRegion = () => {
    throw new Error('no memory');
  };
  await rejection(context.borrow(8));
  context.adapter.createMemoryRegion = create;
  const bounce = await context.borrow(8);
  assert.not(bounce.own);
  context.returnBounce(bounce);
  context.releaseRef();
});

test('close() of a server that is closing resolves with the end of its connections', async () => {
  const server = createChannelServer(() => {});
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const channel = await connectChannel(server.address()!.port, LOOPBACK);
  const ended: string[] = [];
  const closing = [
    server.close().then(() => ended.push('first')),
    server.close().then(() => ended.push('second')),
  ];
  await turn();
  assert.equal(ended, []);
  await channel.close();
  await Promise.all(closing);
  assert.equal(ended, ['first', 'second']);
});

/** A server of channels, with a function that connects to it and resolves to both sides, and one that closes it. */
async function served() {
  const server = createChannelServer();
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address()!;
  return {
    async join() {
      const come = once(server, 'channel');
      const here = await connectChannel(port, LOOPBACK);
      return { here, there: (await come)[0] as Channel };
    },
    close: () => server.close(),
  };
}

test('connections one after another use the same memory', async () => {
  const context = LocalContext.at(LOOPBACK);
  const create = context.adapter.createMemoryRegion.bind(context.adapter);
  let regions = 0;
  context.adapter.createMemoryRegion = () => {
    regions += 1;
    return create();
  };
  const { join, close } = await served();
  for (let i = 0; i < 5; i += 1) {
    const { here, there } = await join();
    const ended = once(there, 'close');
    await here.send(`message ${i}`);
    assert.is((await there.receive())!.toString(), `message ${i}`);
    await Promise.all([here.close(), ended]);
  }
  await close();
  // One region for each side, and one for the next expected connection.
  assert.ok(regions <= 3, `${regions} regions`);
  context.adapter.createMemoryRegion = create;
  context.releaseRef();
});

test('unread messages outlast their connection, no matter what the next connections transfer', async () => {
  const { join, close } = await served();
  const first = await join();
  const ended = once(first.there, 'close');
  for (let i = 0; i < 10; i += 1) await first.here.send(`kept ${i}`);
  first.here.destroy();
  await ended;
  // Both sides of three connections allocate memory and fill their slots.
  for (let i = 0; i < 3; i += 1) {
    const { here, there } = await join();
    const over = once(there, 'close');
    for (const [from, to] of [[here, there] as const, [there, here] as const]) {
      for (let n = 0; n < 10; n += 1) await from.send(Buffer.alloc(1000, 0xee));
      for (let n = 0; n < 10; n += 1) assert.is((await to.receive())!.length, 1000);
    }
    await Promise.all([here.close(), over]);
  }
  for (let i = 0; i < 10; i += 1) assert.is((await first.there.receive())!.toString(), `kept ${i}`);
  await close();
});

test('a connection that waits for capacity when its server ends does not end the adapter twice', async () => {
  ndStartup();
  const server = createChannelServer(() => {});
  server.maxConnections = 1;
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address()!;
  const context = LocalContext.at(LOOPBACK);
  const { adapter } = context;
  context.releaseRef(); // the server still uses it
  let looked = 0;
  const create = adapter.createConnector.bind(adapter);
  adapter.createConnector = () => {
    const connector = create();
    const look = connector.getPrivateData.bind(connector);
    connector.getPrivateData = () => {
      looked += 1;
      return look();
    };
    return connector;
  };
  using _halfOpen = await RawPeer.connectHalfOpen(port, encodeHello(honest));
  const waiting = rejection(RawPeer.connectHalfOpen(port, encodeHello(honest)));
  // The connector of the half-open connection was created before.
  while (looked === 0) await turn();
  const closed = server.close();
  server.closeAllConnections();
  await Promise.all([closed, waiting]);
  for (let i = 0; i < 100; i += 1) await turn();
  assert.ok(
    ndQueryAddressList().length > 0,
    'this program has started the framework, and only it may end it',
  );
  ndCleanup();
});

test('a frame whose Send ends the connection is settled once', () => {
  const link = {
    most: 100,
    open: false,
    processRef: { update: () => {} },
    takes: () => link.open,
    send: () => outbox.end(new Error('the connection has ended')),
  };
  const outbox = new Outbox(() => link as unknown as Link);
  const settled: string[] = [];
  outbox.send(
    Frame.ANSWER,
    1,
    Buffer.from('answer'),
    () => settled.push('resolved'),
    () => settled.push('rejected'),
  );
  link.open = true;
  outbox.pump();
  assert.is(settled.length, 1, settled.join(', '));
});

test('a local context that has ended cannot be referenced again', () => {
  const context = LocalContext.at(LOOPBACK);
  context.releaseRef();
  assert.throws(() => context.addRef(), /is closed/);
});

/** An address that earlier tests have not used. */
const IDLE = '::1';

test('a local context that cannot be created leaves no adapter open', () => {
  const adapters: { ended: boolean }[] = [];
  const create = Adapter.prototype.createCompletionQueue;
  Adapter.prototype.createCompletionQueue = function () {
    adapters.push(this as unknown as { ended: boolean });
    throw new Error('no queue');
  };
  try {
    assert.throws(() => LocalContext.at(IDLE), /no queue/);
  } finally {
    Adapter.prototype.createCompletionQueue = create;
  }
  assert.equal(
    adapters.map(({ ended }) => ended),
    [true],
  );
});

/** Opens and closes a connection. Returns its local context. */
async function connected(port: number): Promise<LocalContext> {
  const channel = await connectChannel(port, IDLE);
  const { context } = channel;
  await channel.close();
  // Its memory is returned when the peer has confirmed the end.
  while (context.linkMemory.size === 0) await turn();
  return context;
}

const workers: Worker[] = [];
test.after.each(async () => {
  for (const worker of workers.splice(0)) await worker.terminate();
});

/** A server in another thread, so that this thread has no context for it. */
async function serving(): Promise<number> {
  const net = new URL('../../nd/net/index.js', import.meta.url).href;
  const program = `
    import { parentPort } from 'node:worker_threads';
    import { createChannelServer } from ${JSON.stringify(net)};
    const server = createChannelServer(() => {});
    server.listen({ host: ${JSON.stringify(IDLE)} }, () => parentPort.postMessage(server.address().port));
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
  workers.push(worker);
  const [port] = (await once(worker, 'message')) as [number];
  return port;
}

test('the adapter of ended connections is reused until it has been idle for a while', async () => {
  const port = await serving();
  const first = await connected(port);
  const { linkMemory } = first;
  const trim = linkMemory.trim.bind(linkMemory);
  // On a busy machine the second connection may take longer than the timer's interval.
  linkMemory.trim = () => {};
  const made = (): number[] => (['pd', 'mr', 'cq'] as const).map((what) => readCounters().objects[what]!);
  const before = made();
  assert.is(await connected(port), first);
  assert.equal(made(), before);
  trim();
  trim();
  assert.equal(
    made(),
    before.map((count) => count - 1),
  );
  assert.throws(() => first.addRef(), /is closed/);
  assert.is.not(await connected(port), first);
});

test('an adapter whose completion queue has failed is not used again', async () => {
  const port = await serving();
  const first = await connected(port);
  const again = LocalContext.at(IDLE);
  assert.is(again, first);
  const { poller } = again;
  poller.queue.notify = () => {
    throw new Error('The queue has failed.');
  };
  const taker = { touched: false, completed() {}, delivered() {} };
  const failed = new Promise<void>((resolve) => again.join({ probe: () => {}, end: () => resolve() }));
  poller.add(taker, 1);
  await failed;
  poller.remove(taker, 1);
  again.releaseRef();
  assert.throws(() => first.addRef(), /is closed/);
  assert.is.not(await connected(port), first);
});

for (const fault of ['unplug', 'fatal'] as const)
  test(`${fault}, while no connection uses the adapter: the next one opens it again`, async () => {
    const first = await connected(await serving());
    const nd = openNetworkDirect2();
    const device = nd.resolveAddress(IDLE);
    nd.release();
    injectDeviceFault(device, fault);
    injectDeviceFault(device, 'plug');
    assert.is.not(await connected(await serving()), first);
  });

test.run();
