/** Arguments that TypeScript would reject. They are rejected with a status before anything is queued or lost. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  Nd2RemoteMemory,
  type Nd2Result,
  NdError,
  NdMwDescriptor,
  NdOpFlag,
  Status,
} from '../../nd/index.js';
import { WcStatus } from '../../winverbs/index.js';
import { endpointOf, endsIn, openFake, registered, result } from '../helpers/nd-fixture.js';
import { openFake2, queuePairOf, registered2 } from '../helpers/nd2-fixture.js';

const { ALLOW_READ } = NdOpFlag;

/** Invalid values for lists of scatter/gather entries. The first one is a single entry. */
const lists = [
  { memory: new Uint8Array(4), offset: 0, length: 4 },
  new Uint8Array(4),
  undefined,
  null,
  'text',
];
const entries = [null, undefined, 7];

test('a scatter/gather list must be an array of objects', () => {
  const v1 = openFake();
  const { endpoint, qp } = endpointOf(v1.adapter, v1.pd);
  const v2 = openFake2();
  const { queuePair, qp: qp2 } = queuePairOf(v2.adapter, v2.pd);
  const descriptor = new NdMwDescriptor(0n, 8n, 1);
  const remote = new Nd2RemoteMemory(0n, 1);
  for (const list of [...lists, ...entries.map((entry) => [entry])]) {
    const sgl = list as never;
    for (const call of [
      () => endpoint.send(result(), sgl),
      () => endpoint.sendAndInvalidate(result(), sgl, descriptor),
      () => endpoint.receive(result(), sgl),
      () => endpoint.read(result(), sgl, descriptor, 0),
      () => endpoint.write(result(), sgl, descriptor, 0),
      () => queuePair.send(0, sgl),
      () => queuePair.receive(0, sgl),
      () => queuePair.read(0, sgl, remote),
      () => queuePair.write(0, sgl, remote),
    ]) {
      endsIn(call, Status.INVALID_PARAMETER, `${call} ${JSON.stringify(list)}`);
    }
  }
  assert.equal([qp.posted.length, qp2.posted.length], [0, 0]);
});

test('memory of the peer must be an object of the version’s class', () => {
  const v1 = openFake();
  const { endpoint, qp } = endpointOf(v1.adapter, v1.pd);
  const v2 = openFake2();
  const { queuePair, qp: qp2 } = queuePairOf(v2.adapter, v2.pd);
  const descriptor = new NdMwDescriptor(0n, 8n, 1);
  for (const remote of [
    undefined,
    null,
    {},
    { ...descriptor },
    descriptor.encode(),
    new Nd2RemoteMemory(0n, 1),
  ]) {
    for (const call of [
      () => endpoint.sendAndInvalidate(result(), [], remote as never),
      () => endpoint.read(result(), [], remote as never, 0),
      () => endpoint.write(result(), [], remote as never, 0),
    ]) {
      endsIn(call, Status.INVALID_PARAMETER_4);
    }
  }
  for (const remote of [undefined, null, {}, 5n, descriptor]) {
    endsIn(() => queuePair.read(0, [], remote as never), Status.INVALID_PARAMETER_4);
    endsIn(() => queuePair.write(0, [], remote as never), Status.INVALID_PARAMETER_4);
  }
  assert.equal([qp.posted.length, qp2.posted.length], [0, 0]);
});

test('private data must be bytes', () => {
  const { adapter, pd } = openFake();
  const { endpoint } = endpointOf(adapter, pd);
  const { adapter: adapter2, pd: pd2 } = openFake2();
  const { queuePair } = queuePairOf(adapter2, pd2);
  for (const data of ['text', null, 4, [1, 2], new ArrayBuffer(4)]) {
    const privateData = data as never;
    const connector2 = adapter2.createConnector();
    connector2.bind('10.0.0.1');
    endsIn(
      () => adapter.createConnector().connect(endpoint, '10.0.0.2:1', { privateData }),
      Status.INVALID_PARAMETER,
    );
    endsIn(() => connector2.connect(queuePair, '10.0.0.2:1', { privateData }), Status.INVALID_PARAMETER);
  }
});

test('v1: the result of an invalidation by the peer must be an object or undefined', () => {
  const { adapter } = openFake();
  for (const value of [null, 5, 'result']) {
    endsIn(() => adapter.createMemoryWindow(value as never), Status.INVALID_PARAMETER_1);
  }
  adapter.createMemoryWindow().release();
  adapter.createMemoryWindow(result()).release();
});

test('v1: a read-only result is rejected at once', () => {
  const { adapter, pd } = openFake();
  const { endpoint, qp } = endpointOf(adapter, pd);
  const readonly = Object.defineProperty(result(), 'status', { value: 0, writable: false });
  const halfFrozen = Object.defineProperty(result(), 'bytesTransferred', { get: () => 0 });
  for (const value of [Object.freeze(result()), Object.preventExtensions({}), readonly, halfFrozen]) {
    for (const call of [
      () => endpoint.send(value as never, []),
      () => endpoint.receive(value as never, []),
      () => adapter.createMemoryWindow(value as never),
    ]) {
      endsIn(call, Status.INVALID_PARAMETER_1);
    }
  }
  assert.is(qp.posted.length, 0);
});

test('v1: a result frozen after its request does not affect the others', () => {
  const { adapter, pd } = openFake();
  const { endpoint, qp, outbound } = endpointOf(adapter, pd);
  const all = [result('first'), result('frozen'), result('last')];
  for (const one of all) endpoint.send(one, []);
  Object.freeze(all[1]);
  for (const posted of qp.posted) qp.complete(posted);
  const results: typeof all = [];
  assert.is(outbound.getResults(results, 3), 3);
  assert.equal(results, all);
  assert.equal([all[0]!.status, all[2]!.status], [Status.SUCCESS, Status.SUCCESS]);
});

/** Returns completion queues of v1 and v2 with one result each. */
function oneResultEach() {
  const v1 = openFake();
  const { endpoint, qp, outbound } = endpointOf(v1.adapter, v1.pd);
  const v2 = openFake2();
  const { queuePair, qp: qp2, initiators } = queuePairOf(v2.adapter, v2.pd);
  endpoint.send(result(), []);
  qp.complete(qp.posted[0]!);
  queuePair.send(0, []);
  qp2.complete(qp2.posted[0]!);
  return { outbound, initiators };
}

/** Checks that `call` fails like getResults with invalid arguments. */
function refusesResults(call: () => unknown, text: RegExp, of: string): void {
  const refused = (error: NdError) =>
    error instanceof NdError && error.status === Status.INVALID_PARAMETER && text.test(error.message);
  assert.throws(call, refused, `${call} ${of}`);
}

/** Invalid values for an array of results. The first one is their number, as in C. */
const noArrays = [8, undefined, null, 'text', {}, new Uint8Array(4)];

test('getResults requires an array', () => {
  const { outbound, initiators } = oneResultEach();
  for (const value of noArrays) {
    const results = value as never;
    for (const call of [
      () => outbound.getResults(results),
      () => outbound.getResults(results, 4),
      () => initiators.getResults(results),
      () => initiators.getResults(results, 4),
    ]) {
      refusesResults(call, /^GetResults: .*array/, JSON.stringify(value));
    }
  }
  // No result is lost.
  assert.equal([outbound.getResults([]), initiators.getResults([])], [1, 1]);
});

test('the maximum number of results must be an integer', () => {
  const { outbound, initiators } = oneResultEach();
  for (const max of [
    Number.NaN,
    -1,
    1.5,
    2 ** 32,
    Number.POSITIVE_INFINITY,
    '4',
    4n,
    {},
    Symbol('4'),
  ] as number[]) {
    for (const call of [() => outbound.getResults([], max), () => initiators.getResults([], max)]) {
      refusesResults(call, /^GetResults: `max` must be an integer .*; got \S+/, String(max));
    }
  }
  assert.equal([outbound.getResults([], 0), initiators.getResults([], 0)], [0, 0]);
  assert.equal([outbound.getResults([], 1), initiators.getResults([], 1)], [1, 1]);
});

test('v2: a read-only object is replaced, and no result is lost', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp, initiators } = queuePairOf(adapter, pd);
  const post = (): void => {
    for (const context of ['first', 'second', 'third']) queuePair.send(context, []);
    for (const posted of qp.posted.splice(0)) qp.complete(posted);
  };
  const results: Nd2Result[] = [];
  const contexts = () => results.map(({ requestContext }) => requestContext);
  post();
  assert.is(initiators.getResults(results, 3), 3);
  const frozen = Object.freeze(results[1]!);
  results[1] = frozen;
  results[2] = null as never;
  post();
  assert.is(initiators.getResults(results, 3), 3);
  assert.equal(contexts(), ['first', 'second', 'third']);
  assert.is.not(results[1], frozen);
});

test('an Invalidate on another queue pair fails and leaves the window bound', () => {
  const v1 = openFake();
  const mine = endpointOf(v1.adapter, v1.pd);
  const other = endpointOf(v1.adapter, v1.pd);
  const memory = registered(v1.adapter, v1.pd);
  const gone = result('the peer has invalidated it');
  const window = v1.adapter.createMemoryWindow(gone);
  const { token } = mine.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  const failed = result();
  other.endpoint.invalidate(failed, window);
  other.qp.complete(other.qp.posted.at(-1)!, { status: WcStatus.LOCAL_OP_ERROR });
  assert.is(other.outbound.getResults([]), 1);
  assert.is(failed.status, Status.INVALID_DEVICE_REQUEST);
  endsIn(
    () => mine.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ),
    Status.INVALID_DEVICE_STATE,
    'it is bound',
  );
  assert.is((v1.adapter as never as { windows: Map<number, unknown> }).windows.has(token), true);

  const v2 = openFake2();
  const mine2 = queuePairOf(v2.adapter, v2.pd);
  const other2 = queuePairOf(v2.adapter, v2.pd);
  const region = registered2(v2.adapter, v2.pd, 1);
  const window2 = v2.adapter.createMemoryWindow();
  mine2.queuePair.bind('b', region, window2, 0, 8, ALLOW_READ);
  other2.queuePair.invalidate('i', window2);
  other2.qp.complete(other2.qp.posted.at(-1)!, { status: WcStatus.LOCAL_OP_ERROR });
  assert.is(other2.initiators.getResults([]), 1);
  endsIn(() => mine2.queuePair.bind('b', region, window2, 0, 8, ALLOW_READ), Status.INVALID_DEVICE_STATE);
});

test.run();
