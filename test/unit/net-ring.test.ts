/** The rings of a stream apart from a connection: both sides agree about every unit, and memory that was refused costs nothing. */
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { IND2MemoryRegion, IND2QueuePair, Nd2Sge } from '../../nd/index.js';
import { Notice, RING_UNIT } from '../../nd/net/connection/frames.js';
import type { GrantNews, Range, Right } from '../../nd/net/connection/grants.js';
import type { Slot } from '../../nd/net/connection/link-types.js';
import { type OutRing, rings, StreamRings } from '../../nd/net/connection/stream-rings.js';
import { seeded } from '../helpers/random.js';

/** What stands for registered memory: its bytes by their number. */
class FakePlace {
  readonly registered: Uint8Array[] = [];
  released = 0;
  refuses = false;

  async register(bytes: Uint8Array): Promise<{ bytes: Uint8Array; region: IND2MemoryRegion }> {
    if (this.refuses) throw new Error('There is no memory.');
    const address = BigInt(this.registered.push(bytes) - 1);
    const release = (): number => (this.released += 1);
    return { bytes, region: { address, release } as IND2MemoryRegion };
  }

  open(_range: Range, _right: Right, { opened }: GrantNews): { cut(): void } {
    opened(7);
    return { cut: () => {} };
  }
}

/** A Write that has not completed. Until it has, it may have to be repeated. */
interface Write {
  readonly ring: OutRing;
  readonly source: Uint8Array;
  readonly bytes: Uint8Array;
}

/** Two sides of a stream, whose Writes are executed at once and completed later. */
function pair(bytes: number): {
  place: FakePlace;
  sender: StreamRings;
  receiver: StreamRings;
  queuePair: Pick<IND2QueuePair, 'write'>;
  writes: Write[];
} {
  const place = new FakePlace();
  const sender = new StreamRings(place, bytes, () => {});
  const receiver = new StreamRings(place, bytes, () => {});
  const writes: Write[] = [];
  const write = (context: OutRing, [{ offset, length }]: [Nd2Sge], _: unknown, to: number): void => {
    const [target, source] = place.registered as [Uint8Array, Uint8Array];
    const part = source.subarray(offset, offset + length);
    target.set(part, to);
    writes.push({ ring: context, source: part, bytes: part.slice() });
  };
  return { place, sender, receiver, queuePair: { write }, writes };
}

/** Much comes in slots, and what is said then is heard. */
async function busy(sender: StreamRings, receiver: StreamRings): Promise<void> {
  for (let n = 0; n < 4; n += 1) receiver.in.came(2 ** 22);
  await setImmediate();
  const offer = receiver.notice();
  if (offer === undefined) return;
  assert.is(offer.kind, Notice.OFFER);
  assert.is(
    sender.heard(offer.kind, offer.payload, () => {}),
    undefined,
  );
  await setImmediate();
}

test('whatever is written and taken, no byte is written over before it was taken, and none gets lost', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = seeded(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const units = 1 + below(40);
    const { place, sender, receiver, queuePair, writes } = pair(units * RING_UNIT);
    await busy(sender, receiver);
    assert.is(rings.bytes, 2 * units * RING_UNIT);
    const held: { slot: Slot; length: number; byte: number }[] = [];
    let full = 0;
    for (let step = 0; step < 2000; step += 1) {
      const action = below(8) >> 1;
      if (action === 0) {
        const room = sender.room;
        if (room === 0) full += 1;
        else {
          const length = 1 + below(room);
          sender.write(queuePair, [Buffer.alloc(length, step)], length);
          const slot = receiver.in.take(length);
          if (slot === undefined) throw new Error(`seed ${seed}: ${length} bytes were not taken`);
          held.push({ slot, length, byte: step & 0xff });
        }
      } else if (action === 1 && held.length > 0) {
        const { slot, length, byte } = held.shift()!;
        assert.ok(slot.memory.subarray(slot.offset, slot.offset + length).every((one) => one === byte));
        receiver.in.released(slot.units);
      } else if (action === 2 && (receiver.in.owes || below(3) === 0)) {
        const owed = receiver.in.takeOwed();
        assert.ok(owed === 0 || sender.returned(owed));
      } else if (action === 3 && below(2) === 0)
        for (const { ring, source, bytes } of writes.splice(0, 1 + below(3))) {
          assert.equal(source, bytes);
          sender.wrote(ring);
        }
    }
    assert.ok(full > 0);
    for (const { ring } of writes.splice(0)) sender.wrote(ring);
    // A sender that does not count gets no more than there is.
    let more = 0;
    while (receiver.in.take(RING_UNIT) !== undefined && more <= units) more += 1;
    assert.ok(more <= units);
    sender.end();
    receiver.end();
    assert.equal([rings.bytes, place.released], [0, 2]);
  }
});

test('a ring that was taken back is freed by its sender when its Writes have completed, by its receiver when all was taken', async () => {
  const { place, sender, receiver, queuePair, writes } = pair(2 ** 20);
  await busy(sender, receiver);
  sender.write(queuePair, [Buffer.alloc(10)], 10);
  rings.look();
  rings.look();
  const back = receiver.notice()!;
  assert.is(back.kind, Notice.TAKE_BACK);
  let posted = false;
  assert.is(
    sender.heard(back.kind, back.payload, () => {
      posted = true;
    }),
    undefined,
  );
  assert.ok(posted);
  assert.is(sender.room, 0);
  const slot = receiver.in.take(10)!;
  const given = sender.notice()!;
  assert.is(
    receiver.heard(given.kind, given.payload, () => {}),
    undefined,
  );
  assert.is(place.released, 0);
  receiver.in.released(slot.units);
  assert.is(place.released, 1);
  assert.is(receiver.in.takeOwed(), 0);
  sender.wrote(writes[0]!.ring);
  assert.equal([place.released, rings.bytes], [2, 0]);
  // It is not there twice.
  assert.match(receiver.heard(given.kind, given.payload, () => {}) ?? '', /gives back a ring/);
});

test('memory that is refused is asked for again only after much more has come', async () => {
  const { place, sender, receiver } = pair(2 ** 20);
  place.refuses = true;
  await busy(sender, receiver);
  assert.equal([sender.room, rings.bytes], [0, 0]);
  place.refuses = false;
  receiver.in.came(2 ** 22);
  await setImmediate();
  assert.is(receiver.notice(), undefined);
  for (let n = 0; n < 4; n += 1) await busy(sender, receiver);
  assert.ok(sender.room > 0);
  sender.end();
  receiver.end();
  assert.is(rings.bytes, 0);
});

test('a sender that is refused memory gives the ring back at once', async () => {
  const { place, sender, receiver } = pair(2 ** 20);
  for (let n = 0; n < 4; n += 1) receiver.in.came(2 ** 22);
  await setImmediate();
  place.refuses = true;
  const offer = receiver.notice()!;
  sender.heard(offer.kind, offer.payload, () => {});
  await setImmediate();
  const given = sender.notice();
  assert.is(given?.kind, Notice.GIVE_BACK);
  receiver.heard(given!.kind, given!.payload, () => {});
  assert.equal([sender.room, rings.bytes], [0, 0]);
});

test('a connection that ends while memory is being registered gives it back', async () => {
  const { place, receiver } = pair(2 ** 20);
  for (let n = 0; n < 4; n += 1) receiver.in.came(2 ** 22);
  assert.is(rings.bytes, 2 ** 20);
  receiver.end();
  await setImmediate();
  assert.equal([rings.bytes, place.released, receiver.notice()], [0, 1, undefined]);
});

test.run();
