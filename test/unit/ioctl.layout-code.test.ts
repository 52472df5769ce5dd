/**
 * The generated code of tables, the interpreter of tables, and a bit-by-bit decoder give the same results.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as ioctl from '../../kernel-bridge/ioctl/index.js';
import {
  type AnyField,
  type AnyStruct,
  bits,
  bytes,
  type Fields,
  type Layouts,
  layouts,
  type MadeCode,
  reserved,
  struct,
  tableMark,
  u8,
  u16,
  u16be,
  u24be,
  u32,
  u32be,
  u64,
  u64be,
  union,
} from '../../kernel-bridge/ioctl/layout.js';
import { madeCode } from '../../kernel-bridge/ioctl/made-code.js';
import { cmLayouts, ipCmHeader, madHeader } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { root } from '../helpers/root.js';

const dist = join(root, 'dist');
const generator = (await import(pathToFileURL(join(root, 'scripts/make-layout-code.mjs')).href)) as {
  moduleOf(structures: readonly AnyStruct[], text: typeof tableMark, bytes: string): string;
  madeFiles(dist: string): Promise<Record<string, string>>;
};
const scratch = mkdtempSync(join(tmpdir(), 'layout-code-'));
test.after(() => rmSync(scratch, { recursive: true }));
let modules = 0;

/** Generates code for structures like the build, and loads it. */
async function codeOf(structures: readonly AnyStruct[]): Promise<MadeCode> {
  const file = join(scratch, `${modules++}.mjs`);
  const bytesModule = new URL('../../kernel-bridge/ioctl/layout-bytes.js', import.meta.url).href;
  writeFileSync(file, generator.moduleOf(structures, tableMark, bytesModule));
  return ((await import(pathToFileURL(file).href)) as { madeCode: MadeCode }).madeCode;
}

const inner = () => struct('Inner', { A: u8, Pad: reserved(1), B: u16be, C: u32 });
const nibbles = () => struct('Nibbles', { A: bits(4), B: bits(20), C: bits(5), D: bits(2), E: bits(1) });
const either = () => union('Either', { Long: u64, Run: bytes(8, 8) });
/** Fields by name. */
const kinds: Readonly<Record<string, () => AnyField>> = {
  u8: () => u8,
  u16: () => u16,
  u16be: () => u16be,
  u24be: () => u24be,
  u32: () => u32,
  u32be: () => u32be,
  u64: () => u64,
  u64be: () => u64be,
  short: () => bytes(16, 8),
  long: () => bytes(64, 8),
  inner,
  nibbles,
  either,
};

/** A structure with fields of these kinds and the padding that they need. */
function make(names: readonly string[], by: Layouts = { struct, union, packed: struct }): AnyStruct {
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
  return by.struct('Whole', table);
}

/** The same structure, with generated code. */
async function coded(names: readonly string[]): Promise<AnyStruct> {
  const code = await codeOf([make(names)]);
  assert.is(code.Whole!.table, tableMark(make(names).table));
  return make(names, layouts(code));
}

/** The bits of bytes as text, with the bits of integers in the order of their value. */
function bitsOf(from: Uint8Array): string {
  return [...from].map((byte) => byte.toString(2).padStart(8, '0')).join('');
}

function turned(text: string): string {
  return (text.match(/.{8}/g) ?? []).reverse().join('');
}

/** The value of a structure, decoded bit by bit from its table. */
function interpreted({ fields, table }: AnyStruct, text: string): unknown {
  const visible = fields.filter((field) => !field.reserved);
  return Object.fromEntries(
    visible.map(({ name, key, offset, size }) => {
      const type = table[name]!;
      const own = text.slice(offset * 8, (offset + size) * 8);
      if ('table' in type) return [key, interpreted(type as unknown as AnyStruct, own)];
      if (type.kind === 'bytes')
        return [key, Uint8Array.from(own.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2))];
      const number = BigInt(`0b${type.littleEndian ? turned(own) : own}`);
      return [key, type.kind === 'long' ? number : Number(number)];
    }),
  );
}

/** The bits of a valid value according to its table. */
function spelled(type: AnyField, value: unknown): string {
  const length = type.size * 8;
  if (value === undefined || type.kind === 'reserved') return '0'.repeat(length);
  if (type.kind === 'bytes') return bitsOf(value as Uint8Array).padEnd(length, '0');
  if (!('table' in type)) {
    const text = BigInt(value as number)
      .toString(2)
      .padStart(length, '0');
    return type.littleEndian ? turned(text) : text;
  }
  const { fields, table } = type as unknown as AnyStruct;
  const members = fields.map(({ name, key }) => ({
    given: (value as Record<string, unknown>)[key],
    type: (table as Fields)[name]!,
  }));
  if (type.kind === 'struct') return members.map((one) => spelled(one.type, one.given)).join('');
  const only = members.find(({ given }) => given !== undefined);
  return (only === undefined ? '' : spelled(only.type, only.given)).padEnd(length, '0');
}

/** The result of an action: its value, or the text of its error. */
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
/** Valid values, by kind. */
const fitting: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  u8: uint(255),
  u16: uint(65_535),
  u16be: uint(65_535),
  u24be: uint(2 ** 24 - 1),
  u32: uint(2 ** 32 - 1),
  u32be: uint(2 ** 32 - 1),
  u64: u64s,
  u64be: u64s,
  short: fc.uint8Array({ maxLength: 16 }),
  long: fc.uint8Array({ maxLength: 64 }),
  inner: innerValue,
  nibbles: fc.record(
    { a: uint(15), b: uint(2 ** 20 - 1), c: uint(31), d: uint(3), e: uint(1) },
    { requiredKeys: [] },
  ),
  either: eitherValue,
};
/** Values for any field, mostly invalid. */
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

test('generated code writes and rejects the same values as the interpreter, with the same errors', async () => {
  let written = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(cases, async ({ names, values }) => {
      const one = await coded(names);
      const value = Object.fromEntries(names.map((_, i) => [`field${i}`, values[i]]));
      const byWalk = outcome(() => make(names).encode(value as never));
      const byCode = outcome(() => one.encode(value as never));
      assert.equal(byCode, byWalk);
      if (typeof byWalk === 'string') refused++;
      else written++;
    }),
    { numRuns: 400 },
  );
  assert.ok(written > 50 && refused > 20, `${written} values were written, ${refused} refused`);
});

test('generated code checks the bounds of every kind of field', async () => {
  const bounds: Readonly<Record<string, readonly unknown[]>> = {
    u8: [255, 256, -1, 0.5, 1n],
    u16: [65_535, 65_536, -1, 0.5],
    u16be: [65_535, 65_536, -1, 0.5],
    u24be: [2 ** 24 - 1, 2 ** 24, -1, 0.5],
    u32: [2 ** 32 - 1, 2 ** 32, -1, 0.5],
    u32be: [2 ** 32 - 1, 2 ** 32, -1, 0.5],
    u64: [2n ** 64n - 1n, 2n ** 64n, -1n, 1],
    u64be: [2n ** 64n - 1n, 2n ** 64n, -1n, 1],
    short: [new Uint8Array(16).fill(7), new Uint8Array(17), 'text'],
    long: [new Uint8Array(64).fill(7), new Uint8Array(65), [1]],
  };
  for (const [name, [fits, ...others]] of Object.entries(bounds)) {
    const [cold, warm] = [make([name]), await coded([name])];
    const write = (one: AnyStruct, value: unknown) => outcome(() => one.encode({ field0: value } as never));
    assert.equal(write(warm, fits), write(cold, fits), name);
    assert.equal(warm.decode(write(warm, fits) as Uint8Array), { field0: fits }, name);
    for (const value of others) {
      assert.type(write(warm, value), 'string', `${name} took ${String(value)}`);
      assert.is(write(warm, value), write(make([name]), value), name);
    }
  }
});

test('generated code reads the same values as the interpreter, and writes them back to the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(
      tables,
      fc.nat({ max: 5 }),
      fc.infiniteStream(fc.nat({ max: 255 })),
      async (names, offset, stream) => {
        const [cold, warm] = [make(names), await coded(names)];
        const from = new Uint8Array(offset + cold.size + 3).map(() => stream.next().value as number);
        const value = cold.decode(from, offset);
        assert.equal(warm.decode(from, offset), value);
        assert.equal(value, interpreted(cold, bitsOf(from.subarray(offset))));
        if (names.includes('either')) return; // both members of a decoded union are set, so they must not contradict each other
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

test('generated code writes the bits defined by the table', async () => {
  const fittingCases = tables.chain((names) =>
    fc.record({ names: fc.constant(names), values: fc.tuple(...names.map((name) => fitting[name]!)) }),
  );
  await fc.assert(
    fc.asyncProperty(fittingCases, async ({ names, values }) => {
      const one = await coded(names);
      const value = Object.fromEntries(names.map((_, i) => [`field${i}`, values[i]]));
      assert.is(bitsOf(one.encode(value as never, new Uint8Array(one.size).fill(0xaa))), spelled(one, value));
    }),
    { numRuns: 100 },
  );
});

const isStruct = (value: unknown): value is AnyStruct =>
  typeof value === 'object' && value !== null && 'fields' in value && 'table' in value;
const ours = (Object.values(ioctl) as unknown[]).filter(isStruct);
const messages = [...Object.values(cmLayouts), madHeader, ipCmHeader] as unknown as readonly AnyStruct[];

test('every structure and message of the package is decoded like by the bit-by-bit decoder', () => {
  assert.ok(ours.length > 50);
  for (const one of [...ours, ...messages]) {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: one.size, maxLength: one.size }), (from) => {
        assert.equal(one.decode(from), interpreted(one, bitsOf(from)), one.name);
      }),
      { numRuns: 20 },
    );
  }
});

test('the generated code in dist matches the tables', async () => {
  const files = Object.entries(await generator.madeFiles(dist));
  assert.is(files.length, 2);
  for (const [path, text] of files) {
    assert.is(
      readFileSync(path, 'utf8'),
      text,
      `${path} is older than its tables: npm run build creates it again`,
    );
  }
  for (const one of ours) assert.is(madeCode[one.name]?.table, tableMark(one.table), one.name);
});

test('code of another table with the same name is not used', async () => {
  const code = await codeOf([struct('Whole', { Field0: u16, Field1: u16 })]);
  const other = layouts(code).struct('Whole', { Field0: u16, Field1: u16be });
  assert.equal(other.encode({ field0: 1, field1: 2 }), Uint8Array.of(1, 0, 0, 2));
  assert.equal(other.decode(Uint8Array.of(1, 0, 0, 2)), { field0: 1, field1: 2 });
});

test('a value that does not fit leaves the structure usable', async () => {
  const one = await coded(['u16', 'u64']);
  assert.throws(
    () => one.encode({ field0: 65_536 } as never),
    /Whole\.Field0 must be an integer from 0 to 65535; got 65536/,
  );
  assert.throws(() => one.encode(undefined as never), /Whole must be .*; got undefined/);
  assert.equal(one.encode({ field0: 1 } as never)[0], 1);
});

test('no structure is read or written by code generated from strings at run time', () => {
  const files = readdirSync(join(dist, 'kernel-bridge'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => /\.c?js$/.test(name));
  assert.ok(sources.includes('kernel/bundle.cjs'));
  for (const name of sources)
    assert.not.match(
      readFileSync(join(dist, 'kernel-bridge', name), 'utf8'),
      /new Function\(|\beval\(/,
      name,
    );
  const script = `import { WvIoId, struct, u32 } from ${JSON.stringify(new URL('../../kernel-bridge/ioctl/index.js', import.meta.url).href)};
    const one = struct('S', { A: u32 });
    for (let i = 0; i < 20; i++) WvIoId.encode({ data: i, id: BigInt(one.decode(one.encode({ a: i })).a) });
    console.log(WvIoId.decode(WvIoId.encode({ id: 7n })).id);`;
  const flags = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', script];
  assert.is(execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim(), '7n');
});

test.run();
