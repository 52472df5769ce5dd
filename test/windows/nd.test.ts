// The control path of both versions of the NetworkDirect SPI with the stand-in driver, to the extent that it works without an HCA.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError } from '../../nd/index.js';
import { Provider as V1Provider } from '../../nd/v1/provider.js';
import { Provider as V2Provider } from '../../nd/v2/provider.js';
import { Status } from '../../winverbs/index.js';
import { openPlain } from './plain-verbs.js';
import { clean, GUID, Standin, statusOf, until } from './standin.js';

const standin = new Standin();
const addresses = () => [{ family: 4 as const, address: '192.0.2.1', port: 0 }];
const peer = { family: 4, address: '192.0.2.9', port: 4000 } as const;

clean(test, standin, 'v2: adapter, queues, memory, connector, listener', async () => {
  const nd = new V2Provider(openPlain, addresses);
  assert.equal(
    nd.queryAddressList().map(({ address }) => address),
    ['192.0.2.1'],
  );
  assert.is(nd.resolveAddress('192.0.2.1'), GUID);
  const adapter = nd.openAdapter(GUID);
  assert.is(adapter.query().adapterId, GUID);
  const cq = adapter.createCompletionQueue(16);
  const region = adapter.createMemoryRegion();
  const registering = region.register(new Uint8Array(4096), 0);
  await registering;
  const qp = adapter.createQueuePair({
    receiveCompletionQueue: cq,
    initiatorCompletionQueue: cq,
    context: 'q',
    receiveQueueDepth: 4,
    initiatorQueueDepth: 4,
    maxReceiveRequestSge: 1,
    maxInitiatorRequestSge: 1,
  });
  const connector = adapter.createConnector();
  connector.bind('192.0.2.1');
  const connecting = connector.connect(qp, peer, { inboundReadLimit: 1, outboundReadLimit: 1 });
  await until(() => standin.stats().waiting > 0);
  standin.complete(1, Status.CONNECTION_REFUSED);
  assert.is(await statusOf(() => connecting), Status.CONNECTION_REFUSED);
  const notified = cq.notify('any');
  await until(() => standin.stats().waiting > 0);
  cq.cancelOverlappedRequests();
  assert.is(await statusOf(() => notified), Status.CANCELED);
  const listener = adapter.createListener();
  listener.bind('192.0.2.1');
  listener.listen(4);
  const fresh = adapter.createConnector();
  const waiting = listener.getConnectionRequest(fresh);
  listener.cancelOverlappedRequests();
  assert.is(await statusOf(() => waiting), Status.CANCELED);
  await region.deregister();
  for (const object of [fresh, listener, connector, qp, region, cq, adapter, nd]) object.release();
});

clean(test, standin, 'v1: adapter, memory, queues, listen', async () => {
  const nd = new V1Provider(openPlain, addresses);
  const adapter = nd.openAdapter('192.0.2.1');
  adapter.query();
  const cq = adapter.createCompletionQueue(16);
  const memory = await adapter.registerMemory(new Uint8Array(4096));
  await adapter.deregisterMemory(memory);
  const notified = cq.notify('any');
  cq.cancelOverlappedRequests();
  assert.is(await statusOf(() => notified), Status.CANCELED);
  for (const object of [cq, adapter, nd]) object.release();
});

clean(test, standin, 'an error of the driver is an NdError with its status', () => {
  const nd = new V2Provider(openPlain, addresses);
  assert.throws(
    () => nd.resolveAddress('9.9.9.9'),
    (error: unknown) => error instanceof NdError && error.status === Status.INVALID_ADDRESS,
  );
  nd.release();
});

test.run();
