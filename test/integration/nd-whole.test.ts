/** The rest of the NetworkDirect interfaces: QueryInterface, overlapped files, affinity, and arrays that cannot be written. */
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type IND2Adapter,
  type INDAdapter,
  type Nd2Result,
  type NdCompletedRequest,
  NdError,
  type NdInterfaces,
  type NdOverlappedFile,
  type NdResult,
  type NdUnknown,
  openNetworkDirect,
  openNetworkDirect2,
  Status,
  statusName,
} from '../../nd/index.js';
import { endsIn } from '../helpers/nd-fixture.js';

const ADDRESS = '127.0.0.1';
type Name = keyof NdInterfaces;

function openV1(): INDAdapter {
  using nd = openNetworkDirect();
  return nd.openAdapter(ADDRESS);
}

function openV2(): IND2Adapter {
  using nd = openNetworkDirect2();
  return nd.openAdapter(nd.resolveAddress(ADDRESS));
}

function endpointOf(adapter: INDAdapter) {
  const cq = adapter.createCompletionQueue(8);
  const connector = adapter.createConnector();
  const queues = { inboundCompletionQueue: cq, outboundCompletionQueue: cq };
  return {
    cq,
    connector,
    endpoint: connector.createEndpoint({ ...queues, inboundEntries: 4, outboundEntries: 4 }),
  };
}

function pairOf(adapter: IND2Adapter, file?: NdOverlappedFile) {
  const cq = adapter.createCompletionQueue(8, undefined, file);
  const queues = { receiveCompletionQueue: cq, initiatorCompletionQueue: cq };
  const pair = adapter.createQueuePair({ ...queues, receiveQueueDepth: 4, initiatorQueueDepth: 4 });
  return { cq, pair, connector: adapter.createConnector(file) };
}

test('QueryInterface of every object returns only its own interfaces, with a reference', () => {
  const [one, two] = [openNetworkDirect(), openNetworkDirect2()];
  const [v1, v2] = [openV1(), openV2()];
  const [a, b] = [endpointOf(v1), pairOf(v2)];
  const window: Name[] = ['INDMemoryWindow', 'IND2MemoryWindow'];
  const own: [NdUnknown, Name[]][] = [
    [one, ['INDProvider']],
    [v1, ['INDOverlapped', 'INDAdapter']],
    [a.cq, ['INDOverlapped', 'INDCompletionQueue']],
    [a.connector, ['INDOverlapped', 'INDConnector']],
    [a.endpoint, ['INDEndpoint']],
    [v1.listen(), ['INDOverlapped', 'INDListen']],
    [v1.createMemoryWindow(), window],
    [two, ['IND2Provider']],
    [v2, ['IND2Adapter']],
    [b.cq, ['IND2Overlapped', 'IND2CompletionQueue']],
    [b.connector, ['IND2Overlapped', 'IND2Connector']],
    [b.pair, ['IND2QueuePair']],
    [v2.createListener(), ['IND2Overlapped', 'IND2Listener']],
    [v2.createMemoryRegion(), ['IND2Overlapped', 'IND2MemoryRegion']],
    [v2.createSharedReceiveQueue({ depth: 4 }), ['IND2Overlapped', 'IND2SharedReceiveQueue']],
    [v2.createMemoryWindow(), window],
  ];
  const all = [...new Set(own.flatMap(([, names]) => names))];
  assert.is(all.length, 18, 'all interfaces');
  for (const [object, names] of own) {
    const before = object.addRef();
    for (const name of [...all, 'IUnknown'] as Name[]) {
      const has = name === 'IUnknown' || names.includes(name);
      if (has) {
        const answered: unknown = object.queryInterface(name);
        assert.ok(answered === object, name);
        assert.is(object.release(), before, 'the reference that it came with');
      } else endsIn(() => object.queryInterface(name), Status.NOT_SUPPORTED, name);
    }
    object.release();
  }
  assert.throws(() => v1.queryInterface('INDNothing' as Name), /IUnknown, INDOverlapped, INDAdapter/);
  for (const [object] of [...own].reverse()) {
    object.release();
    endsIn(() => object.queryInterface('IUnknown'), Status.INVALID_HANDLE);
  }
});

/** Gets `count` completed requests. */
async function taken(file: NdOverlappedFile, count: number): Promise<NdCompletedRequest[]> {
  const all: NdCompletedRequest[] = [];
  while (all.length < count) {
    const { value, done } = await file.next();
    if (done === true) break;
    all.push(value);
  }
  return all;
}

test('v2: a file delivers the requests of its objects, even if they are also awaited; one loop serves connections', async () => {
  const adapter = openV2();
  const file = adapter.createOverlappedFile();
  const other = adapter.createOverlappedFile();
  const [active, passive] = [pairOf(adapter, file), pairOf(adapter, file)];
  const region = adapter.createMemoryRegion(other);
  const listener = adapter.createListener(file);
  listener.bind(`${ADDRESS}:0`);
  listener.listen();
  const registered = region.register(new Uint8Array(8), 1);
  listener.getConnectionRequest(passive.connector);
  active.connector.bind(`${ADDRESS}:0`);
  active.connector.connect(active.pair, listener.getLocalAddress());
  const reported: string[] = [];
  const names = new Map<unknown, string>([
    [listener, 'request'],
    [passive.connector, 'accepted'],
    [active.connector, 'replied'],
    [active.cq, 'notified'],
  ]);
  for await (const { issuer, request } of file) {
    reported.push(`${names.get(issuer)} ${statusName(request.status)}`);
    if (issuer === listener) passive.connector.accept(passive.pair);
    const replied = reported.filter((one) => one.startsWith('replied')).length;
    if (issuer === active.connector && replied === 1) active.connector.completeConnect();
    if (reported.length === 4) break;
  }
  assert.equal(reported.slice(0, 2), ['request SUCCESS', 'replied SUCCESS']);
  assert.equal(reported.slice(2).sort(), ['accepted SUCCESS', 'replied SUCCESS']);
  const notified = active.cq.notify('any');
  active.pair.receive('r', []);
  active.pair.flush();
  await notified;
  const [last] = await taken(file, 1);
  assert.ok(last?.request === notified && last.issuer === active.cq);
  const [first] = await taken(other, 1);
  assert.ok(first?.request === registered, 'files are independent');
  // Closing cancels pending requests, delivers them, and ends the iteration.
  const waiting = active.cq.notify('errors');
  assert.is(file.outstanding, 1);
  file.close();
  assert.equal(
    (await taken(file, 9)).map(({ request }) => request.status),
    [Status.CANCELED],
  );
  assert.is(waiting.status, Status.CANCELED);
  assert.equal(await file.next(), { done: true, value: undefined });
  // Existing objects work without the file, but new objects cannot use it.
  const later = active.cq.notify('errors');
  later.cancel();
  assert.equal(await file.next(), { done: true, value: undefined });
  for (const make of [
    () => adapter.createConnector(file),
    () => adapter.createListener({} as NdOverlappedFile),
    () => adapter.createMemoryRegion(file),
    () => adapter.createCompletionQueue(1, undefined, file),
    () => adapter.createSharedReceiveQueue({ depth: 1, overlappedFile: file }),
  ])
    endsIn(make, Status.INVALID_HANDLE);
  await active.connector.disconnect();
  other.close();
  adapter.release();
});

test('v1: the file of an adapter delivers the requests of all its objects, until the adapter ends', async () => {
  const adapter = openV1();
  const file = adapter.getFileHandle();
  assert.ok(adapter.getFileHandle() === file, 'one file');
  const [active, passive] = [endpointOf(adapter), endpointOf(adapter)];
  const memory = adapter.registerMemory(new Uint8Array(8));
  const listen = adapter.listen();
  const request = listen.getConnectionRequest(passive.connector);
  const connect = active.connector.connect(active.endpoint, listen.address);
  const [a, b] = await taken(file, 2);
  assert.ok(a?.request === memory && a.issuer === adapter);
  assert.ok(b?.request === request && b.issuer === listen, 'a request belongs to the listener');
  passive.connector.reject();
  const [c] = await taken(file, 1);
  assert.ok(c?.request === connect && c.request.status === Status.CONNECTION_REFUSED);
  const another = adapter.createConnector();
  const waiting = listen.getConnectionRequest(another);
  another.release();
  adapter.release();
  for (const each of [active, passive]) for (const one of Object.values(each)) one.release();
  listen.release();
  assert.equal(
    (await taken(file, 9)).map(({ request: ended }) => ended === waiting),
    [true],
  );
  assert.is(file.closed, true);
});

test('GetNotifyAffinity reports where the thread may run; invalid affinities are rejected', () => {
  const adapter = openV2();
  const allowed = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
  const processors = allowed.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to! - from! + 1 }, (_, index) => from! + index);
  });
  const group = Math.floor(processors[0]! / 64);
  const mask = processors
    .filter((one) => Math.floor(one / 64) === group)
    .reduce((bits, one) => bits | (1n << BigInt(one % 64)), 0n);
  const wish = { group: 0, mask: 1n };
  const queues = [
    adapter.createCompletionQueue(1, wish),
    adapter.createSharedReceiveQueue({ depth: 1, affinity: wish }),
  ];
  for (const queue of queues) assert.equal(queue.getNotifyAffinity(), { group, mask });
  for (const wrong of [7, null, {}, { group: 0 }, { group: -1, mask: 0n }, { group: 0, mask: 1n << 64n }]) {
    const affinity = wrong as never;
    endsIn(() => adapter.createCompletionQueue(1, affinity), Status.INVALID_PARAMETER);
    endsIn(() => adapter.createSharedReceiveQueue({ depth: 1, affinity }), Status.INVALID_PARAMETER);
  }
  adapter.release();
});

test('an array of results that cannot be written is rejected, and no result is lost', () => {
  const v1 = openV1();
  const { cq, endpoint } = endpointOf(v1);
  const results = [0, 1, 2].map((): NdResult => ({ status: 1, bytesTransferred: 1 }));
  for (const result of results) endpoint.receive(result, []);
  endpoint.flush();
  const refused = (get: () => number) => {
    assert.throws(get, (error: unknown) => {
      return (
        error instanceof NdError &&
        error.status === Status.INVALID_PARAMETER &&
        /`results` must be writable/.test(error.message)
      );
    });
  };
  for (const times of [1, 2])
    refused(() => cq.getResults(Object.freeze(new Array<NdResult>(times)) as NdResult[], 4));
  // One element is writable, so one result is returned and the others remain queued.
  const one = Object.seal(new Array<NdResult>(results[0]!));
  assert.is(cq.getResults(one, 3), 1);
  const rest: NdResult[] = [];
  assert.is(cq.getResults(rest, 4), 2);
  assert.equal([one[0] === results[0], rest[0] === results[1], rest[1] === results[2]], [true, true, true]);
  assert.equal(
    results.map(({ status }) => status),
    [Status.CANCELED, Status.CANCELED, Status.CANCELED],
  );
  for (const result of results) endpoint.receive(result, []);
  v1.release();

  const v2 = openV2();
  const b = pairOf(v2);
  for (const context of ['x', 'y']) b.pair.receive(context, []);
  b.pair.flush();
  refused(() => b.cq.getResults(Object.freeze([] as Nd2Result[]) as Nd2Result[], 4));
  const got: Nd2Result[] = [];
  assert.is(b.cq.getResults(got, 4), 2);
  assert.equal(
    got.map(({ requestContext, status }) => [requestContext, status]),
    [
      ['x', Status.CANCELED],
      ['y', Status.CANCELED],
    ],
  );
  v2.release();
});

test.run();
