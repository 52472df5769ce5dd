/** Valkey's RDMA transport (examples/valkey) and peers that violate its protocol, in both roles. Each loses only its own connection. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectValkey } from '../../examples/valkey/connect.js';
import { TransferStream } from '../../examples/valkey/transfer-stream.js';
import { ValkeyServer } from '../../examples/valkey/valkey-server.js';
import { readCounters } from '../../kernel-bridge/index.js';
import { DeviceType, WcStatus, WvOpcode } from '../../winverbs/index.js';
import { RespClient } from '../helpers/resp-client.js';
import { command, Opcode, ValkeyPeer } from '../helpers/valkey-peer.js';
import { failure, until } from '../helpers/valkey-scene.js';
import { HANG_MS, within } from '../helpers/within.js';

const test = suite('valkey hostile');

/** A violation by a peer after both sides have described their buffers, and the resulting error of the other side. */
interface Attack {
  readonly name: string;
  run(peer: ValkeyPeer): void | Promise<void>;
  readonly code: 'EPROTO' | 'ECONNRESET';
  readonly says: RegExp;
  /** The only role that rejects it: a server, or a client. */
  readonly only?: 'server' | 'client';
}

const register = (length: number, address = 4096n): Buffer =>
  command(Opcode.REGISTER, { address, length, rkey: 1 });

const attacks: readonly Attack[] = [
  { name: 'a command of 31 bytes', run: (p) => p.send(Buffer.alloc(31)), code: 'EPROTO', says: /31 bytes/ },
  { name: 'a command of 1 byte', run: (p) => p.send(Buffer.alloc(1)), code: 'EPROTO', says: /1 bytes/ },
  {
    name: 'a command of 33 bytes',
    run: (p) => p.send(Buffer.alloc(33)),
    code: 'ECONNRESET',
    says: /status 1\b/,
  },
  { name: 'opcode 4', run: (p) => p.send(command(4)), code: 'EPROTO', says: /opcode 4/ },
  { name: 'the last opcode', run: (p) => p.send(command(0xffff)), code: 'EPROTO', says: /opcode 65535/ },
  {
    name: 'a feature query to a client',
    run: (p) => p.send(command(Opcode.GET_FEATURE)),
    code: 'EPROTO',
    says: /opcode 0/,
    only: 'client',
  },
  {
    name: 'features for a client',
    run: (p) => p.send(command(Opcode.SET_FEATURE)),
    code: 'EPROTO',
    says: /opcode 1/,
    only: 'client',
  },
  {
    name: 'unknown features',
    run: (p) => p.send(command(Opcode.SET_FEATURE, { rkey: 1 })),
    code: 'EPROTO',
    says: /features/,
    only: 'server',
  },
  { name: 'a buffer of no bytes', run: (p) => p.send(register(0)), code: 'EPROTO', says: /0 bytes/ },
  { name: 'a second buffer', run: (p) => p.name(), code: 'EPROTO', says: /before the last one was full/ },
  {
    name: 'a count beyond the buffer',
    run: (p) => p.write(Buffer.alloc(0), 0, p.remoteBytes + 1),
    code: 'EPROTO',
    says: /more bytes/,
  },
  {
    name: 'the largest count',
    run: (p) => p.write(Buffer.alloc(0), 0, 0xffff_ffff),
    code: 'EPROTO',
    says: /more bytes/,
  },
  {
    name: 'counts whose sum is beyond the buffer',
    run: (p) => {
      for (let n = 0; n < 2; n += 1) p.write(Buffer.from('\n'), 0, Math.floor(p.remoteBytes / 2) + 1);
    },
    code: 'EPROTO',
    says: /more bytes/,
  },
  {
    name: 'a Write beyond the buffer',
    run: (p) => p.write(Buffer.alloc(2), p.remoteBytes - 1),
    code: 'ECONNRESET',
    says: /lost/,
  },
  {
    name: 'a Write after the end of the buffer, without a count',
    run: (p) => p.write(Buffer.alloc(8), p.remoteBytes, undefined),
    code: 'ECONNRESET',
    says: /lost/,
  },
  {
    name: 'a Write with another key',
    run: (p) => p.write(Buffer.alloc(8), 0, 8, (p.remote!.rkey ^ 0x100) >>> 0),
    code: 'ECONNRESET',
    says: /lost/,
  },
];

for (const { name, run, code, says } of attacks.filter(({ only }) => only !== 'server')) {
  test(`a server that sends ${name}`, async () => {
    const listener = ValkeyPeer.listen();
    const one = connectValkey({ port: listener.port, receiveBytes: 8192 });
    const ended = new Promise<Error & { code?: string }>((resolve) => one.once('error', resolve));
    const peer = await listener.next();
    await peer.named();
    peer.name();
    await run(peer);
    const error = await within(ended, HANG_MS, () => new Error('no error'));
    assert.is(error.code, code, error.message);
    assert.match(error.message, says);
    assert.ok(one.destroyed);
    await peer.close();
    listener.close();
    await until(() => readCounters().objects.qp === 0);
  });
}

test('a flood does not block the event loop', async () => {
  // Endless counts of zero bytes: each poll returns a full batch.
  const completion = { status: WcStatus.SUCCESS, opcode: WvOpcode.RECEIVE_RDMA_WRITE, context: 0 };
  let polls = 0;
  const cq = {
    poll: (batch: object[], most: number) => {
      assert.ok(++polls < 100, 'all polls in one turn');
      batch.splice(0, most, ...Array.from({ length: most }, () => ({ ...completion, immediateData: 0 })));
      return most;
    },
  };
  const qp = { modify: () => {}, postReceive: () => {}, send: () => {} };
  const pd = {
    createConnectQueuePair: () => qp,
    registerMemory: () => ({ address: 1, rkey: 1 }),
  };
  const device = {
    query: () => ({ deviceType: DeviceType.INFINIBAND }),
    createCompletionQueue: () => cq,
    allocateProtectionDomain: () => pd,
    [Symbol.asyncDispose]: async () => {},
  };
  const endpoint = {
    keepQueuePairOnDisconnect: () => {},
    notifyDisconnect: () => new Promise(() => {}),
    disconnect: async () => {},
    release: () => {},
  };
  const stream = new TransferStream({});
  const failed: Error[] = [];
  stream.on('error', (error) => failed.push(error));
  void stream.open(endpoint as never, device as never, async () => {});
  for (let turn = 0; turn < 10; turn += 1) {
    polls = 0;
    await new Promise(setImmediate);
  }
  assert.equal(failed, []);
  assert.ok(polls > 0);
  stream.destroy();
});

test('an iWARP device, which has no immediate data, is refused before anything is connected', async () => {
  let released = 0;
  const release = () => {
    released += 1;
  };
  const device = {
    query: () => ({ deviceType: DeviceType.IWARP }),
    [Symbol.asyncDispose]: async () => release(),
  };
  const endpoint = { disconnect: async () => {}, release };
  const stream = new TransferStream({});
  const failed = failure(stream);
  let connects = 0;
  await stream.open(endpoint as never, device as never, async () => {
    connects += 1;
  });
  const error = await failed;
  assert.is(error.code, 'ENOTSUP');
  assert.match(error.message, /iWARP/);
  assert.is(connects, 0);
  await until(() => released === 2);
});

test('clients that violate the protocol lose their connections, and others continue', async () => {
  const server = new ValkeyServer({ port: 0, receiveBytes: 8192 });
  const good = new RespClient(connectValkey({ port: server.port }));
  assert.is(await good.request('SET', 'k', 'v'), '+OK');
  for (const { name, run } of attacks.filter(({ only }) => only !== 'client')) {
    const peer = await ValkeyPeer.connect(server.port);
    peer.name();
    await until(() => server.clients === 2);
    await run(peer);
    await peer.ended();
    await until(() => server.clients === 1);
    await peer.close();
    assert.equal(await good.request('GET', 'k'), Buffer.from('v'), name);
  }
  good.stream.destroy();
  server.close();
  await until(() => readCounters().objects.qp === 0);
});

test('a client that describes no buffer or does not read replies gets none, and others continue', async () => {
  const server = new ValkeyServer({ port: 0, receiveBytes: 8192, sendBytes: 8192 });
  const good = new RespClient(connectValkey({ port: server.port }));
  const silent = await ValkeyPeer.connect(server.port);
  // Sends requests without a buffer for their replies, until the server stops reading them.
  const pings = Buffer.from('PING\r\n'.repeat(Math.floor(silent.remoteBytes / 6)));
  silent.write(pings);
  for (let n = 0; n < 100; n += 1) assert.is(await good.request('PING'), '+PONG');
  // Describes a buffer that is smaller than one reply. The rest waits.
  silent.name(3);
  let come = 0;
  while (come < 3) {
    const arrival = await silent.next();
    if ('count' in arrival) come += arrival.count;
  }
  assert.equal(Buffer.from(silent.buffer.bytes.subarray(0, 3)), Buffer.from('+PO'));
  assert.is(await good.request('PING'), '+PONG');
  await silent.close();
  await until(() => server.clients === 1);
  good.stream.destroy();
  server.close();
});

test('a server replies to a feature query with the requested features, none of them supported', async () => {
  const server = new ValkeyServer({ port: 0 });
  const peer = await ValkeyPeer.connect(server.port);
  const question = command(Opcode.GET_FEATURE);
  question.writeUInt16BE(0x1234, 2);
  peer.send(question);
  peer.send(command(Opcode.SET_FEATURE));
  const answer = await peer.next();
  assert.ok('command' in answer);
  assert.equal(answer.command, question);
  await peer.close();
  server.close();
});

/** An invalid request, and its reply, after which the connection ends. */
const nonsense: readonly [bytes: string, reply: RegExp][] = [
  ['*99999999\r\n', /invalid multibulk length/],
  ['*-1\r\n', /invalid multibulk length/],
  ['*1x\r\n', /invalid multibulk length/],
  ['*1\r\n$99999999999\r\n', /invalid bulk length/],
  ['*1\r\n$-1\r\n', /invalid bulk length/],
  ['*1\r\n$1001\r\n', /invalid bulk length/],
  ['*2\r\n$600\r\n'.concat('x'.repeat(600), '\r\n$600\r\n'), /too big request/],
  ['*1\r\n:5\r\n', /expected '\$', got ':'/],
  ['x'.repeat(5000), /too big inline request/],
  [`*1\r\n$${'1'.repeat(5000)}`, /too big inline request/],
];

test('bytes that are not requests get an error reply, and the connection ends', async () => {
  const server = new ValkeyServer({ port: 0, requestBytes: 1000 });
  for (const [bytes, reply] of nonsense) {
    const one = new RespClient(connectValkey({ port: server.port }));
    assert.match(String(await one.send(Buffer.from(bytes))), reply);
    await until(() => one.stream.closed);
  }
  // An empty array and empty lines are not errors and get no replies.
  const one = new RespClient(connectValkey({ port: server.port }));
  assert.is(await one.send(Buffer.from('*0\r\n\r\n   \r\n*1\r\n$4\r\nPING\r\n')), '+PONG');
  one.stream.destroy();
  await until(() => server.clients === 0);
  server.close();
});

test.run();
