import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ListenerLimits } from '../../kernel-bridge/kernel/cm/listener-table.js';
import { type CmBody, emitMad, ipCmHeader } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { ipv4, Network, SidrPair, UDP_QKEY, UDP_SERVICE } from '../helpers/cm-network.js';
import { madOf, readCapture } from '../helpers/pcap.js';

const NOTHING = new Uint8Array(0);
const TRY_MS = 4295;

test('a lookup returns QPN, Q_Key and private data, and leaves no state', () => {
  const pair = new SidrPair();
  pair.server.pkeys = [0xffff, 0x8001];
  pair.onTaken = ({ inquiry }) => inquiry.accept(0x15, 0x1122_3344, Uint8Array.of(7, 8));
  const pending = pair.lookUp({ privateData: Uint8Array.of(1, 2, 3), pkey: 0x8001 });
  pair.network.clock.advance(5);
  assert.equal(pair.network.log, ['client SIDR_REQ', 'server SIDR_REP']);
  assert.equal(pending.events, ['answered 0']);
  assert.equal([pending.reply?.qpn, pending.reply?.qkey], [0x15, 0x1122_3344]);
  assert.equal(pending.reply?.privateData.length, 136);
  assert.equal([...pending.reply!.privateData.slice(0, 3)], [7, 8, 0]);
  const { request } = pair.taken[0]!;
  assert.equal(request.privateData.length, 180);
  assert.equal([...request.privateData.slice(0, 4)], [1, 2, 3, 0]);
  assert.equal([request.localPort, request.peerPort, request.pkey], [0x1c06, 0xa290, 0x8001]);
  assert.equal([...request.peerAddress], [...pair.client.gid]);
  assert.equal([...request.path.destination], [...pair.client.gid]);
  assert.equal(pair.end(), []);
});

test('both messages are identical to those of Linux (udaddy)', () => {
  const mads = readCapture('udaddy.pcap').flatMap((packet) => madOf(packet) ?? []);
  const [linuxReq, linuxRep] = [mads.find((m) => m[17] === 0x17)!, mads.find((m) => m[17] === 0x18)!];
  const view = new DataView(linuxReq.buffer, linuxReq.byteOffset);
  const [transactionId, requestId] = [view.getBigUint64(8), view.getUint32(24)];
  const network = new Network();
  // The host of the capture has our addresses. Our messages get its ids.
  const client = network.add('client', ipv4(3), {}, requestId - 1);
  const server = network.add('server', ipv4(2));
  const listener = server.cm.listenForLookups({
    serviceId: UDP_SERVICE,
    address: undefined,
    backlog: 0,
    onRequest: () => listener.takeRequest()?.inquiry.accept(0x15, UDP_QKEY, NOTHING),
  });
  const path = {
    source: client.gid,
    destination: server.gid,
    flowLabel: 0,
    trafficClass: 0,
    hopLimit: 64,
    scopeId: 0,
  };
  client.cm.lookup(
    { serviceId: UDP_SERVICE, path, localPort: 0xa290, pkey: 0xffff, privateData: NOTHING },
    {},
  );
  const ours = Uint8Array.from(network.last('client', 'SIDR_REQ').mad);
  new DataView(ours.buffer).setBigUint64(8, transactionId);
  assert.is(Buffer.from(ours).toString('hex'), Buffer.from(linuxReq).toString('hex'));
  // Linux's request gets Linux's reply.
  server.cm.receive(client.gid, server.gid, 0, linuxReq);
  assert.is(
    Buffer.from(network.last('server', 'SIDR_REP').mad).toString('hex'),
    Buffer.from(linuxRep).toString('hex'),
  );
});

test('a lost request is retransmitted, and a lost reply is repeated without the application', () => {
  const pair = new SidrPair();
  pair.network.lose('client', 'SIDR_REQ', 2);
  pair.network.lose('server', 'SIDR_REP', 1);
  const pending = pair.lookUp();
  pair.network.clock.advance(3 * TRY_MS + 10);
  assert.equal(pending.events, ['answered 0']);
  assert.is(pair.taken.length, 1);
  assert.is(pair.client.cm.counters()['retransmitted.SIDR_REQ'], 3);
  assert.is(pair.server.cm.counters()['retransmitted.SIDR_REP'], 1);
  assert.equal(pair.end(), []);
});

test('a lookup without a reply is sent 16 times and then times out', () => {
  const pair = new SidrPair();
  pair.network.lose('client', 'SIDR_REQ', 100);
  const pending = pair.lookUp();
  pair.network.clock.advance(16 * TRY_MS - 100);
  assert.equal(pending.events, []);
  pair.network.clock.advance(200);
  assert.equal(pending.events, ['timedOut']);
  assert.is(pair.network.log.length, 16);
  assert.equal(pair.end(), []);
});

test('an abandoned lookup ends silently, and its reply is ignored', () => {
  const pair = new SidrPair();
  const pending = pair.lookUp();
  pending.lookup.abandon();
  pair.network.clock.advance(5);
  assert.equal(pending.events, []);
  assert.is(pair.client.cm.counters()['unknown.SIDR_REP'], 1);
  assert.equal(pair.end(), []);
});

test('duplicates that arrive while the application decides count once, and keep the request alive', () => {
  const pair = new SidrPair({ maxRetries: 3 });
  pair.onTaken = undefined;
  const first = pair.lookUp();
  pair.network.clock.advance(3 * TRY_MS + 5);
  assert.equal([pair.taken.length, pair.network.log.length], [1, 4]);
  // The fourth one arrived at 12.9 s. The request waits another 17.2 s, although the peer has given up by then.
  pair.network.clock.advance(4 * TRY_MS - 100);
  assert.equal([first.events, pair.taken[0]!.events], [['timedOut'], []]);
  pair.network.clock.advance(200);
  assert.equal(pair.taken[0]!.events, ['timedOut']);
  pair.taken[0]!.inquiry.accept(0x15, UDP_QKEY, NOTHING);
  assert.is(pair.server.cm.counters()['misused.sidr.accept'], 1);
  assert.equal(pair.end(), []);
});

test('a rejection has status 2 and private data, and an abandoned request is rejected', () => {
  const pair = new SidrPair();
  pair.onTaken = ({ inquiry }) => inquiry.reject(Uint8Array.of(9));
  const rejected = pair.lookUp();
  pair.network.clock.advance(5);
  pair.onTaken = ({ inquiry }) => inquiry.abandon();
  const abandoned = pair.lookUp();
  pair.network.clock.advance(5);
  assert.equal([rejected.events, abandoned.events], [['answered 2'], ['answered 2']]);
  assert.equal([rejected.reply!.qpn, rejected.reply!.privateData[0]], [0, 9]);
  assert.equal(pair.end(), []);
});

test('a lookup for a partition that the port does not belong to is rejected, and a matching one is accepted', () => {
  const pair = new SidrPair();
  pair.server.pkeys = [0xffff, 0x0001];
  const lookups = [0x8002, 0x0001, 0x8001].map((pkey) => pair.lookUp({ pkey }));
  pair.network.clock.advance(5);
  assert.equal(
    lookups.map(({ events }) => events),
    [['answered 2'], ['answered 2'], ['answered 0']],
  );
  assert.equal(pair.end(), []);
});

test('requests beyond the backlog are refused with status 3, and those of a closing listener with 2', () => {
  const pair = new SidrPair({}, 2);
  pair.taking = false;
  const lookups = [pair.lookUp(), pair.lookUp(), pair.lookUp()];
  pair.network.clock.advance(5);
  assert.is(pair.listener.waiting, 2);
  assert.equal(
    lookups.map(({ events }) => events),
    [[], [], ['answered 3']],
  );
  pair.listener.close();
  pair.network.clock.advance(5);
  assert.equal(lookups[0]!.events, ['answered 2']);
  const after = pair.lookUp();
  pair.network.clock.advance(5);
  assert.equal(after.events, ['answered 1']);
  assert.equal(pair.end(), []);
});

test('a listener without its own limit keeps a limited number of requests', () => {
  const pair = new SidrPair();
  pair.taking = false;
  for (let n = 0; n <= ListenerLimits.perListener; n++) pair.lookUp();
  pair.network.clock.advance(5);
  assert.is(pair.listener.waiting, ListenerLimits.perListener);
  assert.is(pair.server.cm.counters()['dropped.sidr.noRoom'], 1);
  assert.is(pair.server.cm.counters()['refused.sidr.3'], undefined);
});

/** Sends a modified valid SIDR_REQ. Returns the status of its reply. */
function statusOf(change: (body: CmBody<'SIDR_REQ'>) => void, pair = new SidrPair()): number | undefined {
  pair.network.lose('client', 'SIDR_REQ', 1);
  pair.lookUp();
  const { message } = pair.network.last('client', 'SIDR_REQ');
  if (message.name !== 'SIDR_REQ') throw new Error(message.name);
  change(message.body);
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, emitMad('SIDR_REQ', 5n, message.body));
  const answer = pair.network.sent.at(-1)?.message;
  return answer?.name === 'SIDR_REP' ? answer.body.status : undefined;
}

const withHeader =
  (change: (header: ReturnType<typeof ipCmHeader.decode>) => void) => (body: CmBody<'SIDR_REQ'>) => {
    const header = ipCmHeader.decode(body.privateData);
    change(header);
    ipCmHeader.encode(header, body.privateData);
  };

const refusals: [string, number, (body: CmBody<'SIDR_REQ'>) => void][] = [
  ['nothing is wrong', 0, () => {}],
  ['no listener for the service', 1, (body) => (body.serviceId += 1n)],
  ['the service is one of connections', 1, (body) => (body.serviceId = 0x0106_1c06n)],
  ['the P_Key fits none of the port', 2, (body) => (body.pkey = 0x8001)],
  ['the address header has another version', 5, withHeader((h) => (h.majorVersion = 1))],
  ['the address header has a minor version', 5, withHeader((h) => (h.minorVersion = 1))],
  ['the address header says IPv6 of IPv4', 2, withHeader((h) => (h.ipVersion = 6))],
  ['the source address is another', 2, withHeader((h) => (h.sourceAddress[15] = 9))],
  ['the destination address is another', 2, withHeader((h) => (h.destinationAddress[15] = 9))],
];
for (const [why, status, change] of refusals) {
  test(`a SIDR_REQ gets status ${status} if ${why}`, () => {
    assert.is(statusOf(change), status);
  });
}

test('a request of another peer with the same id is distinct, and one of a restarted peer ends the old one', () => {
  const pair = new SidrPair();
  pair.onTaken = undefined;
  pair.lookUp();
  pair.network.clock.advance(5);
  const { message } = pair.network.last('client', 'SIDR_REQ');
  const body = (message.name === 'SIDR_REQ' && message.body) as CmBody<'SIDR_REQ'>;
  // From another address, with a matching header, it is another request.
  const third = ipv4(9);
  const other = { ...body, privateData: Uint8Array.from(body.privateData) };
  withHeader((h) => h.sourceAddress.set(third.subarray(12), 12))(other);
  pair.server.cm.receive(third, pair.server.gid, 0, emitMad('SIDR_REQ', message.header.transactionId, other));
  assert.equal(
    pair.taken.map(({ events }) => events),
    [[], []],
  );
  // From the same peer, with another transaction, it shows that the peer has restarted.
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, emitMad('SIDR_REQ', 99n, body));
  assert.equal(
    pair.taken.map(({ events }) => events),
    [['timedOut'], [], []],
  );
});

/** Starts a lookup whose SIDR_REQ is lost. `reply` sends forged replies from the peer's address. */
function withoutReply() {
  const pair = new SidrPair();
  pair.network.lose('client', 'SIDR_REQ', 1);
  const pending = pair.lookUp();
  const { message } = pair.network.last('client', 'SIDR_REQ');
  const { requestId } = pending.lookup;
  const reply = (
    more: Partial<CmBody<'SIDR_REP'>>,
    transactionId = message.header.transactionId,
    source = pair.server.gid,
  ): void => {
    const body = { requestId, serviceId: UDP_SERVICE, qpn: 0x33, ...more };
    pair.client.cm.receive(source, pair.client.gid, 0, emitMad('SIDR_REP', transactionId, body));
  };
  return { pending, reply, transactionId: message.header.transactionId, cm: pair.client.cm };
}

test('replies from strangers, to unknown ids, or with a management QP have no effect', () => {
  const { pending, reply, transactionId, cm } = withoutReply();
  reply({}, transactionId, ipv4(66));
  reply({ requestId: 1 });
  for (const qpn of [0, 1, 0xff_ffff]) reply({ qpn });
  assert.equal(pending.events, []);
  const counters = cm.counters();
  assert.equal(
    [counters['dropped.wrongSource'], counters['unknown.SIDR_REP'], counters['dropped.badQpn']],
    [1, 1, 3],
  );
  const info = new Uint8Array(72).fill(4);
  reply({ status: 4, infoLength: 200, info });
  assert.equal([pending.events, pending.reply?.info.length], [['answered 4'], 72]);
});

test('a reply of another transaction does not end a lookup, regardless of its status', () => {
  const { pending, reply, transactionId, cm } = withoutReply();
  for (const wrong of [0n, 1n, transactionId ^ 1n, transactionId ^ (1n << 63n)]) {
    for (const status of [0, 1, 2]) reply({ status }, wrong);
  }
  assert.equal([pending.events, cm.counters()['dropped.otherRequest']], [[], 12]);
  reply({});
  assert.equal([pending.events, pending.reply?.qpn], [['answered 0'], 0x33]);
});

test('a queue pair of another service does not end a lookup; a refusal may omit the service', () => {
  const { pending, reply, cm } = withoutReply();
  for (const serviceId of [0n, UDP_SERVICE + 1n]) reply({ serviceId });
  assert.equal([pending.events, cm.counters()['dropped.otherRequest']], [[], 2]);
  reply({ status: 1, serviceId: 0n });
  assert.equal(pending.events, ['answered 1']);
});

test('the length of private data is checked before anything is sent or an id is allocated', () => {
  const pair = new SidrPair();
  assert.throws(() => pair.lookUp({ privateData: new Uint8Array(181) }), /at most 180 bytes/);
  assert.equal([pair.network.log, pair.client.ids.size], [[], 0]);
  pair.onTaken = undefined;
  pair.lookUp({ privateData: new Uint8Array(180).fill(1) });
  pair.network.clock.advance(5);
  const { inquiry, request } = pair.taken[0]!;
  assert.ok(request.privateData.every((byte) => byte === 1));
  assert.throws(() => inquiry.accept(0x15, 0, new Uint8Array(137)), /at most 136 bytes/);
  assert.throws(() => inquiry.reject(new Uint8Array(137)), /at most 136 bytes/);
  inquiry.accept(0x15, 0, new Uint8Array(136));
  assert.equal(pair.end(), []);
});

test('without a free request id, the lookup ends after the call, without a queue pair', () => {
  const pair = new SidrPair();
  pair.client.idsLeft = 0;
  const pending = pair.lookUp();
  assert.equal(pending.events, []);
  assert.equal(pair.end(), []);
  assert.equal([pending.events, pair.network.log], [['answered 3'], []]);
});

test('closing the manager ends lookups and rejects waiting requests', () => {
  const pair = new SidrPair();
  pair.onTaken = undefined;
  const pending = pair.lookUp();
  pair.network.clock.advance(5);
  pair.server.cm.close();
  pair.network.clock.advance(5);
  assert.equal(pending.events, ['answered 2']);
  const late = pair.lookUp();
  pair.client.cm.close();
  assert.equal([late.events, pair.end()], [[], []]);
});

test.run();
