/**
 * A process with several connections to one listener: `srq-sender port queuePairs messages`. On each it sends that many messages with their
 * number in the first word, notifies its parent when all are acknowledged, and then waits to be killed.
 */
import { openProvider, WvSend } from '../../winverbs/index.js';
import { ADDRESS, openSide, take } from './loopback.js';

const [port, queuePairs, messages] = process.argv.slice(2).map(Number) as [number, number, number];
const peer = { family: 4, address: ADDRESS, port } as const;
const provider = openProvider();

async function sender(number: number): Promise<void> {
  const side = openSide(provider);
  side.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  side.ep.resolveRoute(peer);
  await side.ep.connect(side.qp, peer, { privateData: Uint8Array.of(number) });
  await side.ep.accept(null, {});
  for (let i = 0; i < messages; i++) {
    side.memory.writeUInt32LE(number * messages + i, 0);
    side.qp.send(i, [{ region: side.region, offset: 0, length: 4 + i }], WvSend.SIGNALED);
    await take(side.cq, 1);
  }
}

await Promise.all(Array.from({ length: queuePairs }, (_, number) => sender(number)));
process.send!('sent');
setInterval(() => {}, 1000);
