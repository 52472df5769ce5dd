/** Frames of `networkdirect/net`: the types, flags, ids and lengths that are valid on each kind of connection. All others end it. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Kind, malformed } from '../../nd/net/connection/frames.js';
import { Atomic, isAtomic } from '../../nd/net/memory/exposed-memory.js';

/** The table of docs/internals/net.md: flags, whether there is an id, and the bytes of a payload in the frame ('any': as many as fit). */
const documented = {
  [Kind.STREAM]: { 1: [[0], false, 'any'], 7: [[0], false, 0] },
  [Kind.CHANNEL]: {
    1: [[0, 1, 4], false, 'any'],
    2: [[0, 1, 4], true, 'any'],
    3: [[0, 1, 4], true, 'any'],
    4: [[0, 1], true, 'any'],
    5: [[0], true, 0],
    6: [[0], true, 32],
    7: [[0], false, 0],
  },
} as const;
type Documented = readonly [flags: readonly number[], hasId: boolean, bytes: 'any' | number];

for (const [name, kind] of Object.entries(Kind))
  test(`${name}: of all types, flags, ids and lengths, only those in the table are accepted`, () => {
    const table: Record<number, Documented> = documented[kind];
    for (let type = 0; type < 256; type += 1)
      for (let flags = 0; flags < 256; flags += 1)
        for (const id of [0, 1, 2 ** 32 - 1])
          for (const length of [0, 1, 24, 31, 32, 33]) {
            const [allowed, hasId, bytes] = table[type] ?? [[], false, 'any'];
            const right =
              allowed.includes(flags) &&
              (id === 0 || hasId) &&
              (flags !== 0 || bytes === 'any' || bytes === length);
            const wrong = malformed(kind, type, flags, id, length);
            const what = `type ${type}, flags ${flags}, id ${id}, ${length} bytes: ${wrong}`;
            assert.is(wrong === undefined, right, what);
            if (wrong !== undefined) assert.match(wrong, new RegExp(`type ${type}\\b`), what);
          }
  });

test('atomic operations: only the two existing ones, with zeros in unused fields', () => {
  const known: readonly number[] = Object.values(Atomic);
  for (let operation = 0; operation < 256; operation += 1)
    for (let at = 1; at < 32; at += 1) {
      const payload = new Uint8Array(32);
      payload[0] = operation;
      payload[at] = 1;
      // Zeros, the token, the offset and the first operand, followed by the second operand.
      const means = at >= 24 ? operation === Atomic.COMPARE_EXCHANGE : at >= 4;
      assert.is(isAtomic(payload), known.includes(operation) && means, `operation ${operation}, byte ${at}`);
    }
});

test.run();
