// Errors of clients and the network, through the whole stack: each ends in its status, and another connection of the
// adapter continues with its data intact. Further cases: nd-loopback, winverbs-loopback, fuzz.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { LOOPBACK as ADDRESS, takeOne } from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, SideV1 } from '../../nd/cli/sides/v1.js';
import { NdOpFlag, Status, statusName } from '../../nd/index.js';
import { WvSend } from '../../winverbs/index.js';
import { connectedPair as connectedVerbs, take } from '../helpers/loopback.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { needing } from '../helpers/needs.js';
import { readCapture } from '../helpers/pcap.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { endPeers, Peer, PeerError } from '../helpers/peer/peer.js';

const { ALLOW_READ, ALLOW_WRITE } = NdOpFlag;
const ROCE_PORT = 4791;

interface Context {
  host: HostV1;
  bystander: { active: SideV1; passive: SideV1 };
}
const test = suite<Context>('bad input');

test.before(async (context) => {
  context.host = new HostV1();
  context.bystander = await context.host.pair();
});
/** The bystander carries a message of many packets after each test. */
test.after.each(async ({ bystander: { active, passive } }) => {
  const message = randomBytes(70_000);
  active.bytes.set(message);
  passive.bytes.fill(0, 0, message.length);
  passive.receive('r', passive.sge(0, message.length));
  active.endpoint.send(newResult(), active.sge(0, message.length));
  assert.is((await takeOne(active.outbound)).status, Status.SUCCESS);
  assert.is((await takeOne(passive.inbound)).bytesTransferred, message.length);
  assert.is(message.compare(passive.bytes, 0, message.length), 0);
});
test.after(async ({ host, bystander }) => {
  bystander.active.release();
  bystander.passive.release();
  host.release();
  await endPeers();
});

for (const what of ['read', 'write'] as const) {
  test(`a ${what} may end where the window ends, and not one byte later`, async ({ host }) => {
    const { active, passive } = await host.pair();
    const window = passive.adapter.createMemoryWindow();
    const rights = ALLOW_READ | ALLOW_WRITE;
    const remote = passive.endpoint.bind(newResult(), passive.memory, window, 8, 1000, rights);
    passive.bytes.fill(0x33, 0, 2000);
    active.bytes.fill(0x33, 0, 2000);
    active.endpoint[what](newResult(), active.sge(0, 1000), remote, 0);
    active.endpoint[what](newResult(), active.sge(0, 1), remote, 999);
    active.bytes.fill(0x44, 1000, 2000);
    active.endpoint[what](newResult(), active.sge(1000, 1), remote, 1000);
    const statuses = (await take(active.outbound, 3)).map(({ status }) => statusName(status));
    assert.equal(statuses, ['SUCCESS', 'SUCCESS', 'REMOTE_ERROR']);
    assert.ok(passive.bytes.subarray(0, 2000).every((byte) => byte === 0x33));
    assert.ok(active.bytes.subarray(1000, 2000).every((byte) => byte === 0x44));
    active.release();
    passive.release();
  });
}

test('a window of one connection is worth nothing on another', async ({ host }) => {
  const [one, two] = [await host.pair(), await host.pair()];
  const window = host.adapter.createMemoryWindow();
  const remote = one.passive.endpoint.bind(newResult(), one.passive.memory, window, 0, 100, ALLOW_READ);
  assert.is((await takeOne(one.passive.outbound)).status, Status.SUCCESS);
  two.active.endpoint.read(newResult(), two.active.sge(0, 100), remote, 0);
  assert.is((await takeOne(two.active.outbound)).status, Status.REMOTE_ERROR);
  one.active.endpoint.read(newResult(), one.active.sge(0, 100), remote, 0);
  assert.is((await takeOne(one.active.outbound)).status, Status.SUCCESS);
  for (const side of [one.active, one.passive, two.active, two.passive]) side.release();
});

test('objects of another adapter instance, and released ones, are refused', async ({ host, bystander }) => {
  const adapter = host.provider.openAdapter(ADDRESS);
  const foreign = new SideV1(adapter);
  const { active } = bystander;
  const post = () => active.endpoint.send(newResult(), foreign.sge(0, 100));
  assert.is(statusOf(post), Status.INVALID_HANDLE);
  const bind = () =>
    active.endpoint.bind(newResult(), active.memory, adapter.createMemoryWindow(), 0, 8, ALLOW_READ);
  assert.is(statusOf(bind), Status.INVALID_PARAMETER_3);
  const own = new SideV1(host.adapter);
  assert.is(
    statusOf(() => own.connector.connect(foreign.endpoint, host.target)),
    Status.INVALID_PARAMETER_1,
  );
  own.release();
  assert.is.not(
    statusOf(() => own.connector.connect(own.endpoint, host.target)),
    Status.SUCCESS,
  );
  assert.is.not(
    statusOf(() => own.receive(0, own.sge(0, 8))),
    Status.SUCCESS,
  );
  foreign.release();
  adapter.release();
});

test('private data of one byte too many is INVALID_BUFFER_SIZE everywhere; the connection can go on', async ({
  host,
}) => {
  const { maxCallerData, maxCalleeData } = host.adapter.query();
  const [active, passive] = [new SideV1(host.adapter), new SideV1(host.adapter)];
  const tooMuch = new Uint8Array(maxCalleeData + 1);
  const connect = (length: number) =>
    active.connector.connect(active.endpoint, host.target, {
      privateData: new Uint8Array(length).fill(7),
    });
  assert.is(
    statusOf(() => connect(maxCallerData + 1)),
    Status.INVALID_BUFFER_SIZE,
  );
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = connect(maxCallerData);
  await requested;
  const { privateData } = passive.connector.getConnectionData();
  assert.ok(privateData.length >= maxCallerData);
  assert.ok(privateData.subarray(0, maxCallerData).every((byte) => byte === 7));
  assert.is(
    statusOf(() => passive.connector.accept(passive.endpoint, tooMuch)),
    Status.INVALID_BUFFER_SIZE,
  );
  assert.is(
    statusOf(() => passive.connector.reject(tooMuch)),
    Status.INVALID_BUFFER_SIZE,
  );
  const most = tooMuch.fill(9).subarray(1);
  const accepted = passive.connector.accept(passive.endpoint, most);
  await connected;
  assert.is(maxCalleeData, 148);
  assert.equal(active.connector.getConnectionData().privateData, most);
  await active.connector.completeConnect();
  await accepted;
  active.release();
  passive.release();
});

test('addresses that are none, or lead nowhere', async ({ host }) => {
  for (const address of ['', 'nonsense', '0.0.0.0', '192.0.2.77', '999.1.1.1']) {
    assert.is(
      statusOf(() => host.provider.openAdapter(address)),
      Status.INVALID_ADDRESS,
    );
  }
  const side = new SideV1(host.adapter);
  for (const address of ['nonsense:1', '127.0.0.1:70000']) {
    assert.is(
      statusOf(() => side.connector.connect(side.endpoint, address)),
      Status.INVALID_ADDRESS,
      address,
    );
  }
  side.release();
});

needing(test, 'namespaces')('an address at which nobody answers ends Connect in a bounded time', async () => {
  const hosts = await TwoHosts.start();
  try {
    const [here] = hosts.hosts;
    const kernel = { cm: { responseTimeoutCode: 12, maxRetries: 3 } };
    const peer = await Peer.start({ kernel, by: here.by });
    const attempt = (to: string) =>
      peer.call('connect', { as: to, layer: 'nd', from: here.address, to, port: 1 }).then(
        () => 'SUCCESS',
        (error: unknown) => (error instanceof PeerError ? error.status : String(error)),
      );
    assert.is(await attempt('10.99.0.9'), 'TIMEOUT');
    assert.match((await attempt('192.0.2.1')) ?? '', /NETWORK_UNREACHABLE|HOST_UNREACHABLE|BAD_NETWORK_NAME/);
  } finally {
    hosts.end();
  }
});

test('random bytes and damaged packets on the UDP port disturb no connection, and are counted', async () => {
  const { a, b, release } = await connectedVerbs();
  const templates = readCapture('rc-all-ops.pcap').slice(0, 60);
  const sockets = Array.from({ length: 32 }, () => createSocket('udp4'));
  const dropped = (): number => {
    const { hca } = readCounters();
    return hca.rx_icrc_errors! + hca.wire_rx_bad_length!;
  };
  const before = dropped();
  for (let round = 0; round < templates.length; round += 1) {
    const sends = sockets.map((socket, n) => {
      let bytes = randomBytes(1 + ((round * 61 + n * 7) % 1400));
      if (n % 2 === 0) {
        // A real packet except for one bit of its ICRC, for a busy queue pair.
        bytes = Buffer.from(templates[round]!.ip.subarray(28));
        bytes.writeUIntBE(n % 4 === 0 ? a.qp.qpn : b.qp.qpn, 5, 3);
        bytes[bytes.length - 1]! ^= 1 << (n % 8);
      }
      return new Promise((resolve) => socket.send(bytes, ROCE_PORT, ADDRESS, resolve));
    });
    a.memory.writeUInt32LE(round, 0);
    b.qp.postReceive(round, [{ region: b.region, offset: 0, length: 4000 }]);
    a.qp.send(round, [{ region: a.region, offset: 0, length: 4000 }], WvSend.SIGNALED);
    const [[received], [sent]] = await Promise.all([take(b.cq, 1), take(a.cq, 1), ...sends]);
    assert.equal([received!.status, sent!.status, received!.context], [0, 0, round]);
    assert.is(b.memory.readUInt32LE(0), round);
  }
  assert.ok(dropped() > before, 'some of it has come here');
  for (const socket of sockets) socket.close();
  release();
});

test.run();
