/** Behaviours of service id resolution for the matrix: `sidr BEHAVIOUR OWN-ADDRESS PEER-ADDRESS PORT`. */
import assert from 'node:assert/strict';
import { openProvider, Status, WvError } from '../../../winverbs/index.js';
import { socketAddress } from './interop-side.js';

const [behaviour = '', own = '', peerAddress = '', portText = '0'] = process.argv.slice(2);
const peer = socketAddress(peerAddress, Number(portText));
/** SIDR_REP status (IBA 1 §12.11.2): the service ID is not known. */
const NOBODY_THERE = 1;

const behaviours: Record<string, () => Promise<void>> = {
  /** Without a listener, lookups must be refused with the kernel's reason and not time out. */
  async refused() {
    const provider = openProvider();
    const endpoint = provider.createDatagramEndpoint();
    endpoint.bindAddress(socketAddress(own, 0));
    const error: unknown = await endpoint.lookup(peer).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof WvError, `the lookup ended with ${String(error)}`);
    assert.equal(error.status, Status.CONNECTION_REFUSED);
    assert.equal(endpoint.query(peer).sidrStatus, NOBODY_THERE);
    endpoint.release();
    provider.release();
  },

  /** This listener rejects all lookups. */
  async reject() {
    const provider = openProvider();
    const listener = provider.createDatagramEndpoint();
    listener.bindAddress(socketAddress(own, peer.port));
    listener.listen(1);
    console.log('listening');
    const endpoint = provider.createDatagramEndpoint();
    await listener.getRequest(endpoint);
    assert.equal(endpoint.query().peerAddress?.address, peer.address);
    endpoint.reject(new TextEncoder().encode('not today'));
    endpoint.release();
    listener.release();
    // Objects are released in order, so that the rejection is sent.
    provider.release();
  },
};

const run = behaviours[behaviour];
if (run === undefined) throw new Error(`Unknown behaviour '${behaviour}'.`);
await run();
