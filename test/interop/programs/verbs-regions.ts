/**
 * Regions that are registered and invalidated by requests, and zero-based addresses: the guest's requests to ours, and ours to the guest's.
 */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { RemoteMemory, WcStatus, WvAccess, WvWc } from '../../../winverbs/index.js';
import { SIGNALED, wcName } from './interop-side.js';
import { type GuestRequest, type Hosts, Ibv, IbvWc, pattern } from './verbs-guest.js';

const AT = 4096;
const LENGTH = 4096;
const RIGHTS = WvAccess.REMOTE_WRITE | WvAccess.REMOTE_READ;

/** The guest writes and reads through fast-registered regions of ours, and invalidates them. */
export async function regionsOfOurs(hosts: Hosts): Promise<void> {
  const region = hosts.side.pd.allocateFastRegion(LENGTH);
  const registered = async (access: number = RIGHTS) => {
    const pair = await hosts.pair();
    const { qp, queue, memory } = pair;
    const register = async (at = AT) => {
      const [part] = memory.sge(at, LENGTH);
      qp.fastRegister(region, 'register', part, access, SIGNALED);
      await queue.next();
      return region.rkey;
    };
    const invalidate = async () => {
      qp.invalidateRegion(region, 'invalidate', SIGNALED);
      await queue.next();
    };
    await register();
    const through = (op: 'write' | 'read', at: number, len: number, rkey = region.rkey): GuestRequest => ({
      ...{ op, at: 0, len, rkey },
      addr: region.address + at,
    });
    return { ...pair, register, invalidate, through };
  };
  /** The region's registration outlives its queue pair. The next one ends it. */
  const ended = async () => {
    const { qp, queue } = await hosts.pair();
    qp.invalidateRegion(region, 'invalidate', SIGNALED);
    await queue.next();
    qp.release();
  };

  for (const [access, op, at, length, expected] of [
    [RIGHTS, 'write', 0, LENGTH, IbvWc.SUCCESS],
    [RIGHTS, 'write', 1, LENGTH, IbvWc.REM_ACCESS_ERR],
    [RIGHTS, 'read', -1, LENGTH, IbvWc.REM_ACCESS_ERR],
    [RIGHTS | WvAccess.ZERO_BASED, 'write', 0, LENGTH, IbvWc.SUCCESS],
    [RIGHTS | WvAccess.ZERO_BASED, 'write', LENGTH, 1, IbvWc.REM_ACCESS_ERR],
    [WvAccess.REMOTE_READ, 'read', 0, LENGTH, IbvWc.SUCCESS],
    [WvAccess.REMOTE_READ, 'write', 0, 1, IbvWc.REM_ACCESS_ERR],
  ] as const) {
    const { qp, memory, through } = await registered(access);
    await hosts.fill(0, LENGTH, 21);
    assert.equal(await hosts.status(through(op, at, length)), expected, `${op} of ${length} at ${at}`);
    if (op === 'write' && expected === IbvWc.SUCCESS)
      assert.deepEqual(memory.bytes.slice(AT, AT + LENGTH), pattern(LENGTH, 21));
    qp.release();
    await ended();
  }
  console.log('ok  bounds and rights');
  {
    const { qp, memory, register, invalidate, through } = await registered();
    const before = region.rkey;
    assert.equal(await hosts.status(through('write', 0, 64)), IbvWc.SUCCESS);
    await invalidate();
    await register(0);
    await hosts.fill(0, 64, 22);
    assert.equal(await hosts.status(through('write', 0, 64)), IbvWc.SUCCESS);
    assert.deepEqual(memory.bytes.slice(0, 64), pattern(64, 22));
    assert.equal(await hosts.status(through('write', 0, 64, before)), IbvWc.REM_ACCESS_ERR, 'the old key');
    qp.release();
    await ended();
  }
  console.log('ok  registered again');
  {
    const { qp, queue, memory, register, through } = await registered();
    for (let n = 0; n < 3; n++) {
      qp.postReceive('receive', memory.sge(0, 64));
      assert.equal(await hosts.status({ op: 'send_inv', at: 0, len: 20, rkey: region.rkey }), IbvWc.SUCCESS);
      const { status, flags, immediateData } = await queue.any();
      assert.equal(status, WcStatus.SUCCESS);
      assert.equal(flags & WvWc.INVALIDATED, WvWc.INVALIDATED);
      assert.equal(immediateData, region.rkey);
      await register();
    }
    qp.postReceive('receive', memory.sge(0, 64));
    assert.equal(await hosts.status({ op: 'send_inv', at: 0, len: 0, rkey: region.rkey }), IbvWc.SUCCESS);
    await queue.any();
    assert.equal(await hosts.status(through('read', 0, 64)), IbvWc.REM_ACCESS_ERR, 'after the invalidation');
    qp.release();
  }
  console.log('ok  invalidated by the peer');
  {
    const { qp, queue, memory } = await hosts.pair();
    qp.postReceive('receive', memory.sge(0, 64));
    const { rkey } = memory.region;
    assert.equal(await hosts.status({ op: 'send_inv', at: 0, len: 20, rkey }), IbvWc.REM_ACCESS_ERR);
    assert.equal(wcName((await queue.any()).status), 'LOCAL_ACCESS_ERROR');
    qp.release();
  }
  console.log('ok  other regions are not the peer’s to invalidate');
  {
    const { qp, memory } = await hosts.pair({ ourMemory: RIGHTS | WvAccess.ZERO_BASED });
    const { rkey } = memory.region;
    await hosts.fill(0, 64, 23);
    assert.equal(await hosts.status({ op: 'write', at: 0, len: 64, addr: 100, rkey }), IbvWc.SUCCESS);
    assert.deepEqual(memory.bytes.slice(100, 164), pattern(64, 23));
    assert.equal(await hosts.status({ op: 'read', at: 64, len: 64, addr: 100, rkey }), IbvWc.SUCCESS);
    assert.equal(await hosts.crc(64, 64), crc32(pattern(64, 23)));
    qp.release();
  }
  console.log('ok  zero based');
  region.release();
}

/** We access a zero-based window of the guest, and try to invalidate a region of the guest that does not permit it. */
export async function regionsOfTheirs(hosts: Hosts): Promise<void> {
  {
    const { qp, queue, memory } = await hosts.pair();
    const access = Ibv.REMOTE_WRITE | Ibv.REMOTE_READ | Ibv.ZERO_BASED;
    const window = new RemoteMemory({ address: 0n, rkey: await hosts.window(AT, LENGTH, access) });
    memory.bytes.set(pattern(LENGTH, 24));
    qp.write('write', memory.sge(0, LENGTH), SIGNALED, window, 0);
    await queue.next();
    assert.equal(await hosts.crc(AT, LENGTH), crc32(pattern(LENGTH, 24)));
    qp.read('read', memory.sge(LENGTH, 64), SIGNALED, window, 32);
    await queue.next();
    assert.deepEqual(memory.bytes.slice(LENGTH, LENGTH + 64), pattern(LENGTH, 24).slice(32, 96));
    qp.release();
  }
  console.log('ok  zero based');
  {
    // The architecture requires the request to be rejected. rxe acknowledges it and reports the error to its receiver.
    const { qp, queue, memory, remote } = await hosts.pair();
    await hosts.receive(0, 64);
    qp.sendAndInvalidate('send', memory.sge(0, 20), SIGNALED, remote.rkey);
    await queue.next();
    const [there] = await hosts.completions(1);
    assert.equal(there?.status, IbvWc.REM_INV_REQ_ERR);
    qp.release();
  }
  console.log('ok  a region that cannot be invalidated');
}
