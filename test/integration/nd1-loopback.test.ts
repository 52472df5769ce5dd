/** What Send and memory have in ND SPI v1 alone, through the whole stack: both sides in this process. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { take, takeOne, textOf } from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult } from '../../nd/cli/sides/v1.js';
import { NdOpFlag, Status } from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome, statusesOf } from '../helpers/outcome.js';

const test = suite<{ host: HostV1 }>('ND v1 in one process: what it has alone');

test.before((context) => {
  context.host = new HostV1();
});
test.after(({ host }) => {
  host.release();
});

test('unregistered bytes go inline, and are free as soon as the call returns', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.receive('r', passive.sge(0, 100));
  const bytes = new TextEncoder().encode('not registered');
  active.endpoint.send(newResult(), [{ memory: bytes, offset: 4, length: 10 }]);
  bytes.fill(0);
  const received = await takeOne(passive.inbound);
  assert.is(textOf(passive.bytes.subarray(0, received.bytesTransferred)), 'registered');
  active.release();
  passive.release();
});

test('results of requests on the outbound queue tell the bytes that went', async ({ host }) => {
  const { active, passive } = await host.pair();
  for (const length of [0, 1, 1000, 70_000]) {
    passive.receive('r', passive.sge(0, 100_000));
    active.endpoint.send(newResult(), active.sge(0, length));
    assert.is((await takeOne(active.outbound)).bytesTransferred, length);
  }
  const window = passive.adapter.createMemoryWindow();
  const remote = passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, NdOpFlag.ALLOW_READ);
  active.endpoint.read(newResult(), active.sge(0, 100), remote, 0);
  assert.is((await takeOne(active.outbound)).bytesTransferred, 100);
  active.release();
  passive.release();
});

test('sendAndInvalidate ends the peer’s window and brings its result there', async ({ host }) => {
  const { active, passive } = await host.pair();
  const window = passive.adapter.createMemoryWindow(newResult('window'));
  const bind = () => passive.endpoint.bind(newResult(), passive.memory, window, 0, 100, NdOpFlag.ALLOW_READ);
  const remote = bind();
  passive.receive('receive', passive.sge(1000, 100));
  active.endpoint.read(newResult(), active.sge(0, 100), remote, 0);
  active.endpoint.sendAndInvalidate(newResult(), active.sge(0, 5), remote, NdOpFlag.READ_FENCE);
  assert.equal(await statusesOf(active.outbound, 2), ['SUCCESS', 'SUCCESS']);
  const contexts = (await take(passive.inbound, 2)).map(({ context }) => context);
  assert.equal(contexts, ['receive', 'window']);
  // It is free for another Bind, and the old token is invalid.
  bind();
  active.endpoint.read(newResult(), active.sge(0, 100), remote, 0);
  assert.equal(await statusesOf(active.outbound, 1), ['REMOTE_ERROR']);
  active.release();
  passive.release();
});

test('memory is deregistered once', async ({ host }) => {
  const memory = await host.adapter.registerMemory(new Uint8Array(64));
  assert.is(await outcome(host.adapter.deregisterMemory(memory)), Status.SUCCESS);
  assert.is(
    statusOf(() => host.adapter.deregisterMemory(memory)),
    Status.INVALID_HANDLE,
  );
});

test.run();
