/** Behaviours of connection management for the matrix, one per run: `cm BEHAVIOUR OWN-ADDRESS PEER-ADDRESS PORT`. */
import assert from 'node:assert/strict';
import { type IWVConnectQueuePair, openProvider, Status } from '../../../winverbs/index.js';
import { outcome } from '../../helpers/outcome.js';
import { connect, initialise, Listener, Side, socketAddress } from './interop-side.js';

const [behaviour = '', own = '', peerAddress = '', portText = '0'] = process.argv.slice(2);
const peer = socketAddress(peerAddress, Number(portText));

function queuePair(side: Side): IWVConnectQueuePair {
  const { cq } = side.queue(16);
  const sizes = { sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const qp = side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  initialise(qp);
  return qp;
}

const behaviours: Record<string, () => Promise<void>> = {
  /** Without a listener, the connection must be refused and not time out. */
  async refused() {
    using side = Side.open(own);
    const status = await outcome(connect(side, queuePair(side), own, peer, {}));
    assert.equal(status, Status.CONNECTION_REFUSED);
  },

  /** This listener rejects. The peer must get a rejection with data. */
  async reject() {
    const provider = openProvider();
    using listener = new Listener(provider, socketAddress(own, peer.port));
    console.log('listening');
    const endpoint = await listener.next();
    endpoint.reject(new TextEncoder().encode('not today'));
    endpoint.release();
    // Objects are released in order, so that the rejection is sent.
    provider.release();
  },

  /** Rejects the peer's reply, in the third step of connecting. */
  async 'reject-reply'() {
    using side = Side.open(own);
    const endpoint = side.provider.createConnectEndpoint();
    endpoint.bindAddress({ family: peer.family, address: own, port: 0 });
    endpoint.resolveRoute(peer);
    await endpoint.connect(queuePair(side), peer, {});
    endpoint.reject();
    endpoint.release();
  },

  /** One connection after another. */
  async sequence() {
    using side = Side.open(own);
    for (let i = 0; i < SEQUENCE; i += 1) {
      const qp = queuePair(side);
      const endpoint = await connect(side, qp, own, peer, {});
      await endpoint.disconnect();
      endpoint.release();
      qp.release();
    }
  },
};

/** Number of connections in `sequence`. */
const SEQUENCE = 200;

const run = behaviours[behaviour];
if (run === undefined) throw new Error(`'${behaviour}' is none of ${Object.keys(behaviours).join(', ')}.`);
await run();
