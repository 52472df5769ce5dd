/**
 * All HCAs of a guest in one process: `beside ADDRESS…`. It has a listener on all addresses and a connection at each address, and sends
 * messages in both directions on all of them at the same time. Prints a line of JSON: the kind of device of each address.
 */
import { socketAddress } from '../../../nd/cli/sides/connected-side.js';
import { ListenerWv } from '../../../nd/cli/sides/winverbs-side.js';
import { openProvider, WvSend } from '../../../winverbs/index.js';
import { openSide, take } from '../../helpers/loopback.js';

const MESSAGES = 20;
const addresses = process.argv.slice(2);
const provider = openProvider();
const listener = new ListenerWv(provider, { family: 4, address: '0.0.0.0', port: 0 }, addresses.length);
const { port } = listener.address;

const pairs = [];
for (const address of addresses) {
  const [a, b] = [openSide(provider, {}, 8192, address), openSide(provider, {}, 8192, address)];
  const request = listener.request(b);
  const connecting = a.connect(socketAddress(address, port));
  await request;
  const accepting = b.accept();
  await connecting;
  await a.completeConnect();
  await accepting;
  pairs.push({ address, a, b });
}
await Promise.all(
  pairs.map(async ({ address, a, b }) => {
    for (let n = 0; n < MESSAGES; n++) {
      const [from, to] = n % 2 === 0 ? [a, b] : [b, a];
      const text = `${address} ${n}`.padEnd(32);
      to.qp.postReceive(n, to.sge(64, 32));
      from.memory.write(text);
      from.qp.send(n, from.sge(0, 32), WvSend.SIGNALED);
      await take(to.cq, 1);
      await take(from.cq, 1);
      const came = to.memory.toString('latin1', 64, 96);
      if (came !== text) throw new Error(`${address}: '${came}' has come in place of '${text}'.`);
    }
  }),
);
const devices = pairs.map(({ a }) => provider.queryDevice(a.device.guid));
const kinds = devices.map(({ deviceType, vendorId }) => `${deviceType} ${vendorId}`);
for (const { a, b } of pairs) {
  await a.ep.disconnect();
  for (const side of [a, b]) side.release();
}
listener.release();
const guids = new Set(devices.map(({ nodeGuid }) => nodeGuid)).size;
console.log(JSON.stringify({ kinds, guids }));
provider.release();
