/**
 * A stream of WRITEs, checked by its receiver: `ecn send|receive OWN-ADDRESS PEER-ADDRESS PORT`. The sender prints each
 * round's rate and the number of congestion notifications received; SIGTERM ends it. Both print counters at the end.
 */
import assert from 'node:assert/strict';
import { readCounters } from '../../../kernel-bridge/index.js';
import { RemoteMemory, WcStatus, WvAccess } from '../../../winverbs/index.js';
import { connect, initialise, Listener, SIGNALED, Side, socketAddress } from './interop-side.js';
import { pattern } from './verbs-guest.js';

const BYTES = 512 * 1024;
const PIECES = 4;
const PIECE = BYTES / PIECES;
const WORD = 4;

const [role = '', own = '', peer = '', port = '0'] = process.argv.slice(2);
const counters = (...names: string[]): string => {
  const { hca } = readCounters();
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, hca[name]])));
};

function link(side: Side) {
  const queue = side.queue(64);
  const { cq } = queue;
  const sizes = { sendDepth: 16, sendSge: 1, receiveDepth: 16, receiveSge: 1 };
  const qp = side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  initialise(qp);
  return {
    queue,
    qp,
    memory: side.memory(BYTES, WvAccess.REMOTE_WRITE),
    word: side.memory(WORD, WvAccess.LOCAL_WRITE),
  };
}

async function send(): Promise<void> {
  let over = false;
  process.once('SIGTERM', () => {
    over = true;
  });
  using side = Side.open(own);
  const { queue, qp, memory, word } = link(side);
  const expect = () => qp.postReceive('receive', memory.sge(0, 0));
  expect();
  const endpoint = await connect(side, qp, own, socketAddress(peer, Number(port)), {});
  const where = Buffer.from(endpoint.query().privateData);
  const remote = new RemoteMemory({ address: where.readBigUInt64BE(0), rkey: where.readUInt32BE(8) });
  const number = new DataView(word.bytes.buffer);
  for (let round = 0; !over; round += 1) {
    memory.bytes.set(pattern(BYTES, round & 0xff));
    const begin = performance.now();
    for (let i = 0; i < PIECES; i += 1) {
      qp.write('write', memory.sge(i * PIECE, PIECE), SIGNALED, remote, i * PIECE);
    }
    await queue.take(PIECES);
    const seconds = (performance.now() - begin) / 1000;
    number.setUint32(0, round & 0xff);
    qp.send('send', word.sge(0, WORD), SIGNALED);
    // The end of the send, and the receiver's report that all data is correct.
    await queue.take(2);
    expect();
    const notified = readCounters().hca.rcvd_cnp;
    console.log(`round ${round}: ${(BYTES / seconds / 1e6).toFixed(2)} MB/s, ${notified} notifications`);
  }
  console.log(counters('rcvd_cnp', 'retransmitted_pkts'));
  await endpoint.disconnect();
}

async function receive(): Promise<void> {
  using side = Side.open(own);
  using listener = new Listener(side.provider, socketAddress(own, Number(port)));
  console.log('listening');
  const endpoint = await listener.next();
  const { queue, qp, memory, word } = link(side);
  const expect = () => qp.postReceive('receive', word.sge(0, WORD));
  expect();
  const where = Buffer.alloc(12);
  where.writeBigUInt64BE(BigInt(memory.region.address), 0);
  where.writeUInt32BE(memory.region.rkey, 8);
  await endpoint.accept(qp, { privateData: where });
  for (;;) {
    const { context, status } = await queue.any();
    if (status === WcStatus.FLUSHED) break;
    assert.equal(status, WcStatus.SUCCESS);
    if (context !== 'receive') continue;
    const seed = new DataView(word.bytes.buffer).getUint32(0);
    assert.equal(Buffer.compare(memory.bytes, pattern(BYTES, seed)), 0, `round ${seed}: other data arrived`);
    expect();
    qp.send('send', memory.sge(0, 0), SIGNALED);
  }
  console.log(counters('rcvd_ecn_marked', 'sent_cnp'));
}

await (role === 'send' ? send() : receive());
