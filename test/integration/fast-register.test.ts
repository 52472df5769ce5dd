/** Fast registration, invalidation of regions by both sides, and zero-based regions, with the WinVerbs interfaces. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import {
  allocate,
  type IWVFastRegion,
  openProvider,
  QpFlag,
  RemoteMemory,
  Status,
  WcStatus,
  WvAccess,
  WvCapability,
  type WvCompletion,
  WvOpcode,
  WvSend,
  WvWc,
} from '../../winverbs/index.js';
import { connectedPair, openSide, type Side, type SideWvOptions, take } from '../helpers/loopback.js';
import { throwsWv } from '../helpers/outcome.js';

const { SIGNALED, INLINE } = WvSend;
const { REMOTE_READ, REMOTE_WRITE, LOCAL_WRITE, MW_BIND, ZERO_BASED } = WvAccess;
const { FAST_REGISTER, INVALIDATE } = WvOpcode;
const BYTES = 4096;
const sgl = (side: Side, offset: number, length: number) => [{ region: side.region, offset, length }];
const brief = (all: WvCompletion[]) => all.map(({ context, status, opcode }) => [context, status, opcode]);
const remoteTo = (region: IWVFastRegion) =>
  new RemoteMemory({ address: BigInt(region.address), rkey: region.rkey });

const objects = () => ({ ...readCounters().objects, ring: 0 });
const regions = () => objects().mr;

/** A connected pair. The memory of `b` is registered without remote access, and `b` has a region for fast registration. */
async function managedPair(memory: Uint8Array = Buffer.alloc(BYTES), options: SideWvOptions = {}) {
  const pair = await connectedPair({}, { ...options, memoryManagement: true });
  const source = pair.b.pd.registerMemory(memory, 0);
  const region = pair.b.pd.allocateFastRegion(BYTES);
  const register = async (access: number, offset = 0, length = BYTES, keyByte?: number) => {
    const part = { region: source, offset, length };
    const key = pair.b.qp.fastRegister(region, 'register', part, access, SIGNALED, keyByte);
    assert.equal(brief(await take(pair.b.cq, 1)), [['register', 0, FAST_REGISTER]]);
    return key;
  };
  const write = async (remote: RemoteMemory, text = 'written', at = 0) => {
    pair.a.memory.write(text, 'latin1');
    pair.a.qp.write('write', sgl(pair.a, 0, text.length), SIGNALED, remote, at);
    return (await take(pair.a.cq, 1))[0]!.status;
  };
  return {
    ...pair,
    source,
    memory: Buffer.from(memory.buffer, memory.byteOffset, BYTES),
    region,
    register,
    write,
  };
}

test('the device reports the capability', () => {
  const provider = openProvider();
  const side = openSide(provider, { memoryManagement: true });
  assert.ok((side.device.query().capabilityFlags & WvCapability.MEM_MGT_EXTENSIONS) !== 0);
  assert.ok((side.qp.query().qpFlags & QpFlag.MEMORY_MANAGEMENT) !== 0);
  side.release();
  provider.release();
});

for (const shared of [false, true]) {
  const kind = shared ? 'memory from allocate()' : 'a buffer';
  test(`${kind}: a request registers a part of memory under the requested key, until that is invalidated`, async () => {
    const { a, b, region, source, memory, register, write, release } = await managedPair(
      shared ? new Uint8Array(allocate(BYTES)) : undefined,
    );
    assert.equal([region.maxLength, region.length, region.bytes?.length], [BYTES, 0, 0]);
    const first = await register(REMOTE_WRITE, 64, 512, 0xa5);
    assert.is(first & 0xff, 0xa5);
    assert.equal([region.rkey, region.lkey, region.length], [first, first, 512]);
    assert.is(region.address, source.address + 64);
    const old = remoteTo(region);
    assert.is(await write(old, 'through', 505), 0);
    assert.is(memory.toString('latin1', 569, 576), 'through');
    b.qp.invalidateRegion(region, 'invalidate', SIGNALED);
    assert.equal(brief(await take(b.cq, 1)), [['invalidate', 0, INVALIDATE]]);
    // The next registration has the next key, other memory and other rights. The program may use it itself.
    const second = await register(REMOTE_READ | LOCAL_WRITE, 1024, 16);
    assert.is(second, ((first & ~0xff) | 0xa6) >>> 0);
    b.qp.postReceive('into it', [{ region, offset: 8, length: 8 }]);
    a.qp.send('send', sgl(a, 0, 7), SIGNALED);
    assert.is((await take(a.cq, 1))[0]!.status, 0);
    assert.is((await take(b.cq, 1))[0]!.status, 0);
    assert.is(memory.toString('latin1', 1032, 1039), 'through');
    b.qp.postReceive('a copy', sgl(b, 0, 16));
    a.qp.postReceive('inline', sgl(a, 100, 16));
    b.qp.send('inline', [{ region, offset: 8, length: 7 }], SIGNALED | INLINE);
    await take(b.cq, 1);
    assert.is((await take(a.cq, 1))[0]!.length, 7);
    assert.is(a.memory.toString('latin1', 100, 107), 'through');
    memory.fill(0);
    assert.is(await write(old), WcStatus.REMOTE_ACCESS_ERROR);
    assert.ok(memory.every((byte) => byte === 0));
    region.release();
    release();
  });
}

test('the peer’s Send invalidates the region, and its completion contains the key', async () => {
  const { a, b, region, register, write, release } = await managedPair(new Uint8Array(allocate(BYTES)));
  for (let n = 0; n < 3; n++) {
    const key = await register(REMOTE_WRITE);
    assert.is(await write(remoteTo(region)), 0);
    b.qp.postReceive('taken', []);
    a.qp.sendAndInvalidate('take', [], SIGNALED, key);
    assert.equal(brief(await take(a.cq, 1)), [['take', 0, WvOpcode.SEND]]);
    const [taken] = await take(b.cq, 1);
    assert.equal([taken!.flags & WvWc.INVALIDATED, taken!.immediateData], [WvWc.INVALIDATED, key]);
  }
  assert.is(await write(remoteTo(region)), WcStatus.REMOTE_ACCESS_ERROR);
  release();
});

test('the peer can only invalidate fast-registered keys; another region’s key ends the connection on both sides, and stays valid', async () => {
  const { a, b, release } = await connectedPair();
  const plain = b.pd.registerMemory(Buffer.alloc(16), REMOTE_WRITE);
  b.qp.postReceive('taken', []);
  a.qp.sendAndInvalidate('take', [], SIGNALED, plain.rkey);
  assert.equal(brief(await take(a.cq, 1)), [['take', WcStatus.REMOTE_ACCESS_ERROR, WvOpcode.SEND]]);
  assert.equal(brief(await take(b.cq, 1)), [['taken', WcStatus.LOCAL_ACCESS_ERROR, WvOpcode.RECEIVE]]);
  b.pd.deregisterMemory(plain);
  release();
});

test('requests are executed in order, also in a list, and a failed one restores the previous key', async () => {
  const { b, region, source, register, release } = await managedPair();
  const first = await register(REMOTE_READ);
  const memory = [{ region: source, offset: 0, length: 8 }];
  b.qp.postSend([
    { context: 'off', opcode: INVALIDATE, fastRegion: region },
    {
      context: 'on',
      opcode: FAST_REGISTER,
      fastRegion: region,
      sgl: memory,
      access: REMOTE_READ,
      keyByte: 7,
    },
    { context: 'off again', opcode: INVALIDATE, fastRegion: region, flags: SIGNALED },
    {
      context: 'on again',
      opcode: FAST_REGISTER,
      fastRegion: region,
      sgl: memory,
      keyByte: 8,
      flags: SIGNALED,
    },
    {
      context: 'too much',
      opcode: FAST_REGISTER,
      fastRegion: region,
      sgl: memory,
      keyByte: 9,
      flags: SIGNALED,
    },
    {
      context: 'flushed',
      opcode: FAST_REGISTER,
      fastRegion: region,
      sgl: memory,
      keyByte: 10,
      flags: SIGNALED,
    },
  ]);
  assert.is(region.rkey & 0xff, 10);
  assert.equal(brief(await take(b.cq, 4)), [
    ['off again', 0, INVALIDATE],
    ['on again', 0, FAST_REGISTER],
    ['too much', WcStatus.MW_BIND_ERROR, FAST_REGISTER],
    ['flushed', WcStatus.FLUSHED, FAST_REGISTER],
  ]);
  assert.is(region.rkey, ((first & ~0xff) | 8) >>> 0);
  release();
});

test('a fast-registered region with windows cannot be freed', async () => {
  const { b, region, register, release } = await managedPair();
  await register(REMOTE_READ | MW_BIND);
  const before = regions();
  const mw = b.pd.allocateMemoryWindow();
  b.qp.bindMemoryWindow(mw, 'bind', region, 0, 8, REMOTE_READ, SIGNALED);
  assert.is((await take(b.cq, 1))[0]!.status, 0);
  region.release();
  assert.is(regions(), before, 'busy');
  mw.release();
  assert.is(regions(), before - 1, 'ended with the window');
  release();
});

test('deregistered memory cannot be accessed', async () => {
  const { b, source, region, register, write, memory, release } = await managedPair(
    new Uint8Array(allocate(BYTES)),
  );
  await register(REMOTE_WRITE);
  assert.is(await write(remoteTo(region)), 0);
  b.pd.deregisterMemory(source);
  memory.fill(0);
  assert.is(await write(remoteTo(region)), WcStatus.REMOTE_ACCESS_ERROR);
  assert.ok(memory.every((byte) => byte === 0));
  release();
});

test('invalid requests are rejected with the reason, and nothing is queued', async () => {
  const { a, b, region, source, release } = await managedPair();
  const part = { region: source, offset: 0, length: 8 };
  const post = (more: object) => () => {
    const asked = { region, part, access: 0, flags: SIGNALED, keyByte: 1, ...more };
    return b.qp.fastRegister(asked.region, 'x', asked.part, asked.access, asked.flags, asked.keyByte);
  };
  throwsWv(post({ region: undefined }), Status.INVALID_PARAMETER, /allocateFastRegion/);
  const theirs = a.pd.allocateFastRegion(16);
  throwsWv(post({ region: theirs }), Status.INVALID_PARAMETER, /allocateFastRegion/);
  throwsWv(
    post({ part: undefined }),
    Status.INVALID_PARAMETER,
    /`memory` must be \{ region, .*; got undefined/,
  );
  throwsWv(post({ part: { ...part, offset: -1 } }), Status.INVALID_PARAMETER, /offset .*must be .*; got -1/);
  throwsWv(post({ part: { ...part, length: 2 ** 60 } }), Status.INVALID_PARAMETER, /length/);
  throwsWv(post({ access: -1 }), Status.INVALID_PARAMETER, /`access` must be .*; got -1/);
  throwsWv(post({ flags: WvSend.IMMEDIATE }), Status.INVALID_PARAMETER, /0x1/);
  for (const keyByte of [256, 0.5, -2])
    throwsWv(post({ keyByte }), Status.INVALID_PARAMETER, /`keyByte` must be from 0 to 255/);
  const list = (request: object) => () => b.qp.postSend([request]);
  throwsWv(list({ opcode: FAST_REGISTER, sgl: [part] }), Status.INVALID_PARAMETER, /allocateFastRegion/);
  throwsWv(list({ opcode: FAST_REGISTER, fastRegion: region, sgl: [] }), Status.INVALID_PARAMETER, /one SGE/);
  throwsWv(list({ opcode: INVALIDATE }), Status.INVALID_PARAMETER, /allocateFastRegion/);
  // The queue pair of `a` was not created for fast registration.
  const own = { region: a.region, offset: 0, length: 8 };
  throwsWv(() => a.qp.fastRegister(theirs, 'x', own, 0, 0), Status.INVALID_PARAMETER, /memoryManagement/);
  assert.is(region.length, 0);
  for (const length of [0, -1, 1.5, Number.NaN, 2 ** 53]) {
    throwsWv(() => b.pd.allocateFastRegion(length), Status.INVALID_PARAMETER);
  }
  throwsWv(() => b.pd.allocateFastRegion(2 ** 52), Status.INVALID_PARAMETER);
  region.release();
  throwsWv(post({}), Status.INVALID_HANDLE);
  throwsWv(() => b.pd.deregisterMemory(region), Status.INVALID_PARAMETER);
  assert.equal(b.cq.poll([], 1), 0);
  theirs.release();
  release();
});

for (const [kind, make] of [
  ['a buffer', () => new Uint8Array(64)],
  ['memory from allocate()', () => new Uint8Array(allocate(64))],
] as const) {
  test(`zero-based regions, ${kind}: addresses count from the first byte, for both sides`, async () => {
    const { a, b, release } = await connectedPair();
    const bytes = Buffer.from(make().buffer);
    const zero = b.pd.registerMemory(bytes, REMOTE_WRITE | REMOTE_READ | ZERO_BASED);
    assert.is(zero.address, 0);
    a.memory.write('from zero', 'latin1');
    const remote = new RemoteMemory({ address: 50n, rkey: zero.rkey });
    for (let n = 0; n < 3; n++) {
      a.qp.write('write', sgl(a, 0, 9), SIGNALED, remote, 5);
      assert.is((await take(a.cq, 1))[0]!.status, 0);
    }
    assert.is(bytes.toString('latin1', 55), 'from zero');
    b.qp.send('send', [{ region: zero, offset: 60, length: 4 }], SIGNALED);
    a.qp.postReceive('receive', sgl(a, 100, 16));
    assert.is((await take(b.cq, 1))[0]!.status, 0);
    await take(a.cq, 1);
    assert.is(a.memory.toString('latin1', 100, 104), 'zero');
    a.qp.read('beyond', sgl(a, 0, 1), SIGNALED, remote, 14);
    assert.is((await take(a.cq, 1))[0]!.status, WcStatus.REMOTE_ACCESS_ERROR);
    release();
  });
}

test('fast registrations may be zero-based, and so may the regions of their memory', async () => {
  const { b, region, memory, register, write, release } = await managedPair();
  await register(REMOTE_WRITE | ZERO_BASED, 100, 64);
  assert.is(region.address, 0);
  assert.is(await write(remoteTo(region), 'zero', 60), 0);
  assert.is(memory.toString('latin1', 160, 164), 'zero');
  b.qp.invalidateRegion(region, 'off', 0);
  const bytes = Buffer.alloc(64);
  const zero = b.pd.registerMemory(bytes, ZERO_BASED);
  b.qp.fastRegister(region, 'on', { region: zero, offset: 8, length: 8 }, REMOTE_WRITE, SIGNALED);
  assert.is((await take(b.cq, 1))[0]!.status, 0);
  assert.ok(region.address > 8);
  assert.is(await write(remoteTo(region), 'native'), 0);
  assert.is(bytes.toString('latin1', 8, 14), 'native');
  release();
});

test('no objects are left in the HCA', async () => {
  const before = objects();
  const { register, region, b, release } = await managedPair();
  await register(REMOTE_WRITE);
  region.release();
  b.pd.allocateFastRegion(16).release();
  release();
  assert.equal(objects(), before);
});

test.run();
