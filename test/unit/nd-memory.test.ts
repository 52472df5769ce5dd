import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, type NdMemoryHandle, NdMwDescriptor, Status } from '../../nd/index.js';
import type { Adapter } from '../../nd/v1/adapter.js';
import { endpointOf, endsIn, openFake, registered, result } from '../helpers/nd-fixture.js';

/** The status with which a request was rejected. */
function failureOf(reason: unknown): number {
  assert.instance(reason, NdError);
  return (reason as NdError).status;
}

const region = { lkey: 1, rkey: 0, address: 0x1000, length: 64 };

test('memory is registered for local use and windows, and peers get no key', () => {
  const { adapter, pd } = openFake();
  adapter.registerMemory(new Uint8Array(64));
  assert.is(pd.accessOfLast, 0x8 | 0x10, 'LOCAL_WRITE and MW_BIND, no REMOTE_*');
});

test('N1: a failed registration leaves no record, and a later failure does not affect live ones', async () => {
  const { adapter, pd } = openFake();
  const { memory } = adapter as Adapter;
  const good = adapter.registerMemory(new Uint8Array(64));
  pd.requests[0]!.succeed(region);
  const handle = await good.getResult();
  const bad = adapter.registerMemory(new Uint8Array(64));
  pd.requests[1]!.fail(Status.INSUFFICIENT_RESOURCES);
  pd.requests[1]!.deliver();
  assert.is(await bad.then(undefined, failureOf), Status.INSUFFICIENT_RESOURCES);
  assert.is(memory.size, 1);
  // The first registration is still valid.
  adapter.deregisterMemory(handle);
  assert.is(memory.size, 0);
});

test('N1: a registration whose result is never read leaks nothing', () => {
  const { adapter, pd } = openFake();
  adapter.registerMemory(new Uint8Array(64));
  pd.requests[0]!.succeed(region);
  assert.is((adapter as Adapter).memory.size, 1);
});

test('N2: a deregistration that fails leaves the memory registered', async () => {
  const { adapter, pd, wv } = openFake();
  const handle = registered(adapter, pd);
  // This is WinVerbs' status while another object references the memory.
  wv.failures.set('deregisterMemory', Status.ACCESS_DENIED);
  const request = adapter.deregisterMemory(handle);
  assert.is(request.completed, true, 'C programs read the return value of the call');
  assert.is(await request.then(undefined, failureOf), Status.DEVICE_BUSY);
  assert.is((adapter as Adapter).memory.size, 1);
  const { endpoint } = endpointOf(adapter, pd);
  endpoint.send(result(), [{ memory: handle, offset: 0, length: 4096 }]);
  adapter.deregisterMemory(handle).getResult();
  assert.is((adapter as Adapter).memory.size, 0);
});

test('N3: outstanding requests keep their adapter alive when it is released first', () => {
  const { adapter, pd, device, wv } = openFake();
  const connector = adapter.createConnector();
  const request = adapter.registerMemory(new Uint8Array(64));
  adapter.release();
  assert.is(pd.references, 1, 'the connector keeps the adapter');
  pd.requests[0]!.succeed(region);
  assert.is(request.getResult().length, 64);
  const before = wv.references;
  connector.release();
  assert.is(pd.references, 0);
  assert.is(device.references, 0);
  assert.is(wv.references, before - 1);
});

test('deregistered memory cannot be used in requests', () => {
  const { adapter, pd, wv } = openFake();
  const handle = registered(adapter, pd);
  const { endpoint } = endpointOf(adapter, pd);
  const sgl = [{ memory: handle, offset: 0, length: 4000 }];
  wv.failures.set('deregisterMemory', Status.ACCESS_DENIED);
  adapter.deregisterMemory(handle);
  endsIn(() => endpoint.receive(result(), sgl), Status.SUCCESS, 'a failure leaves it registered');
  adapter.deregisterMemory(handle);
  for (const use of [
    () => endpoint.send(result(), sgl),
    () => endpoint.receive(result(), sgl),
    () => adapter.deregisterMemory(handle),
  ]) {
    endsIn(use, Status.INVALID_HANDLE);
  }
});

test('handles of another adapter instance and other values are INVALID_HANDLE', () => {
  const { adapter, pd, nd, device } = openFake();
  const other = nd.openAdapter('10.0.0.1');
  const foreign = registered(other, device.provider.devices[1]!.pds[0]!);
  endsIn(() => adapter.deregisterMemory(foreign), Status.INVALID_HANDLE);
  const { endpoint } = endpointOf(adapter, pd);
  for (const memory of [foreign, {}, undefined, null, 5]) {
    const sgl = [{ memory: memory as NdMemoryHandle, offset: 0, length: 100 }];
    endsIn(() => endpoint.send(result(), sgl), Status.INVALID_HANDLE);
  }
});

test('unsuitable buffers are rejected with the reason', () => {
  const { adapter } = openFake();
  endsIn(() => adapter.registerMemory(new Uint8Array(0)), Status.INVALID_BUFFER_SIZE);
  endsIn(() => adapter.registerMemory('bytes' as never), Status.INVALID_PARAMETER);
  const huge = { byteLength: 2 ** 31 };
  Object.setPrototypeOf(huge, ArrayBuffer.prototype);
  for (const none of [huge, Object.create(SharedArrayBuffer.prototype)]) {
    endsIn(() => adapter.registerMemory(none), Status.INVALID_PARAMETER);
  }
  endsIn(() => adapter.registerMemory(new ArrayBuffer(0)), Status.INVALID_BUFFER_SIZE);
});

test('a window descriptor is 20 bytes in network order, and is decoded unchanged', () => {
  const descriptor = new NdMwDescriptor(0x0102030405060708n, 0x1112131415161718n, 0xa1a2a3a4);
  const bytes = [
    1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xa1, 0xa2, 0xa3, 0xa4,
  ];
  assert.equal([...descriptor.encode()], bytes);
  const wide = new Uint8Array(30);
  descriptor.encode(wide, 7);
  const decoded = NdMwDescriptor.decode(wide, 7);
  assert.equal(decoded, descriptor);
  assert.is(decoded.addressLow, 0x05060708);
  assert.is(decoded.addressHigh, 0x01020304);
  assert.is(decoded.rkey, 0xa1a2a3a4);
});

test('a window descriptor is never read or written beyond its buffer', () => {
  const descriptor = new NdMwDescriptor(0n, 0n, 0);
  for (const offset of [-1, 1, 0.5, Number.NaN]) {
    assert.throws(() => NdMwDescriptor.decode(new Uint8Array(20), offset), RangeError);
    assert.throws(() => descriptor.encode(new Uint8Array(20), offset), RangeError);
  }
  assert.throws(() => new NdMwDescriptor(-1n, 0n, 0), RangeError);
  assert.throws(() => new NdMwDescriptor(0n, 1n << 64n, 0), RangeError);
  assert.throws(() => new NdMwDescriptor(0n, 0n, -1), RangeError);
  assert.is(new NdMwDescriptor(4096, 64, 1).base, 4096n);
  for (const value of [-1, 0.5, 2 ** 53, '8', undefined]) {
    const refused = (error: Error) => error instanceof RangeError && /bigints from 0/.test(error.message);
    assert.throws(() => new NdMwDescriptor(value as never, 0n, 0), refused);
    assert.throws(() => new NdMwDescriptor(0n, value as never, 0), refused);
  }
});

test.run();
