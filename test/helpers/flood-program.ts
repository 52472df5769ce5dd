/**
 * A stranger on this host that sends connection requests by UDP as fast as possible, until it is killed or the time is
 * over: `flood-program address port seconds`. 4096 of them, each with its own id, again and again.
 */
import { Forger, forgedReq } from './forged-mads.js';

const [address = '', port = '', seconds = ''] = process.argv.slice(2);
/** Packets passed to the system before it is waited for. */
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
