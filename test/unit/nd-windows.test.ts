/** v1: windows, bound and invalidated by this side and by the peer. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdOpFlag, type NdResult, Status } from '../../nd/index.js';
import { endpointOf, endsIn, openFake, registered, result } from '../helpers/nd-fixture.js';

const { SILENT_SUCCESS, ALLOW_READ, ALLOW_WRITE } = NdOpFlag;

function rig(options?: Parameters<typeof endpointOf>[2]) {
  const fake = openFake();
  const memory = registered(fake.adapter, fake.pd);
  const parts = endpointOf(fake.adapter, fake.pd, options);
  /** Too long for an inline request. */
  const sgl = [{ memory, offset: 10, length: 1000 }];
  const results: NdResult[] = [];
  return { ...fake, ...parts, memory, sgl, results };
}

test('N10: bind returns a separate window with range, rights and key before its completion', () => {
  const { endpoint, qp, adapter, memory, pd } = rig();
  const window = adapter.createMemoryWindow();
  const descriptor = endpoint.bind(result(), memory, window, 100, 50, ALLOW_READ);
  const { detail, flags } = qp.posted[0]!;
  assert.is(detail.window, pd.windows[0]);
  assert.equal([detail.offset, detail.length, detail.access, flags], [100, 50, 0x1, 4]);
  assert.is(descriptor.base, 0x10000n + 100n);
  assert.is(descriptor.length, 50n);
  assert.is(descriptor.token, pd.windows[0]!.rkey);
  endpoint.bind(result(), memory, adapter.createMemoryWindow(), 0, 8, ALLOW_WRITE);
  assert.is(qp.posted[1]!.detail.access, 0xa);
  endpoint.bind(result(), memory, adapter.createMemoryWindow(), 0, 8, 0);
  assert.is(qp.posted[2]!.detail.access, 0, 'a window without rights is allowed');
});

test('bind rejects ranges beyond the memory, foreign windows, and bound windows', () => {
  const { endpoint, adapter, memory, nd } = rig();
  const window = adapter.createMemoryWindow();
  for (const [offset, length] of [
    [0, 4097],
    [4096, 1],
    [-1, 2],
    [0, 0],
    [0, -1],
    [0.5, 1],
  ] as const) {
    endsIn(
      () => endpoint.bind(result(), memory, window, offset, length, ALLOW_READ),
      Status.INVALID_PARAMETER,
    );
  }
  const foreign = nd.openAdapter('10.0.0.1').createMemoryWindow();
  endsIn(() => endpoint.bind(result(), memory, foreign, 0, 1, ALLOW_READ), Status.INVALID_PARAMETER_3);
  endsIn(() => endpoint.invalidate(result(), foreign), Status.INVALID_PARAMETER_2);
  endpoint.bind(result(), memory, window, 0, 4096, ALLOW_READ);
  endsIn(() => endpoint.bind(result(), memory, window, 0, 1, ALLOW_READ), Status.INVALID_DEVICE_STATE);
  window.release();
  endsIn(() => endpoint.bind(result(), memory, window, 0, 1, ALLOW_READ), Status.INVALID_PARAMETER_3);
});

test('a window can be bound again after an Invalidate, at once on the same endpoint, later on another one', () => {
  const first = rig({ outbound: 8 });
  const { adapter, memory, pd, outbound, results } = first;
  const second = endpointOf(adapter, pd, { outbound: 8 });
  const window = adapter.createMemoryWindow();
  first.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  first.endpoint.invalidate(result(), window);
  endsIn(
    () => second.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ),
    Status.INVALID_DEVICE_STATE,
    'the two endpoints have no order between them',
  );
  first.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  first.endpoint.invalidate(result(), window, SILENT_SUCCESS);
  first.endpoint.send(result(), []);
  // Completions of the first Bind and Invalidate must not unbind the second Bind.
  first.qp.complete(first.qp.posted[0]!);
  first.qp.complete(first.qp.posted[1]!);
  first.qp.complete(first.qp.posted[2]!);
  assert.is(outbound.getResults(results, 8), 3);
  const onSecond = (): unknown => second.endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  endsIn(onSecond, Status.INVALID_DEVICE_STATE);
  // The silent Invalidate is known to have succeeded when a later request completes.
  first.qp.complete(first.qp.posted[4]!);
  assert.is(outbound.getResults(results, 8), 1);
  endsIn(onSecond, Status.SUCCESS);
});

test("the peer's invalidation returns the window's own result, even if the array is full", () => {
  const { endpoint, adapter, memory, qp, inbound, pd, sgl } = rig();
  const invalidated = result('window');
  const window = adapter.createMemoryWindow(invalidated);
  endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  const received = result('receive');
  endpoint.receive(received, sgl);
  endpoint.receive(result('next'), sgl);
  qp.complete(qp.posted[1]!, { flags: 2, immediateData: pd.windows[0]!.rkey, length: 5 });
  qp.complete(qp.posted[2]!, { length: 6 });
  const results: NdResult[] = [];
  const contexts: unknown[] = [];
  let notified = 0;
  while (inbound.getResults(results, 1) === 1) {
    contexts.push(results[0]!.context);
    if (contexts.length === 1) {
      // A result that waits for space in the array is an event that has not been reported.
      inbound.notify('any').getResult();
      notified += 1;
    }
  }
  assert.is(notified, 1);
  assert.equal(contexts, ['receive', 'window', 'next']);
  assert.is(invalidated.status, Status.SUCCESS);
  assert.is(invalidated.bytesTransferred, 0);
  // The window can be bound again.
  endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
});

test('no result is lost in a batch of messages that all invalidate a window', () => {
  const { endpoint, adapter, memory, qp, inbound, pd, sgl } = rig({ outbound: 8, inbound: 8 });
  for (let i = 0; i < 8; i += 1) {
    const window = adapter.createMemoryWindow(result(`window ${i}`));
    pd.windows[i]!.rkey = 0x1000 * (i + 1);
    endpoint.bind(result(), memory, window, 0, 8, ALLOW_READ);
  }
  for (let i = 0; i < 8; i += 1) {
    endpoint.receive(result(`receive ${i}`), sgl);
    qp.complete(qp.posted.at(-1)!, { flags: 2, immediateData: pd.windows[i]!.rkey });
  }
  const seen = new Set<unknown>();
  const results: NdResult[] = [];
  for (let n = inbound.getResults(results, 5); n > 0; n = inbound.getResults(results, 5)) {
    for (let i = 0; i < n; i += 1) seen.add(results[i]!.context);
  }
  assert.is(seen.size, 16);
});

test.run();
