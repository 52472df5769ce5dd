/** ND_MR_HANDLE in 4 bytes, as in a 32-bit program: equivalent to the object, and invalid once it is deregistered. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdMwDescriptor, NdOpFlag, openNetworkDirect, Status } from '../../nd/index.js';
import { endsIn } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const ADDRESS = '127.0.0.1';

async function connected() {
  using nd = openNetworkDirect();
  const adapter = nd.openAdapter(ADDRESS);
  const side = () => {
    const cq = adapter.createCompletionQueue(8);
    const queues = { inboundCompletionQueue: cq, outboundCompletionQueue: cq };
    const connector = adapter.createConnector();
    const endpoint = connector.createEndpoint({ ...queues, inboundEntries: 4, outboundEntries: 4 });
    return { cq, connector, endpoint };
  };
  const [a, b] = [side(), side()];
  const listen = adapter.listen();
  const accepted = listen.getConnectionRequest(b.connector).then(() => b.connector.accept(b.endpoint));
  await a.connector.connect(a.endpoint, listen.address);
  await Promise.all([a.connector.completeConnect(), accepted]);
  return { adapter, a, b };
}

const result = () => ({ status: 1, bytesTransferred: 0 });

async function ended(side: Awaited<ReturnType<typeof connected>>['a'], count: number): Promise<number[]> {
  const all: number[] = [];
  const results: ReturnType<typeof result>[] = [];
  while (all.length < count) {
    const taken = side.cq.getResults(results, 4);
    for (const one of results.slice(0, taken)) all.push(one.status);
    if (taken === 0) await side.cq.notify('any');
  }
  return all;
}

test('a number of 4 bytes identifies registered memory wherever its object does', async () => {
  const { adapter, a, b } = await connected();
  const [from, into] = [Buffer.alloc(4096, 'data'), Buffer.alloc(4096)];
  const [source, target] = await Promise.all([adapter.registerMemory(from), adapter.registerMemory(into)]);
  for (const { handle } of [source, target]) assert.is(handle >>> 0, handle, 'unsigned, 32 bits');
  assert.is.not(source.handle, target.handle);
  // Tests Send and Receive, each with both forms.
  for (const [out, inTo] of [
    [source.handle, target],
    [source, target.handle],
    [source.handle, target.handle],
  ]) {
    into.fill(0);
    b.endpoint.receive(result(), [{ memory: inTo!, offset: 8, length: 2000 }]);
    a.endpoint.send(result(), [{ memory: out!, offset: 0, length: 2000 }]);
    assert.equal([await ended(a, 1), await ended(b, 1)], [[Status.SUCCESS], [Status.SUCCESS]]);
    assert.ok(into.subarray(8, 2008).equals(from.subarray(0, 2000)));
  }
  // A window on the memory, and a Write through that window.
  const window = adapter.createMemoryWindow();
  const descriptor = b.endpoint.bind(result(), target.handle, window, 0, 4096, NdOpFlag.ALLOW_WRITE);
  assert.equal(await ended(b, 1), [Status.SUCCESS]);
  into.fill(0);
  a.endpoint.write(
    result(),
    [{ memory: source.handle, offset: 0, length: 4096 }],
    NdMwDescriptor.decode(descriptor.encode()),
    0,
  );
  assert.equal(await ended(a, 1), [Status.SUCCESS]);
  assert.ok(into.equals(from));
  assert.is(await outcome(adapter.deregisterMemory(target.handle)), Status.DEVICE_BUSY, 'a window is bound');
  await a.connector.disconnect();
  adapter.release();
});

test('an unknown number is INVALID_HANDLE, like an object of another adapter', async () => {
  const { adapter, a } = await connected();
  using nd = openNetworkDirect();
  const other = nd.openAdapter(ADDRESS);
  const foreign = await other.registerMemory(new Uint8Array(8));
  const own = await adapter.registerMemory(new Uint8Array(8));
  await adapter.deregisterMemory(own.handle);
  for (const memory of [own.handle, own, foreign.handle, foreign, 0, -1, 1.5, Number.NaN, 2 ** 32]) {
    const sgl = [{ memory, offset: 0, length: 8 }];
    endsIn(() => a.endpoint.send(result(), sgl), Status.INVALID_HANDLE, String(memory));
    endsIn(() => adapter.deregisterMemory(memory), Status.INVALID_HANDLE);
  }
  // The handle of recently deregistered memory is not reused.
  const next = await adapter.registerMemory(new Uint8Array(8));
  assert.is.not(next.handle, own.handle);
  // A failed registration does not leave a handle. The handle of a registration that has completed without being awaited is valid.
  const unseen = adapter.registerMemory(new Uint8Array(8));
  const { handle } = unseen.getResult({ wait: true });
  await adapter.deregisterMemory(handle);
  endsIn(() => adapter.deregisterMemory(handle), Status.INVALID_HANDLE);
  await a.connector.disconnect();
  adapter.release();
  other.release();
});

test.run();
