/** Packets on the guest's link: marks of its queue, our congestion notifications, UDP checksums. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { readCounters } from '../../../kernel-bridge/index.js';
import { SIGNALED } from './interop-side.js';
import { type Hosts, IbvWc, pattern, type Tallied } from './verbs-guest.js';

const CNP = 0x81;
/** Codepoints of RFC 3168: ECN-capable, and marked. */
const ECT0 = 2;
const MARKED = 3;
const BYTES = 1 << 20;
const PIECES = 16;
const PIECE = BYTES / PIECES;
/** Maximum of rounds until the queue has marked a packet. */
const ROUNDS = 12;
/**
 * Code of the guest's ACK timeout, 4.3 s. All requests may wait in the queue, which passes 1 MB/s and loses nothing. With a shorter
 * timeout, rdma_rxe retransmits its requests. If the last packet of such a request has just been acknowledged, it sends an empty WRITE_ONLY
 * and shifts the PSNs of everything that follows by one.
 */
const PATIENT = 20;
const SIZE = 10_001;

const counter = (name: string): number => readCounters().hca[name] ?? 0;
const sum = (all: readonly Tallied[], of: (one: Tallied) => boolean): number =>
  all.filter(of).reduce((total, { count }) => total + count, 0);

/** The guest's writes pass a queue that marks them. Each mark is received and causes a CNP. */
export async function marksOfTheirs(hosts: Hosts): Promise<void> {
  const { memory } = await hosts.pair({ size: BYTES, mtu: 1024, guestClass: ECT0, ackTimeout: PATIENT });
  const { address, rkey } = memory.region;
  await hosts.watch();
  for (let round = 0; round < ROUNDS && counter('sent_cnp') === 0; round += 1) {
    await hosts.fill(0, BYTES, round);
    const write = (i: number) =>
      ({ op: 'write', at: i * PIECE, len: PIECE, addr: address + i * PIECE, rkey }) as const;
    await hosts.post(...Array.from({ length: PIECES }, (_, i) => write(i)));
    for (const { status } of await hosts.completions(PIECES)) assert.equal(status, IbvWc.SUCCESS);
    assert.equal(crc32(memory.bytes), crc32(pattern(BYTES, round)), 'other data was written');
  }
  const marked = counter('rcvd_ecn_marked');
  const sent = counter('sent_cnp');
  assert.ok(marked > 0, 'no mark was seen');
  assert.ok(sent > 0 && sent <= marked, `${sent} notifications for ${marked} marks`);
  const packets = await hosts.tally();
  const arrived = sum(packets, ({ out, opcode }) => !out && opcode === CNP);
  assert.ok(arrived > 0 && arrived <= sent, `${arrived} of ${sent} notifications have come to the guest`);
  assert.equal(
    sum(packets, ({ opcode, ecn }) => opcode === CNP && ecn !== 0),
    0,
    'notifications may be marked',
  );
  assert.ok(
    sum(packets, ({ out, ecn }) => out && ecn === MARKED) >= marked,
    'more marks were counted than sent',
  );
  console.log(JSON.stringify({ marked, sent, arrived }));
}

/**
 * Both sides write to each other. rxe sends without UDP checksums, even over IPv6, and its data arrives. Ours arrives with a checksum over
 * IPv6, which the socket computes.
 */
export async function checksums(hosts: Hosts): Promise<void> {
  const { qp, queue, memory, remote } = await hosts.pair({ size: SIZE });
  const { address: addr, rkey } = memory.region;
  await hosts.watch();
  memory.bytes.set(pattern(SIZE, 1));
  qp.write('write', memory.sge(), SIGNALED, remote, 0);
  await queue.next();
  assert.equal(await hosts.crc(0, SIZE), crc32(pattern(SIZE, 1)), 'the guest has other data');
  await hosts.fill(0, SIZE, 2);
  assert.equal(await hosts.status({ op: 'write', at: 0, len: SIZE, addr, rkey }), IbvWc.SUCCESS);
  assert.equal(crc32(memory.bytes), crc32(pattern(SIZE, 2)), 'we have other data');
  const packets = await hosts.tally();
  const theirs = sum(packets, ({ out }) => out);
  const bare = sum(packets, ({ out, nosum }) => out && nosum);
  const ours = sum(packets, ({ out }) => !out);
  const covered = sum(packets, ({ out, nosum }) => !out && !nosum);
  assert.ok(theirs > 0 && ours > 0, `${theirs} packets of the guest and ${ours} of ours were seen`);
  assert.equal(bare, theirs, 'packets of the guest without UDP checksum');
  if (packets[0]?.version === 6) assert.equal(covered, ours, 'packets of ours with a UDP checksum');
  console.log(JSON.stringify({ version: packets[0]?.version, theirs, bare, ours, covered }));
}
