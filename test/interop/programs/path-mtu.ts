/**
 * Path MTUs that the port supports and rejects, and the one of a connection: `path-mtu connect|listen OWN-ADDRESS GUEST-ADDRESS PORT`.
 * Prints a JSON object.
 */
import assert from 'node:assert/strict';
import {
  gidOfAddress,
  type IWVConnectQueuePair,
  QpAttr,
  QpState,
  Status,
  WvError,
} from '../../../winverbs/index.js';
import { connect, disconnected, initialise, Listener, Side, socketAddress } from './interop-side.js';

const [role = '', own = '', guest = '', port = '0'] = process.argv.slice(2);
const PORT = 1;

function queuePair(side: Side): IWVConnectQueuePair {
  const { cq } = side.queue(16);
  const sizes = { sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const qp = side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  initialise(qp);
  return qp;
}

function toRtr(side: Side, pathMtu: number): void {
  const qp = queuePair(side);
  const gids = { sourceGid: gidOfAddress(own), destinationGid: gidOfAddress(guest) };
  qp.modify({ qpState: QpState.RTR, ...gids, pathMtu, destinationQpn: 17, receivePsn: 0 }, QpAttr.STATE);
  qp.release();
}

using side = Side.open(own);
const { activeMtu } = side.device.queryPort(PORT);
toRtr(side, activeMtu);
let refusal = '';
if (activeMtu < 4096) {
  assert.throws(
    () => toRtr(side, activeMtu * 2),
    (error) => {
      refusal = error instanceof WvError && error.status === Status.INVALID_PARAMETER ? error.message : '';
      return refusal.includes(String(activeMtu * 2)) && refusal.includes(String(activeMtu));
    },
  );
}
const qp = queuePair(side);
if (role === 'connect') {
  const endpoint = await connect(side, qp, own, socketAddress(guest, Number(port)), {});
  console.log(JSON.stringify({ activeMtu, pathMtu: qp.query().pathMtu, refusal }));
  await endpoint.disconnect();
} else {
  using listener = new Listener(side.provider, socketAddress(own, Number(port)));
  console.log('listening');
  const endpoint = await listener.next();
  await endpoint.accept(qp, {});
  console.log(JSON.stringify({ activeMtu, pathMtu: qp.query().pathMtu, refusal }));
  const end = disconnected(endpoint);
  await endpoint.disconnect();
  await end;
}
