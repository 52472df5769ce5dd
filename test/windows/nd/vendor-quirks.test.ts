// Providers that behave differently from the stand-in's defaults, as COM and the SPI permit, and programs that use them in unusual orders.
import { once } from 'node:events';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ComObject } from '../../../kernel-bridge/windows/nd-provider/index.js';
import {
  allocate,
  Nd2MrFlag,
  type Nd2Result,
  NdError,
  ndProviderOf,
  openNetworkDirect2,
  Status,
} from '../../../nd/index.js';
import { collect } from '../../helpers/collect.js';
import { statusOf } from '../standin.js';
import { clean, Nd2Standin, PROVIDER } from './nd2-standin.js';
import { onlyProvider, openHost, openShared, openSide } from './vendor-host.js';

const standin = new Nd2Standin();

clean(test, standin, 'a provider that returns an adapter twice', () => {
  standin.set({ single: 1 });
  const host = openHost();
  const again = host.provider.openAdapter('127.0.0.1');
  again.createCompletionQueue(4).release();
  again.release();
  host.adapter.createCompletionQueue(4).release();
  host.release();
});

clean(
  test,
  standin,
  'a notification that ends in CANCELED without a cancellation is not reissued',
  async () => {
    const host = openHost();
    const queue = host.adapter.createCompletionQueue(4);
    const calls = standin.calls('IND2CompletionQueue::Notify');
    standin.end('IND2CompletionQueue::Notify', Status.CANCELED);
    assert.is(await statusOf(() => queue.notify('any')), Status.CANCELED);
    assert.is(standin.calls('IND2CompletionQueue::Notify'), calls + 1);
    queue.release();
    host.release();
  },
);

clean(test, standin, 'a function of map() that blocks on a request of the same batch', async () => {
  standin.set({ delay: 200 });
  const host = openHost();
  const regions = Array.from({ length: 8 }, () => host.adapter.createMemoryRegion());
  const requests = regions.map((region) => region.register(allocate(64), Nd2MrFlag.ALLOW_LOCAL_WRITE));
  const mapped = requests.map((request, i) =>
    // The packet of the first request arrives alone, those of the others together.
    request.map(() => (i > 0 && i < 7 ? requests[i + 1]!.getResult({ wait: true }) : undefined)),
  );
  // Unlike await, finally() observes the requests immediately.
  const all = Promise.all(mapped.map((request) => request.finally()));
  const until = Date.now() + 500;
  while (Date.now() < until);
  await all;
  for (const region of regions) region.release();
  host.release();
});

clean(test, standin, 'the overlapped file is closed after requests that end late', async () => {
  standin.set({ completion: 2, delay: 10 });
  const host = openHost();
  const queue = host.adapter.createCompletionQueue(4);
  const notified = queue.notify('any');
  queue.release();
  host.release();
  assert.is(await statusOf(() => notified), Status.CANCELED);
});

clean(test, standin, 'adapters of two providers with the same id', () => {
  const folder = mkdtempSync('C:\\nd-');
  const copy = `${folder}\\other-nd2.dll`;
  copyFileSync(PROVIDER, copy);
  onlyProvider(`${PROVIDER};${copy}`);
  standin.set({ ipv6: 0 });
  const provider = openNetworkDirect2({ hca: 'rdma' });
  const ids = ['127.0.0.1', '::1'].map((address) => provider.resolveAddress(address));
  const adapters = ids.map((id) => provider.openAdapter(id));
  assert.equal(
    adapters.map((adapter) => ndProviderOf(adapter)?.library),
    ['standin-nd2.dll', 'other-nd2.dll'],
  );
  for (const object of [...adapters, provider]) object.release();
});

clean(test, standin, 'results of a released queue pair with a shared receive queue', async () => {
  const host = openHost();
  const { shared, a, b, queue, queuePair } = await openShared(host);
  for (let i = 0; i < 2; i++) a.queuePair.send(i, a.sge(0, 10));
  await a.initiated(2);
  queuePair.release();
  const results: Nd2Result[] = [];
  assert.is(queue.getResults(results, 8), 2);
  assert.equal(
    results.map(({ requestContext, queuePairContext }) => [requestContext, queuePairContext]),
    [
      [0, 'srq'],
      [1, 'srq'],
    ],
  );
  for (const object of [a, b, queue, shared, host]) object.release();
});

clean(test, standin, 'queue pairs whose results the provider discards use no tokens', async () => {
  standin.set({ purge: 1 });
  const host = openHost();
  const { adapter } = host;
  const queue = adapter.createCompletionQueue(16);
  for (let i = 0; i < 66_000; i++) {
    const queuePair = adapter.createQueuePair({
      receiveCompletionQueue: queue,
      initiatorCompletionQueue: queue,
      receiveQueueDepth: 1,
      initiatorQueueDepth: 1,
    });
    queuePair.receive(i, []);
    queuePair.release();
  }
  queue.release();
  host.release();
});

clean(test, standin, 'GetResults that returns a status instead of a number', () => {
  const host = openHost();
  const queue = host.adapter.createCompletionQueue(16);
  standin.fail('IND2CompletionQueue::GetResults', Status.DEVICE_REMOVED);
  assert.is(queue.getResults([], 8), 0);
  queue.release();
  host.release();
});

clean(test, standin, 'memory of a released region is deregistered after ERROR_BUSY', async () => {
  const host = openHost();
  const region = host.adapter.createMemoryRegion();
  await region.register(allocate(64), Nd2MrFlag.ALLOW_LOCAL_WRITE);
  const calls = standin.calls('IND2MemoryRegion::Deregister');
  standin.fail('IND2MemoryRegion::Deregister', 0x8007_00aa);
  region.release();
  const other = openSide(host);
  void other.region;
  other.release();
  assert.ok(standin.calls('IND2MemoryRegion::Deregister') >= calls + 2);
  host.release();
});

clean(test, standin, 'addresses in other notations', () => {
  const host = openHost();
  for (const address of ['0:0:0:0:0:0:0:1', { family: 6, address: '0::0001', port: 0 }] as const) {
    const adapter = host.provider.openAdapter(address);
    const connector = adapter.createConnector();
    connector.bind(address);
    connector.release();
    adapter.release();
  }
  assert.throws(
    () => host.provider.openAdapter({ address: '1::2::3', port: 0 }),
    (error: unknown) => error instanceof NdError && error.status === Status.INVALID_ADDRESS,
  );
  host.release();
});

clean(test, standin, 'auto warns about a provider that does not list its addresses', async () => {
  onlyProvider();
  const warned = once(process, 'warning');
  const provider = openNetworkDirect2();
  standin.fail('IND2Provider::QueryAddressList', Status.INSUFFICIENT_RESOURCES);
  provider.queryAddressList();
  const [warning] = (await warned) as [Error];
  assert.match(warning.message, /standin-nd2\.dll.*QueryAddressList/);
  provider.release();
});

clean(test, standin, 'a garbage collection between the arguments of a call and the call', () => {
  const host = openHost();
  const { prototype } = ComObject;
  const call = prototype.call;
  let collects = false;
  prototype.call = function (this: ComObject, ...values: Parameters<typeof call>) {
    if (collects) for (let i = 0; i < 2; i++) collect();
    return call.apply(this, values);
  };
  try {
    // Only optimized code drops the references to memory that it does not use any more.
    for (let i = 0; i < 30_000; i++) host.provider.resolveAddress('127.0.0.1');
    collects = true;
    for (let i = 0; i < 20; i++) host.provider.resolveAddress('127.0.0.1');
  } finally {
    prototype.call = call;
  }
  host.release();
});

test.run();
