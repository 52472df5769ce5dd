import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { eventKind } from '../../kernel-bridge/hca/hca-words-event.js';
import * as put from '../../kernel-bridge/hca/hca-words-put.js';
import { abi, loadAddon, QpMask, RnrPatience, SrqMask } from '../../kernel-bridge/hca/index.js';

const addon = loadAddon();
const tables = addon.wordTables();

test('abi.ts and engine/abi.h describe the same memory', () => {
  assert.equal(addon.abi(), { ...abi });
});

test('the memory of JavaScript is little-endian, as the table says', () => {
  assert.is(new Uint8Array(new Uint32Array([1]).buffer)[0], 1);
});

/** The words after `write` has had a value whose members are the numbers from 2 on, in the order of these names. */
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
  assert.equal(tables.rnrPatience, { ...RnrPatience });
  assert.equal(tables.eventKind, { ...eventKind });
});

test.run();
