/** Messages, writes and reads of all sizes, with many outstanding, in both roles, and windows of both sides. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { RemoteMemory, WcStatus, WvAccess } from '../../../winverbs/index.js';
import { SIGNALED, wcName } from './interop-side.js';
import { type GuestRequest, type Hosts, Ibv, IbvWc, type Pair, pattern } from './verbs-guest.js';

const MOST = 8 << 20;
const SIZES = [0, 1, 1024, 1025, 4096, 65_537, (1 << 20) + 3, MOST];
/** Number of requests that are posted together. */
const MANY = 32;
const DISTANCE = 65_536 + 512;
const PIECE = 65_537;

const memoryCrc = ({ memory }: Pair, at: number, length: number): number =>
  length === 0 ? 0 : crc32(memory.bytes.subarray(at, at + length));

/** Fails with an error that names the step if the data is wrong. */
async function same(step: string, found: number | Promise<number>, expected: number): Promise<void> {
  assert.equal(await found, expected, `${step}: other data arrived`);
}

async function oursOfSize(hosts: Hosts, pair: Pair, size: number): Promise<void> {
  const { qp, queue, memory, remote } = pair;
  const crc = (seed: number) => (size === 0 ? 0 : crc32(pattern(size, seed)));
  const done = async (step: string) => {
    const { status } = await queue.any();
    assert.equal(wcName(status), 'SUCCESS', `${step} of ${size} bytes`);
  };
  memory.bytes.set(pattern(size, 1));
  await hosts.receive(0, Math.max(size, 1));
  qp.send('send', memory.sge(0, size), SIGNALED);
  await done('SEND');
  const [there] = await hosts.completions(1);
  assert.equal(there?.status, IbvWc.SUCCESS);
  assert.equal(there.len, size);
  await same(`SEND of ${size} bytes`, hosts.crc(0, size), crc(1));
  memory.bytes.set(pattern(size, 2));
  qp.write('write', memory.sge(0, size), SIGNALED, remote, 0);
  await done('WRITE');
  await same(`WRITE of ${size} bytes`, hosts.crc(0, size), crc(2));
  await hosts.fill(0, size, 3);
  qp.read('read', memory.sge(0, size), SIGNALED, remote, 0);
  await done('READ');
  await same(`READ of ${size} bytes`, memoryCrc(pair, 0, size), crc(3));
}

async function theirsOfSize(hosts: Hosts, pair: Pair, size: number): Promise<void> {
  const { qp, queue, memory } = pair;
  const crc = (seed: number) => (size === 0 ? 0 : crc32(pattern(size, seed)));
  const { address: addr, rkey } = memory.region;
  await hosts.fill(0, size, 4);
  qp.postReceive('receive', memory.sge(0, Math.max(size, 1)));
  assert.equal(await hosts.status({ op: 'send', at: 0, len: size }), IbvWc.SUCCESS);
  const { status, length } = await queue.any();
  assert.equal(wcName(status), 'SUCCESS');
  assert.equal(length, size);
  await same(`SEND of ${size} bytes`, memoryCrc(pair, 0, size), crc(4));
  await hosts.fill(0, size, 5);
  assert.equal(await hosts.status({ op: 'write', at: 0, len: size, addr, rkey }), IbvWc.SUCCESS);
  await same(`WRITE of ${size} bytes`, memoryCrc(pair, 0, size), crc(5));
  memory.bytes.set(pattern(size, 6));
  assert.equal(await hosts.status({ op: 'read', at: 0, len: size, addr, rkey }), IbvWc.SUCCESS);
  await same(`READ of ${size} bytes`, hosts.crc(0, size), crc(6));
}

/** Posts many of our requests together, with reads among writes, so that the read depth delays some. */
async function manyOfOurs(hosts: Hosts, pair: Pair): Promise<void> {
  const { qp, queue, memory, remote } = pair;
  for (let i = 0; i < MANY; i += 1) {
    const at = i * DISTANCE;
    if (i % 4 === 3) memory.bytes.set(pattern(PIECE, i), at);
    else await hosts.fill(at, PIECE, i);
  }
  qp.startBatch();
  for (let i = 0; i < MANY; i += 1) {
    const at = i * DISTANCE;
    if (i % 4 === 3) qp.write(i, memory.sge(at, PIECE), SIGNALED, remote, at);
    else qp.read(i, memory.sge(at, PIECE), SIGNALED, remote, at);
  }
  qp.submitBatch();
  const order = (await queue.take(MANY)).map(({ context }) => context as number);
  assert.deepEqual(
    order,
    Array.from({ length: MANY }, (_, i) => i),
  );
  for (let i = 0; i < MANY; i += 1) {
    const at = i * DISTANCE;
    const found = i % 4 === 3 ? hosts.crc(at, PIECE) : memoryCrc(pair, at, PIECE);
    await same(`request ${i} of many`, found, crc32(pattern(PIECE, i)));
  }
}

async function manyOfTheirs(hosts: Hosts, pair: Pair): Promise<void> {
  const { memory } = pair;
  const { address, rkey } = memory.region;
  const ops: GuestRequest[] = [];
  for (let i = 0; i < MANY; i += 1) {
    const at = i * DISTANCE;
    if (i % 4 === 3) await hosts.fill(at, PIECE, i);
    else memory.bytes.set(pattern(PIECE, i), at);
    ops.push({ op: i % 4 === 3 ? 'write' : 'read', at, len: PIECE, addr: address + at, rkey });
  }
  await hosts.post(...ops);
  for (const { status } of await hosts.completions(MANY)) assert.equal(status, IbvWc.SUCCESS);
  for (let i = 0; i < MANY; i += 1) {
    const at = i * DISTANCE;
    const found = i % 4 === 3 ? memoryCrc(pair, at, PIECE) : hosts.crc(at, PIECE);
    await same(`request ${i} of many`, found, crc32(pattern(PIECE, i)));
  }
}

const transfer =
  (ofSize: typeof oursOfSize, many: typeof manyOfOurs) =>
  async (hosts: Hosts): Promise<void> => {
    for (const depth of [1, 16]) {
      const pair = await hosts.pair({ mtu: depth === 1 ? 4096 : 1024, depth, size: MOST });
      for (const size of SIZES) await ofSize(hosts, pair, size);
      await many(hosts, pair);
      pair.qp.release();
      console.log(`ok  depth ${depth}`);
    }
  };

export const transferOfOurs = transfer(oursOfSize, manyOfOurs);
export const transferOfTheirs = transfer(theirsOfSize, manyOfTheirs);

const WINDOW_AT = 4096;
const WINDOW = 4096;

/** The guest writes and reads through windows of ours. */
export async function windowsOfOurs(hosts: Hosts): Promise<void> {
  const rights = WvAccess.REMOTE_WRITE | WvAccess.REMOTE_READ;
  const bound = async (access: number = rights) => {
    const pair = await hosts.pair();
    const window = hosts.side.pd.allocateMemoryWindow();
    const { qp, queue, memory } = pair;
    const key = qp.bindMemoryWindow(window, 'bind', memory.region, WINDOW_AT, WINDOW, access, SIGNALED);
    await queue.next();
    const through = (op: 'write' | 'read', at: number, len: number): GuestRequest => ({
      ...{ op, at: 0, len, rkey: key },
      addr: memory.region.address + WINDOW_AT + at,
    });
    return { ...pair, window, key, through };
  };

  // Accesses the whole window, but no byte before or after it.
  for (const [at, expected] of [
    [0, IbvWc.SUCCESS],
    [1, IbvWc.REM_ACCESS_ERR],
    [-1, IbvWc.REM_ACCESS_ERR],
  ] as const) {
    const { qp, through } = await bound();
    assert.equal(await hosts.status(through('write', at, WINDOW)), expected, `WRITE at ${at}`);
    qp.release();
  }
  {
    const { qp, through } = await bound(WvAccess.REMOTE_READ);
    assert.equal(await hosts.status(through('read', 0, WINDOW)), IbvWc.SUCCESS);
    assert.equal(
      await hosts.status(through('write', 0, 1)),
      IbvWc.REM_ACCESS_ERR,
      'WRITE into a READ window',
    );
    qp.release();
  }
  console.log('ok  bounds and rights');
  {
    const { qp, queue, window, through } = await bound();
    assert.equal(await hosts.status(through('write', 0, 64)), IbvWc.SUCCESS);
    qp.invalidateMemoryWindow(window, 'invalidate', SIGNALED);
    await queue.next();
    assert.equal(await hosts.status(through('write', 0, 64)), IbvWc.REM_ACCESS_ERR, 'after invalidation');
    qp.release();
  }
  console.log('ok  invalidated here');
  {
    const { qp, queue, memory, key, through } = await bound();
    qp.postReceive('receive', memory.sge(0, 64));
    assert.equal(await hosts.status({ op: 'send_inv', at: 0, len: 20, rkey: key }), IbvWc.SUCCESS);
    const { status, flags, immediateData } = await queue.any();
    assert.equal(status, WcStatus.SUCCESS);
    assert.equal(flags & 2, 2, 'the receive reports no invalidation');
    assert.equal(immediateData, key);
    assert.equal(
      await hosts.status(through('read', 0, 64)),
      IbvWc.REM_ACCESS_ERR,
      'after SEND with invalidate',
    );
    qp.release();
  }
  console.log('ok  invalidated by the peer');
  {
    const { qp, queue, memory, remote, window, key } = await bound();
    qp.invalidateMemoryWindow(window, 'invalidate', SIGNALED);
    const next = qp.bindMemoryWindow(window, 'bind', memory.region, 0, WINDOW, rights, SIGNALED);
    await queue.take(2);
    assert.notEqual(next, key);
    await hosts.fill(0, 64, 9);
    const addr = memory.region.address;
    assert.equal(await hosts.status({ op: 'write', at: 0, len: 64, addr, rkey: next }), IbvWc.SUCCESS);
    assert.deepEqual(memory.bytes.slice(0, 64), pattern(64, 9));
    assert.equal(
      await hosts.status({ op: 'write', at: 0, len: 64, addr, rkey: key }),
      IbvWc.REM_ACCESS_ERR,
      'the old key',
    );
    assert.ok(remote.rkey !== key);
    qp.release();
  }
  console.log('ok  bound again');
}

/** We write and read through windows of the guest. */
export async function windowsOfTheirs(hosts: Hosts): Promise<void> {
  const bound = async (access: number = Ibv.REMOTE_WRITE | Ibv.REMOTE_READ) => {
    const pair = await hosts.pair();
    const rkey = await hosts.window(WINDOW_AT, WINDOW, access);
    const { qp, queue, memory, remote } = pair;
    const window = new RemoteMemory({ address: remote.address + BigInt(WINDOW_AT), rkey });
    const write = async (at: number, length: number) => {
      qp.write('write', memory.sge(0, length), SIGNALED, window, at);
      return wcName((await queue.any()).status);
    };
    const read = async (at: number, length: number) => {
      qp.read('read', memory.sge(0, length), SIGNALED, window, at);
      return wcName((await queue.any()).status);
    };
    return { ...pair, rkey, write, read };
  };
  {
    // rxe only checks the region's bounds and not the window's, so accesses beyond the window cannot be tested here.
    const { qp, memory, write } = await bound();
    memory.bytes.set(pattern(WINDOW, 11));
    assert.equal(await write(0, WINDOW), 'SUCCESS');
    await same('WRITE through a window', hosts.crc(WINDOW_AT, WINDOW), crc32(pattern(WINDOW, 11)));
    qp.release();
  }
  {
    const { qp, write, read } = await bound(Ibv.REMOTE_READ);
    assert.equal(await read(0, WINDOW), 'SUCCESS');
    assert.equal(await write(0, 1), 'REMOTE_ACCESS_ERROR');
    qp.release();
  }
  console.log('ok  rights');
  {
    const { qp, rkey, write } = await bound();
    assert.equal(await write(0, 64), 'SUCCESS');
    await hosts.invalidate(rkey);
    assert.equal(await write(0, 64), 'REMOTE_ACCESS_ERROR');
    qp.release();
  }
  console.log('ok  invalidated there');
  {
    const { qp, queue, memory, rkey, write } = await bound();
    await hosts.receive(0, 64);
    qp.sendAndInvalidate('send', memory.sge(0, 20), SIGNALED, rkey);
    await queue.next();
    const [there] = await hosts.completions(1);
    assert.equal(there?.status, IbvWc.SUCCESS);
    assert.equal(await write(0, 64), 'REMOTE_ACCESS_ERROR');
    qp.release();
  }
  console.log('ok  invalidated by us');
}
