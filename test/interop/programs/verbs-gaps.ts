/** Requests that lose packets. The responder's NAK (PSN sequence error) makes the requester retransmit them. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { readCounters } from '../../../kernel-bridge/index.js';
import type { KernelOptionsInput } from '../../../winverbs/index.js';
import { SIGNALED } from './interop-side.js';
import { type Hosts, IbvWc, pattern } from './verbs-guest.js';

const SIZE = 60_001;
/** Required number of such NAKs. */
const NAKS = 5;
const MESSAGES = 300;

/** Options of {@link gapsOfOurs}, where packets of this side are lost. */
export const lossyOptions: KernelOptionsInput = { faults: { drop: 0.03, seed: 11 } };

const counter = (name: string): number => readCounters().hca[name] ?? 0;

async function untilRefused(naks: string, message: (seed: number) => Promise<void>): Promise<void> {
  const before = counter(naks);
  for (let i = 0; i < MESSAGES && counter(naks) - before < NAKS; i += 1) await message(i & 0xff);
  assert.ok(counter(naks) - before >= NAKS, `${naks}: ${counter(naks) - before} in ${MESSAGES} messages`);
}

/** Our packets are lost, and the guest reports it. */
export async function gapsOfOurs(hosts: Hosts): Promise<void> {
  const { qp, queue, memory } = await hosts.pair({ size: SIZE });
  await untilRefused('rcvd_seq_err', async (seed) => {
    memory.bytes.set(pattern(SIZE, seed));
    await hosts.receive(0, SIZE);
    qp.send('send', memory.sge(), SIGNALED);
    await queue.next();
    const [there] = await hosts.completions(1);
    assert.equal(there?.status, IbvWc.SUCCESS);
    assert.equal(await hosts.crc(0, SIZE), crc32(pattern(SIZE, seed)), 'other data arrived');
  });
}

/** The guest's packets are lost, and we report it. */
export async function gapsOfTheirs(hosts: Hosts): Promise<void> {
  const { qp, queue, memory } = await hosts.pair({ size: SIZE });
  await untilRefused('out_of_seq_request', async (seed) => {
    await hosts.fill(0, SIZE, seed);
    qp.postReceive('receive', memory.sge());
    assert.equal(await hosts.status({ op: 'send', at: 0, len: SIZE }), IbvWc.SUCCESS);
    await queue.next();
    assert.equal(crc32(memory.bytes), crc32(pattern(SIZE, seed)), 'other data arrived');
  });
}
