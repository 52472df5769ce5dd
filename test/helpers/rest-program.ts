/**
 * One side of idle connections: `rest-program.js listen` prints its port, `rest-program.js connect PORT` connects. Both print `ready` when
 * all connections are established, then wait for their end.
 */
import { openProvider, type SocketAddress } from '../../winverbs/index.js';

/** Number of connections between the two. */
const CONNECTIONS = 3;
/** An interval far shorter than the test, so that probes of idle connections would be noticed. */
const KEEP_ALIVE_MS = 400;

const address: SocketAddress = { family: 4, address: '127.0.0.1', port: 0 };
const provider = openProvider({ keepAliveMs: KEEP_ALIVE_MS });
const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
const pd = device.allocateProtectionDomain();
const cq = device.createCompletionQueue(64);
const queuePair = () =>
  pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 4,
    sendSge: 1,
    receiveDepth: 4,
    receiveSge: 1,
  });

const [role, port] = process.argv.slice(2);
const endpoints = [];
if (role === 'listen') {
  const listener = provider.createConnectEndpoint();
  listener.bindAddress(address);
  listener.listen(0);
  console.log(listener.query().localAddress.port);
  for (let n = 0; n < CONNECTIONS; n++) {
    const endpoint = provider.createConnectEndpoint();
    await listener.getRequest(endpoint);
    await endpoint.accept(queuePair(), {});
    endpoints.push(endpoint);
  }
} else {
  const peer = { ...address, port: Number(port) };
  for (let n = 0; n < CONNECTIONS; n++) {
    const endpoint = provider.createConnectEndpoint();
    endpoint.bindAddress(address);
    endpoint.resolveRoute(peer);
    await endpoint.connect(queuePair(), peer, {});
    await endpoint.accept(null, {});
    endpoints.push(endpoint);
  }
}
console.log('ready');
// Threads that wait for a completion and requests that wait for the end of a connection must not use CPU time either.
const waiting = cq.notify('any');
await Promise.allSettled(endpoints.map((endpoint) => endpoint.notifyDisconnect()));
waiting.cancel();
await Promise.allSettled([waiting]);
