/**
 * Strangers that request connections of `networkdirect/net` with a valid hello and complete none: `half-open-program address port kind
 * count [source…]`. It sends requests over UDP from the sources round-robin, by default from the address itself, each with its own ids, as
 * fast as the OS accepts them. With count 0, it repeats them until it is killed. Reports `flooding` before the first and `sent` after the
 * last.
 */
import { halfOpenReqs } from './half-open.js';

const [address = '', port = '', kind = '', count = '', ...given] = process.argv.slice(2);
/** Packets passed to the OS before waiting for it. */
const BATCH = 256;
const DIFFERENT = 20_000;

const most = Number(count) || Number.POSITIVE_INFINITY;
const sources = await Promise.all(
  (given.length > 0 ? given : [address]).map((source) =>
    halfOpenReqs(address, Number(port), kind === 'stream' ? 'stream' : 'channel', undefined, source),
  ),
);
const packets = Array.from({ length: Math.min(most, DIFFERENT) }, (_, n) => {
  const { forger, packetOf } = sources[n % sources.length]!;
  const packet = packetOf(n);
  return () => forger.sendPacket(packet);
});
process.send!('flooding');
for (let sent = 0; sent < most; sent += BATCH) {
  const length = Math.min(BATCH, most - sent);
  await Promise.all(Array.from({ length }, (_, n) => packets[(sent + n) % packets.length]!()));
}
for (const { forger } of sources) forger.close();
process.send!('sent');
