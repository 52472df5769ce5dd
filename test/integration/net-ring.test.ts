/** `networkdirect/net`: the ring, which is memory that a busy stream uses in addition to its slots and later returns. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MOST_BYTES, rings } from '../../nd/net/connection/stream-rings.js';
import { createServer, type Socket, type SocketOptions } from '../../nd/net/index.js';
import { endAll, listening, sockets } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import { programFile } from '../helpers/programs.js';
import { seeded } from '../helpers/random.js';
import { firstIf } from '../helpers/tiers.js';

/** Waits until both ends have returned their rings. The other end may still be disconnecting. */
async function allGone(): Promise<void> {
  while (rings.bytes > 0) await setImmediate();
}

test.after.each(async () => {
  await endAll();
  await allGone();
});

const RING = 2 ** 22;
const pattern = patternOf(300_007);

/** Writes `length` bytes of the pattern in pieces of `next()` bytes. */
async function pour(socket: Socket, bytes: number, next: () => number): Promise<void> {
  for (let sent = 0; sent < bytes; ) {
    const at = sent % pattern.length;
    const piece = pattern.subarray(at, Math.min(at + next(), pattern.length, at + bytes - sent));
    sent += piece.length;
    if (!socket.write(piece)) await once(socket, 'drain');
  }
}

/** Reads bytes that must match the pattern. `each` is called and awaited for each piece. */
async function drink(socket: Socket, bytes: number, each: () => unknown = () => {}): Promise<void> {
  let read = 0;
  for await (const piece of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    for (let at = 0; at < piece.length; ) {
      const from = (read + at) % pattern.length;
      const length = Math.min(piece.length - at, pattern.length - from);
      assert.ok(
        piece.subarray(at, at + length).equals(pattern.subarray(from, from + length)),
        `byte ${read + at}`,
      );
      at += length;
    }
    read += piece.length;
    if (read === bytes) return;
    await each();
  }
  throw new Error(`The stream has ended after ${read} bytes.`);
}

/** Sends bytes from one socket to the other. Resolves with the maximum total size of rings during the transfer. */
async function carried(from: Socket, to: Socket, bytes: number, piece = 65_536): Promise<number> {
  let most = 0;
  await Promise.all([
    pour(from, bytes, () => piece),
    drink(to, bytes, () => {
      most = Math.max(most, rings.bytes);
    }),
  ]);
  return most;
}

/** Reclaims idle rings until all have been returned. */
async function allGivenBack(): Promise<void> {
  while (rings.bytes > 0) {
    rings.reclaimIdle();
    await setImmediate();
  }
}

test('a busy stream gets a ring from its reader, an idle one returns it, and a busy one gets it again', async () => {
  const [client, server] = await sockets();
  assert.is(await carried(client, server, 200_000), 0);
  for (let times = 0; times < 2; times += 1) {
    assert.is(await carried(client, server, 40_000_000), RING);
    await allGivenBack();
  }
  // The other direction has its own ring.
  const both = [carried(client, server, 40_000_000), carried(server, client, 40_000_000)];
  assert.ok(Math.max(...(await Promise.all(both))) >= 2 * RING);
  client.destroy();
});

test('the size of a ring is the smaller value of both sides; if one side sets 0, no ring is used', async () => {
  for (const [ours, theirs, smaller] of [
    [2 ** 20, 2 ** 22, 2 ** 20],
    // The ring needs one unit for each of 16 slots.
    [2 ** 22, 17 * 4096 + 1, 16 * 4096],
    [2 ** 22, 0, 0],
    [16 * 4096 - 1, 2 ** 22, 0],
  ] as const) {
    const [client, server] = await sockets({ ringBytes: ours }, { socket: { ringBytes: theirs } });
    assert.is(await carried(client, server, 20_000_000), smaller);
    client.destroy();
    await once(server.resume(), 'close');
    await allGone();
  }
});

for (const seed of [1, 2, 3]) {
  firstIf(seed === 1, test)(
    `any lengths and sizes, and rings that are revoked at any time: every byte is correct (seed ${seed})`,
    async () => {
      const random = seeded(seed);
      const below = (n: number): number => Math.floor(random() * n);
      for (let n = 0; n < 4; n += 1) {
        const options = (): SocketOptions => ({
          slots: 1 + below(20),
          slotBytes: below(2) === 0 ? 65_552 : 64 + below(20_000),
          ringBytes: 4096 * (1 + below(200)),
        });
        const [client, server] = await sockets(options(), { socket: options() });
        const bytes = 12_000_000 + below(10_000_000);
        const next = (): number => 1 + (below(3) === 0 ? below(300_000) : below(30_000));
        const now = async (): Promise<void> => {
          if (below(20) === 0) rings.reclaimIdle();
          if (below(50) === 0) await new Promise((resolve) => setTimeout(resolve, below(4)));
        };
        await Promise.all([
          pour(client, bytes, next),
          drink(server, bytes, now),
          pour(server, bytes, next),
          drink(client, bytes, now),
        ]);
        client.end();
        server.end();
        await Promise.all([once(client.resume(), 'close'), once(server.resume(), 'close')]);
      }
    },
  );
}

test('the bytes in the ring are announced before the ring is returned', async () => {
  const [client, server] = await sockets();
  await carried(client, server, 40_000_000);
  assert.ok(rings.bytes > 0);
  rings.reclaimIdle();
  // Its frame is sent at the end of the turn in which the ring is requested.
  client.on('data', () => client.write(pattern.subarray(0, 8192)));
  server.write('x');
  rings.reclaimIdle();
  await drink(server, 8192);
  while (rings.bytes > 0) await setImmediate();
  client.destroy();
});

test('empty writes between others that are not read for a while do not corrupt data', async () => {
  const [client, server] = await sockets();
  await carried(client, server, 40_000_000);
  server.pause();
  const bytes = 40 * 4096;
  for (let at = 0; at < bytes; at += 4096)
    for (const piece of [pattern.subarray(at, at + 4096), Buffer.alloc(0)]) {
      client.write(piece);
      // Each is sent as a separate Send, whose credit may return.
      for (let n = 0; n < 30; n += 1) await setImmediate();
    }
  await drink(server, bytes);
  client.destroy();
});

test('if the receiver or the sender cannot allocate memory, the stream continues with its slots', async () => {
  for (const left of [0, RING]) {
    assert.ok(rings.take(MOST_BYTES - left));
    const [client, server] = await sockets();
    try {
      assert.ok((await carried(client, server, 40_000_000)) <= MOST_BYTES);
      while (rings.bytes > MOST_BYTES - left) await setImmediate();
    } finally {
      rings.release(MOST_BYTES - left);
    }
    // Memory is available again, and will be requested again later.
    while ((await carried(client, server, 40_000_000)) === 0);
    client.destroy();
    await once(server.resume(), 'close');
    await allGone();
  }
});

test('killing a sender while the receiver allocates memory ends the stream, and the memory is released', async () => {
  const server = createServer();
  const connected = once(server, 'connection') as Promise<[Socket]>;
  const port = await listening(server);
  const program = programFile(new URL('../helpers/net-program.js', import.meta.url));
  const child = fork(program, ['pour', '127.0.0.1', String(port)]);
  const [socket] = await connected;
  const failed = once(socket, 'error') as Promise<[Error & { code: string }]>;
  let killed = false;
  socket.on('data', () => {
    if (rings.bytes === 0 || killed) return;
    killed = true;
    child.kill('SIGKILL');
  });
  assert.is((await failed)[0].code, 'ECONNRESET');
  assert.ok(killed);
  await allGone();
});

test.run();
