/**
 * A stranger on this host that sends connection requests over UDP as fast as possible until it is killed or the time has elapsed:
 * `flood-program address port seconds`. It repeats 4096 requests with different ids.
 */
import { Forger, forgedReq } from './forged-mads.js';

const [address = '', port = '', seconds = ''] = process.argv.slice(2);
/** Packets passed to the OS before waiting for it. */
const BATCH = 256;
const DIFFERENT = 4096;

const forger = await Forger.open(address);
const packets = Array.from({ length: DIFFERENT }, (_, n) =>
  forger.packet(forgedReq(address, Number(port), { localCommId: 0x7e00_0000 + n, localQpn: 0x7e_0000 + n })),
);
const end = performance.now() + Number(seconds) * 1000;
let sent = 0;
process.send?.('flooding');
while (performance.now() < end) {
  await Promise.all(Array.from({ length: BATCH }, () => forger.sendPacket(packets[sent++ % DIFFERENT]!)));
}
process.exit(0);
