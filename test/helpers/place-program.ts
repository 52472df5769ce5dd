/**
 * The other process of place.test.ts. It reports its results in messages. `memory BYTES` gives its peer access to the memory of one queue
 * pair, and reports where the memory differs from the pattern. `expose BYTES` exposes memory through `networkdirect/net` and replies with
 * its handle and its bytes. `pour PORT BYTES SEED` sends a pattern through `networkdirect/net` in pieces of random length.
 */
import { once } from 'node:events';
import { readCounters } from '../../kernel-bridge/index.js';
import { acceptSide, LOOPBACK } from '../../nd/cli/sides/connected-side.js';
import { HostV2 } from '../../nd/cli/sides/v2-side.js';
import { allocate } from '../../nd/index.js';
import { rings } from '../../nd/net/connection/stream-rings.js';
import { connect, createChannelServer } from '../../nd/net/index.js';
import { patternOf } from './net-pattern.js';
import { seeded } from './random.js';

const [role, ...numbers] = process.argv.slice(2);

async function memory(length: number): Promise<void> {
  const bytes = Buffer.from(allocate(length).buffer, 0, length);
  const host = new HostV2();
  const side = host.newSide({ bytes });
  process.send!({ port: host.listening.address.port });
  await acceptSide(host.listening, side);
  process.send!({ address: String(side.region.address), token: side.region.getRemoteToken() });
  // For each order, this many bytes must match the pattern, and all others must be unchanged.
  process.on('message', ({ at, count }: { at: number; count: number }) => {
    const expected = Buffer.alloc(length);
    patternOf(count).copy(expected, at);
    const wrong = bytes.equals(expected) ? [] : [bytes.findIndex((byte, i) => byte !== expected[i])];
    bytes.fill(0);
    process.send!({ wrong });
  });
}

async function pour(port: number, length: number, seed: number): Promise<void> {
  const socket = connect(port, LOOPBACK);
  await once(socket, 'connect');
  const written = (): number => readCounters().hca!.direct_write!;
  const random = seeded(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const pattern = patternOf(300_007);
  let placed = 0;
  let most = 0;
  for (let sent = 0; sent < length; ) {
    const before = written();
    let own = 0;
    for (let n = 0; n < 20 && sent < length; n += 1) {
      const at = sent % pattern.length;
      const longest = below(3) === 0 ? 300_000 : 30_000;
      const piece = pattern.subarray(at, at + Math.min(1 + below(longest), length - sent));
      sent += piece.length;
      own = Math.max(own, rings.bytes);
      if (!socket.write(piece)) await once(socket, 'drain');
    }
    own = Math.max(own, rings.bytes);
    most = Math.max(most, own);
    // Bytes that are not placed directly are written from memory of this process.
    if (own === 0) placed += written() - before;
  }
  socket.end();
  await once(socket.resume(), 'close');
  process.send!({ placed, most, written: written() });
  // A process that exits immediately may do so before its messages are read.
  process.on('message', () => {});
}

async function expose(length: number): Promise<void> {
  const server = createChannelServer();
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const bytes = allocate(length);
  const exposed = await server.expose(bytes, { writable: true });
  server.on('channel', (channel) => {
    channel.on('error', () => {});
    channel.onRequest(() => {
      const own = Buffer.from(bytes);
      return Buffer.concat([exposed.handleFor(channel), own]);
    });
  });
  process.send!({ port: (server.address() as { port: number }).port });
}

if (role === 'memory') await memory(Number(numbers[0]));
else if (role === 'expose') await expose(Number(numbers[0]));
else await pour(...(numbers.map(Number) as [number, number, number]));
