// The door to a vendor's provider without the SPI: slots, overlapped requests, failures, loading.
import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { StatusError } from '../../../kernel-bridge/index.js';
import {
  argumentMemory,
  type ComObject,
  decodeAdapterInfo,
  decodeAddressList,
} from '../../../kernel-bridge/windows/nd-provider/index.js';
import { interfaces } from '../../../kernel-bridge/windows/nd-provider/slots.js';
import { Status } from '../../../winverbs/index.js';
import { statusOf } from '../standin.js';
import { BareAdapter, BareSide, join, LOOPBACK4, providerAt, sockaddr } from './bare-side.js';
import { ADAPTER_ID, CATALOGUE, clean, Nd2Standin, PROVIDER } from './nd2-standin.js';

const standin = new Nd2Standin();

/** Creates one object of every interface. */
function oneOfEach(at: BareAdapter): Readonly<Record<string, ComObject>> {
  const queue = at.completionQueue();
  return {
    IND2Provider: at.provider,
    IND2Adapter: at.adapter,
    IND2CompletionQueue: queue,
    IND2SharedReceiveQueue: at.overlapped('IND2SharedReceiveQueue', 16, 1, 0, 0, 0),
    IND2MemoryRegion: at.overlapped('IND2MemoryRegion'),
    IND2MemoryWindow: at.plain('IND2MemoryWindow'),
    IND2QueuePair: at.queuePair(queue),
    IND2Connector: at.overlapped('IND2Connector'),
    IND2Listener: at.overlapped('IND2Listener'),
  };
}

/** Yields every method except those of the class factory: the object, the names, and arguments that are all 0. */
function* everyMethod(at: BareAdapter) {
  for (const [name, object] of Object.entries(oneOfEach(at))) {
    const { slots } = interfaces[name as keyof typeof interfaces];
    for (const [method, [, ...types]] of Object.entries(
      slots as Record<string, readonly [number, ...string[]]>,
    )) {
      yield { object, method: method as never, full: `${name}::${method}`, zeros: types.map(() => 0) };
    }
  }
}

clean(test, standin, 'every slot calls the method of the table', () => {
  const at = new BareAdapter();
  let methods = 0;
  for (const { object, method, full, zeros } of everyMethod(at)) {
    const before = standin.calls(full);
    object.call(method, ...zeros);
    assert.is(standin.calls(full), before + 1, full);
    methods++;
  }
  assert.is(methods, 59);
  // Null pointers count as violations.
  assert.is.not(standin.violation(), '');
  at.release();
});

clean(test, standin, 'the error of every method has its name, its status and the DLL', () => {
  const at = new BareAdapter();
  // These methods do not return a status.
  const values = ['GetResults', 'GetLocalToken', 'GetRemoteToken'];
  for (const { object, method, full, zeros } of everyMethod(at)) {
    if (values.includes(method)) continue;
    for (const status of [0xc000_00e5, 0x8000_4001, 0x8007_000e, 0x102]) {
      standin.fail(full, status);
      assert.throws(
        () => object.run(method, ...zeros),
        (error: unknown) =>
          error instanceof StatusError &&
          error.status === status &&
          error.message.includes(full) &&
          error.message.includes('standin-nd2.dll') &&
          error.message.includes(status.toString(16).padStart(8, '0')),
        full,
      );
    }
  }
  at.release();
});

clean(test, standin, 'addresses, ids and limits keep all their bits', () => {
  const at = new BareAdapter();
  const size = argumentMemory(8);
  assert.is(at.provider.call('QueryAddressList', 0, size.address), Status.BUFFER_OVERFLOW);
  const list = argumentMemory(size.words[0]!);
  at.provider.run('QueryAddressList', list.address, size.address);
  assert.equal(
    decodeAddressList(list.bytes).map(({ address }) => address),
    ['127.0.0.1', '::1'],
  );
  const id = argumentMemory(8);
  at.provider.run('ResolveAddress', ...sockaddr(LOOPBACK4), id.address);
  assert.is(new DataView(id.bytes.buffer, id.bytes.byteOffset).getBigUint64(0, true), ADAPTER_ID);
  const info = argumentMemory(96);
  size.words[0] = 96;
  info.words[0] = 0x2_0000;
  at.adapter.run('Query', info.address, size.address);
  const decoded = decodeAdapterInfo(info.bytes);
  assert.is(decoded.adapterId, ADAPTER_ID);
  assert.equal(
    [decoded.vendorId, decoded.deviceId, decoded.maxReadSge, decoded.maxCalleeData, decoded.adapterFlags],
    [0xabcd, 0x1234, 8, 148, 0x1_0101],
  );
  at.release();
});

const ways = {
  'that complete at once': { completion: 1 },
  'that pend': { completion: 0 },
  'that complete later': { completion: 0, delay: 20 },
  'in two phases': { completion: 2 },
  'in two phases, later': { completion: 2, delay: 20 },
} as const;
for (const [way, settings] of Object.entries(ways)) {
  clean(test, standin, `requests ${way}, awaited and blocking`, async () => {
    standin.set(settings);
    const at = new BareAdapter();
    const side = new BareSide(at, 1); // registers, blocking
    await side.region.start('Deregister', () => []);
    assert.is(standin.pending, 0);
    for (let i = 0; i < 20; i++) {
      await side.region.start('Register', () => [side.address, 4096, 0x8000_0001]);
      side.region.finish('Deregister');
    }
    side.region.finish('Register', () => [side.address, 4096, 0x8000_0001]);
    side.end();
    at.release();
  });

  clean(test, standin, `requests ${way} and fail`, async () => {
    standin.set(settings);
    const at = new BareAdapter();
    const side = new BareSide(at, 1);
    const queue = at.completionQueue();
    for (const status of [Status.CANCELED, Status.INTERNAL_ERROR, Status.INSUFFICIENT_RESOURCES]) {
      standin.end('IND2MemoryRegion::Deregister', status);
      assert.is(await statusOf(() => side.region.start('Deregister', () => [])), status);
      standin.end('IND2MemoryRegion::Deregister', status);
      assert.is(await statusOf(() => side.region.finish('Deregister')), status);
      standin.end('IND2CompletionQueue::Notify', status);
      assert.is(await statusOf(() => queue.start('Notify', () => [1])), status);
    }
    side.end();
    at.release();
  });
}

clean(test, standin, 'a notification is cancelled, and the queue still works', async () => {
  const at = new BareAdapter();
  const side = new BareSide(at, 1);
  const [first, second] = [1, 1].map((type) => side.queue.start('Notify', () => [type]));
  side.queue.cancelAll();
  assert.is(await statusOf(() => first), Status.CANCELED);
  assert.is(await statusOf(() => second), Status.CANCELED);
  const third = side.queue.start('Notify', () => [1]);
  side.queuePair.run('Receive', 7, 0, 0);
  side.queuePair.run('Flush');
  await third;
  assert.equal(side.results(), [{ status: Status.CANCELED, bytes: 0, context: 7, queuePair: 1, type: 0 }]);
  side.end();
  at.release();
});

clean(test, standin, 'a message, a Write and a Read between two queue pairs', async () => {
  const at = new BareAdapter();
  const [a, b] = [new BareSide(at, 0x11), new BareSide(at, 0x8000_0022)];
  await join(at, a, b);
  b.queuePair.run('Receive', 0xffff_fff0, b.sgl([100, 50]), 1);
  const notified = b.queue.start('Notify', () => [1]);
  a.bytes.set(Buffer.from('over the vtable'));
  a.queuePair.run('Send', 5, a.sgl([0, 4], [4, 11]), 2, 0);
  await notified;
  assert.equal(b.results(), [
    { status: 0, bytes: 15, context: 0xffff_fff0, queuePair: 0x8000_0022, type: 0 },
  ]);
  assert.equal(a.results(), [{ status: 0, bytes: 0, context: 5, queuePair: 0x11, type: 1 }]);
  assert.is(Buffer.from(b.bytes.subarray(100, 115)).toString(), 'over the vtable');
  const token = b.region.call('GetRemoteToken');
  a.queuePair.run('Write', 6, a.sgl([5, 10]), 1, BigInt(b.address + 1000), token, 0);
  a.queuePair.run('Read', 7, a.sgl([2000, 10]), 1, BigInt(b.address + 1000), token, 2);
  assert.equal(
    a.results().map(({ status, context, type }) => [status, context, type]),
    [
      [0, 6, 5],
      [0, 7, 4],
    ],
  );
  assert.is(Buffer.from(a.bytes.subarray(2000, 2010)).toString(), 'the vtable');
  const gone = b.connector.start('NotifyDisconnect', () => []);
  await a.connector.start('Disconnect', () => []);
  await gone;
  b.connector.finish('Disconnect');
  for (const side of [a, b]) side.end();
  at.release();
});

/** Copies a DLL, so that the process loads it as another one. */
function copyOf(path: string, name: string): string {
  const copy = joinPath(mkdtempSync(joinPath(tmpdir(), 'nd-')), name);
  copyFileSync(path, copy);
  return copy;
}

test('a provider that is only available from its class factory', () => {
  const path = copyOf(PROVIDER, 'factory.dll');
  const other = new Nd2Standin(path);
  other.set({ factory: 1 });
  const at = new BareAdapter(path);
  assert.is(at.adapter.library, 'factory.dll');
  assert.is(other.live('IClassFactory'), 0);
  at.release();
  assert.is(other.live(), 1); // the provider
  assert.is(other.violation(), '');
});

test('a DLL that is not a provider, and one whose factory fails', () => {
  assert.throws(() => providerAt(CATALOGUE), /standin-catalogue\.dll is not a NetworkDirect provider/);
  const path = copyOf(PROVIDER, 'failing.dll');
  const other = new Nd2Standin(path);
  other.set({ factory: 1 });
  other.fail('DllGetClassObject', Status.DEVICE_NOT_READY, 1);
  assert.throws(() => providerAt(path), /DllGetClassObject of failing\.dll returned 0xc00000a3/);
  assert.throws(() => providerAt('C:\\nothing\\of-the-kind.dll'), /of-the-kind\.dll/);
});

test.run();
