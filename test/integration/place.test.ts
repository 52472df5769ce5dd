/**
 * Bytes that a process places directly in another one's memory, through a queue pair of ND v2 or a busy stream of `networkdirect/net`.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { LOOPBACK, socketAddress } from '../../nd/cli/sides/connected-side.js';
import { HostV2 } from '../../nd/cli/sides/v2-side.js';
import { Nd2Direct, Nd2DirectResult, Nd2RemoteMemory } from '../../nd/index.js';
import { rings } from '../../nd/net/connection/stream-rings.js';
import { connectChannel, createServer, type Socket } from '../../nd/net/index.js';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { needing } from '../helpers/needs.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import { thrownName } from '../helpers/outcome.js';
import { programFile } from '../helpers/programs.js';
import { seeded } from '../helpers/random.js';

const program = programFile(new URL('../helpers/place-program.js', import.meta.url));
const children = new Set<ChildProcess>();

/** Starts another process. Returns it and a function that waits for its next message, and fails if the process exits first. */
function start(args: readonly (string | number)[], options: KernelOptionsInput = {}) {
  const env = { ...process.env, ND_OPTIONS: JSON.stringify(options) };
  const child = fork(program, args.map(String), { env });
  children.add(child);
  // 'exit' may be emitted before the last messages.
  const ended = once(child, 'close').then(([code, signal]): never => {
    throw new Error(`The process has ended with ${signal ?? code}.`);
  });
  const next = <T>(): Promise<T> => {
    const reported = Promise.race([once(child, 'message'), ended]).then(([message]) => message as T);
    // A test that fails before it awaits this has already reported the reason.
    reported.catch(() => {});
    return reported;
  };
  return { child, next };
}

test.after.each(async () => {
  await endAll();
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

const BYTES = 2 ** 20;

needing(test, 'direct access')(
  'place: any memory of the program arrives in the memory of the other process',
  async () => {
    const { child, next } = start(['memory', BYTES]);
    using host = new HostV2();
    using side = host.newSide();
    const { port } = await next<{ port: number }>();
    const opened = next<{ address: string; token: number }>();
    await side.establish(socketAddress(LOOPBACK, port));
    const { address, token } = await opened;
    const remote = new Nd2RemoteMemory(BigInt(address), token);
    const { queuePair } = side;
    const place = (bytes: Uint8Array, to: Nd2RemoteMemory, offset?: number) =>
      queuePair.direct!(Nd2Direct.WRITE, bytes, to, offset);
    /** Returns the offset at which the other process finds different bytes. It clears its memory afterwards. */
    const wrong = async (at: number, count: number): Promise<number[]> => {
      const answer = next<{ wrong: number[] }>();
      child.send({ at, count });
      return (await answer).wrong;
    };

    const end = performance.now() + 30_000;
    let placed = place(patternOf(77), remote, 5);
    for (; placed === Nd2DirectResult.NOT_MAPPED; placed = place(patternOf(77), remote, 5)) {
      assert.ok(performance.now() < end, 'the memory is mapped');
      await setImmediate();
    }
    assert.is(placed, Nd2DirectResult.DONE);
    assert.equal(await wrong(5, 77), []);
    for (const [at, count] of [
      [BYTES - 1, 1],
      [0, 65_536],
      [4095, 65_537],
      [1, 300_007],
      [0, BYTES],
    ] as const) {
      assert.is(place(patternOf(count), remote, at), Nd2DirectResult.DONE);
      assert.equal(await wrong(at, count), []);
    }

    // None of these calls places a byte.
    assert.is(place(Buffer.alloc(0), remote, 0), Nd2DirectResult.DONE);
    for (const offset of [BYTES - 3, BYTES, 2 ** 32, 2 ** 52, Number.MAX_SAFE_INTEGER])
      assert.is.not(place(patternOf(4), remote, offset), Nd2DirectResult.DONE);
    assert.is(
      place(patternOf(4), new Nd2RemoteMemory(remote.address, token + 1), 0),
      Nd2DirectResult.REFUSED,
    );
    const thrown = (bytes: unknown, to: unknown, offset: unknown): string =>
      thrownName(() => place(bytes as Uint8Array, to as Nd2RemoteMemory, offset as number));
    const few = patternOf(4);
    for (const offset of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '0', 0n])
      assert.is(thrown(few, remote, offset), 'INVALID_PARAMETER_5');
    for (const bytes of [undefined, null, 'text', [1, 2], new DataView(few.buffer), few.buffer])
      assert.is(thrown(bytes, remote, 0), 'INVALID_PARAMETER');
    for (const other of [undefined, null, {}, { address: remote.address, token }])
      assert.match(thrown(few, other, 0), /^INVALID_PARAMETER_4/);
    assert.equal(await wrong(0, 0), []);

    await side.disconnect();
    assert.is(place(patternOf(4), remote, 0), Nd2DirectResult.REFUSED);
    assert.equal(await wrong(0, 0), []);
    queuePair.release();
    assert.is(thrown(few, remote, 0), 'INVALID_HANDLE');
  },
);

needing(test, 'direct access')(
  'memory of another process is read, written and changed at once, until that process is killed',
  async () => {
    const { child, next } = start(['expose', 1000]);
    const { port } = await next<{ port: number }>();
    const channel = await connectChannel({ port, host: LOOPBACK });
    const answer = await channel.request('');
    const remote = channel.open(answer.subarray(0, 24));
    const there = async (): Promise<Buffer> => (await channel.request('')).subarray(24);
    assert.ok(remote.direct);
    // The first access waits for the mapping.
    remote.writeSync(7, patternOf(900));
    assert.equal((await there()).subarray(7, 907), patternOf(900));
    const into = new Uint8Array(993);
    remote.readSync(7, into);
    assert.equal(into, new Uint8Array((await there()).subarray(7)));
    remote.writeSync(0, new Uint8Array(1000));
    const before = readCounters().hca!.direct_atomic!;
    assert.is(remote.fetchAddSync(8, 3n), 0n);
    assert.is(await remote.fetchAdd(8, 4n), 3n);
    assert.is(await remote.compareExchange(8, 7n, 9n), 7n);
    assert.is(remote.compareExchangeSync(8, 7n, 1n), 9n);
    assert.is(readCounters().hca!.direct_atomic! - before, 4, 'the owner has executed none of them');
    assert.is((await there()).readBigInt64LE(8), 9n);

    const closed = once(channel, 'close');
    channel.on('error', () => {});
    child.kill('SIGKILL');
    await closed;
    assert.not.ok(remote.direct);
    assert.throws(() => remote.readSync(0, into), /is closed|process ended/);
  },
);

needing(test, 'direct access')('without direct access, methods in Sync say why and what to use', async () => {
  const { next } = start(['expose', 64], { direct: false });
  const { port } = await next<{ port: number }>();
  const channel = await connectChannel({ port, host: LOOPBACK });
  const remote = channel.open((await channel.request('')).subarray(0, 24));
  assert.not.ok(remote.direct);
  assert.throws(() => remote.readSync(0, new Uint8Array(8)), /option direct: false\. Use read\(\)/);
  assert.throws(() => remote.fetchAddSync(0, 1n), /Use fetchAdd\(\)/);
  assert.is(await remote.fetchAdd(0, 1n), 0n);
  assert.is((await remote.read(0, 8)).readBigInt64LE(), 1n);
  await channel.close();
});

const STREAM_BYTES = 20_000_000;

for (const direct of [true, false]) {
  needing(test, direct ? 'direct access' : LOOPBACK)(
    `a stream of another process, its memory withdrawn now and then, direct: ${direct}: every byte is right`,
    async () => {
      const server = createServer();
      const port = await listening(server);
      const connected = once(server, 'connection') as Promise<[Socket]>;
      const seed = 11;
      const { next } = start(['pour', port, STREAM_BYTES, seed], { direct });
      const reported = next<{ placed: number; most: number; written: number }>();
      const [socket] = await connected;
      const random = seeded(seed + 1);
      const pattern = patternOf(300_007);
      let read = 0;
      let most = 0;
      for await (const piece of socket as AsyncIterable<Buffer>) {
        for (let at = 0; at < piece.length; ) {
          const from = read % pattern.length;
          const length = Math.min(piece.length - at, pattern.length - from);
          const found = piece.subarray(at, at + length);
          assert.ok(found.equals(pattern.subarray(from, from + length)), `bytes from ${read} on`);
          at += length;
          read += length;
        }
        most = Math.max(most, rings.bytes);
        if (random() < 0.01) rings.reclaimIdle();
      }
      assert.is(read, STREAM_BYTES);
      assert.ok(most > 0);
      const poured = await reported;
      if (direct) assert.ok(poured.placed > 0, JSON.stringify(poured));
      // All bytes are transferred by Writes, in packets.
      else assert.ok(poured.written === 0 && poured.most > 0, JSON.stringify(poured));
    },
  );
}

test.run();
