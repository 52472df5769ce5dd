/** Structures by generated code and by the walk through their table do the same. */
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type AnyField,
  type AnyStruct,
  bytes,
  reserved,
  struct,
  u8,
  u16,
  u16be,
  u32,
  u32be,
  u64,
  u64be,
  union,
} from '../../kernel-bridge/ioctl/layout.js';

/** More uses than a structure is walked through for. */
const MANY = 20;

const inner = () => struct('Inner', { A: u8, Pad: reserved(1), B: u16be, C: u32 });
const either = () => union('Either', { Long: u64, Run: bytes(8, 8) });
/** Fields by name, each made anew: code belongs to the structure that it was made for. */
const kinds: Readonly<Record<string, () => AnyField>> = {
  u8: () => u8,
  u16: () => u16,
  u16be: () => u16be,
  u32: () => u32,
  u32be: () => u32be,
  u64: () => u64,
  u64be: () => u64be,
  short: () => bytes(16, 8),
  long: () => bytes(64, 8),
  inner,
  either,
};

/** A structure of fields of these kinds, with the pads that they need. */
function make(names: readonly string[]): AnyStruct {
  const table: Record<string, AnyField> = {};
  let size = 0;
  const pad = (align: number, at: string) => {
    const gap = (align - (size % align)) % align;
    if (gap > 0) table[`Pad${at}`] = reserved(gap);
    size += gap;
  };
  names.forEach((name, i) => {
    const type = kinds[name]!();
    pad(type.align, `${i}`);
    table[`Field${i}`] = type;
    size += type.size;
  });
  pad(8, 'End');
  return struct('Whole', table);
}

/** The same structure, used so often that it has code of its own. */
function hot(names: readonly string[]): AnyStruct {
  const one = make(names);
  for (let i = 0; i < MANY; i++) one.encode({});
  return one;
}

/** What comes of an action: its result, or its error in words. */
function outcome(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return String(error);
  }
}

const tables = fc.array(fc.constantFrom(...Object.keys(kinds)), { minLength: 1, maxLength: 8 });
const uint = (max: number) => fc.integer({ min: 0, max });
const u64s = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const innerValue = fc.record({ a: uint(255), b: uint(65_535), c: uint(2 ** 32 - 1) }, { requiredKeys: [] });
const eitherValue = fc.oneof(fc.record({ long: u64s }), fc.record({ run: fc.uint8Array({ maxLength: 8 }) }));
/** Values that fit, by kind. */
const fitting: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  u8: uint(255),
  u16: uint(65_535),
  u16be: uint(65_535),
  u32: uint(2 ** 32 - 1),
  u32be: uint(2 ** 32 - 1),
  u64: u64s,
  u64be: u64s,
  short: fc.uint8Array({ maxLength: 16 }),
  long: fc.uint8Array({ maxLength: 64 }),
  inner: innerValue,
  either: eitherValue,
};
/** What may be given for any field, and mostly does not fit. */
const anything = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(-0, 256, 65_536, 2 ** 32),
  fc.bigInt({ min: -2n, max: 2n ** 64n }),
  fc.uint8Array({ maxLength: 66 }),
  fc.record({ a: fc.integer(), b: fc.integer() }),
  fc.record({ long: u64s, run: fc.uint8Array({ maxLength: 9 }) }),
  fc.constantFrom(null, 'text', '7', true, Symbol.iterator, [], { a: '1' }, { valueOf: () => 3 }),
);
const cases = tables.chain((names) =>
  fc.record({
    names: fc.constant(names),
    values: fc.tuple(
      ...names.map((name) =>
        fc.oneof(
          { weight: 12, arbitrary: fitting[name]! },
          { weight: 2, arbitrary: fc.constant(undefined) },
          { weight: 1, arbitrary: anything },
        ),
      ),
    ),
  }),
);

test('code writes what the walk writes, and refuses what it refuses with the same words', () => {
  let written = 0;
  let refused = 0;
  fc.assert(
    fc.property(cases, ({ names, values }) => {
      const value = Object.fromEntries(names.map((_, i) => [`field${i}`, values[i]]));
      const byWalk = outcome(() => make(names).encode(value as never));
      const byCode = outcome(() => hot(names).encode(value as never));
      assert.equal(byCode, byWalk);
      if (typeof byWalk === 'string') refused++;
      else written++;
    }),
    { numRuns: 400 },
  );
  assert.ok(written > 50 && refused > 20, `${written} values were written, ${refused} refused`);
});

test('code knows the bounds of every kind of field', () => {
  const bounds: Readonly<Record<string, readonly unknown[]>> = {
    u8: [255, 256, -1, 0.5, 1n],
    u16: [65_535, 65_536, -1, 0.5],
    u16be: [65_535, 65_536, -1, 0.5],
    u32: [2 ** 32 - 1, 2 ** 32, -1, 0.5],
    u32be: [2 ** 32 - 1, 2 ** 32, -1, 0.5],
    u64: [2n ** 64n - 1n, 2n ** 64n, -1n, 1],
    u64be: [2n ** 64n - 1n, 2n ** 64n, -1n, 1],
    short: [new Uint8Array(16).fill(7), new Uint8Array(17), 'text'],
    long: [new Uint8Array(64).fill(7), new Uint8Array(65), [1]],
  };
  for (const [name, [fits, ...others]] of Object.entries(bounds)) {
    const [cold, warm] = [make([name]), hot([name])];
    const write = (one: AnyStruct, value: unknown) => outcome(() => one.encode({ field0: value } as never));
    assert.equal(write(warm, fits), write(cold, fits), name);
    assert.equal(warm.decode(write(warm, fits) as Uint8Array), { field0: fits }, name);
    for (const value of others) {
      assert.type(write(warm, value), 'string', `${name} took ${String(value)}`);
      assert.is(write(warm, value), write(make([name]), value), name);
    }
  }
});

test('code reads what the walk reads, and writes it back to the same bytes', () => {
  fc.assert(
    fc.property(
      tables,
      fc.nat({ max: 5 }),
      fc.infiniteStream(fc.nat({ max: 255 })),
      (names, offset, stream) => {
        const [cold, warm] = [make(names), hot(names)];
        const from = new Uint8Array(offset + cold.size + 3).map(() => stream.next().value as number);
        const value = cold.decode(from, offset);
        assert.equal(warm.decode(from, offset), value);
        if (names.includes('either')) return; // both members of a decoded union are given: they may not contradict
        const dirty = new Uint8Array(from.length).fill(0xaa);
        assert.equal(
          warm.encode(value as never, dirty.slice(), offset),
          cold.encode(value as never, dirty.slice(), offset),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test('a value that does not fit leaves the structure usable', () => {
  const one = hot(['u16', 'u64']);
  assert.throws(
    () => one.encode({ field0: 65_536 } as never),
    /Whole\.Field0 is 65536; it takes an integer from 0 to 65535/,
  );
  assert.throws(() => one.encode(undefined as never), /Whole is undefined/);
  assert.equal(one.encode({ field0: 1 } as never)[0], 1);
});

test('a process that may make no code of strings walks', () => {
  const url = new URL('../../kernel-bridge/ioctl/layout.js', import.meta.url).href;
  const script = `import { struct, u32 } from ${JSON.stringify(url)};
    const one = struct('S', { A: u32 });
    for (let i = 0; i < ${MANY}; i++) one.encode({ a: i });
    console.log(one.decode(one.encode({ a: 7 })).a);`;
  const flags = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', script];
  assert.is(execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim(), '7');
});

test.run();
