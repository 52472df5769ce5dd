/** Transfers data continuously in both directions on one connection until SIGTERM, and prints each round's rate. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { readCounters } from '../../../kernel-bridge/index.js';
import { SIGNALED } from './interop-side.js';
import { type GuestRequest, type Hosts, IbvWc, pattern } from './verbs-guest.js';

/** Bytes that a round transfers in each direction, in four requests. */
const BYTES = 256 * 1024;
const REQUESTS = 4;
const PIECE = BYTES / REQUESTS;
const MTU = 4096;

/** Runs rounds until SIGTERM. `round` transfers and checks the data, and returns the seconds that the transfer took. */
async function rounds(round: (seed: number) => Promise<number>): Promise<void> {
  let over = false;
  process.once('SIGTERM', () => {
    over = true;
  });
  for (let i = 0; !over; i += 1) {
    const seconds = await round(i & 0xff);
    console.log(`round ${i}: ${((2 * BYTES) / seconds / 1e6).toFixed(1)} MB/s`);
  }
  const { retransmitted_pkts, ack_timeout, out_of_seq_request, duplicate_request } = readCounters().hca;
  console.log(JSON.stringify({ retransmitted_pkts, ack_timeout, out_of_seq_request, duplicate_request }));
}

/** We write to the guest's memory, and read the data back. */
export async function recoveryOfOurs(hosts: Hosts): Promise<void> {
  const { qp, queue, memory, remote } = await hosts.pair({ size: 2 * BYTES, mtu: MTU });
  const sent = memory.bytes.subarray(0, BYTES);
  const back = memory.bytes.subarray(BYTES);
  await rounds(async (seed) => {
    sent.set(pattern(BYTES, seed));
    back.fill(0);
    const begin = performance.now();
    for (let i = 0; i < REQUESTS; i += 1) {
      qp.write('write', memory.sge(i * PIECE, PIECE), SIGNALED, remote, i * PIECE);
      qp.read('read', memory.sge(BYTES + i * PIECE, PIECE), SIGNALED, remote, i * PIECE);
    }
    await queue.take(2 * REQUESTS);
    const seconds = (performance.now() - begin) / 1000;
    assert.equal(Buffer.compare(sent, back), 0, 'other data came back');
    return seconds;
  });
}

/** The guest writes to our memory, and reads the data back. */
export async function recoveryOfTheirs(hosts: Hosts): Promise<void> {
  const { memory } = await hosts.pair({ size: 2 * BYTES, mtu: MTU });
  const { address, rkey } = memory.region;
  const requests = Array.from({ length: REQUESTS }, (_, i) => i * PIECE).flatMap((at): GuestRequest[] => [
    { op: 'write', at, len: PIECE, addr: address + at, rkey },
    { op: 'read', at: BYTES + at, len: PIECE, addr: address + at, rkey },
  ]);
  await rounds(async (seed) => {
    await hosts.fill(0, BYTES, seed);
    await hosts.fill(BYTES, BYTES, seed + 1);
    const begin = performance.now();
    await hosts.post(...requests);
    const ended = await hosts.completions(requests.length);
    const seconds = (performance.now() - begin) / 1000;
    for (const { status } of ended) assert.equal(status, IbvWc.SUCCESS);
    const expected = crc32(pattern(BYTES, seed));
    assert.equal(crc32(memory.bytes.subarray(0, BYTES)), expected, 'other data was written');
    assert.equal(await hosts.crc(BYTES, BYTES), expected, 'other data was read');
    return seconds;
  });
}
