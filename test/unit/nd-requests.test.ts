import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, NdMwDescriptor, NdOpFlag, type NdResult, Status } from '../../nd/index.js';
import { QpAttr, QpState, WcStatus } from '../../winverbs/index.js';
import { endpointOf, endsIn, openFake, registered, result } from '../helpers/nd-fixture.js';

const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ } = NdOpFlag;
const remote = new NdMwDescriptor(0x8000n, 4096n, 0x55);

function rig(options?: Parameters<typeof endpointOf>[2]) {
  const fake = openFake();
  const memory = registered(fake.adapter, fake.pd);
  const parts = endpointOf(fake.adapter, fake.pd, options);
  /** Too long for an inline request. */
  const sgl = [{ memory, offset: 10, length: 1000 }];
  const results: NdResult[] = [];
  return { ...fake, ...parts, memory, sgl, results };
}

test('N7: a new endpoint is in INIT, with all attributes set', () => {
  const { qp } = rig();
  assert.equal(qp.modified, [
    {
      attributes: { qpState: QpState.INIT, portNumber: 1, pkeyIndex: 3, accessFlags: 8 },
      options: QpAttr.STATE | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX | QpAttr.ACCESS_FLAGS,
    },
  ]);
});

test('N6: inline requests use the limit that the queue pair grants', () => {
  const { endpoint, qp, memory } = rig();
  assert.is(qp.create.maxInlineSend, 256);
  assert.is(endpoint.maxInline, 64);
  const flagsOf = (length: number): number => {
    endpoint.write(result(), [{ memory, offset: 0, length }], remote, 0);
    return qp.posted.at(-1)!.flags;
  };
  assert.is(flagsOf(64), 4 | 0x10);
  assert.is(flagsOf(65), 4);
  assert.is(flagsOf(0), 4 | 0x10);
});

test('small Sends accept unregistered memory; other requests do not', () => {
  const { endpoint, qp, outbound } = rig();
  const bytes = new Uint8Array(100).fill(7);
  endpoint.send(result(), [{ memory: bytes, offset: 1, length: 64 }]);
  const region = qp.posted[0]!.sgl[0]!.region as { bytes?: Uint8Array };
  assert.is(region.bytes, bytes);
  const large = [{ memory: bytes, offset: 0, length: 65 }];
  endsIn(() => endpoint.send(result(), large), Status.INVALID_HANDLE);
  const small = [{ memory: bytes, offset: 0, length: 8 }];
  endsIn(() => endpoint.receive(result(), small), Status.INVALID_HANDLE);
  endsIn(() => endpoint.read(result(), small, remote, 0), Status.INVALID_HANDLE);
  const outside = [{ memory: bytes, offset: 99, length: 2 }];
  endsIn(() => endpoint.send(result(), outside), Status.ACCESS_VIOLATION);
  assert.is(outbound.getResults([]), 0);
});

test('requests pass memory, offsets, keys and flags as WinVerbs expects them', () => {
  const { endpoint, qp, sgl } = rig({ outbound: 8 });
  endpoint.send(result(), sgl, READ_FENCE | SEND_AND_SOLICIT_EVENT);
  endpoint.sendAndInvalidate(result(), sgl, remote, SILENT_SUCCESS);
  endpoint.read(result(), sgl, remote, 96, READ_FENCE);
  endpoint.write(result(), sgl, remote, 32, SILENT_SUCCESS | READ_FENCE);
  endpoint.receive(result(), sgl);
  assert.equal(
    qp.posted.map(({ name, flags, detail }) => [name, flags, detail]),
    [
      ['send', 2 | 4 | 8, {}],
      ['sendAndInvalidate', 0, { rkey: 0x55 }],
      ['read', 2 | 4, { remote, offset: 96 }],
      ['write', 2, { remote, offset: 32 }],
      ['receive', 0, {}],
    ],
  );
  for (const { sgl: posted } of qp.posted) {
    assert.is(posted.length, 1);
    assert.is(posted[0]!.region.lkey, 0x77);
    assert.is(posted[0]!.offset, 10);
    assert.is(posted[0]!.length, 1000);
  }
});

test('the error for unknown flags has the number of their argument', () => {
  const { endpoint, adapter, memory, sgl, qp } = rig();
  const window = adapter.createMemoryWindow();
  endsIn(() => endpoint.send(result(), sgl, 0x20), Status.INVALID_PARAMETER_4);
  endsIn(() => endpoint.send(result(), sgl, ALLOW_READ), Status.INVALID_PARAMETER_4);
  endsIn(() => endpoint.sendAndInvalidate(result(), sgl, remote, -1), Status.INVALID_PARAMETER_5);
  endsIn(() => endpoint.read(result(), sgl, remote, 0, 4), Status.INVALID_PARAMETER_6);
  endsIn(() => endpoint.write(result(), sgl, remote, 0, 4), Status.INVALID_PARAMETER_6);
  endsIn(() => endpoint.bind(result(), memory, window, 0, 8, 4), Status.INVALID_PARAMETER_6);
  endsIn(() => endpoint.invalidate(result(), window, 8), Status.INVALID_PARAMETER_3);
  assert.is(qp.posted.length, 0);
});

test('a request without a result is rejected and uses no entry', () => {
  const { endpoint, qp, sgl, memory, adapter } = rig();
  const window = adapter.createMemoryWindow();
  const none = undefined as never;
  for (const [name, post] of [
    ['Send', () => endpoint.send(none, sgl)],
    ['SendAndInvalidate', () => endpoint.sendAndInvalidate(none, sgl, remote)],
    ['Receive', () => endpoint.receive(none, sgl)],
    ['Read', () => endpoint.read(none, sgl, remote, 0)],
    ['Write', () => endpoint.write(none, sgl, remote, 0)],
    ['Bind', () => endpoint.bind(none, memory, window, 0, 8, ALLOW_READ)],
    ['Invalidate', () => endpoint.invalidate(none, window)],
  ] as const) {
    endsIn(post, Status.INVALID_PARAMETER_1, name);
  }
  assert.is(qp.posted.length, 0);
});

test('offsets and lengths that are not non-negative integers are rejected', () => {
  const { endpoint, memory, qp } = rig();
  for (const [offset, length] of [
    [-1, 4],
    [0.5, 4],
    [Number.NaN, 4],
    [0, -4],
    [0, 1.5],
    [0, 2 ** 32],
    [0, '4' as never],
  ] as const) {
    endsIn(() => endpoint.send(result(), [{ memory, offset, length }]), Status.INVALID_PARAMETER);
  }
  endsIn(() => endpoint.read(result(), [], remote, -1), Status.INVALID_PARAMETER_5);
  const big = { memory, offset: 0, length: 2 ** 31 };
  endsIn(() => endpoint.send(result(), [big, { memory, offset: 0, length: 1 }]), Status.BUFFER_OVERFLOW);
  endsIn(() => endpoint.send(result(), Array(300).fill(big)), Status.DATA_OVERRUN);
  assert.is(qp.posted.length, 0);
});

test('a Read with more entries than the device supports is DATA_OVERRUN', () => {
  const { endpoint, memory, qp } = rig();
  const sgl = (entries: number) => Array.from({ length: entries }, () => ({ memory, offset: 0, length: 4 }));
  endpoint.read(result(), sgl(3), remote, 0);
  endsIn(() => endpoint.read(result(), sgl(4), remote, 0), Status.DATA_OVERRUN);
  endpoint.write(result(), sgl(4), remote, 0);
  assert.is(qp.posted.length, 2);
});

test('bytesTransferred is the total of sent data, the message length for Receives, 0 otherwise', () => {
  const { endpoint, qp, memory, sgl, adapter, inbound, outbound, results } = rig({ outbound: 8 });
  const two = [...sgl, { memory, offset: 0, length: 500 }];
  const sent = result();
  const read = result();
  const written = result();
  const bound = result();
  const received = result();
  endpoint.send(sent, two);
  endpoint.read(read, sgl, remote, 0);
  endpoint.write(written, two, remote, 0);
  endpoint.bind(bound, memory, adapter.createMemoryWindow(), 0, 10, ALLOW_READ);
  endpoint.receive(received, two);
  // The length that the HCA reports for Sends is ignored.
  for (const posted of qp.posted) qp.complete(posted, { length: 33 });
  assert.is(outbound.getResults(results, 10), 4);
  assert.is(inbound.getResults(results, 1), 1);
  const bytes = [sent, read, written, bound, received].map((r) => r.bytesTransferred);
  assert.equal(bytes, [1500, 1000, 1500, 0, 33]);
  for (const r of [sent, read, written, bound, received]) assert.is(r.status, Status.SUCCESS);
});

test('failures have their v1 status and 0 bytes', () => {
  const { endpoint, qp, sgl, outbound, results } = rig();
  endpoint.send(result('a'), sgl);
  endpoint.send(result('b'), sgl);
  qp.complete(qp.posted[0]!, { status: WcStatus.RNR_RETRY_ERROR, length: 99 });
  qp.complete(qp.posted[1]!, { status: WcStatus.FLUSHED });
  assert.is(outbound.getResults(results, 8), 2);
  assert.equal(results, [
    { status: Status.TIMEOUT, bytesTransferred: 0, context: 'a' },
    { status: Status.CANCELED, bytesTransferred: 0, context: 'b' },
  ]);
});

test('several outstanding requests may share a result, which is returned with each outcome', () => {
  const { endpoint, qp, memory, outbound, results } = rig();
  const shared = result();
  for (const length of [100, 200, 300]) endpoint.send(shared, [{ memory, offset: 0, length }]);
  for (const [i, length] of [100, 200, 300].entries()) {
    qp.complete(qp.posted[i]!);
    assert.is(outbound.getResults(results, 1), 1);
    assert.is(results[0], shared);
    assert.is(shared.bytesTransferred, length);
  }
});

test('silent requests free their entries when a later request completes', () => {
  const { endpoint, qp, sgl, outbound, results } = rig({ outbound: 3 });
  const last = result();
  endpoint.send(result(), sgl, SILENT_SUCCESS);
  endpoint.send(result(), sgl, SILENT_SUCCESS);
  endpoint.send(last, sgl);
  endsIn(() => endpoint.send(result(), sgl), Status.NO_MORE_ENTRIES);
  qp.complete(qp.posted[2]!);
  assert.is(outbound.getResults(results, 5), 1);
  assert.is(results[0], last);
  for (let i = 0; i < 3; i += 1) endpoint.send(result(), sgl);
  endsIn(() => endpoint.send(result(), sgl), Status.NO_MORE_ENTRIES);
});

test('a post rejected by WinVerbs uses no entry, and has a v1 status', () => {
  const { endpoint, qp, sgl, wv, inbound, outbound, results } = rig({ outbound: 1, inbound: 1 });
  for (const [below, above] of [
    [Status.INVALID_DEVICE_STATE, Status.CONNECTION_INVALID],
    [Status.DATA_OVERRUN, Status.DATA_OVERRUN],
    [Status.NO_MORE_ENTRIES, Status.NO_MORE_ENTRIES],
  ] as const) {
    wv.failures.set('post', below);
    endsIn(() => endpoint.send(result(), sgl), above);
    wv.failures.set('post', below);
    endsIn(() => endpoint.receive(result(), sgl), above);
  }
  endpoint.send(result(), sgl);
  endpoint.receive(result(), sgl);
  for (const posted of qp.posted) qp.complete(posted);
  assert.is(outbound.getResults(results, 2) + inbound.getResults(results, 2), 2);
});

test('flush moves the queue pair to ERROR', () => {
  const { endpoint, qp } = rig();
  endpoint.flush();
  assert.equal(qp.modified.at(-1), { attributes: { qpState: QpState.ERROR }, options: QpAttr.STATE });
});

test('batches are passed on to WinVerbs', () => {
  const { endpoint, qp } = rig();
  endpoint.startRequestBatch();
  endpoint.submitRequestBatch();
  assert.equal(qp.batches, ['start', 'submit']);
});

test('getResults respects the maximum, and fills the array from its start', () => {
  const { endpoint, qp, sgl, outbound } = rig({ outbound: 100 });
  for (let i = 0; i < 90; i += 1) {
    endpoint.send(result(i), sgl);
    qp.complete(qp.posted.at(-1)!);
  }
  const results: NdResult[] = [];
  assert.is(outbound.getResults(results), 1, 'an empty array requests one');
  results.length = 4;
  assert.is(outbound.getResults(results), 4);
  assert.equal(
    results.map(({ context }) => context),
    [1, 2, 3, 4],
  );
  assert.is(outbound.getResults(results, 0), 0);
  assert.is(outbound.getResults(results, 1000), 85);
  assert.is(results[84]!.context, 89);
  assert.is(outbound.getResults(results), 0);
});

test('getResults of an overrun queue returns the available results and does not fail', () => {
  const { endpoint, qp, sgl, outCq, outbound, results } = rig();
  endpoint.send(result(), sgl);
  qp.complete(qp.posted[0]!);
  outCq.overrun = true;
  assert.is(outbound.getResults(results, 4), 1);
  assert.is(outbound.getResults(results, 4), 0);
});

test('N9: a completion queue reports its actual size, and resize is checked', () => {
  const { outbound, outCq, endpoint, qp, sgl, adapter } = rig();
  outCq.entries = 128;
  assert.is(outbound.entries, 128);
  for (let i = 0; i < 3; i += 1) {
    endpoint.send(result(), sgl);
    qp.complete(qp.posted.at(-1)!);
  }
  endsIn(() => outbound.resize(2), Status.BUFFER_OVERFLOW);
  for (const entries of [0, -1, 1.5, 5001, Number.NaN]) {
    endsIn(() => outbound.resize(entries), Status.INVALID_PARAMETER);
    endsIn(() => adapter.createCompletionQueue(entries), Status.INVALID_PARAMETER);
  }
  assert.is(outbound.entries, 128);
  outbound.resize(3);
  assert.is(outbound.entries, 3);
});

test('notify: types, statuses, cancel', async () => {
  const { outbound, outCq } = rig();
  for (const [type, below] of [
    ['any', 'notify any'],
    ['solicited', 'notify solicited'],
    ['errors', 'notify errors'],
  ] as const) {
    const request = outbound.notify(type);
    outCq.request(below).fail(type === 'errors' ? Status.UNEXPECTED_IO_ERROR : Status.BUFFER_OVERFLOW);
    outCq.request(below).deliver();
    const error = await request.then(undefined, (reason: unknown) => reason);
    assert.instance(error, NdError);
    assert.is((error as NdError).status, type === 'errors' ? Status.INTERNAL_ERROR : Status.BUFFER_OVERFLOW);
  }
  for (const type of ['error', 'constructor', 1, undefined]) {
    endsIn(() => outbound.notify(type as never), Status.INVALID_PARAMETER);
  }
  const pending = outbound.notify('any');
  outbound.cancelOverlappedRequests();
  assert.is(pending.status, Status.CANCELED);
});

test('releasing a completion queue ends its notifications, although endpoints keep it alive', () => {
  const { endpoint, outbound, outCq } = rig();
  const pending = outbound.notify('any');
  outbound.addRef();
  outbound.release();
  assert.not.ok(pending.completed, 'the client has a reference');
  outbound.release();
  assert.is(pending.status, Status.CANCELED);
  assert.is(outCq.references, 1, 'the endpoint has the queue');
  endpoint.release();
  assert.is(outCq.references, 0);
});

test('releasing an endpoint moves it to ERROR first, and keeps its completion queues', () => {
  const { endpoint, qp, sgl, outbound, outCq, results } = rig();
  endpoint.send(result('late'), sgl);
  outbound.addRef();
  outbound.release();
  endpoint.release();
  assert.is(qp.state, QpState.ERROR);
  assert.is(qp.references, 0);
  qp.complete(qp.posted[0]!, { status: WcStatus.FLUSHED });
  assert.is(outbound.getResults(results, 1), 1);
  assert.is(results[0]!.context, 'late');
  assert.is(outCq.references, 1);
  outbound.release();
  assert.is(outCq.references, 0);
});

test('argument errors of createEndpoint name the argument', () => {
  const { adapter, inbound, outbound, nd, wv, pd } = rig();
  const connector = adapter.createConnector();
  const good = {
    inboundCompletionQueue: inbound,
    outboundCompletionQueue: outbound,
    inboundEntries: 1000,
    outboundEntries: 1000,
    inboundSge: 4,
    outboundSge: 4,
    inboundReadLimit: 1000,
    outboundReadLimit: 3,
  };
  const foreign = nd.openAdapter('10.0.0.1').createCompletionQueue(1);
  const cases: [object, number][] = [
    [{ inboundCompletionQueue: foreign }, Status.INVALID_PARAMETER_1],
    [{ outboundCompletionQueue: {} }, Status.INVALID_PARAMETER_2],
    [{ inboundEntries: 1001 }, Status.INVALID_PARAMETER_3],
    [{ outboundEntries: 0 }, Status.INVALID_PARAMETER_4],
    [{ inboundSge: 5 }, Status.INVALID_PARAMETER_5],
    [{ outboundSge: 1.5 }, Status.INVALID_PARAMETER_6],
    [{ inboundReadLimit: -1 }, Status.INVALID_PARAMETER_7],
    [{ outboundReadLimit: Number.NaN }, Status.INVALID_PARAMETER_8],
  ];
  for (const [change, status] of cases) {
    endsIn(() => connector.createEndpoint({ ...good, ...change }), status);
  }
  connector.createEndpoint(good);
  const { responderResources, initiatorDepth } = pd.qps.at(-1)!.create;
  assert.equal([responderResources, initiatorDepth], [16, 3], 'read limits are reduced, not refused');
  wv.failures.set('modify', Status.INSUFFICIENT_RESOURCES);
  endsIn(() => connector.createEndpoint(good), Status.INSUFFICIENT_RESOURCES);
  assert.is(pd.qps.at(-1)!.references, 0);
});

test.run();
