/**
 * `networkdirect/net` and peers that make it hold data. Everything is limited. Beyond the limits, the peer waits or its connection ends.
 */
import { once } from 'node:events';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { encodeHello, encodeMemory, Frame, Kind, LARGE, Notice } from '../../nd/net/connection/frames.js';
import {
  allocate,
  type Channel,
  type ChannelOptions,
  connectChannel,
  createChannelServer,
  createServer,
  type NetError,
  type Socket,
  setMaxBufferedBytes,
} from '../../nd/net/index.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { frameOf, Hoarder, honest, RawPeer } from '../helpers/net-raw.js';
import { firstIf } from '../helpers/tiers.js';

test.after.each(endAll);

const { CONTROL, DATA, REQUEST, ANSWER, CANCEL, ATOMIC, RING } = Frame;
const SLOTS = 16;
const REQUESTS = 8;
/** A number of frames that is many times the limit. */
const MANY = 2000;

interface Victim {
  readonly peer: RawPeer;
  readonly channel: Channel;
  /** Resolves when the victim has had a turn. */
  readonly turn: () => Promise<unknown>;
}

/** A server with channels to a raw peer and to an honest client. */
async function victim(options: ChannelOptions = {}): Promise<Victim> {
  const server = createChannelServer({ channel: { slots: SLOTS, maxRequests: REQUESTS, ...options } });
  const port = await listening(server);
  const accepted = once(server, 'channel') as Promise<[Channel]>;
  // The channel has one frame per slot, and few slots.
  const peer = await RawPeer.connect(port, encodeHello({ ...honest, slots: 1, slotBytes: 64 }));
  const [channel] = await accepted;
  return { peer, channel, turn: await clock() };
}

/** An honest client of a server that replies to all requests immediately. */
async function clock(): Promise<() => Promise<unknown>> {
  const server = createChannelServer((channel) => void channel.onRequest((bytes) => bytes));
  const client = await connectChannel(await listening(server), '127.0.0.1');
  return () => client.request('tick');
}

/** Frames queued in a channel. */
const queued = (channel: Channel): number => Number(/(\d+) queued/.exec(inspect(channel))![1]);

const request = (id: number, text = 'x'): Buffer => frameOf(REQUEST, { id, payload: Buffer.from(text) });

for (const [what, handler] of [
  ['answers', (bytes: Buffer) => bytes],
  ['late answers', async (bytes: Buffer) => bytes],
  ['refusals', undefined],
] as const)
  test(`a peer that returns no credits for ${what} gets only as many requests served as the limit permits`, async () => {
    const { peer, channel, turn } = await victim(handler && { onRequest: handler });
    using _ = peer;
    const hoarder = new Hoarder(peer, { slots: SLOTS, control: true });
    const sent = await hoarder.flood(MANY, (id) => request(id), turn);
    // The first replies were sent with the credits of its hello.
    assert.ok(queued(channel) <= REQUESTS, `${queued(channel)} answers wait`);
    assert.ok(sent < MANY, `${sent} requests were taken`);
    assert.is(channel.destroyed, false);
  });

test('a peer that returns no credits gets only as many atomic operations executed as it has slots', async () => {
  const { peer, channel, turn } = await victim();
  using _ = peer;
  const hoarder = new Hoarder(peer, { slots: SLOTS, control: true });
  const sent = await hoarder.flood(MANY, (id) => frameOf(ATOMIC, { id, payload: Buffer.alloc(32) }), turn);
  assert.ok(queued(channel) <= SLOTS + 4, `${queued(channel)} answers wait`);
  assert.ok(sent < MANY);
  assert.is(channel.destroyed, false);
});

test('long replies that the peer does not read count against the limit of its requests', async () => {
  let served = 0;
  const onRequest = (): Buffer => {
    served += 1;
    return Buffer.alloc(100_000);
  };
  const { peer, channel, turn } = await victim({ onRequest });
  using _ = peer;
  const hoarder = new Hoarder(peer, { slots: SLOTS, data: true, control: true });
  const ids: number[] = [];
  hoarder.heard = (bytes) => {
    if (bytes[0] === ANSWER) ids.push(bytes.readUInt32BE(16 + 12));
  };
  await hoarder.flood(MANY, (id) => request(id), turn);
  while (served < REQUESTS) await turn();
  assert.is(served, REQUESTS);
  // As soon as one reply was read, the next request is served.
  await hoarder.hear(() => ids.length > 0);
  await hoarder.say(control(ids.shift()!));
  while (served === REQUESTS) await turn();
  assert.is(served, REQUESTS + 1);
  assert.is(channel.destroyed, false);
});

const control = (...ids: number[]): Buffer => {
  const payload = Buffer.alloc(4 * ids.length);
  ids.forEach((id, n) => void payload.writeUInt32BE(id, 4 * n));
  return frameOf(CONTROL, { payload });
};

test('a peer that reports reading memory that was not offered loses its connection', async () => {
  // The memory is registered, so a reply has its id as soon as its handler has returned.
  const { peer, channel, turn } = await victim({ onRequest: () => lent.bytes });
  using _ = peer;
  using lent = await channel.lend(allocate(100_000));
  const closed = once(channel, 'close');
  const hoarder = new Hoarder(peer, { slots: SLOTS, control: true });
  // Without further credits, the descriptions of some replies cannot be sent.
  for (let id = 0; id < REQUESTS; id += 1) await hoarder.say(request(id));
  while (queued(channel) === 0) await turn();
  await hoarder.say(control(...Array.from({ length: REQUESTS }, (_, n) => n + 1)));
  await closed;
  assert.is((channel.error as NetError).code, 'EPROTO');
});

test('read reports for unrequested long replies wait in the slots of a peer that returns no credits', async () => {
  const { peer, channel, turn } = await victim({ onRequest: (bytes) => bytes });
  using _ = peer;
  const hoarder = new Hoarder(peer, { slots: SLOTS, data: true });
  const memory = encodeMemory({ address: 0x1000n, token: 0x1234, id: 1, length: 10_000 });
  const sent = await hoarder.flood(
    MANY,
    (id) => Buffer.concat([request(id), frameOf(ANSWER, { id, flags: LARGE, payload: memory })]),
    turn,
  );
  assert.ok(sent < MANY, `${sent} were taken`);
  assert.is(channel.destroyed, false);
});

test('canceling a request whose reply waits for credits makes room for another one', async () => {
  let served = 0;
  const onRequest = (bytes: Buffer): Buffer => {
    served += 1;
    return bytes;
  };
  const { peer, channel, turn } = await victim({ onRequest });
  using _ = peer;
  const hoarder = new Hoarder(peer, { slots: SLOTS, control: true });
  const answered = new Set<number>();
  hoarder.heard = (bytes) => {
    if (bytes[0] === ANSWER) answered.add(bytes.readUInt32BE(8));
  };
  const first = REQUESTS + 5;
  for (let id = 0; id < first; id += 1) await hoarder.say(request(id, 'a text of 32 bytes, more or less'));
  // The hello granted credits for the other replies.
  while (served < first) await turn();
  await hoarder.hear(() => answered.size === first - REQUESTS);
  assert.is(queued(channel), REQUESTS);
  const waiting = Array.from({ length: first }, (_, id) => id).filter((id) => !answered.has(id));
  const cancel = Buffer.concat(waiting.map((id) => frameOf(CANCEL, { id })));
  await hoarder.say(cancel);
  while (queued(channel) > 0) await turn();
  await hoarder.say(request(99));
  while (served === first) await turn();
});

test('two concurrent requests with the same id end the connection', async () => {
  const { peer, channel } = await victim({ onRequest: () => new Promise(() => {}) });
  using _ = peer;
  const closed = once(channel, 'close');
  peer.send(request(7), request(7));
  await closed;
  assert.match(channel.error!.message, /id 7/);
});

test('a peer that keeps offering rings without receiving notices loses its connection', async () => {
  const server = createServer((socket) => void socket.pipe(socket));
  const next = once(server, 'connection') as Promise<[Socket]>;
  const port = await listening(server);
  const streaming = {
    ...honest,
    kind: Kind.STREAM,
    slotBytes: 65_552,
    maxMessageBytes: 0,
    ringBytes: 2 ** 22,
  };
  using peer = await RawPeer.connect(port, encodeHello(streaming));
  const [socket] = await next;
  const failed = once(socket, 'error') as Promise<[NetError]>;
  const hoarder = new Hoarder(peer, { slots: SLOTS, data: true }, true);
  const memory = encodeMemory({ address: 0x1000n, token: 0x1234, id: 0, length: 4096 * honest.slots });
  const frames = [
    // The echo of this message returns control credits.
    frameOf(DATA, { payload: Buffer.from('x') }),
    frameOf(RING, { flags: Notice.OFFER, payload: memory }),
    frameOf(RING, { flags: Notice.WITHDRAW }),
  ];
  const turn = await clock();
  let ended = false;
  void failed.then(() => (ended = true));
  await hoarder
    .flood(
      MANY,
      (n) => Buffer.from(frames[n % 3]!),
      async () => {
        if (ended) throw new Error('ended');
        await turn();
      },
    )
    .then(
      () => assert.unreachable('it goes on for good'),
      () => {},
    );
  const [error] = await failed;
  assert.is(error.code, 'EPROTO');
  assert.match(error.message, /second ring/);
});

const MIB = 2 ** 20;

/** A server with this limit, whose channels have clients that lend memory to it. */
async function lenders(count: number, maxBufferedBytes: number | undefined, onRequest?: () => Buffer) {
  const server = createChannelServer({ maxBufferedBytes });
  const accepted: Channel[] = [];
  server.on('channel', (channel: Channel) => accepted.push(channel));
  const port = await listening(server);
  const clients: Channel[] = [];
  for (let n = 0; n < count; n += 1)
    clients.push(await connectChannel(port, '127.0.0.1', onRequest && { onRequest }));
  while (accepted.length < count) await once(server, 'channel');
  return { clients, accepted };
}

for (const [whose, bound, options] of [
  ['a server', 32 * MIB, 32 * MIB],
  ['the thread', 32 * MIB, undefined],
] as const)
  firstIf(whose === 'a server', test)(
    `eight channels with long messages that are not received hold no more than the bound of ${whose}`,
    async () => {
      const memory = allocate(16 * MIB).fill(7);
      if (options === undefined) setMaxBufferedBytes(bound);
      try {
        const { clients, accepted } = await lenders(8, options, () => Buffer.alloc(10 * MIB, 5));
        using lent = await clients[0]!.lend(memory);
        const before = process.memoryUsage().arrayBuffers;
        let read = 0;
        const sends = clients.flatMap((client) =>
          [1, 2, 3].map(() => client.send(lent.bytes).then(() => (read += 1))),
        );
        // Waits for replies of the same length on each channel. Then the first messages have been read.
        for (const channel of accepted) assert.is((await channel.request('?')).length, 10 * MIB);
        while (read < 2) await new Promise((resolve) => setImmediate(resolve));
        for (const channel of accepted) await channel.request('and now?');
        // Two messages were read: one within the limit, and one beyond it.
        assert.is(read, 2);
        const held = process.memoryUsage().arrayBuffers - before;
        // The memory of the replies is garbage that may not have been collected yet: one per client, and one here.
        assert.ok(held < 2 * bound + 8 * 2 * 2 * 10 * MIB, `${held} bytes are held`);
        const taken = accepted.map(async (channel) => {
          for (let n = 0; n < 3; n += 1) {
            const message = await channel.receive();
            assert.is(message!.length, 16 * MIB);
            assert.is(message![16 * MIB - 1], 7);
          }
        });
        await Promise.all([...sends, ...taken]);
      } finally {
        setMaxBufferedBytes(2 ** 29);
      }
    },
  );

test('long requests whose handlers do not reply are limited, and those of another channel proceed', async () => {
  const { clients, accepted } = await lenders(2, 32 * MIB);
  let served = 0;
  const finish: (() => void)[] = [];
  for (const channel of accepted)
    channel.onRequest((bytes) => {
      served += 1;
      return new Promise((resolve) => finish.push(() => resolve(`${bytes.length}`)));
    });
  const [hog, other] = clients as [Channel, Channel];
  const bytes = Buffer.alloc(4 * MIB);
  const answers = Array.from({ length: 12 }, () => hog.request(bytes));
  while (served < 4) await new Promise((resolve) => setImmediate(resolve));
  answers.push(other.request(bytes), other.request(bytes));
  while (served < 6) await new Promise((resolve) => setImmediate(resolve));
  const small = hog.request('short ones pass');
  while (served < 7) await new Promise((resolve) => setImmediate(resolve));
  assert.is(served, 7);
  const finishing = setInterval(() => finish.shift()?.(), 1);
  for (const answer of answers) assert.is(String(await answer), `${4 * MIB}`);
  await small;
  clearInterval(finishing);
});

test('the limit of a server is part of that of the thread, and waiting payloads are admitted when that is raised', async () => {
  try {
    const { clients, accepted } = await lenders(2, 256 * MIB, () => Buffer.of(1));
    using lent = await clients[0]!.lend(allocate(12 * MIB));
    setMaxBufferedBytes(16 * MIB);
    let read = 0;
    const sends = clients.map((client) => client.send(lent.bytes).then(() => (read += 1)));
    await Promise.race(sends);
    for (const channel of accepted) await channel.request('and now?');
    // One message beyond the limit of the thread. The server's limit has room for both.
    assert.is(read, 1);
    setMaxBufferedBytes(256 * MIB);
    await Promise.all(sends);
    for (const channel of accepted) await channel.receive();
  } finally {
    setMaxBufferedBytes(2 ** 29);
  }
});

test('a limit that is not a valid number of bytes is rejected', () => {
  assert.throws(() => setMaxBufferedBytes(0), /`bytes` must be an integer .*; got 0\./);
  assert.throws(
    () => createChannelServer({ maxBufferedBytes: 1.5 }),
    /`maxBufferedBytes` must be an integer .*; got 1\.5\./,
  );
});

test.run();
