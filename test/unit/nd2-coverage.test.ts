/**
 * Common mistakes of NetworkDirect implementations: traps of the SPI (T), and gaps between it and WinVerbs that the ND layer must fill (G).
 * Each is covered by a test with its number in the name, or by a case of the conformance suite.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cases } from '../../nd/conformance/index.js';

const traps = [
  'the version for Query is 0x20000',
  'the flag REMOTE_WRITE has two bits, one of which is LOCAL_WRITE',
  'in C, TIMEOUT and PENDING are not failures, but the 0x8… codes are; here, all but SUCCESS throws',
  'memory windows of both versions are one interface',
  'a disconnect of the peer flushes the local queue pair, after NotifyDisconnect',
  'v2 reports remote failures as ACCESS_VIOLATION and DATA_ERROR, not as REMOTE_ERROR',
  'a request that completes at once is still delivered',
  'cancelling is complete when it returns, in the order of issue',
  'the local address is known from Bind on',
  'many connectors and a listener share a port',
  'a failed Connect leaves connector and queue pair usable, a failed Accept or CompleteConnect does not',
  'private data may be padded with zeros',
  'inbound on this side is outbound on the other',
  'Flush works without a connection',
  'both sides may disconnect at the same time',
  'a window’s token may be used before its Bind has completed',
  'silent requests have results when they are flushed',
  'completion queues may be smaller than the queues bound to them',
  'objects may be released in any order, with requests outstanding',
  'a connector has one role, and only once',
  'a Send without a Receive ends in bounded time, unless the peer has a shared receive queue',
  'tokens are opaque, addresses are numbers',
  'contexts are not unique',
  'ports are in one byte order, here the host’s',
];

const gaps = [
  'statuses of WinVerbs with another name in ND',
  'private data that is longer than WinVerbs supports',
  'the connector’s states and their statuses',
  'another Connect after a failed one, from the same port',
  'the queue pair of a failed Connect, with its Receives',
  'the flush when the peer disconnects, after all earlier data',
  'argument errors by number',
  'RNR retries that end, unless the receiver has a shared receive queue',
  'windows: rights, the queue pair they are bound on, a token for each Bind, the end with the connection',
  'v1: real Flush, rights of windows, SendAndInvalidate, completions of Bind and Invalidate',
  'read limits reduced to those of the device and the peer',
  'the status of NotifyDisconnect when this side disconnects',
  'the flush when the peer disconnects needs no call',
  'Connect, Accept and NotifyDisconnect end in different statuses',
  'a passive connector’s local port is its listener’s',
  'Register and Deregister can be cancelled',
  'timeouts of connecting and disconnecting',
];

/** Cases of the conformance suite, and tests without a number in their name. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  T1: ['v2.query-version'],
  T5: ['disconnect.connecter-peers-requests', 'disconnect.accepter-peers-requests'],
  T12: ['connect.private-data', 'connect.no-private-data'],
  T13: ['connect.read-limits'],
  T14: ['queue.flush-never-connected', 'queue.receive-before-connection'],
  T15: ['disconnect.both-at-once'],
  T16: ['memory.token-before-result'],
  T18: ['cq.smaller-than-queues'],
  G6: ['disconnect.connecter-delivers-first', 'disconnect.accepter-delivers-first'],
  G10: [
    'memory.window-invalidated-read',
    'memory.window-invalidated-write',
    'memory.send-and-invalidate',
    'flush moves the queue pair to ERROR',
    'N10: bind returns a separate window with range, rights and key before its completion',
  ],
  G13: ['disconnect.connecter-peers-requests', 'disconnect.accepter-peers-requests'],
  G15: ['connect.near-connects', 'connect.far-connects'],
};

const root = fileURLToPath(new URL('../../../test/', import.meta.url));

/** Returns the names of the layer's tests in the sources. */
function titles(): string[] {
  return ['unit', 'integration'].flatMap((folder) =>
    readdirSync(`${root}${folder}`)
      .filter((file) => /^nd.*\.test\.ts$/.test(file))
      .flatMap((file) => {
        const source = readFileSync(`${root}${folder}/${file}`, 'utf8');
        return [...source.matchAll(/\btest\(\s*(['`])(.*?)\1/g)].map(([, , title]) => title!);
      }),
  );
}

test('every trap and every gap has a test or a case', () => {
  const all = [...titles(), ...cases.map(({ name }) => name)];
  const numbers = new Set(all.flatMap((title) => title.match(/\b[TG]\d+\b/g) ?? []));
  const covered = (id: string) => numbers.has(id) || elsewhere[id]?.every((title) => all.includes(title));
  const missing = [
    ...traps.map((text, i) => [`T${i + 1}`, text] as const),
    ...gaps.map((text, i) => [`G${i + 1}`, text] as const),
  ].filter(([id]) => covered(id) !== true);
  assert.equal(missing, []);
  assert.equal([traps.length, gaps.length], [24, 17]);
});

test.run();
