// One of two processes on two hosts, or on one: wire-program.js ROLE ADDRESS [PEER]. ROLE: server, which prints LISTENING when it does, or client. Messages, Writes and Reads both ways,
// every byte compared; the exit code is 0 if all is right.

import { readCounters } from '../../kernel-bridge/index.js';
import { fillPattern, firstDifference } from '../../nd/cli/pattern.js';
import { acceptSide, type Side, socketAddress, type Which } from '../../nd/cli/sides/connected-side.js';
import { HostWv } from '../../nd/cli/sides/winverbs-side.js';
import { HANG_MS } from '../helpers/within.js';

const PORT = 54_321;
/** `auto`: two processes of one host, by shared memory. */
const link = process.env.ND_TEST_LINK === 'auto' ? 'auto' : 'wire';
const kernel = { kernel: 'soft', link, startTimeoutMs: 60_000 } as const;
/** Shorter than a packet, of several, and of many. */
const SIZES = [1, 64, 5000, 300_000];
const LARGE = 1 << 20;

const [role, address, peer] = process.argv.slice(2) as [string, string, string];

/** The next completion; throws if it is no success. */
async function done(side: Side, which: Which): Promise<void> {
  while (!side.take(which)) await side.notify(which).abortOn(AbortSignal.timeout(HANG_MS));
  if (side.done.status !== 0) throw new Error(`${which}: ${side.statusName(side.done.status)}`);
}

function pattern(bytes: number, seed: number): Uint8Array {
  const out = new Uint8Array(bytes);
  fillPattern(out, seed);
  return out;
}

function compare(what: string, actual: Uint8Array, seed: number): void {
  const at = firstDifference(actual, pattern(actual.length, seed));
  if (at >= 0) throw new Error(`${what}: byte ${at} of ${actual.length} differs`);
}

const host = HostWv.open(address, kernel);
const side = host.side();
const memory = await side.host.register(new Uint8Array(2 * LARGE));
const [out, into] = [memory.bytes.subarray(0, LARGE), memory.bytes.subarray(LARGE)];

const hello = new Uint8Array(16);
const opened = new DataView(hello.buffer);
const { address: own, token } = side.open(memory);
opened.setBigUint64(0, own);
opened.setUint32(8, token);

/** The private data of the peer. */
async function join(): Promise<Uint8Array> {
  if (role === 'client') return await side.establish(socketAddress(peer, PORT), hello);
  const listener = host.listen(PORT);
  console.log('LISTENING');
  return await acceptSide(listener, side, hello);
}

function postReceive(seed: number): void {
  into.fill(0);
  side.receive(seed, memory.sge(LARGE, LARGE));
}

async function receive(seed: number, size: number): Promise<void> {
  await done(side, 'inbound');
  if (side.done.bytes !== size) throw new Error(`a message has ${side.done.bytes} bytes, and not ${size}`);
  compare('a message', into.subarray(0, size), seed);
}

async function send(seed: number, size: number): Promise<void> {
  out.set(pattern(size, seed));
  side.send(seed, memory.sge(0, size));
  await done(side, 'outbound');
}

postReceive(1);
const heard = new DataView((await join()).slice(0, 16).buffer);
const remote = side.remoteAt(heard.getBigUint64(0), 2 * LARGE, heard.getUint32(8));

for (const [i, size] of SIZES.entries()) {
  const seed = i + 1;
  if (role === 'client') await send(seed, size);
  await receive(seed, size);
  postReceive(seed + 1);
  if (role === 'server') await send(seed, size);
}

// Each writes to the peer's memory and reads it back, one after the other.
const turn = role === 'client' ? 0 : 1;
for (let n = 0; n < 2; n++) {
  if (n === turn) {
    out.set(pattern(LARGE, 100 + n));
    side.write('write', memory.sge(0, LARGE), remote, 0);
    await done(side, 'outbound');
    out.fill(0);
    side.read('read', memory.sge(0, LARGE), remote, 0);
    await done(side, 'outbound');
    compare('what was read', out, 100 + n);
    side.send('turn', memory.sge(0, 1));
    await done(side, 'outbound');
  } else {
    await done(side, 'inbound');
    compare('what was written', out, 100 + n);
    if (n === 0) side.receive('last', memory.sge(LARGE, LARGE));
  }
}

// The peer has disconnected: WinVerbs says so in the status.
const ended = side.notifyDisconnect().then(
  () => undefined,
  (error: unknown) => {
    if ((error as { code?: string }).code !== 'CONNECTION_DISCONNECTED') throw error;
  },
);
if (role === 'client') await side.disconnect();
await ended;
const { hca } = readCounters({ kernel: 'soft' });
const { rx_icrc_errors: icrc, wire_tx_packets: sent } = hca as Record<string, number>;
if (role === 'server') await side.disconnect().catch(() => undefined);
if (icrc !== 0) throw new Error(`${icrc} packets had a wrong checksum`);
if (sent! > 2 * (LARGE / 4096) !== (link === 'wire')) throw new Error(`${sent} packets went by the wire`);
console.log(`PASSED: ${sent} packets sent`);
side.release();
host.release();
