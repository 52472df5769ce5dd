// One of several processes of one host, whose packets all go by UDP port 4791: asked by messages (PortOrder), it serves a connection,
// calls another process, or tells its counters. It says each step before it takes it. It opens its HCA when it is told to: starting
// takes most of the time.

import { readCounters } from '../../kernel-bridge/index.js';
import { fillPattern, firstDifference } from '../../nd/cli/pattern.js';
import { acceptSide, type Side, socketAddress, type Which } from '../../nd/cli/sides/connected-side.js';
import { HostWv } from '../../nd/cli/sides/winverbs-side.js';
import { HANG_MS } from '../helpers/within.js';

/** What it is asked for. */
export type PortOrder =
  | { readonly order: 'serve' | 'call'; readonly port: number }
  | { readonly order: 'open' | 'counters' | 'end' };

/** What it says. */
export type PortNews =
  | { readonly news: 'ready' | 'listening' | 'served' | 'called' }
  | { readonly news: 'step'; readonly step: string }
  | { readonly news: 'counters'; readonly counters: Record<string, number> }
  | { readonly news: 'failed'; readonly reason: string };

const ADDRESS = '127.0.0.1';
/** Of a packet, of several, of many; a message of the last size takes some time. */
const SIZES = [1, 64, 5000, 40_000];
export const MESSAGES = 12;
const LARGE = 1 << 16;
/** A message that was lost with the port is repeated soon, and often enough for a busy machine. */
const options = {
  kernel: 'soft',
  link: 'wire',
  keepAliveMs: 0,
  rc: { ackTimeoutCode: 16 },
  startTimeoutMs: 60_000,
} as const;

let host: HostWv;
const say = (news: PortNews): void => void process.send!(news);

async function done(side: Side, which: Which): Promise<void> {
  while (!side.take(which)) await side.notify(which).abortOn(AbortSignal.timeout(HANG_MS));
  if (side.done.status !== 0) throw new Error(`${which}: ${side.statusName(side.done.status)}`);
}

/** Messages both ways, every byte compared. */
async function exchange(
  side: ReturnType<typeof host.side>,
  join: () => Promise<unknown>,
  isCaller: boolean,
): Promise<void> {
  const memory = await side.host.register(new Uint8Array(2 * LARGE));
  const [out, into] = [memory.bytes.subarray(0, LARGE), memory.bytes.subarray(LARGE)];
  const receive = (): void => side.receive('message', memory.sge(LARGE, LARGE));
  const heard = async (n: number, size: number): Promise<void> => {
    await done(side, 'inbound');
    if (side.done.bytes !== size)
      throw new Error(`message ${n} has ${side.done.bytes} bytes, and not ${size}`);
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
    // The peer has had the last one when it disconnects; what acknowledges it may be lost with the port.
    if (isCaller || n < MESSAGES - 1) await done(side, 'outbound');
  };
  receive();
  await join();
  for (let n = 0; n < MESSAGES; n++) {
    const size = SIZES[n % SIZES.length]!;
    if (isCaller) {
      say({ news: 'step', step: `message ${n}` });
      await send(n, size);
      await heard(n, size);
    } else {
      await heard(n, size);
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
    say({ news: 'step', step: 'disconnect' });
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
  say({ news: 'listening' });
  await exchange(side, () => acceptSide(listener, side), false);
  listener.release();
  say({ news: 'served' });
}

async function call(port: number): Promise<void> {
  const side = host.side();
  say({ news: 'step', step: 'connect' });
  await exchange(side, () => side.establish(socketAddress(ADDRESS, port)), true);
  say({ news: 'called' });
}

async function obey(order: PortOrder): Promise<void> {
  if (order.order === 'open') {
    host = HostWv.open(ADDRESS, options);
    return say({ news: 'ready' });
  }
  if (order.order === 'serve') return await serve(order.port);
  if (order.order === 'call') return await call(order.port);
  if (order.order === 'counters') {
    const counters = readCounters({ kernel: 'soft' }).hca as Record<string, number>;
    return say({ news: 'counters', counters });
  }
  host.release();
  process.exit(0);
}

process.on('message', (order: PortOrder) => {
  obey(order).catch((error: unknown) => say({ news: 'failed', reason: String((error as Error).stack) }));
});
