// One of several processes on a host, which all send packets to UDP port 4791. As ordered by messages (PortOrder), it serves a connection,
// connects to another process, or reports its counters. It reports each step before it executes it. It opens its HCA on an order, because
// the start takes most of the time.

import { readCounters } from '../../kernel-bridge/index.js';
import { fillPattern, firstDifference } from '../../nd/cli/pattern.js';
import { acceptSide, type Side, socketAddress, type Which } from '../../nd/cli/sides/connected-side.js';
import { HostWv } from '../../nd/cli/sides/winverbs-side.js';
import { HANG_MS } from '../helpers/within.js';

/** A message to the process. */
export type PortOrder =
  | { readonly order: 'serve' | 'call'; readonly port: number }
  | { readonly order: 'open' | 'counters' | 'end' };

/** A message of the process. */
export type PortEvent =
  | { readonly event: 'ready' | 'listening' | 'served' | 'called' }
  | { readonly event: 'step'; readonly step: string }
  | { readonly event: 'counters'; readonly counters: Record<string, number> }
  | { readonly event: 'failed'; readonly reason: string };

const ADDRESS = '127.0.0.1';
/** Sizes of messages, from one packet to many. */
const SIZES = [1, 64, 5000, 40_000];
export const MESSAGES = 12;
const LARGE = 1 << 16;
/** Packets that are lost with the port are retransmitted soon, and often enough for a busy machine. */
const options = {
  kernel: 'soft',
  link: 'wire',
  keepAliveMs: 0,
  rc: { ackTimeoutCode: 16 },
  startTimeoutMs: 60_000,
} as const;

let host: HostWv;
const report = (event: PortEvent): void => void process.send!(event);

async function done(side: Side, which: Which): Promise<void> {
  while (!side.take(which)) await side.notify(which).abortOn(AbortSignal.timeout(HANG_MS));
  if (side.done.status !== 0) throw new Error(`${which}: ${side.statusName(side.done.status)}`);
}

/** Exchanges messages in both directions and compares every byte. */
async function exchange(
  side: ReturnType<typeof host.side>,
  join: () => Promise<unknown>,
  isCaller: boolean,
): Promise<void> {
  const memory = await side.host.register(new Uint8Array(2 * LARGE));
  const [out, into] = [memory.bytes.subarray(0, LARGE), memory.bytes.subarray(LARGE)];
  const receive = (): void => side.receive('message', memory.sge(LARGE, LARGE));
  const receiveMessage = async (n: number, size: number): Promise<void> => {
    await done(side, 'inbound');
    if (side.done.bytes !== size)
      throw new Error(`message ${n} must have ${size} bytes; got ${side.done.bytes}`);
    const expected = new Uint8Array(size);
    fillPattern(expected, n);
    const at = firstDifference(into.subarray(0, size), expected);
    if (at >= 0) throw new Error(`byte ${at} of message ${n} differs`);
    into.fill(0);
    receive();
  };
  const send = async (n: number, size: number): Promise<void> => {
    fillPattern(out.subarray(0, size), n);
    side.send('message', memory.sge(0, size));
    // The peer disconnects after it has received the last message, whose ACK may be lost with the port.
    if (isCaller || n < MESSAGES - 1) await done(side, 'outbound');
  };
  receive();
  await join();
  for (let n = 0; n < MESSAGES; n++) {
    const size = SIZES[n % SIZES.length]!;
    if (isCaller) {
      report({ event: 'step', step: `message ${n}` });
      await send(n, size);
      await receiveMessage(n, size);
    } else {
      await receiveMessage(n, size);
      await send(n, size);
    }
  }
  const ended = side.notifyDisconnect().then(
    () => undefined,
    (error: unknown) => {
      if ((error as { code?: string }).code !== 'CONNECTION_DISCONNECTED') throw error;
    },
  );
  if (isCaller) {
    report({ event: 'step', step: 'disconnect' });
    await side.disconnect();
  }
  await ended;
  if (!isCaller) await side.disconnect().catch(() => undefined);
  memory.release();
  side.release();
}

async function serve(port: number): Promise<void> {
  const side = host.side();
  const listener = host.listen(port);
  report({ event: 'listening' });
  await exchange(side, () => acceptSide(listener, side), false);
  listener.release();
  report({ event: 'served' });
}

async function call(port: number): Promise<void> {
  const side = host.side();
  report({ event: 'step', step: 'connect' });
  await exchange(side, () => side.establish(socketAddress(ADDRESS, port)), true);
  report({ event: 'called' });
}

async function execute(order: PortOrder): Promise<void> {
  if (order.order === 'open') {
    host = HostWv.open(ADDRESS, options);
    return report({ event: 'ready' });
  }
  if (order.order === 'serve') return await serve(order.port);
  if (order.order === 'call') return await call(order.port);
  if (order.order === 'counters') {
    const counters = readCounters({ kernel: 'soft' }).hca as Record<string, number>;
    return report({ event: 'counters', counters });
  }
  host.release();
  process.exit(0);
}

process.on('message', (order: PortOrder) => {
  execute(order).catch((error: unknown) =>
    report({ event: 'failed', reason: String((error as Error).stack) }),
  );
});
