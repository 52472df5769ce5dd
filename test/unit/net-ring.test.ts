/** The rings of a stream without a connection. Both sides agree on every part, and failed allocations are not repeated often. */
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type IND2MemoryRegion, type IND2QueuePair, Nd2DirectResult, type Nd2Sge } from '../../nd/index.js';
import { Notice, RING_UNIT } from '../../nd/net/connection/frames.js';
import type { GrantNews, Range, Right } from '../../nd/net/connection/grants.js';
import { type Slot, slotAt } from '../../nd/net/connection/link-types.js';
import { REMOTE_OPERATIONS } from '../../nd/net/connection/operations.js';
import { type OutRing, rings, StreamRings } from '../../nd/net/connection/stream-rings.js';
import { seeded } from '../helpers/random.js';

/** Replaces registered memory: its bytes by number. */
class FakePlace {
  readonly registered: Uint8Array[] = [];
  released = 0;
  refuses = false;

  async register(bytes: Uint8Array): Promise<{ bytes: Uint8Array; region: IND2MemoryRegion }> {
    if (this.refuses) throw new Error('No memory is available.');
    const address = BigInt(this.registered.push(bytes) - 1);
    const release = (): number => (this.released += 1);
    return { bytes, region: { address, release } as IND2MemoryRegion };
  }

  open(_range: Range, _right: Right, { opened }: GrantNews): { cut(): void } {
    opened(7);
    return { cut: () => {} };
  }
}

/** A Write that has not completed and may have to be retransmitted. */
interface Write {
  readonly ring: OutRing;
  readonly source: Uint8Array;
  readonly bytes: Uint8Array;
}

/**
 * Two sides of a stream whose Writes are executed immediately and completed later. `direct` returns `placed`; undefined: the queue pair has
 * no `direct`.
 */
function pair(
  bytes: number,
  parts = 16,
  placed?: Nd2DirectResult,
): {
  place: FakePlace;
  sender: StreamRings;
  receiver: StreamRings;
  queuePair: Pick<IND2QueuePair, 'write' | 'direct'>;
  writes: Write[];
  carrier: Slot;
} {
  const place = new FakePlace();
  const sender = new StreamRings(place, bytes, 1, parts, () => {});
  const receiver = new StreamRings(place, bytes, parts, 1, () => {});
  const writes: Write[] = [];
  const write = (context: OutRing, [{ offset, length }]: [Nd2Sge], _: unknown, to: number): void => {
    const [target, source] = place.registered as [Uint8Array, Uint8Array];
    const part = source.subarray(offset, offset + length);
    target.set(part, to);
    writes.push({ ring: context, source: part, bytes: part.slice() });
  };
  const direct = (_: unknown, piece: Uint8Array, __: unknown, to: number): Nd2DirectResult => {
    if (placed === Nd2DirectResult.DONE) place.registered[0]!.set(piece, to);
    return placed!;
  };
  const queuePair = { write, ...(placed !== undefined && { direct }) };
  const memory = Buffer.alloc(16);
  const carrier = slotAt(memory, {} as IND2MemoryRegion, 0, 16);
  return { place, sender, receiver, queuePair, writes, carrier };
}

/** Receives a lot of data in slots, and exchanges the resulting notices. */
async function busy(sender: StreamRings, receiver: StreamRings): Promise<void> {
  for (let n = 0; n < 4; n += 1) receiver.in.received(2 ** 18);
  await setImmediate();
  const offer = receiver.notice();
  if (offer === undefined) return;
  assert.is(offer.kind, Notice.OFFER);
  assert.is(sender.receive(offer.kind, offer.payload), undefined);
}

/** Attempts to place bytes until the sender has memory for Writes. */
async function inVain(
  sender: StreamRings,
  queuePair: Pick<IND2QueuePair, 'write' | 'direct'>,
): Promise<void> {
  for (let n = 0; n < 256; n += 1) assert.not(sender.put(queuePair, 0, [Buffer.alloc(1)], 1));
  await setImmediate();
}

for (const placed of [Nd2DirectResult.DONE, Nd2DirectResult.REFUSED, undefined])
  test(`no byte overwrites an unread one, and none is lost; direct returns ${placed}`, async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      const random = seeded(seed);
      const below = (n: number): number => Math.floor(random() * n);
      const parts = 1 + below(20);
      const units = parts * (1 + below(4));
      const bytes = units * RING_UNIT;
      const { place, sender, receiver, queuePair, writes, carrier } = pair(bytes, parts, placed);
      await busy(sender, receiver);
      assert.is(rings.bytes, bytes);
      assert.is(sender.room, bytes / parts);
      if (placed !== Nd2DirectResult.DONE) {
        await inVain(sender, queuePair);
        assert.is(rings.bytes, 2 * bytes);
      }
      const held: { slot: Slot; length: number; byte: number }[] = [];
      let send = 0;
      for (let step = 0; step < 2000; step += 1) {
        const action = below(3);
        // The sender has a credit for each empty slot.
        if (action === 0 && held.length < parts && writes.length < REMOTE_OPERATIONS) {
          const length = 2 + below(sender.room - 1);
          const one = 1 + below(length - 1);
          const pieces = [Buffer.alloc(one, step), Buffer.alloc(length - one, step)];
          if (!sender.put(queuePair, send, pieces, length)) {
            // The Write of the part's previous bytes has not completed.
            assert.ok(writes.length > 0 && placed !== Nd2DirectResult.DONE);
            continue;
          }
          const slot = receiver.in.take(send, length, carrier);
          if (slot === undefined) throw new Error(`seed ${seed}: ${length} bytes were not taken`);
          held.push({ slot, length, byte: step & 0xff });
          send += 1;
        } else if (action === 1 && held.length > 0) {
          const { slot, length, byte } = held.shift()!;
          assert.ok(slot.memory.subarray(slot.offset, slot.offset + length).every((each) => each === byte));
          receiver.in.released(slot);
        } else if (action === 2)
          for (const { ring, source, bytes: were } of writes.splice(0, 1 + below(3))) {
            assert.equal(source, were);
            ring.wrote();
          }
      }
      // All parts were used more than once.
      assert.ok(send > 2 * parts);
      if (placed === Nd2DirectResult.DONE) assert.is(writes.length, 0);
      for (const { ring } of writes.splice(0)) ring.wrote();
      // At least one byte, and at most the size of a part.
      assert.is(receiver.in.take(send, bytes / parts + 1, carrier), undefined);
      assert.is(receiver.in.take(send, 0, carrier), undefined);
      sender.end();
      receiver.end();
      assert.equal([rings.bytes, place.released], [0, placed === Nd2DirectResult.DONE ? 1 : 2]);
    }
  });

test('a ring whose memory is never mapped is written to, and one that is mapped soon is not', async () => {
  const { sender, receiver, queuePair, writes } = pair(2 ** 20, 16, Nd2DirectResult.NOT_MAPPED);
  await busy(sender, receiver);
  assert.not(sender.put(queuePair, 0, [Buffer.alloc(10)], 10));
  await setImmediate();
  assert.is(rings.bytes, 2 ** 20);
  await inVain(sender, queuePair);
  assert.is(rings.bytes, 2 ** 21);
  assert.ok(sender.put(queuePair, 0, [Buffer.alloc(10)], 10));
  assert.is(writes.length, 1);
  sender.end();
  receiver.end();
});

test('a part cannot be taken again until its bytes were released', async () => {
  const { sender, receiver, carrier } = pair(2 ** 20, 16, Nd2DirectResult.DONE);
  await busy(sender, receiver);
  const slot = receiver.in.take(3, 10, carrier)!;
  assert.is(receiver.in.take(19, 10, carrier), undefined);
  receiver.in.released(slot);
  assert.is.not(receiver.in.take(19, 10, carrier), undefined);
  sender.end();
  receiver.end();
});

test('a sender has at most as many Writes in flight as fit in the send queue', async () => {
  const { sender, receiver, queuePair, writes } = pair(2 ** 22, 64);
  await busy(sender, receiver);
  sender.put(queuePair, 0, [Buffer.alloc(10)], 10);
  await setImmediate();
  let send = 0;
  while (sender.put(queuePair, send, [Buffer.alloc(10)], 10)) send += 1;
  assert.equal([send, writes.length], [REMOTE_OPERATIONS, REMOTE_OPERATIONS]);
  writes[0]!.ring.wrote();
  assert.ok(sender.put(queuePair, send, [Buffer.alloc(10)], 10));
  sender.end();
  receiver.end();
});

test('a withdrawn ring is freed by its sender when its Writes have completed, and by its receiver when all bytes were read', async () => {
  const { place, sender, receiver, queuePair, writes, carrier } = pair(2 ** 20);
  await busy(sender, receiver);
  sender.put(queuePair, 0, [Buffer.alloc(10)], 10);
  await setImmediate();
  assert.ok(sender.put(queuePair, 0, [Buffer.alloc(10)], 10));
  rings.reclaimIdle();
  rings.reclaimIdle();
  const back = receiver.notice()!;
  assert.is(back.kind, Notice.WITHDRAW);
  assert.is(sender.receive(back.kind, back.payload), undefined);
  assert.is(sender.room, 0);
  const slot = receiver.in.take(0, 10, carrier)!;
  const given = sender.notice()!;
  assert.is(receiver.receive(given.kind, given.payload), undefined);
  assert.is(receiver.in.take(1, 10, carrier), undefined);
  assert.is(place.released, 0);
  receiver.in.released(slot);
  assert.is(place.released, 1);
  writes[0]!.ring.wrote();
  assert.equal([place.released, rings.bytes], [2, 0]);
  // The ring cannot be returned twice.
  assert.match(receiver.receive(given.kind, given.payload) ?? '', /returned a ring/);
});

test('after a refusal, memory is requested again only after much more data has arrived', async () => {
  const { place, sender, receiver } = pair(2 ** 20);
  place.refuses = true;
  await busy(sender, receiver);
  assert.equal([sender.room, rings.bytes], [0, 0]);
  place.refuses = false;
  receiver.in.received(2 ** 18);
  await setImmediate();
  assert.is(receiver.notice(), undefined);
  for (let n = 0; n < 4; n += 1) await busy(sender, receiver);
  assert.ok(sender.room > 0);
  sender.end();
  receiver.end();
  assert.is(rings.bytes, 0);
});

test('a sender that must write but has no memory returns the ring', async () => {
  const { place, sender, receiver, queuePair } = pair(2 ** 20);
  for (let n = 0; n < 4; n += 1) receiver.in.received(2 ** 18);
  await setImmediate();
  place.refuses = true;
  const offer = receiver.notice()!;
  sender.receive(offer.kind, offer.payload);
  assert.not(sender.put(queuePair, 0, [Buffer.alloc(10)], 10));
  await setImmediate();
  const given = sender.notice();
  assert.is(given?.kind, Notice.RETURN);
  receiver.receive(given!.kind, given!.payload);
  assert.equal([sender.room, rings.bytes], [0, 0]);
});

test('memory registered for a connection that ends in the meantime is released', async () => {
  const { place, receiver } = pair(2 ** 20);
  for (let n = 0; n < 4; n += 1) receiver.in.received(2 ** 18);
  assert.is(rings.bytes, 2 ** 20);
  receiver.end();
  await setImmediate();
  assert.equal([rings.bytes, place.released, receiver.notice()], [0, 1, undefined]);
});

test.run();
