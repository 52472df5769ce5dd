import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type IWVConnectQueuePair,
  QpState,
  RemoteMemory,
  Status,
  StatusError,
  WvAccess,
  type WvCompletion,
  WvSend,
  type WvSge,
} from '../../winverbs/index.js';
import { connectedPair, type Side, take } from '../helpers/loopback.js';

/** Numbers that are valid, barely invalid, or far out of range. */
const number = fc.oneof(
  fc.nat(64),
  fc.nat(10_000),
  fc.constantFrom(-1, 0.5, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 47, 2 ** 53, Number.NaN, Infinity, -0),
);
const anything = fc.constantFrom<unknown>(undefined, null, 'text', {}, [], 7, 7n, [null], [{}]);
const flags = fc.oneof(fc.constantFrom(0, 4, 5, 12, 20, 6), fc.nat(0x3f));
const sges = fc.array(fc.record({ key: fc.nat(3), offset: number, length: number }), { maxLength: 6 });

interface Post {
  what: number;
  sges: { key: number; offset: number; length: number }[];
  flags: number;
  offset: number;
  key: number;
  odd: unknown;
}
const post: fc.Arbitrary<Post> = fc.record({
  what: fc.nat(9),
  sges,
  flags,
  offset: number,
  key: fc.nat(2),
  odd: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: anything }),
});

function run(side: Side, peer: Side, window: ReturnType<Side['pd']['allocateMemoryWindow']>, p: Post): void {
  const { region } = side;
  const regions = [
    region,
    { lkey: region.lkey ^ 0x100, address: region.address, bytes: region.bytes ?? new Uint8Array(0) },
    { lkey: region.lkey, address: 8 },
    { lkey: 0, address: 0, bytes: new Uint8Array(5) },
  ];
  const made = p.sges.map(({ key, ...rest }) => ({ region: regions[key]!, ...rest }));
  const sgl = (p.odd === undefined ? made : p.odd) as WvSge[];
  const address = BigInt(peer.region.address);
  const remote = [
    peer.remote,
    new RemoteMemory({ address, rkey: (peer.region.rkey ^ 0x5500) >>> 0 }),
    new RemoteMemory({ address: 0xffff_ffff_ffff_f000n, rkey: peer.region.rkey }),
  ][p.key]!;
  const qp: IWVConnectQueuePair = side.qp;
  const one = sgl?.[0] as WvSge;
  const posts = [
    () => qp.send(p, sgl, p.flags, p.offset),
    () => qp.write(p, sgl, p.flags, remote, p.offset, 1),
    () => qp.read(p, sgl, p.flags, remote, p.offset),
    () => qp.fetchAdd(p, one, p.flags, 1n, remote, p.offset),
    () => qp.compareExchange(p, one, p.flags, 1n, 2n, remote, p.offset),
    () => qp.postReceive(p, sgl),
    () => qp.sendAndInvalidate(p, sgl, p.flags, p.key),
    () => qp.bindMemoryWindow(window, p, region, p.offset, p.flags, WvAccess.REMOTE_READ, p.flags),
    () => qp.invalidateMemoryWindow(window, p, p.flags),
    () => qp.read(p, sgl, p.flags, p.odd as RemoteMemory, p.offset),
  ];
  posts[p.what]!();
}

test('any posted request is rejected with a status or completes, and affects nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(post, { minLength: 1, maxLength: 12 }), async (all) => {
      const { a, b, release } = await connectedPair();
      const guard = Buffer.alloc(64, 0x5a);
      a.pd.registerMemory(guard, 0);
      const window = a.pd.allocateMemoryWindow();
      let signaled = 0;
      for (const p of all) {
        try {
          run(a, b, window, p);
          if (p.what === 5 || (p.flags & WvSend.SIGNALED) !== 0) signaled++;
        } catch (error) {
          assert.instance(error, StatusError, String(error));
          assert.is.not((error as StatusError).status, Status.SUCCESS);
        }
      }
      // Every accepted request must complete: those that the peer does not allow are flushed.
      await a.ep.disconnect().catch((error: unknown) => assert.instance(error, StatusError));
      assert.is(a.qp.state, QpState.ERROR);
      assert.ok((await take(a.cq, signaled)).length === signaled);
      const more: WvCompletion[] = [];
      a.cq.poll(more, 64);
      assert.ok(guard.every((byte) => byte === 0x5a));
      window.release();
      release();
    }),
    { numRuns: 60 },
  );
  const { a, b, release } = await connectedPair();
  b.qp.postReceive('alive', []);
  a.qp.send('alive', [], WvSend.SIGNALED);
  assert.is((await take(b.cq, 1))[0]!.status, 0);
  release();
});

test.run();
