import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { defaultOptions } from '../../kernel-bridge/default-options.js';
import { eventKind, eventOf } from '../../kernel-bridge/hca/hca-words-event.js';
import * as put from '../../kernel-bridge/hca/hca-words-put.js';
import { loadAddon, QpMask, SrqMask } from '../../kernel-bridge/hca/index.js';

const addon = loadAddon();
const tables = addon.wordTables();

/** The words that `write` encodes for an object with the numbers from 2 on, in the order of these names. */
function wordsOf(
  names: readonly string[],
  write: (shared: put.SharedWords, value: never) => unknown,
  more = {},
): number[] {
  const shared = { words: new Float64Array(24).fill(-1), bytes: new Uint8Array(put.madAt + put.madBytes) };
  const value = { ...Object.fromEntries(names.map((name, i) => [name, i + 2])), ...more };
  write(shared, value as never);
  return [...shared.words];
}

/** Numbers from 2 on in the places of these names, and nothing else. */
function expected(
  names: readonly string[],
  from = 0,
  special: Readonly<Record<string, number>> = {},
): number[] {
  const words = new Array<number>(24).fill(-1);
  for (const [i, name] of names.entries()) words[from + i] = special[name] ?? i + 2;
  return words;
}

test('words are put in the order in which native code reads them', () => {
  const { qpCreate, qpAttributes, path, places } = tables;
  assert.ok(qpCreate.length > 10 && qpAttributes.length > 10 && path.length === 4);
  // A flag's word is 1.
  assert.equal(wordsOf(qpCreate, put.putQpCreate), expected(qpCreate, 0, { signalAll: 1 }));
  assert.equal(wordsOf(qpAttributes, put.putAttributes), expected(qpAttributes));
  const addresses = { source: new Uint8Array(put.gidBytes), destination: new Uint8Array(put.gidBytes) };
  assert.equal(wordsOf(path, put.putPath, addresses), expected(path, put.pathAt));
  assert.equal({ pathAt: put.pathAt, madAt: put.madAt, madBytes: put.madBytes }, places);
});

test('masks and kinds of events are those of native code', () => {
  assert.equal(tables.qpMask, { ...QpMask });
  assert.equal(tables.srqMask, { ...SrqMask });
  assert.equal(tables.eventKind, { ...eventKind });
});

test('words of events are read in the order in which native code writes them', () => {
  const { eventWords } = tables;
  assert.equal(Object.keys(eventWords), Object.keys(eventKind));
  const bytes = new Uint8Array(put.madAt + put.madBytes);
  for (const [kind, names] of Object.entries(eventWords)) {
    const words = new Float64Array(24).fill(-1);
    for (const i of names.keys()) words[i] = i + 2;
    const event = eventOf(eventKind[kind as keyof typeof eventKind], { words, bytes }, bytes);
    if (kind === 'none') {
      assert.equal([event, names], [undefined, []]);
      continue;
    }
    // A flag is any number but 0.
    const read = Object.entries(event!).flatMap(([name, value]) =>
      name === 'type' || value === undefined || value instanceof Uint8Array
        ? []
        : [[name, value === true ? 5 : value]],
    );
    assert.equal(
      Object.fromEntries(read),
      Object.fromEntries(names.map((name, i) => [name, i + 2])),
      `words of '${kind}'`,
    );
  }
});

test('an HCA that is given no options has those of default-options.ts', () => {
  const { cm, rc, pkeys, startTimeoutMs, kernel, hca, statistics, ...ofHca } = defaultOptions;
  assert.equal(tables.defaults, ofHca);
});

test.run();
