// What connections of networkdirect/net share ends once, in whichever order the operations that use it end.
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectChannel, createChannelServer } from '../../nd/net/index.js';
import { Place } from '../../nd/net/place.js';
import { type Answering, Responder } from '../../nd/net/responder.js';
import { exposeAt, lendAt } from '../../nd/net/shared.js';
import { rejection } from '../helpers/net-pair.js';

const LOOPBACK = '127.0.0.1';

test('a request that repeats the id of one whose answer was withdrawn is not forgotten with that one', () => {
  const over: (() => void)[] = [];
  const answering = {
    limit: 1,
    answer: (_id: number, _bytes: Uint8Array, gone: () => void) => {
      over.push(gone);
      return { withdraw: () => true };
    },
    full: () => false,
    whenReleased: () => {},
    idle: () => {},
  } as unknown as Answering;
  const responder = new Responder(answering, () => 'answer');
  responder.serve(1, Buffer.from('first'));
  responder.cancel(1);
  assert.not(responder.has(1));
  responder.serve(1, Buffer.from('second'));
  over[0]!(); // the memory of the first answer is free
  assert.ok(responder.has(1));
  assert.not(responder.free, 'the second counts against the limit');
  over[1]!();
  assert.not(responder.has(1));
});

for (const [what, share] of [
  ['lent', (place: Place) => lendAt(place, new Uint8Array(4096))],
  ['exposed', (place: Place) => exposeAt([place], new Uint8Array(4096))],
] as const) {
  test(`memory that is being ${what} keeps its adapter when the last connection ends`, async () => {
    const place = Place.at(LOOPBACK);
    const sharing = share(place);
    place.letGo(); // the connection has ended
    const shared = await sharing;
    const again = Place.at(LOOPBACK);
    assert.is(again, place, 'the adapter is open');
    again.letGo();
    shared.release();
    const next = Place.at(LOOPBACK);
    assert.is.not(next, place);
    await next.blank(8).then(({ region }) => region.release());
    next.letGo();
  });

  test(`memory that cannot be ${what} leaves the adapter to its connections`, async () => {
    const place = Place.at(LOOPBACK);
    const create = place.adapter.createMemoryRegion.bind(place.adapter);
    place.adapter.createMemoryRegion = () => {
      throw new Error('no memory');
    };
    assert.is((await rejection(share(place))).message, 'no memory');
    place.adapter.createMemoryRegion = create;
    assert.is(Place.at(LOOPBACK), place);
    place.letGo();
    place.letGo();
    const next = Place.at(LOOPBACK);
    assert.is.not(next, place);
    next.letGo();
  });
}

test('memory for small Reads that could not be had once is asked for again', async () => {
  const place = Place.at(LOOPBACK);
  const create = place.adapter.createMemoryRegion.bind(place.adapter);
  place.adapter.createMemoryRegion = () => {
    throw new Error('no memory');
  };
  await rejection(place.borrow(8));
  place.adapter.createMemoryRegion = create;
  const bounce = await place.borrow(8);
  assert.not(bounce.own);
  place.giveBack(bounce);
  place.letGo();
});

test('close() of a server that is closing resolves with the end of its connections', async () => {
  const server = createChannelServer(() => {});
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const channel = await connectChannel(server.address()!.port, LOOPBACK);
  const ended: string[] = [];
  const closing = [
    server.close().then(() => ended.push('first')),
    server.close().then(() => ended.push('second')),
  ];
  await turn();
  assert.equal(ended, []);
  await channel.close();
  await Promise.all(closing);
  assert.equal(ended, ['first', 'second']);
});

test.run();
