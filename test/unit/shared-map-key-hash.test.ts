/** The hash of a shared map's keys. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { KeyHash } from '../../nd/net/shared-map/key-hash.js';
import { MOST_KEY_BYTES } from '../../nd/net/shared-map/map-layout.js';
import { seeded } from '../helpers/random.js';

/** HalfSipHash-c-d with a 64-bit output, step by step as described by its authors. */
function halfSipHash(key: [number, number], bytes: Uint8Array, c: number, d: number): [number, number] {
  const rotated = (value: number, by: number): number => ((value << by) | (value >>> (32 - by))) >>> 0;
  const v = [key[0], key[1], 0x6c796765 ^ key[0], 0x74656462 ^ key[1]].map((one) => one >>> 0);
  const mix = (index: number, value: number): void => {
    v[index] = (v[index]! ^ value) >>> 0;
  };
  const rounds = (count: number): void => {
    const half = (to: number, from: number, by: number, swaps: boolean): void => {
      v[to] = (v[to]! + v[from]!) >>> 0;
      v[from] = rotated(v[from]!, by);
      mix(from, v[to]!);
      if (swaps) v[to] = rotated(v[to]!, 16);
    };
    for (let i = 0; i < count; i += 1) {
      half(0, 1, 5, true);
      half(2, 3, 8, false);
      half(0, 3, 7, false);
      half(2, 1, 13, true);
    }
  };
  mix(1, 0xee);
  const padded = Buffer.alloc(4 * Math.floor(bytes.length / 4) + 4);
  padded.set(bytes);
  padded[padded.length - 1] = bytes.length;
  for (let at = 0; at < padded.length; at += 4) {
    mix(3, padded.readUInt32LE(at));
    rounds(c);
    mix(0, padded.readUInt32LE(at));
  }
  mix(2, 0xee);
  rounds(d);
  const first = (v[1]! ^ v[3]!) >>> 0;
  mix(1, 0xdd);
  rounds(d);
  return [first, (v[1]! ^ v[3]!) >>> 0];
}

test('the model returns the published results of HalfSipHash-2-4', () => {
  const key: [number, number] = [0x03020100, 0x07060504];
  const published = ['218d1f59b9b83cc8', 'be552412f8387315', '064f39ef7c50eb57'];
  for (const [length, hex] of published.entries()) {
    const output = Buffer.alloc(8);
    const [first, second] = halfSipHash(
      key,
      Uint8Array.from({ length }, (_, index) => index),
      2,
      4,
    );
    output.writeUInt32LE(first, 0);
    output.writeUInt32LE(second, 4);
    assert.is(output.toString('hex'), hex);
  }
});

test('keys of all lengths and alphabets are hashed by HalfSipHash-1-3', () => {
  const random = seeded(7);
  const alphabets = ['abc', '\u0000\u007f', 'äöü', '日本', '😀x'];
  for (let round = 0; round < 2000; round += 1) {
    const key: [number, number] = [(random() * 2 ** 32) | 0, (random() * 2 ** 32) | 0];
    const letters = [...alphabets[round % alphabets.length]!];
    const text = Array.from(
      { length: round % 40 },
      () => letters[Math.floor(random() * letters.length)],
    ).join('');
    const hash = new KeyHash(...key);
    // The rest of an earlier, longer key does not matter.
    hash.of('x'.repeat(300));
    hash.of(text);
    const [tag, high] = halfSipHash(key, Buffer.from(text), 1, 3);
    assert.is(hash.length, Buffer.byteLength(text));
    assert.equal(Buffer.from(hash.bytes.subarray(0, hash.length)).toString(), text);
    assert.equal([hash.tag >>> 0, hash.high], [tag || 1, high]);
  }
});

test('lone surrogates are rejected, because they all have the same encoding in UTF-8', () => {
  const hash = new KeyHash(1, 2);
  for (const key of ['\ud800', 'x\udfff', '\udc00\ud800'])
    assert.throws(() => hash.of(key, 'name'), /`name` must be a well-formed string; got a lone surrogate/);
  hash.of('\u{1f600}\ufffd');
});

test('a key has at most 1024 bytes in UTF-8', () => {
  const hash = new KeyHash(1, 2);
  hash.of('x'.repeat(MOST_KEY_BYTES));
  assert.is(hash.length, MOST_KEY_BYTES);
  hash.of('ä'.repeat(MOST_KEY_BYTES / 2));
  assert.is(hash.length, MOST_KEY_BYTES);
  const long = [
    'x'.repeat(MOST_KEY_BYTES + 1),
    'ä'.repeat(MOST_KEY_BYTES / 2 + 1),
    `${'x'.repeat(1023)}ä`,
    '日'.repeat(1024),
  ];
  for (const key of long)
    assert.throws(
      () => hash.of(key),
      (error: Error) => /`key` must have at most 1024 bytes in UTF-8; got \d+/.test(error.message),
    );
  assert.throws(() => hash.of(7 as never), /`key` must be a string; got 7/);
});

test.run();
