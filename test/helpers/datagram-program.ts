/**
 * A process that replies to lookups or is a member of a group: `<mode> <address> [<group>]`. It sends its parent `ready` with its port, and
 * every datagram that it receives.
 *
 * - `serve`: rejects lookups whose first byte is 1, and does not reply if it is 2. Accepts all others and returns their bytes. Echoes
 * datagrams.
 * - `ask`: looks up the queue pair behind the port given instead of the group, and reports its number and the time in ms.
 * - `join`: attaches its queue pair to the group.
 */
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider, WvDatagram } from '../../winverbs/index.js';
import { openDatagramSide, socketAddressOf } from './datagram-side.js';

const [mode, address, group] = process.argv.slice(2) as [string, string, string];
const tell = (message: object) => process.send!(message);
const provider = openProvider();
const side = openDatagramSide(provider, address);

async function serve(): Promise<void> {
  const listener = provider.createDatagramEndpoint();
  listener.bindAddress(socketAddressOf(address));
  listener.listen(0);
  tell({ ready: listener.query().localAddress.port, qpn: side.qp.qpn });
  for (;;) {
    const asked = provider.createDatagramEndpoint();
    await listener.getRequest(asked);
    const { privateData, peerAddress } = asked.query();
    tell({ asked: privateData[0], port: peerAddress?.port });
    if (privateData[0] === 1) asked.reject(Uint8Array.of(99));
    else if (privateData[0] !== 2)
      await asked.accept({ qp: side.qp, privateData: privateData.subarray(0, 8) });
  }
}

async function echo(): Promise<void> {
  for (;;) {
    const { text, sourceQpn, back } = await side.arrived();
    tell({ text });
    if (mode === 'serve') side.send(back, sourceQpn, WvDatagram.QKEY, `${text}, too`);
  }
}

process.on('message', (message) => {
  if (message === 'counters') tell({ counters: readCounters() });
});
process.on('disconnect', () => process.exit());
if (mode === 'serve') void serve();
else if (mode === 'ask') {
  const begun = performance.now();
  const found = await side.endpoint.lookup(socketAddressOf(address, Number(group)));
  tell({ ready: 0, qpn: found.qpn, ms: performance.now() - begun });
} else {
  const joined = await side.endpoint.joinMulticast(socketAddressOf(group));
  await side.qp.attachMulticast(joined.addressVector!.destinationGid);
  tell({ ready: 0, qpn: side.qp.qpn });
}
void echo();
