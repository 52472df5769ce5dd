/** ND SPI v1 through the whole stack: both sides in this process, over 127.0.0.1. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, take, takeOne, textOf } from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, SideV1 } from '../../nd/cli/sides/v1.js';
import { type NdConnectionData, NdMwDescriptor, NdOpFlag, Status, statusName } from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome, statusesOf } from '../helpers/outcome.js';

const test = suite<{ host: HostV1 }>('ND v1 in one process');
const { ALLOW_READ, ALLOW_WRITE, SILENT_SUCCESS, SEND_AND_SOLICIT_EVENT } = NdOpFlag;

test.before((context) => {
  context.host = new HostV1();
});
test.after(({ host }) => {
  host.release();
});

/** The window a peer may work on: the first 64 KiB. */
function open(side: SideV1, flags: number, length = 65_536): NdMwDescriptor {
  const window = side.adapter.createMemoryWindow();
  return side.endpoint.bind(newResult('bind'), side.memory, window, 0, length, flags);
}

test('the address list has what adapters can be opened by', ({ host }) => {
  const list = host.provider.queryAddressList();
  assert.ok(list.some(({ address }) => address === ADDRESS));
  for (const address of list) host.provider.openAdapter(address).release();
});

test('private data and read limits travel both ways', async ({ host }) => {
  const active = host.newSide({ inboundReadLimit: 3, outboundReadLimit: 5 });
  const passive = host.newSide({ inboundReadLimit: 4, outboundReadLimit: 16 });
  const heard: NdConnectionData[] = [];
  await host.join(active, passive, {
    connect: { privateData: new TextEncoder().encode('from the active side') },
    accept: { privateData: new TextEncoder().encode('from the passive side') },
    onRequest: () => heard.push(passive.connector.getConnectionData()),
    onReply: () => heard.push(active.connector.getConnectionData()),
  });
  const [offer, reply] = heard as [NdConnectionData, NdConnectionData];
  assert.is(textOf(offer.privateData), 'from the active side');
  assert.is(textOf(reply.privateData), 'from the passive side');
  assert.equal([offer.inboundReadLimit, offer.outboundReadLimit], [5, 3]);
  assert.equal([reply.inboundReadLimit, reply.outboundReadLimit], [3, 4]);
  assert.is(passive.connector.getLocalAddress().port, host.listener.port);
  assert.equal(passive.connector.getPeerAddress(), active.connector.getLocalAddress());
  assert.equal(active.connector.getPeerAddress(), { family: 4, address: ADDRESS, port: host.listener.port });
  active.release();
  passive.release();
});

test('messages arrive in order, each in one Receive, with their lengths', async ({ host }) => {
  const { active, passive } = await host.pair();
  const lengths = [0, 1, 64, 1000, 4096, 70_000];
  for (const [i] of lengths.entries()) passive.receive(i, passive.sge(i * 100_000, 100_000));
  for (const [i, length] of lengths.entries()) {
    active.bytes.fill(i + 1, i * 100_000, i * 100_000 + length);
    active.endpoint.send(newResult(i), active.sge(i * 100_000, length));
  }
  const sent = await take(active.outbound, lengths.length);
  assert.equal(
    sent.map(({ status, bytesTransferred }) => [status, bytesTransferred]),
    lengths.map((length) => [Status.SUCCESS, length]),
  );
  const received = await take(passive.inbound, lengths.length);
  assert.equal(
    received.map(({ context, bytesTransferred }) => [context, bytesTransferred]),
    lengths.map((length, i) => [i, length]),
  );
  for (const [i, length] of lengths.entries()) {
    const place = passive.bytes.subarray(i * 100_000, i * 100_000 + 100_000);
    assert.ok(place.subarray(0, length).every((byte) => byte === i + 1));
    assert.ok(place.subarray(length).every((byte) => byte === 0));
  }
  active.release();
  passive.release();
});

test('unregistered bytes go inline, and are free as soon as the call returns', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.receive('r', passive.sge(0, 100));
  const bytes = new TextEncoder().encode('not registered');
  active.endpoint.send(newResult(), [{ memory: bytes, offset: 4, length: 10 }]);
  bytes.fill(0);
  const received = await takeOne(passive.inbound);
  assert.is(textOf(passive.bytes.subarray(0, received.bytesTransferred)), 'registered');
  active.release();
  passive.release();
});

test('a window lets the peer write and read, silently and aloud', async ({ host }) => {
  const { active, passive } = await host.pair();
  const descriptor = open(passive, ALLOW_READ | ALLOW_WRITE);
  // In the form that messages carry.
  const remote = NdMwDescriptor.decode(descriptor.encode());
  for (let i = 0; i < 65_536; i += 1) active.bytes[i] = (i * 7) & 0xff;
  active.endpoint.write(newResult('silent'), active.sge(0, 30_000), remote, 0, SILENT_SUCCESS);
  active.endpoint.write(newResult('aloud'), active.sge(30_000, 35_536), remote, 30_000);
  assert.is((await takeOne(active.outbound)).context, 'aloud');
  assert.is(Buffer.compare(passive.bytes.subarray(0, 65_536), active.bytes.subarray(0, 65_536)), 0);

  passive.bytes.fill(0x5a, 100, 200);
  active.endpoint.read(newResult('read'), active.sge(500_000, 100), remote, 100);
  const read = await takeOne(active.outbound);
  assert.equal([read.status, read.bytesTransferred], [Status.SUCCESS, 100]);
  assert.ok(active.bytes.subarray(500_000, 500_100).every((byte) => byte === 0x5a));
  assert.is(active.bytes[500_100], 0);
  active.release();
  passive.release();
});

const violations: [string, (active: SideV1, passive: SideV1) => void][] = [
  [
    'writing through a window that only lets read',
    (active, passive) => active.endpoint.write(newResult(), active.sge(0, 100), open(passive, ALLOW_READ), 0),
  ],
  [
    'reading through a window that only lets write',
    (active, passive) => active.endpoint.read(newResult(), active.sge(0, 100), open(passive, ALLOW_WRITE), 0),
  ],
  [
    'reading one byte beyond a window',
    (active, passive) =>
      active.endpoint.read(newResult(), active.sge(0, 100), open(passive, ALLOW_READ, 1000), 901),
  ],
  [
    'writing with a made-up token',
    (active, passive) => {
      const { base, length, token } = open(passive, ALLOW_WRITE);
      const forged = new NdMwDescriptor(base, length, (token ^ 0x5a5a5a00) >>> 0);
      active.endpoint.write(newResult(), active.sge(0, 100), forged, 0);
    },
  ],
];

for (const [what, violate] of violations) {
  test(`${what} is REMOTE_ERROR and ends the connection on both sides`, async ({ host }) => {
    const { active, passive } = await host.pair();
    active.receive('a', active.sge(0, 100));
    passive.receive('p', passive.sge(600_000, 100));
    const gone = passive.connector.notifyDisconnect();
    passive.bytes.fill(0x11, 0, 1000);
    violate(active, passive);
    active.endpoint.send(newResult('after'), active.sge(0, 8));
    assert.equal(await statusesOf(active.outbound, 2), ['REMOTE_ERROR', 'CANCELED']);
    assert.equal(await statusesOf(active.inbound, 1), ['CANCELED']);
    assert.equal(await statusesOf(passive.inbound, 1), ['CANCELED']);
    await gone;
    assert.ok(
      passive.bytes.subarray(0, 1000).every((byte) => byte === 0x11),
      'nothing was written',
    );
    active.release();
    passive.release();
  });
}

test('after Invalidate the token is worth nothing', async ({ host }) => {
  const { active, passive } = await host.pair();
  const window = passive.adapter.createMemoryWindow();
  const first = passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  passive.endpoint.invalidate(newResult(), window);
  const second = passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  assert.is.not(first.token, second.token);
  assert.equal(await statusesOf(passive.outbound, 3), ['SUCCESS', 'SUCCESS', 'SUCCESS']);
  active.endpoint.read(newResult(), active.sge(0, 100), second, 0);
  assert.equal(await statusesOf(active.outbound, 1), ['SUCCESS']);
  active.endpoint.read(newResult(), active.sge(0, 100), first, 0);
  assert.equal(await statusesOf(active.outbound, 1), ['REMOTE_ERROR']);
  active.release();
  passive.release();
});

test('sendAndInvalidate ends the peer’s window and brings its result there', async ({ host }) => {
  const { active, passive } = await host.pair();
  const window = passive.adapter.createMemoryWindow(newResult('window'));
  const remote = passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  passive.receive('receive', passive.sge(1000, 100));
  active.endpoint.read(newResult(), active.sge(0, 100), remote, 0);
  active.endpoint.sendAndInvalidate(newResult(), active.sge(0, 5), remote, NdOpFlag.READ_FENCE);
  assert.equal(await statusesOf(active.outbound, 2), ['SUCCESS', 'SUCCESS']);
  const contexts = (await take(passive.inbound, 2)).map(({ context }) => context);
  assert.equal(contexts, ['receive', 'window']);
  // It is free for another Bind, and the old token is invalid.
  passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  active.endpoint.read(newResult(), active.sge(0, 100), remote, 0);
  assert.equal(await statusesOf(active.outbound, 1), ['REMOTE_ERROR']);
  active.release();
  passive.release();
});

test('Invalidate of an unbound window is INVALID_DEVICE_REQUEST and ends the connection', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const gone = passive.connector.notifyDisconnect();
  active.endpoint.invalidate(newResult(), active.adapter.createMemoryWindow());
  assert.equal(await statusesOf(active.outbound, 1), ['INVALID_DEVICE_REQUEST']);
  await gone;
  active.release();
  passive.release();
});

test('as the guides say: a Read with an outbound limit of 0 is ACCESS_VIOLATION', async ({ host }) => {
  const { active, passive } = await host.pair({ active: { outboundReadLimit: 0 } });
  const window = passive.adapter.createMemoryWindow();
  const remote = passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  active.endpoint.read(newResult(), active.sge(0, 8), remote, 0);
  assert.equal(await statusesOf(active.outbound, 1), ['ACCESS_VIOLATION']);
  active.release();
  passive.release();
});

test('a connect that failed leaves the connector its port, for a next one that asks for none', async ({
  host,
}) => {
  const side = new SideV1(host.adapter);
  const nobody = '127.0.0.1:9';
  assert.is(await outcome(side.connector.connect(side.endpoint, nobody)), Status.CONNECTION_REFUSED);
  const { port } = side.connector.getLocalAddress();
  assert.is(await outcome(side.connector.connect(side.endpoint, nobody)), Status.CONNECTION_REFUSED);
  assert.is(side.connector.getLocalAddress().port, port);
  side.release();
});

test('memory with a bound window cannot be deregistered until the window is gone', async ({ host }) => {
  const { active, passive } = await host.pair();
  const window = passive.adapter.createMemoryWindow();
  passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, ALLOW_READ);
  assert.equal(await statusesOf(passive.outbound, 1), ['SUCCESS']);
  for (let call = 0; call < 300; call++) {
    const { completed, status } = host.adapter.deregisterMemory(passive.memory);
    assert.equal([completed, status], [true, Status.DEVICE_BUSY], `call ${call}: there when it returns`);
  }
  passive.endpoint.invalidate(newResult(), window);
  assert.equal(await statusesOf(passive.outbound, 1), ['SUCCESS']);
  assert.is(await outcome(host.adapter.deregisterMemory(passive.memory)), Status.SUCCESS);
  assert.is(
    statusOf(() => host.adapter.deregisterMemory(passive.memory)),
    Status.INVALID_HANDLE,
  );
  active.release();
  passive.release();
});

test('a window dies with its connection: its memory is free, and it can be bound on another', async ({
  host,
}) => {
  const first = await host.pair();
  const window = host.adapter.createMemoryWindow();
  first.passive.endpoint.bind(newResult(), first.passive.memory, window, 0, 100, ALLOW_READ);
  assert.equal(await statusesOf(first.passive.outbound, 1), ['SUCCESS']);
  first.passive.endpoint.flush();
  assert.is(await outcome(host.adapter.deregisterMemory(first.passive.memory)), Status.SUCCESS);
  const second = await host.pair();
  const remote = second.passive.endpoint.bind(newResult(), second.passive.memory, window, 0, 100, ALLOW_READ);
  second.active.endpoint.read(newResult(), second.active.sge(0, 100), remote, 0);
  assert.equal(await statusesOf(second.active.outbound, 1), ['SUCCESS']);
  for (const side of [first.active, first.passive, second.active, second.passive]) side.release();
});

test('a message longer than its Receive: DATA_OVERRUN there, REMOTE_ERROR here, and the end', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  passive.receive('short', passive.sge(0, 99));
  passive.receive('next', passive.sge(0, 99));
  active.endpoint.send(newResult(), active.sge(0, 100));
  assert.equal(await statusesOf(active.outbound, 1), ['REMOTE_ERROR']);
  assert.equal(await statusesOf(passive.inbound, 2), ['DATA_OVERRUN', 'CANCELED']);
  active.release();
  passive.release();
});

test('N8: a late Receive is waited for; a Send that nobody receives ends in TIMEOUT', async ({ host }) => {
  const { active, passive } = await host.pair();
  active.endpoint.send(newResult('late'), active.sge(0, 100));
  passive.receive('r', passive.sge(0, 100));
  assert.equal(await statusesOf(active.outbound, 1), ['SUCCESS']);
  assert.is((await takeOne(passive.inbound)).context, 'r');
  active.endpoint.send(newResult('never'), active.sge(0, 100));
  assert.equal(await statusesOf(active.outbound, 1), ['TIMEOUT']);
  active.release();
  passive.release();
});

for (const length of [1, 1000]) {
  for (const op of ['send', 'receive', 'read', 'write'] as const) {
    test(`${length} bytes of local memory, one beyond a registration: a ${op} is queued, and its result is ACCESS_VIOLATION`, async ({
      host,
    }) => {
      const { active, passive } = await host.pair();
      const { endpoint, bytes } = active;
      const remote = new NdMwDescriptor(passive.memory.address, 1000n, 1);
      const beyond = active.sge(bytes.length - length + 1, length);
      if (op === 'receive') {
        endpoint.receive(newResult(), beyond);
        passive.endpoint.send(newResult(), passive.sge(0, length));
        assert.equal(await statusesOf(active.inbound, 1), ['ACCESS_VIOLATION']);
      } else {
        passive.receive('r', passive.sge(0, 1000));
        if (op === 'send') endpoint.send(newResult(), beyond);
        else endpoint[op](newResult(), beyond, remote, 0);
        assert.equal(await statusesOf(active.outbound, 1), ['ACCESS_VIOLATION']);
        assert.equal(await statusesOf(passive.inbound, 1), ['CANCELED']);
      }
      active.release();
      passive.release();
    });
  }
}

test('local memory up to the end of a registration is sent', async ({ host }) => {
  const { active, passive } = await host.pair();
  const { endpoint, bytes } = active;
  passive.receive('r', passive.sge(0, 4));
  endpoint.send(newResult(), active.sge(bytes.length - 4, 4));
  assert.equal(await statusesOf(active.outbound, 1), ['SUCCESS']);
  assert.is((await takeOne(passive.inbound)).context, 'r');
  active.release();
  passive.release();
});

test('before the connection Receives are taken, and everything else is CONNECTION_INVALID', async ({
  host,
}) => {
  const side = new SideV1(host.adapter);
  side.receive(1, side.sge(0, 100));
  assert.is(
    statusOf(() => side.endpoint.send(newResult(), side.sge(0, 100))),
    Status.CONNECTION_INVALID,
  );
  side.endpoint.flush();
  side.receive(2, side.sge(0, 100));
  assert.equal(
    (await take(side.inbound, 2)).map(({ context, status }) => [context, statusName(status)]),
    [
      [1, 'CANCELED'],
      [2, 'CANCELED'],
    ],
  );
  side.release();
});

test('as many requests as an endpoint has entries, and no more', async ({ host }) => {
  const { active, passive } = await host.pair();
  for (let i = 0; i < 32; i += 1) passive.receive(i, passive.sge(0, 100));
  assert.is(
    statusOf(() => passive.receive(32, passive.sge(0, 100))),
    Status.NO_MORE_ENTRIES,
  );
  for (let i = 0; i < 32; i += 1) active.endpoint.send(newResult(i), active.sge(0, 100));
  assert.is(
    statusOf(() => active.endpoint.send(newResult(), active.sge(0, 100))),
    Status.NO_MORE_ENTRIES,
  );
  assert.equal(
    (await take(active.outbound, 32)).map(({ context }) => context),
    Array.from({ length: 32 }, (_, i) => i),
  );
  active.endpoint.send(newResult(), active.sge(0, 0));
  active.release();
  passive.release();
});

test('notify: solicited events and any', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.receive(1, passive.sge(0, 100));
  passive.receive(2, passive.sge(0, 100));
  const solicited = passive.inbound.notify('solicited');
  active.endpoint.send(newResult(), active.sge(0, 10));
  await takeOne(active.outbound);
  assert.is(solicited.completed, false);
  active.endpoint.send(newResult(), active.sge(0, 10), SEND_AND_SOLICIT_EVENT);
  await solicited;
  const pending = active.inbound.notify('errors');
  active.inbound.cancelOverlappedRequests();
  assert.is(pending.completed, true);
  assert.is(await outcome(pending), Status.CANCELED);
  active.release();
  passive.release();
});

test('a whole connection with blocking calls only: no turn of the event loop', async ({ host }) => {
  const active = new SideV1(host.adapter);
  const passive = new SideV1(host.adapter);
  const wait = { wait: true };
  passive.receive('r', passive.sge(0, 100));
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.target);
  requested.getResult(wait);
  const accepted = passive.connector.accept(passive.endpoint);
  connected.getResult(wait);
  active.connector.completeConnect().getResult(wait);
  accepted.getResult(wait);
  active.endpoint.send(newResult(), active.sge(0, 10));
  passive.inbound.notify('any').getResult(wait);
  const gone = passive.connector.notifyDisconnect();
  active.connector.disconnect().getResult(wait);
  gone.getResult(wait);
  passive.connector.disconnect().getResult(wait);
  active.release();
  passive.release();
});

test('what is left in a queue after its endpoint went can still be read', async ({ host }) => {
  const { active, passive } = await host.pair();
  for (let i = 0; i < 4; i += 1) active.receive(i, active.sge(0, 100));
  active.endpoint.release();
  assert.equal(await statusesOf(active.inbound, 4), Array(4).fill('CANCELED'));
  active.release();
  passive.release();
});

test('everything released in the wrong order, with requests outstanding, harms nobody', async ({ host }) => {
  const adapter = host.provider.openAdapter(ADDRESS);
  const side = new SideV1(adapter);
  side.receive(1, side.sge(0, 100));
  const notification = side.inbound.notify('any');
  adapter.release();
  side.inbound.release();
  side.outbound.release();
  assert.is(await outcome(notification), Status.CANCELED);
  side.endpoint.release();
  side.connector.release();
  const { active, passive } = await host.pair();
  active.release();
  passive.release();
});

test.run();
