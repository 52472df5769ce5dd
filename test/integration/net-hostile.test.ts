/** `networkdirect/net` and peers that violate its protocol. Each of these connections ends with an error, and nothing else is affected. */
import { channel as diagnostics } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, Status } from '../../nd/index.js';
import {
  encodeHello,
  encodeMemory,
  Frame,
  type Hello,
  IN_RING,
  Kind,
  LARGE,
  MORE,
  Notice,
} from '../../nd/net/connection/frames.js';
import { LocalContext } from '../../nd/net/connection/local-context.js';
import {
  type Channel,
  connectChannel,
  createChannelServer,
  createServer,
  type DroppedAddresses,
  type NetError,
  type Server,
  type Socket,
} from '../../nd/net/index.js';
import { endAll, listening, rejection } from '../helpers/net-pair.js';
import { frameOf, honest, RawPeer } from '../helpers/net-raw.js';

test.after.each(endAll);

const { CONTROL, DATA, REQUEST, ANSWER, FAILURE, CANCEL, ATOMIC, END, RING } = Frame;
/** The hello of an honest peer with a stream. */
const streaming: Hello = {
  ...honest,
  kind: Kind.STREAM,
  slotBytes: 65_552,
  maxMessageBytes: 0,
  ringBytes: 2 ** 22,
};
const description = (length: number): Uint8Array =>
  encodeMemory({ address: 0x1000n, token: 0x1234, id: 1, length });

/** A payload that fills a slot, and a frame whose payload continues in the next one. */
const PIECE = honest.slotBytes - 16;
const piece = (type: number, id = 0): Buffer =>
  frameOf(type, { flags: MORE, id, payload: Buffer.alloc(PIECE) });

/** The data that a hostile peer sends, and the resulting error of the channel. */
const attacks: { name: string; sends: Buffer[]; code: string; says?: RegExp }[] = [
  { name: 'no byte', sends: [Buffer.alloc(0)], code: 'EPROTO', says: /at least a header; got 0 bytes/ },
  {
    name: 'half a header',
    sends: [Buffer.alloc(15)],
    code: 'EPROTO',
    says: /at least a header; got 15 bytes/,
  },
  {
    name: 'a length beyond the end',
    sends: [frameOf(DATA, { length: 1 })],
    code: 'EPROTO',
    says: /exceeds the 16/,
  },
  {
    name: 'the largest length',
    sends: [frameOf(REQUEST, { length: 0xffff_ffff })],
    code: 'EPROTO',
    says: /exceeds/,
  },
  {
    name: 'half a header after a frame',
    sends: [Buffer.concat([frameOf(DATA), Buffer.alloc(7)])],
    code: 'EPROTO',
    says: /exceeds the 23/,
  },
  { name: 'an unknown type', sends: [frameOf(9)], code: 'EPROTO', says: /type 9/ },
  { name: 'what only streams have', sends: [frameOf(RING)], code: 'EPROTO', says: /type 8/ },
  {
    name: 'bytes in a ring',
    sends: [frameOf(DATA, { flags: IN_RING, id: 10 })],
    code: 'EPROTO',
    says: /flags 0x2/,
  },
  { name: 'the largest type', sends: [frameOf(255)], code: 'EPROTO', says: /type 255/ },
  { name: 'unknown flags', sends: [frameOf(DATA, { flags: 0x82 })], code: 'EPROTO', says: /flags 0x82/ },
  {
    name: 'credits for data that were not spent',
    sends: [frameOf(DATA, { data: 1 })],
    code: 'EPROTO',
    says: /credits/,
  },
  {
    name: 'control credits that were not spent',
    sends: [frameOf(CONTROL, { control: 9 })],
    code: 'EPROTO',
    says: /credits/,
  },
  {
    name: 'the maximum number of credits',
    sends: [frameOf(DATA, { data: 65_535, control: 65_535 })],
    code: 'EPROTO',
  },
  {
    name: 'half an id in CONTROL',
    sends: [frameOf(CONTROL, { payload: Buffer.alloc(6) })],
    code: 'EPROTO',
    says: /CONTROL frame of 22/,
  },
  {
    name: 'a frame after CONTROL',
    sends: [Buffer.concat([frameOf(CONTROL), frameOf(DATA)])],
    code: 'EPROTO',
    says: /CONTROL/,
  },
  {
    name: 'CONTROL after a frame',
    sends: [Buffer.concat([frameOf(DATA), frameOf(CONTROL)])],
    code: 'EPROTO',
    says: /type 0/,
  },
  { name: 'CONTROL with a flag', sends: [frameOf(CONTROL, { flags: 1 })], code: 'EPROTO', says: /CONTROL/ },
  { name: 'CONTROL with an id', sends: [frameOf(CONTROL, { id: 1 })], code: 'EPROTO', says: /CONTROL/ },
  {
    name: 'credits in a frame after the first',
    sends: [Buffer.concat([frameOf(DATA), frameOf(DATA, { data: 1 })])],
    code: 'EPROTO',
    says: /other than the first/,
  },
  {
    name: 'a message with an id',
    sends: [frameOf(DATA, { id: 1 })],
    code: 'EPROTO',
    says: /id of a frame of type 1 must be 0/,
  },
  {
    name: 'END with bytes',
    sends: [frameOf(END, { payload: Buffer.from('?') })],
    code: 'EPROTO',
    says: /type 7 must have 0 bytes/,
  },
  {
    name: 'CANCEL with bytes',
    sends: [frameOf(CANCEL, { id: 1, payload: Buffer.from('?') })],
    code: 'EPROTO',
    says: /type 5 must have 0 bytes/,
  },
  {
    name: 'half an atomic operation',
    sends: [frameOf(ATOMIC, { id: 5, payload: Buffer.alloc(31) })],
    code: 'EPROTO',
    says: /type 6 must have 32 bytes/,
  },
  {
    name: 'an unknown atomic operation',
    sends: [frameOf(ATOMIC, { id: 5, payload: Buffer.from([2, ...Buffer.alloc(31)]) })],
    code: 'EPROTO',
    says: /unknown atomic operation/,
  },
  {
    name: 'a long message without a description',
    sends: [frameOf(DATA, { flags: LARGE })],
    code: 'EPROTO',
    says: /description/,
  },
  {
    name: 'a message that is too long',
    sends: [frameOf(DATA, { flags: LARGE, payload: description(2 ** 40) })],
    code: 'EPROTO',
    says: /got 1099511627776/,
  },
  {
    name: 'a long message of zero bytes',
    sends: [frameOf(REQUEST, { flags: LARGE, payload: description(0) })],
    code: 'EPROTO',
    says: /from 1 to \d+ bytes; got 0/,
  },
  {
    name: 'memory that the peer does not own',
    sends: [frameOf(DATA, { flags: LARGE, payload: description(10_000) })],
    code: 'ECONNRESET',
  },
  {
    name: 'a piece that leaves room in its slot',
    sends: [frameOf(DATA, { flags: MORE, payload: Buffer.alloc(PIECE - 1) })],
    code: 'EPROTO',
    says: /must have 4080 bytes unless it is the last; got 4079/,
  },
  {
    name: 'another message between the pieces of a request',
    sends: [piece(REQUEST, 1), frameOf(DATA)],
    code: 'EPROTO',
    says: /type 1 interrupted/,
  },
  {
    name: 'another request between the pieces of a request',
    sends: [piece(REQUEST, 1), piece(REQUEST, 2)],
    code: 'EPROTO',
    says: /type 2 interrupted/,
  },
  {
    name: 'END between the pieces of a message',
    sends: [piece(DATA), frameOf(END)],
    code: 'EPROTO',
    says: /type 7 interrupted/,
  },
  {
    name: 'a message that continues in memory',
    sends: [piece(DATA), frameOf(DATA, { flags: LARGE, payload: description(10_000) })],
    code: 'EPROTO',
    says: /type 1 interrupted/,
  },
  {
    name: 'the text of an error in pieces',
    sends: [piece(FAILURE, 1)],
    code: 'EPROTO',
    says: /flags 0x4 are not valid on a frame of type 4/,
  },
  { name: 'a frame behind END', sends: [frameOf(END), frameOf(DATA)], code: 'EPROTO', says: /followed END/ },
  {
    name: 'two ENDs',
    sends: [Buffer.concat([frameOf(END), frameOf(END)])],
    code: 'EPROTO',
    says: /followed END/,
  },
  {
    name: 'more bytes than fit in a slot',
    sends: [frameOf(DATA, { payload: Buffer.alloc(100_000) })],
    code: 'ECONNRESET',
  },
];

/** A server that replies to requests and keeps its channels. */
async function serve(): Promise<{ server: Server; port: number; next: () => Promise<Channel> }> {
  const server = createChannelServer((channel) => void channel.onRequest((bytes) => bytes));
  const port = await listening(server);
  const next = async (): Promise<Channel> => ((await once(server, 'channel')) as [Channel])[0];
  return { server, port, next };
}

async function stillServes(port: number): Promise<void> {
  const client = await connectChannel(port, '127.0.0.1');
  assert.is(String(await client.request('still there?')), 'still there?');
  await client.close();
}

for (const { name, sends, code, says } of attacks) {
  test(`a client sends ${name}: its channel ends, the server continues`, async () => {
    const { server, port, next } = await serve();
    const accepted = next();
    using peer = await RawPeer.connect(port);
    const channel = await accepted;
    const closed = once(channel, 'close');
    for (const [n, bytes] of sends.entries()) peer.sendAt(2 * n * PIECE, bytes);
    await closed;
    assert.is((channel.error as NetError).code, code);
    if (says !== undefined) assert.match(channel.error!.message, says);
    await peer.ended();
    await stillServes(port);
    assert.is(server.listening, true);
  });
}

test('a server violates the protocol: the client gets EPROTO', async () => {
  const { peer, port, accepted } = await RawPeer.listen();
  using _ = peer;
  const [client] = await Promise.all([connectChannel(port, '127.0.0.1'), accepted()]);
  const asked = rejection(client.request('?'));
  const closed = once(client, 'close');
  peer.send(frameOf(77));
  assert.is((await asked).code, 'EPROTO');
  await closed;
  assert.match(client.error!.message, /type 77/);
});

test('unexpected replies, failures, cancellations and read reports have no effect', async () => {
  const { port, next } = await serve();
  const accepted = next();
  using peer = await RawPeer.connect(port);
  const channel = await accepted;
  peer.send(
    Buffer.concat([ANSWER, FAILURE].map((type) => frameOf(type, { id: 99, payload: Buffer.from('?') }))),
    frameOf(CANCEL, { id: 99 }),
    frameOf(ATOMIC, { id: 6, payload: Buffer.alloc(32) }),
  );
  await peer.until(({ received }) => Buffer.concat(received).includes('no longer exposed'));
  peer.send(frameOf(CONTROL, { payload: Buffer.from([0, 0, 0, 9]) }));
  peer.send(frameOf(REQUEST, { id: 7, payload: Buffer.from('and now?') }));
  await peer.until(({ received }) => Buffer.concat(received).includes('and now?'));
  assert.is(channel.destroyed, false);
});

test('requests that cross an END get no reply after it and are not an error', async () => {
  const { peer, port, accepted } = await RawPeer.listen();
  using _ = peer;
  const [client] = await Promise.all([connectChannel(port, '127.0.0.1'), accepted()]);
  client.onRequest((bytes) => bytes);
  const closing = client.close();
  await peer.until(({ received }) => received.some((bytes) => bytes[0] === END));
  peer.send(
    frameOf(REQUEST, { id: 1, payload: Buffer.from('too late') }),
    frameOf(ATOMIC, { id: 2, payload: Buffer.alloc(32) }),
    frameOf(REQUEST, { id: 3, flags: LARGE, payload: description(10_000) }),
    frameOf(DATA, { payload: Buffer.from('seen') }),
  );
  assert.is(String(await client.receive()), 'seen');
  peer.send(frameOf(END));
  await closing;
  await peer.ended();
  await peer.until(() => true);
  assert.is(client.error, undefined);
  // After END, the peer only received credits and read reports.
  const types = peer.received.map((bytes) => bytes[0]);
  assert.equal(
    types.slice(types.indexOf(END) + 1).filter((type) => type !== CONTROL),
    [],
  );
});

test('sequential requests with the same id each get a reply', async () => {
  const { port } = await serve();
  using peer = await RawPeer.connect(port);
  peer.send(...Array.from({ length: 50 }, () => frameOf(REQUEST, { id: 1, payload: Buffer.from('x') })));
  await peer.until(({ received }) => Buffer.concat(received).length >= 50 * 17);
});

test('a peer that sends without credits only loses its own connection', async () => {
  const server = createChannelServer({ channel: { slots: 2, slotBytes: 64 } });
  const port = await listening(server);
  const next = once(server, 'channel') as Promise<[Channel]>;
  using peer = await RawPeer.connect(port);
  const [channel] = await next;
  const closed = once(channel, 'close');
  // The program receives none of them. The peer has credits for two messages, and for four replies.
  for (let n = 0; n < 7; n += 1) peer.send(frameOf(DATA));
  await closed;
  assert.is((channel.error as NetError).code, 'EPROTO');
  assert.match(channel.error!.message, /without a credit/);
  assert.is(server.listening, true);
});

test('a peer that sends CONTROL frames without credits only loses its own connection', async () => {
  const { server, port, next } = await serve();
  const accepted = next();
  using peer = await RawPeer.connect(port);
  const channel = await accepted;
  const closed = once(channel, 'close');
  // Half of the credits are returned immediately, the others only after the peer returns some.
  for (let n = 0; n < 100; n += 1) peer.send(frameOf(CONTROL));
  await closed;
  assert.is((channel.error as NetError).code, 'EPROTO');
  assert.match(channel.error!.message, /without a credit/);
  assert.is(server.listening, true);
});

test('long messages that the program does not receive stay in the sender’s memory', async () => {
  const server = createChannelServer({ channel: { slots: 64 }, maxBufferedBytes: 2 ** 25 });
  const port = await listening(server);
  const next = once(server, 'channel') as Promise<[Channel]>;
  const client = await connectChannel(port, '127.0.0.1', { slots: 64 });
  const [channel] = await next;
  let resolved = 0;
  const bytes = Buffer.alloc(4 * 2 ** 20, 1);
  const sends = Array.from({ length: 12 }, () => client.send(bytes).then(() => (resolved += 1)));
  await Promise.all(sends.slice(0, 4));
  // The reply follows the descriptions of all messages, and the admitted ones have been read.
  client.onRequest(() => 'here');
  await channel.request('are you there?');
  // This is half of the limit. The rest is left to other connections.
  assert.is(resolved, 4);
  for (let n = 0; n < 12; n += 1) assert.is((await channel.receive())!.length, bytes.length);
  await Promise.all(sends);
  await client.close();
});

const hellos: [string, Uint8Array][] = [
  ['nothing', new Uint8Array(0)],
  ['half of it', encodeHello(honest).subarray(0, 8)],
  ['another magic', Uint8Array.from(encodeHello(honest), (byte, at) => (at === 0 ? 0 : byte))],
  ['another version', Uint8Array.from(encodeHello(honest), (byte, at) => (at === 4 ? 1 : byte))],
  ['no message at all', encodeHello({ ...honest, maxMessageBytes: 0 })],
  ['a ring for a channel', encodeHello({ ...honest, ringBytes: 4096 })],
  ['no slots', encodeHello({ ...honest, slots: 0 })],
  ['slots of nothing', encodeHello({ ...honest, slotBytes: 16 })],
  ['another kind', Uint8Array.from(encodeHello(honest), (byte, at) => (at === 5 ? 9 : byte))],
];

test('a client of another version gets this version, and the server reports both, like any failure before a connection', async () => {
  const { server, port } = await serve();
  const published: unknown[] = [];
  const hear = (message: unknown): void => void published.push(message);
  const topic = diagnostics('networkdirect.net.clientError');
  topic.subscribe(hear);
  const reported = once(server, 'clientError') as Promise<[NetError, DroppedAddresses]>;
  await rejection(RawPeer.connect(port, hellos.find(([name]) => name === 'another version')![1]));
  const [error, addresses] = await reported;
  topic.unsubscribe(hear);
  assert.is(error.code, 'EPROTO');
  assert.match(
    error.message,
    /the client uses version 1 of this protocol, and this side uses version \d+; install the same version/,
  );
  assert.equal([addresses.localAddress, addresses.localPort], ['127.0.0.1', port]);
  assert.is(addresses.remoteAddress, '127.0.0.1');
  assert.equal(published, [{ server, error, ...addresses }]);
  assert.is(server.clientErrors, 1);
  await stillServes(port);
});

/** Injects failures into the creation of a link in a local context. Each returns a function that restores the original. */
const unmade: [string, { slots: number; slotBytes: number }, (context: LocalContext) => () => void][] = [
  ['whose queue pair is too large', { slots: 65_535, slotBytes: 64 }, () => () => {}],
  [
    'whose memory cannot be registered',
    { slots: 16, slotBytes: 64 },
    ({ adapter }) => {
      const make = adapter.createMemoryRegion;
      adapter.createMemoryRegion = () => {
        const region = make.call(adapter);
        region.register = () => {
          throw new NdError(Status.INSUFFICIENT_RESOURCES, 'Register');
        };
        return region;
      };
      return () => {
        adapter.createMemoryRegion = make;
      };
    },
  ],
];

for (const [what, options, fail] of unmade)
  test(`a link ${what} releases its connector once, and keeps no resources`, async () => {
    const context = LocalContext.at('127.0.0.1');
    const { adapter } = context;
    const make = adapter.createConnector;
    const released: number[] = [];
    adapter.createConnector = () => {
      const connector = make.call(adapter);
      const { release } = connector;
      const n = released.push(0) - 1;
      connector.release = () => {
        released[n]! += 1;
        return release.call(connector);
      };
      return connector;
    };
    const undo = fail(context);
    try {
      const server = createChannelServer({ channel: options });
      server.on('channel', () => assert.unreachable('it has no link'));
      const port = await listening(server);
      await rejection(connectChannel(port, '127.0.0.1', options));
      using peer = await RawPeer.connectHalfOpen(port, encodeHello(honest)).catch(() => undefined);
      assert.is(peer, undefined);
      assert.is(server.clientErrors, 1);
      await endAll();
      // These connectors belong to the client, to the request, and to the wait for the next request.
      while (released.includes(0)) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(released, [1, 1, 1]);
    } finally {
      undo();
      adapter.createConnector = make;
      context.releaseRef();
    }
    // The context is no longer referenced.
    for (;;) {
      const present = LocalContext.at('127.0.0.1');
      present.releaseRef();
      if (present !== context) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
  });

for (const [name, hello] of hellos) {
  test(`a hello with ${name} is refused on both sides`, async () => {
    const { port } = await serve();
    await rejection(RawPeer.connect(port, hello));
    await stillServes(port);

    const { peer, port: there, accepted } = await RawPeer.listen();
    using _ = peer;
    const accepting = rejection(accepted(hello));
    const error = await rejection(connectChannel(there, '127.0.0.1'));
    assert.is(error.code, 'EPROTO');
    assert.match(
      error.message,
      name === 'another version'
        ? /the server uses version 1 of this protocol, and this side uses version \d+; install the same version/
        : /does not use this protocol/,
    );
    await accepting;
  });
}

/** A ring with one unit per slot. */
const RING_BYTES = 4096 * streaming.slots;
const ringOf = (length: number): Buffer =>
  frameOf(RING, { payload: encodeMemory({ address: 0x1000n, token: 0x1234, id: 0, length }) });

const streamAttacks: [string, Buffer | Buffer[], RegExp][] = [
  ['half a unit as a ring', ringOf(2048), /2048 bytes does not fit/],
  ['a larger ring than requested', ringOf(2 ** 22 + 4096), /does not fit/],
  ['the largest ring', ringOf(2 ** 53 - 4096), /does not fit/],
  ['two rings', [ringOf(RING_BYTES), ringOf(RING_BYTES)], /second ring/],
  ['less than a unit for each slot', ringOf(4096), /4096 bytes does not fit 128 slots/],
  ['half a ring', frameOf(RING, { payload: Buffer.alloc(8) }), /8 bytes is malformed/],
  ['no ring at all', frameOf(RING), /unknown notice 0/],
  [
    'a ring with an id',
    frameOf(RING, {
      payload: encodeMemory({ address: 0x1000n, token: 0x1234, id: 1, length: RING_BYTES }),
    }),
    /must be 0; got 1/,
  ],
  ['a notice with an id', frameOf(RING, { flags: Notice.WITHDRAW, id: 1 }), /malformed/],
  ['an id', frameOf(DATA, { id: 1, payload: Buffer.from('?') }), /id of a frame of type 1 must be 0/],
  ['bytes in END', frameOf(END, { payload: Buffer.from('?') }), /type 7 must have 0 bytes/],
  ['reserved bits', frameOf(DATA, { reserved: 1 }), /reserved/],
  [
    'reserved bits behind a frame',
    Buffer.concat([frameOf(DATA), frameOf(DATA, { reserved: 1 })]),
    /other than the first/,
  ],
  ['a ring back that it has not', frameOf(RING, { flags: Notice.RETURN }), /returned a ring/],
  ['an unknown notice', frameOf(RING, { flags: 9 }), /unknown notice 9/],
  ['a ring behind a frame', Buffer.concat([frameOf(DATA), ringOf(RING_BYTES)]), /type 8/],
  ['a frame behind a ring', Buffer.concat([ringOf(RING_BYTES), frameOf(DATA)]), /malformed/],
  ['bytes in a ring that is not', frameOf(DATA, { flags: IN_RING, id: 10 }), /0x2/],
  ['a payload besides its ring', frameOf(DATA, { flags: IN_RING, id: 1, payload: Buffer.alloc(4) }), /0x2/],
  ['a request', frameOf(REQUEST), /type 2/],
  ['a flag', frameOf(DATA, { flags: LARGE, payload: description(10) }), /0x1/],
  ['bytes behind END', Buffer.concat([frameOf(END), frameOf(DATA)]), /followed END/],
];

for (const [name, bytes, says] of streamAttacks) {
  test(`a stream with ${name} ends in EPROTO`, async () => {
    const server = createServer();
    const next = once(server, 'connection') as Promise<[Socket]>;
    const port = await listening(server);
    using peer = await RawPeer.connect(port, encodeHello(streaming));
    const [socket] = await next;
    const failed = once(socket, 'error') as Promise<[NetError]>;
    for (const each of [bytes].flat()) peer.send(each);
    const [error] = await failed;
    assert.is(error.code, 'EPROTO');
    assert.match(error.message, says);
  });
}

test('a ring with an invalid address ends the stream when it is written to', async () => {
  const server = createServer();
  const next = once(server, 'connection') as Promise<[Socket]>;
  using peer = await RawPeer.connect(await listening(server), encodeHello(streaming));
  const [socket] = await next;
  const failed = once(socket, 'error') as Promise<[NetError]>;
  peer.send(ringOf(2 ** 20));
  const bytes = Buffer.alloc(65_536);
  const writing = setInterval(() => socket.write(bytes), 1);
  try {
    assert.is((await failed)[0].code, 'ECONNRESET');
  } finally {
    clearInterval(writing);
  }
});

const inRing = (id: number): Buffer => frameOf(DATA, { flags: IN_RING, id });

/** Each slot has 8 KiB of the ring. */
const busySlots = 400;

for (const [what, frames, says] of [
  ['more bytes than fit in a slot', inRing(8193), /8193 announced bytes/],
  ['the most bytes', inRing(2 ** 32 - 1), /4294967295 announced bytes/],
  ['no bytes', inRing(0), /0 announced bytes/],
  ['bytes after a frame', Buffer.concat([frameOf(DATA), inRing(10)]), /0x2/],
  ['a second part of a slot', Buffer.concat([inRing(10), inRing(10)]), /0x2/],
] as const)
  test(`a busy stream with ${what} in the ring ends in EPROTO`, async () => {
    // The peer returns no credits for its received slots.
    const server = createServer({ socket: { slots: busySlots } }, (socket) => socket.resume());
    const next = once(server, 'connection') as Promise<[Socket]>;
    using peer = await RawPeer.connect(await listening(server), encodeHello(streaming));
    const [socket] = await next;
    const failed = once(socket, 'error') as Promise<[NetError]>;
    for (let n = 0; n < 200; n += 1) peer.send(frameOf(DATA, { payload: Buffer.alloc(4080) }));
    await peer.until(({ received }) => received.some((frame) => frame[0] === RING));
    peer.send(frames);
    const [error] = await failed;
    assert.match(error.message, says);
  });

test('invalid sizes are rejected with their limits', async () => {
  for (const options of [
    { slots: 0 },
    { slots: 65_536 },
    { slotBytes: 10 },
    { slotBytes: 1.5 },
    { maxRequests: -1 },
  ])
    assert.match(
      (await rejection(connectChannel(1, '127.0.0.1', options))).message,
      /must be an integer (?:from|of at least)/,
    );
});

test.run();
