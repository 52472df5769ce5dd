// Replies to readProcesses() come from other processes. Arbitrary bytes are handled, and only valid statistics are accepted.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type ObservedKernel, readObserved } from '../../kernel-bridge/control/observed.js';
import {
  type KernelStatistics,
  STATISTICS_FORM,
  STATISTICS_MOST,
} from '../../kernel-bridge/ioctl/statistics-form.js';

const pair = {
  ...{ qpn: 1, type: 'RC', state: 'RTS', local: '192.0.2.1', remote: '192.0.2.2', remoteQpn: 7, mtu: 4096 },
  ...{ link: 'wire', sendEntries: 64, sendWaiting: 3, sent: 100, receiveEntries: 32, receiveWaiting: 30 },
  ...{ received: 50, sharedReceives: false, window: 128, inFlight: 5, retries: 1, rnrRetries: 0 },
  ...{ rnrWaiting: false, roundTripNs: 21_000 },
} as const;
const statistics: KernelStatistics = {
  ...{ form: STATISTICS_FORM, pid: 9, node: '22.0.0', uptime: 9, at: 1000, sharedReceived: 0 },
  devices: [{ name: 'lo', guid: '1', hca: 'software' }],
  wire: 'open',
  queuePairs: [pair],
  connections: [{ type: 'connect', state: 'connected', local: 'a', remote: 'b', qpn: 1 }],
  memory: [{ kind: 'region', length: 4096, access: ['LOCAL_WRITE'], live: true, allocated: false }],
  omitted: { queuePairs: 0, connections: 0, memory: 0 },
  counters: { objects: { qp: 1 } },
} as unknown as KernelStatistics;

async function read(text: Uint8Array | string, pid = 5): Promise<ObservedKernel> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const [one, ...more] = await readObserved(async () => [{ slot: 3, pid, answer: 'text', text: bytes }], {});
  assert.is(more.length, 0);
  return one!;
}

const unreadable: ObservedKernel = { pid: 5, slot: 3, problem: 'unreadable' };

test('statistics are parsed; the process id is the OS’s, otherwise the reported one', async () => {
  assert.equal(await read(JSON.stringify(statistics)), { pid: 5, slot: 3, statistics });
  assert.is((await read(JSON.stringify(statistics), 0)).pid, 9);
});

test('invalid text is unreadable', async () => {
  const whole = JSON.stringify(statistics);
  for (const text of [
    ...['', '\0', 'null', '7', '"text"', '[]', '{}', 'statistics', whole.slice(0, -1), `${whole}x`],
    '['.repeat(100_000),
    `{"form":${'9'.repeat(1000)}}`,
    Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(whole)]),
    new Uint8Array(4096),
  ])
    assert.equal(await read(text), unreadable, String(text).slice(0, 40));
});

/** Every nested object and array. */
function* within(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Record<string, unknown>;
  for (const member of Object.values(value)) yield* within(member);
}

/** The statistics with one member changed, for each member. */
function* changed(value: unknown): Generator<[string, string]> {
  const count = [...within(statistics)].length;
  for (let n = 0; n < count; n += 1) {
    const names = Object.keys([...within(statistics)][n]!);
    for (const name of names) {
      const copy = structuredClone(statistics);
      [...within(copy)][n]![name] = value;
      yield [name, JSON.stringify(copy)];
    }
  }
}

test('a value of another type, a negative count or a text beyond its limit is unreadable, in every member', async () => {
  for (const wrong of [null, { length: '1' }, 'x'.repeat(100_000), -1, [-1]])
    for (const [name, text] of changed(wrong)) {
      const seen = await read(text);
      // Counters may be any numbers.
      if (name === 'qp' && wrong === -1) assert.is(seen.problem, undefined);
      else assert.equal(seen, unreadable, `${name}: ${JSON.stringify(wrong).slice(0, 20)}`);
    }
});

test('control characters are removed, and names such as __proto__ are ordinary names', async () => {
  const reported = { ...statistics, node: '\u001b[2J\u0000\u202e22' };
  assert.is((await read(JSON.stringify(reported))).statistics!.node, '?[2J??22');
  const named = { ...statistics, counters: { '\u001b[2J': { '\u0007bell': 1 } } };
  assert.equal((await read(JSON.stringify(named))).statistics!.counters, { '?[2J': { '?bell': 1 } });
  const text = JSON.stringify(statistics).replace('{"objects"', '{"__proto__":{"polluted":1},"objects"');
  await read(text);
  assert.is(({} as Record<string, unknown>).polluted, undefined);
});

test('arbitrary bytes are handled', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.json()), async (text) => {
      const { statistics: seen, problem } = await read(text);
      return seen === undefined && problem === 'unreadable';
    }),
    { numRuns: 300 },
  );
});

/** Maximum length of a text that is accepted (slots/observing.cc). */
const MOST_BYTES = 2 * 2 ** 20;

test('full lists are parsed, with room for twice as many values', async () => {
  const full = <T>(one: T): T[] => Array.from({ length: STATISTICS_MOST }, () => one);
  const long = { local: '[2001:db8:1111:2222:3333:4444:5555:6666]:65535', remote: '[2001:db8::1]:65535' };
  const access = [
    'LOCAL_WRITE',
    'REMOTE_READ',
    'REMOTE_WRITE',
    'REMOTE_ATOMIC',
    'MW_BIND',
    'ZERO_BASED',
    'REMOTE_VIEW',
  ];
  const all = {
    ...statistics,
    devices: Array.from({ length: 256 }, () => statistics.devices[0]),
    queuePairs: full({ ...pair, ...long, sent: 4_294_967_295, received: 4_294_967_295 }),
    connections: full({ ...statistics.connections[0]!, ...long }),
    memory: full({ ...statistics.memory[0]!, length: 2 ** 40, access }),
    counters: Object.fromEntries(
      Array.from({ length: 10 }, (_, n) => [
        `group ${n}`,
        Object.fromEntries(Array.from({ length: 100 }, (_unused, k) => [`counter ${k}`, 2 ** 40])),
      ]),
    ),
  };
  const text = JSON.stringify(all);
  assert.ok(text.length < MOST_BYTES / 2, String(text.length));
  assert.equal((await read(text)).problem, undefined);
});

/** Texts of that length whose values are short but expensive in memory. */
function greedy(): string[] {
  const whole = JSON.stringify(statistics);
  const filled = (begin: string, one: string, end: string): string =>
    begin + one.repeat(Math.floor((MOST_BYTES - begin.length - end.length) / one.length)) + end;
  const numbers = Array.from({ length: 150_000 }, (_, n) => `"${n}":""`).join(',');
  return [
    filled('[', '1,', '1]'),
    filled('[', '[],', '1]'),
    filled('[', '{},', '1]'),
    filled('[', '"",', '1]'),
    ...['queuePairs', 'connections', 'memory', 'devices'].map((name) => {
      const [before, after] = whole.split(`"${name}":[`) as [string, string];
      return filled(`${before}"${name}":[`, '1,', after);
    }),
    whole.replace('"counters":{', `"counters":{${numbers},`),
    whole.replace('"objects":{', `"objects":{${numbers},`),
  ];
}

test('a text that would need much memory is unreadable, and costs the reader little', async () => {
  const program = `
    import { parentPort, workerData } from 'node:worker_threads';
    import { readObserved } from ${JSON.stringify(new URL('../../kernel-bridge/control/observed.js', import.meta.url).href)};
    const [{ problem }] = await readObserved(async () => [{ slot: 3, pid: 5, answer: 'text', text: workerData }], {});
    parentPort.postMessage(problem);`;
  for (const text of greedy()) {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
      workerData: Buffer.from(text),
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    });
    // The wait rejects if the worker runs out of memory.
    assert.equal(await once(worker, 'message'), ['unreadable'], text.slice(0, 20));
    await worker.terminate();
  }
});

test.run();
