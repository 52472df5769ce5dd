// One of two processes on two hosts or one: wire-program.js ROLE ADDRESS [PEER]. The role is `server`, which prints LISTENING, or `client`.
// Compares every byte of messages, Writes and Reads in both directions. The exit code is 0 if all are equal.

import { readCounters } from '../../kernel-bridge/index.js';
import { fillPattern, firstDifference } from '../../nd/cli/pattern.js';
import { acceptSide, type Side, socketAddress, type Which } from '../../nd/cli/sides/connected-side.js';
import { HostWv } from '../../nd/cli/sides/winverbs-side.js';
import { HANG_MS } from '../helpers/within.js';

const PORT = 54_321;
/** `auto`: two processes on one host use shared memory. */
const link = process.env.ND_TEST_LINK === 'auto' ? 'auto' : 'wire';
const kernel = { kernel: 'soft', link, startTimeoutMs: 60_000 } as const;
/** Sizes of messages, from one packet to many. */
const SIZES = [1, 64, 5000, 300_000];
const LARGE = 1 << 20;

const [role, address, peer] = process.argv.slice(2) as [string, string, string];

/** Waits for the next completion. Throws if its status is not success. */
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

/** Connects to the peer and returns its private data. */
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
  if (side.done.bytes !== size) throw new Error(`A message must have ${size} bytes; got ${side.done.bytes}.`);
  compare('a message', into.subarray(0, size), seed);
}

async function send(seed: number, size: number): Promise<void> {
  out.set(pattern(size, seed));
  side.send(seed, memory.sge(0, size));
  await done(side, 'outbound');
}

postReceive(1);
const peerMemory = new DataView((await join()).slice(0, 16).buffer);
const remote = side.remoteAt(peerMemory.getBigUint64(0), 2 * LARGE, peerMemory.getUint32(8));

for (const [i, size] of SIZES.entries()) {
  const seed = i + 1;
  if (role === 'client') await send(seed, size);
  await receive(seed, size);
  postReceive(seed + 1);
  if (role === 'server') await send(seed, size);
}

// Each side in succession writes to the peer's memory and reads it back.
const turn = role === 'client' ? 0 : 1;
for (let n = 0; n < 2; n++) {
  if (n === turn) {
    out.set(pattern(LARGE, 100 + n));
    side.write('write', memory.sge(0, LARGE), remote, 0);
    await done(side, 'outbound');
    out.fill(0);
    side.read('read', memory.sge(0, LARGE), remote, 0);
    await done(side, 'outbound');
    compare('the read data', out, 100 + n);
    side.send('turn', memory.sge(0, 1));
    await done(side, 'outbound');
  } else {
    await done(side, 'inbound');
    compare('the written data', out, 100 + n);
    if (n === 0) side.receive('last', memory.sge(LARGE, LARGE));
  }
}

// In WinVerbs, the status shows that the peer has disconnected.
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
if (sent! > 2 * (LARGE / 4096) !== (link === 'wire'))
  throw new Error(`${sent} packets were sent over the network`);
console.log(`PASSED: ${sent} packets sent`);
side.release();
host.release();
