/**
 * Tokens that a peer of `networkdirect/net` has received. The peer keeps every token, and later reads and writes with all of them, on its
 * own connection and on others. A token is only valid on its connection, for its range, and until its purpose has ended.
 */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, Status } from '../../nd/index.js';
import {
  decodeMemory,
  encodeHello,
  Frame,
  type Hello,
  Kind,
  LARGE,
  type MemoryDescription,
  Notice,
} from '../../nd/net/connection/frames.js';
import { LocalContext } from '../../nd/net/connection/local-context.js';
import { rings } from '../../nd/net/connection/stream-rings.js';
import { type Channel, createChannelServer, createServer } from '../../nd/net/index.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { frameOf, framesOf, honest, MARK, RawPeer, reportOf } from '../helpers/net-raw.js';

const peers: RawPeer[] = [];
test.after.each(async () => {
  for (const peer of peers.splice(0)) peer[Symbol.dispose]();
  await endAll();
});

const { DATA, REQUEST, ANSWER, RING } = Frame;
const BYTES = 8192;
const RING_BYTES = 2 ** 22;
/** A payload that does not fit in a quarter of the slots is read from memory. */
const fewSlots: Hello = { ...honest, slots: 3 };
const streaming: Hello = {
  ...honest,
  kind: Kind.STREAM,
  slotBytes: 65_552,
  maxMessageBytes: 0,
  ringBytes: RING_BYTES,
};

/** The memory that the first frame of this type and with these flags describes. */
async function reported(peer: RawPeer, type: number, flags: number): Promise<MemoryDescription> {
  const find = () =>
    peer.received.flatMap(framesOf).find((frame) => frame.type === type && frame.flags === flags);
  await peer.until(() => find() !== undefined);
  return decodeMemory(find()!.payload)!;
}

/** Asserts that the access succeeds. Returns the bytes that were read. */
async function succeeds(peer: RawPeer, right: 'read' | 'write', memory: MemoryDescription): Promise<Buffer> {
  const { status, bytes } = await peer.access(right, memory);
  assert.is(status, Status.SUCCESS);
  return bytes;
}

/** Asserts that the access fails, reads nothing and ends the connection. */
async function fails(peer: RawPeer, right: 'read' | 'write', memory: MemoryDescription): Promise<void> {
  const { status, bytes } = await peer.access(right, memory);
  assert.is(status, Status.ACCESS_VIOLATION);
  if (right === 'read') assert.ok(bytes.every((byte) => byte === MARK));
}

/** Asserts that a token can neither be used for reads nor for writes on other connections. */
async function failsElsewhere(join: Join, memory: MemoryDescription): Promise<void> {
  await fails((await join()).peer, 'read', memory);
  await fails((await join()).peer, 'write', memory);
}

type Join = () => Promise<{ peer: RawPeer; channel: Channel }>;

/** A server of channels. Each call connects a peer and also returns the server's end. */
async function serving(): Promise<Join> {
  const server = createChannelServer();
  const port = await listening(server);
  return async () => {
    const accepted = once(server, 'channel') as Promise<[Channel]>;
    const peer = await RawPeer.connect(port, encodeHello(fewSlots));
    peers.push(peer);
    return { peer, channel: (await accepted)[0] };
  };
}

/**
 * Makes the server send a message from memory. Returns the description that the peer receives, and a promise that settles with the peer's
 * report.
 */
async function message(
  { peer, channel }: Awaited<ReturnType<Join>>,
  bytes: Uint8Array,
): Promise<{ memory: MemoryDescription; sent: Promise<unknown> }> {
  peer.received.length = 0;
  // The connection may have ended before.
  const sent = channel.send(bytes).catch((error: unknown) => error);
  return { memory: await reported(peer, DATA, LARGE), sent };
}

for (const kind of ['allocate()', 'the heap'] as const) {
  const memoryOf = (bytes: number): Uint8Array =>
    kind === 'the heap' ? new Uint8Array(bytes) : allocate(bytes);

  test(`a peer's token for lent memory ends with each message, and is invalid elsewhere (${kind})`, async () => {
    const join = await serving();
    const a = await join();
    const b = await join();
    const memory = memoryOf(4 * BYTES);
    using lent = await a.channel.lend(memory);
    lent.bytes.fill(1);
    const first = await message(a, memory.subarray(BYTES, 2 * BYTES));
    assert.is(
      (await succeeds(a.peer, 'read', first.memory)).every((byte) => byte === 1),
      true,
    );
    await failsElsewhere(join, first.memory);
    a.peer.send(reportOf(first.memory.id));
    assert.is(await first.sent, undefined);
    // The same memory is now lent to another peer.
    lent.bytes.fill(2);
    const second = await message(b, memory.subarray(BYTES, 2 * BYTES));
    await failsElsewhere(join, first.memory);
    await failsElsewhere(join, second.memory);
    await fails(a.peer, 'read', first.memory);
    assert.is(
      (await succeeds(b.peer, 'read', second.memory)).every((byte) => byte === 2),
      true,
    );
    // The memory around the message is not accessible either.
    await fails(b.peer, 'read', { ...second.memory, address: second.memory.address - 1n });
    await failsElsewhere(join, second.memory);
    assert.ok(lent.bytes.every((byte) => byte === 2));
  });
}

test('peers that are still reading lent memory lose access when it is released', async () => {
  const join = await serving();
  const a = await join();
  const lent = await a.channel.lend(allocate(BYTES));
  const { memory, sent } = await message(a, lent.bytes);
  await succeeds(a.peer, 'read', memory);
  lent.release();
  lent.bytes.fill(3);
  await fails(a.peer, 'read', memory);
  assert.is(((await sent) as Error).name, 'NetError');
});

test('the token of a long message or reply ends when it has been read', async () => {
  const join = await serving();
  const a = await join();
  a.channel.onRequest(() => Buffer.alloc(BYTES, 5));
  const first = await message(a, Buffer.alloc(BYTES, 4));
  assert.is(
    (await succeeds(a.peer, 'read', first.memory)).every((byte) => byte === 4),
    true,
  );
  await failsElsewhere(join, first.memory);
  a.peer.send(reportOf(first.memory.id));
  assert.is(await first.sent, undefined);
  await failsElsewhere(join, first.memory);
  a.peer.send(frameOf(REQUEST, { id: 9 }));
  const answer = await reported(a.peer, ANSWER, LARGE);
  assert.is(
    (await succeeds(a.peer, 'read', answer)).every((byte) => byte === 5),
    true,
  );
  await failsElsewhere(join, answer);
  await fails(a.peer, 'read', first.memory);
  await failsElsewhere(join, answer);
});

test('peers cannot write to a long message', async () => {
  const join = await serving();
  const a = await join();
  const bytes = allocate(BYTES).fill(6);
  const { memory } = await message(a, bytes);
  await fails(a.peer, 'write', memory);
  assert.ok(bytes.every((byte) => byte === 6));
});

test('the tokens of a connection end with it', async () => {
  const join = await serving();
  const a = await join();
  const memory = allocate(2 * BYTES);
  using lent = await a.channel.lend(memory);
  const kept = [
    await message(a, lent.bytes.subarray(0, BYTES)),
    await message(a, Buffer.alloc(BYTES, 7)),
    await message(a, lent.bytes),
  ];
  const closed = once(a.channel, 'close');
  a.channel.destroy();
  await closed;
  await Promise.all(kept.map(({ sent }) => sent));
  for (const each of kept) await failsElsewhere(join, each.memory);
});

test('a ring is writable only on its own stream, until it is returned', async () => {
  // The peer returns no credits for its received slots.
  const server = createServer({ socket: { slots: 400, ringBytes: RING_BYTES } }, (socket) =>
    socket.on('error', () => {}).resume(),
  );
  const port = await listening(server);
  const join = async (): Promise<RawPeer> => {
    const peer = await RawPeer.connect(port, encodeHello(streaming));
    peers.push(peer);
    return peer;
  };
  const peer = await join();
  for (let n = 0; n < 200; n += 1) peer.send(frameOf(DATA, { payload: Buffer.alloc(4080) }));
  const ring = await reported(peer, RING, Notice.OFFER);
  await succeeds(peer, 'write', ring);
  await fails(await join(), 'write', ring);
  await fails(await join(), 'read', ring);
  rings.reclaimIdle();
  rings.reclaimIdle();
  await peer.until(({ received }) =>
    received.flatMap(framesOf).some(({ type, flags }) => type === RING && flags === Notice.WITHDRAW),
  );
  peer.send(frameOf(RING, { flags: Notice.RETURN }));
  await fails(await join(), 'write', ring);
  await fails(peer, 'write', ring);
});

test('without memory windows, each message has its own region, which is released when it was read', async () => {
  const context = LocalContext.at('127.0.0.1');
  try {
    Object.defineProperty(context, 'windows', { value: false });
    const join = await serving();
    const a = await join();
    using lent = await a.channel.lend(allocate(BYTES));
    for (const bytes of [lent.bytes.fill(8), Buffer.alloc(BYTES, 8)]) {
      const b = await join();
      const { memory, sent } = await message(b, bytes);
      assert.ok((await succeeds(b.peer, 'read', memory)).every((byte) => byte === 8));
      b.peer.send(reportOf(memory.id));
      assert.is(await sent, undefined);
      await failsElsewhere(join, memory);
      await fails(b.peer, 'read', memory);
    }
  } finally {
    context.releaseRef();
  }
});

test('exposed memory is accessible to all connections of its address until it is released', async () => {
  const join = await serving();
  const a = await join();
  const exposed = await a.channel.expose(allocate(BYTES), { writable: true });
  const handle = decodeMemory(exposed.handle)!;
  const b = await join();
  await succeeds(b.peer, 'write', handle);
  assert.ok((await succeeds(a.peer, 'read', handle)).every((byte) => byte === MARK));
  exposed.release();
  await failsElsewhere(join, handle);
  await fails(a.peer, 'write', handle);
  await fails(b.peer, 'read', handle);
});

test.run();
