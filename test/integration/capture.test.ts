// The capture option. tshark decodes the file, and the packets must match the session.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { CmAttribute } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { needing } from '../helpers/needs.js';
import { expectedIcrc, icrcField } from '../helpers/pcap.js';
import { readPcapng } from '../helpers/pcapng.js';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import { firstIf } from '../helpers/tiers.js';

const addon = loadAddon();

/** BTH opcodes of RC, and UD SEND Only of the MADs (IBA 1 §9.2.1). */
const Op = {
  sendFirst: 0,
  sendLast: 2,
  sendOnly: 4,
  writeFirst: 6,
  writeLast: 8,
  writeOnly: 10,
  readRequest: 12,
  responseFirst: 13,
  responseLast: 15,
  responseOnly: 16,
  acknowledge: 17,
  datagram: 100,
} as const;

/**
 * The traffic of seed 1 with these sizes: Writes of 0, 100 and 10,000 bytes, Sends of 0, 10,000 and 100, Reads of 100, 10,000 and 0, in
 * packets of at most 9152 bytes. Each request is listed with its PSN, relative to the first PSN of its direction.
 */
const traffic = { seed: 1, sizes: [0, 100, 10_000] };
const requestsOfClient = [
  [Op.writeOnly, 0],
  [Op.sendOnly, 1],
  [Op.readRequest, 2],
  [Op.writeOnly, 3],
  [Op.sendFirst, 4],
  [Op.sendLast, 5],
  [Op.readRequest, 6],
  [Op.writeFirst, 8],
  [Op.writeLast, 9],
  [Op.sendOnly, 10],
  [Op.readRequest, 11],
];
const responsesOfServer = [
  [Op.responseOnly, 2],
  [Op.responseFirst, 6],
  [Op.responseLast, 7],
  [Op.responseOnly, 11],
];
/** The window's descriptor, and the echoes of the messages. */
const requestsOfServer = [
  [Op.sendOnly, 0],
  [Op.sendOnly, 1],
  [Op.sendFirst, 2],
  [Op.sendLast, 3],
  [Op.sendOnly, 4],
];

const fields = {
  direction: 'frame.packet_flags_direction',
  source: 'ip.src',
  source6: 'ipv6.src',
  destination: 'ip.dst',
  destination6: 'ipv6.dst',
  port: 'udp.dstport',
  opcode: 'infiniband.bth.opcode',
  qpn: 'infiniband.bth.destqp',
  psn: 'infiniband.bth.psn',
  syndrome: 'infiniband.aeth.syndrome',
  attribute: 'infiniband.mad.attributeid',
  serviceId: 'infiniband.cm.req.serviceid',
  reqQpn: 'infiniband.cm.req.localqpn',
  reqPsn: 'infiniband.cm.req.startpsn',
  reqMtu: 'infiniband.cm.req.pppmtu',
  reqId: 'infiniband.cm.req',
  ipVersion: 'infiniband.cm.req.ip_cm.ipv',
  repQpn: 'infiniband.cm.rep.localqpn',
  repPsn: 'infiniband.cm.rep.startpsn',
  repId: 'infiniband.cm.rep',
  repRemoteId: 'infiniband.cm.rep.remotecommid',
  rtuId: 'infiniband.cm.rtu.localcommid',
  rtuRemoteId: 'infiniband.cm.rtu.remotecommid',
} as const;
type Row = Record<keyof typeof fields, string>;

const OUTBOUND = 2;

function tshark(...args: string[]): string[] {
  const { status, stdout, stderr, error } = spawnSync('tshark', args, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`tshark ${args.join(' ')}: ${stderr}`);
  return stdout.split('\n').filter((line) => line !== '');
}

/** Returns tshark's fields of every packet in a capture, after tshark's and this test's checks. */
function decode(file: string): Row[] {
  const packets = readPcapng(file);
  for (const [n, ip] of packets.entries()) {
    assert.is(icrcField(ip), expectedIcrc(ip), `ICRC of packet ${n + 1}`);
    assert.is(addon.icrcOf(ip), icrcField(ip));
  }
  // tshark expects a payload in every SEND, but a SEND without one is also valid: 8 + 12 + 4 bytes of UDP.
  const empty = `(infiniband.bth.opcode == ${Op.sendOnly} && udp.length == 24)`;
  assert.equal(tshark('-r', file, '-Y', `_ws.malformed && !${empty}`), []);
  assert.equal(tshark('-r', file, '-Y', '!infiniband.bth || udp.dstport != 4791'), []);
  const names = Object.values(fields).flatMap((name) => ['-e', name]);
  const lines = tshark('-r', file, '-T', 'fields', '-E', 'separator=;', '-E', 'occurrence=f', ...names);
  assert.is(lines.length, packets.length);
  return lines.map((line) => {
    const values = line.split(';');
    return Object.fromEntries(Object.keys(fields).map((key, n) => [key, values[n] ?? ''])) as Row;
  });
}

/** Opcodes and PSNs of the requests to `qpn`, relative to the first PSN of their direction. */
const requestsTo = (rows: readonly Row[], qpn: number, startPsn: number, opcodes: ReadonlySet<number>) =>
  rows
    .filter((row) => Number(row.qpn) === qpn && opcodes.has(Number(row.opcode)))
    .map((row) => [Number(row.opcode), (Number(row.psn) - startPsn) & 0xffffff]);

const responses: ReadonlySet<number> = new Set([Op.responseFirst, Op.responseLast, Op.responseOnly]);
const requests: ReadonlySet<number> = new Set(
  Object.values(Op).filter((op) => !responses.has(op) && op !== Op.acknowledge && op !== Op.datagram),
);

/**
 * Returns `rows` without retransmissions, and the number of retransmitted requests (`again`). On a slow machine, a late acknowledgement
 * causes a retransmission (as a tail probe or to request the acknowledgement), and a retransmitted RDMA READ gets another response.
 */
function withoutRepeats(rows: readonly Row[]): { once: Row[]; again: number } {
  const seen = new Set<string>();
  let again = 0;
  const once = rows.filter((row) => {
    const opcode = Number(row.opcode);
    if (opcode === Op.datagram || opcode === Op.acknowledge) return true;
    const name = `${row.qpn} ${row.psn} ${opcode}`;
    if (!seen.has(name)) return Boolean(seen.add(name));
    if (requests.has(opcode)) again += 1;
    return false;
  });
  return { once, again };
}

/** Checks the session: `client` and `server` are the packets that each side has sent. */
function checkSession(client: readonly Row[], server: readonly Row[], port: number, address: string): void {
  const mads = (rows: readonly Row[]) => rows.filter(({ opcode }) => Number(opcode) === Op.datagram);
  const one = client === server;
  const names = (rows: readonly Row[]) => mads(rows).map(({ attribute }) => Number(attribute));
  const { REQ, REP, RTU, DREQ, DREP } = CmAttribute;
  if (one) assert.equal(names(client), [REQ, REP, RTU, DREQ, DREP]);
  else
    assert.equal(
      [names(client), names(server)],
      [
        [REQ, RTU, DREQ],
        [REP, DREP],
      ],
    );
  for (const mad of [...mads(client), ...mads(server)]) assert.is(Number(mad.qpn), 1);

  const req = client.find(({ attribute }) => Number(attribute) === REQ)!;
  const rep = server.find(({ attribute }) => Number(attribute) === REP)!;
  const rtu = client.find(({ attribute }) => Number(attribute) === RTU)!;
  const isV6 = address.includes(':');
  assert.is(BigInt(req.serviceId), 0x1060000n | BigInt(port));
  assert.equal([Number(req.ipVersion), Number(req.reqMtu)], [isV6 ? 6 : 4, 5]);
  assert.is(Number(rep.repRemoteId), Number(req.reqId));
  assert.equal([Number(rtu.rtuId), Number(rtu.rtuRemoteId)], [Number(req.reqId), Number(rep.repId)]);

  const [clientQpn, serverQpn] = [Number(req.reqQpn), Number(rep.repQpn)];
  // Each side announces the other's starting PSN (IBA 1 §12.7).
  const [clientPsn, serverPsn] = [Number(rep.repPsn), Number(req.reqPsn)];
  assert.ok(clientQpn > 1 && serverQpn > 1 && clientQpn !== serverQpn);
  assert.equal(requestsTo(client, serverQpn, clientPsn, requests), requestsOfClient);
  assert.equal(requestsTo(server, clientQpn, clientPsn, responses), responsesOfServer);
  assert.equal(requestsTo(server, clientQpn, serverPsn, requests), requestsOfServer);
  // All acknowledgements are ACKs, not NAKs. The client's last one is for the last message, and the server's is not for a later one.
  const acks = (rows: readonly Row[], qpn: number, psn: number) =>
    requestsTo(rows, qpn, psn, new Set([Op.acknowledge])).map(([, at]) => at!);
  assert.is(acks(client, serverQpn, serverPsn).at(-1), 4);
  assert.ok(acks(server, clientQpn, clientPsn).every((psn) => psn <= 11));
  for (const { opcode, syndrome } of [...client, ...server]) {
    if (Number(opcode) === Op.acknowledge) assert.is(Number(syndrome) >> 5, 0, `syndrome ${syndrome}`);
  }
  for (const row of [...client, ...server]) {
    const ends = isV6 ? [row.source6, row.destination6] : [row.source, row.destination];
    assert.equal(ends, [address, address]);
  }
}

interface Session {
  port: number;
  /** Packets counted as retransmitted by each side's HCA. */
  again: { client: number; server: number };
}

const sentAgain = async (peer: Peer) => (await peer.counters()).hca!.retransmitted_pkts!;

/** Runs a session between two peers, which may be the same. */
async function runSession(server: Peer, client: Peer, address: string): Promise<Session> {
  const port = await server.call('trafficListen', { as: 'server', address, ...traffic });
  await Promise.all([
    client.call('trafficConnect', { as: 'client', address, port, ...traffic }),
    server.call('trafficAccepted', { as: 'server' }),
  ]);
  const reports = await Promise.all([
    server.call('trafficRun', { as: 'server' }),
    client.call('trafficRun', { as: 'client' }),
  ]);
  for (const { inbound, outbound } of reports)
    assert.equal([...new Set([...inbound, ...outbound])], ['SUCCESS']);
  assert.is(await client.call('trafficDisconnect', { as: 'client' }), 'SUCCESS');
  assert.is(await server.call('trafficDisconnect', { as: 'server' }), 'SUCCESS');
  return { port, again: { client: await sentAgain(client), server: await sentAgain(server) } };
}

const test = suite<{ folder: string }>('capture');
test.before((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-capture-'));
});
test.after(({ folder }) => rmSync(folder, { recursive: true }));
test.after.each(() => endPeers());

/** Timeouts long enough for a slow machine. */
const kernel = { rc: { ackTimeoutCode: 21 }, cm: { responseTimeoutCode: 21 } };
/** These messages are not part of a session, because any process on the host may reply to strangers' requests for unknown services. */
const toStrangers: ReadonlySet<number> = new Set([CmAttribute.REJ, CmAttribute.SIDR_REP]);
const sent = (rows: readonly Row[]): Row[] =>
  rows.filter(
    ({ direction, opcode, attribute }) =>
      Number(direction) === OUTBOUND &&
      !(Number(opcode) === Op.datagram && toStrangers.has(Number(attribute))),
  );
const received = (rows: readonly Row[]): Row[] =>
  rows.filter(({ direction }) => Number(direction) !== OUTBOUND);
/** Omits MADs, because QP1 belongs to every process, and a MAD that the OS delivers to another one is not captured here. */
const contents = (rows: readonly Row[]): string[] =>
  rows
    .filter(({ opcode }) => Number(opcode) !== Op.datagram)
    .map(({ opcode, qpn, psn, syndrome }) => [opcode, qpn, psn, syndrome].join(' '))
    .sort();

/**
 * Checks that every packet has arrived, and no others. A retransmitted request or its ACK may arrive after its queue pair was destroyed.
 * The OS then delivers it to any process that shares the port.
 */
function checkReceived(came: readonly Row[], went: readonly Row[]): void {
  const isNoAck = ({ opcode }: Row) => Number(opcode) !== Op.acknowledge;
  const distinct = (rows: readonly Row[]) => [...new Set(contents(rows.filter(isNoAck)))];
  assert.equal(distinct(came), distinct(went));
  const unclaimed = contents(went);
  for (const packet of contents(came)) {
    const at = unclaimed.indexOf(packet);
    assert.ok(at >= 0, `received, but not sent, or less often: ${packet}`);
    unclaimed.splice(at, 1);
  }
}

for (const address of ['127.0.0.1', '::1'] as const) {
  firstIf(address === '::1', needing(test, 'tshark', address))(
    `one process, ${address}: every packet is sent and received as RoCEv2 specifies`,
    async ({ folder }) => {
      const capture = join(folder, 'one-%p.pcapng');
      const peer = await Peer.start({ kernel: { ...kernel, capture } });
      const { port, again } = await runSession(peer, peer, address);
      await peer.leave('exit');
      const rows = decode(capture.replace('%p', String(peer.pid)));
      const out = sent(rows);
      const session = withoutRepeats(out);
      assert.is(session.again, again.client);
      checkSession(session.once, session.once, port, address);
      checkReceived(received(rows), out);
    },
  );

  firstIf(address === '127.0.0.1', needing(test, 'tshark', address))(
    `two processes, ${address}: each captures its side, and one receives what the other sends`,
    async ({ folder }) => {
      const capture = join(folder, 'two-%p.pcapng');
      const [server, client] = await Promise.all([
        Peer.start({ kernel: { ...kernel, capture } }),
        Peer.start({ kernel: { ...kernel, capture } }),
      ]);
      const { port, again } = await runSession(server, client, address);
      await Promise.all([server.leave('exit'), client.leave('exit')]);
      const [atServer, atClient] = [server, client].map(({ pid }) =>
        decode(capture.replace('%p', String(pid))),
      ) as [Row[], Row[]];
      const [ofServer, ofClient] = [withoutRepeats(sent(atServer)), withoutRepeats(sent(atClient))];
      assert.equal({ client: ofClient.again, server: ofServer.again }, again);
      checkSession(ofClient.once, ofServer.once, port, address);
      checkReceived(received(atServer), sent(atClient));
      checkReceived(received(atClient), sent(atServer));
    },
  );
}

test.run();
