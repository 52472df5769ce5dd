/** Every constant has one definition. scripts/generate-schema.mjs generates those shared by both languages. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folders = ['nd', 'winverbs', 'kernel-bridge'];

interface Source {
  readonly file: string;
  readonly text: string;
}

const sources: readonly Source[] = folders
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  // The programs of the package have their own defaults.
  .filter((file) => /\.(ts|cc|h)$/.test(file) && !/^nd\/(cli|conformance)\//.test(file))
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

/** Splits `const [a, b] = [1, 2];` into two definitions. */
function separated(text: string): string {
  return text.replace(/^((?:export )?const )\[([\w, ]+)\] = \[([^\]]+)\];/gm, (_, start, names, values) => {
    const all = String(values).split(/,\s*/);
    return String(names)
      .split(/,\s*/)
      .map((name, index) => `${start}${name} = ${all[index]};`)
      .join('\n');
  });
}

/** Named numbers of a source, as `language name = value`. */
function constantsOf({ file, text }: Source): string[] {
  const isTypeScript = file.endsWith('.ts');
  const definition = isTypeScript
    ? /^(?:export )?const (\w+) = ([\da-fA-Fx_]+|\d+ << \d+);/gm
    : /\b(k[A-Z]\w*)\s*=\s*([\da-fA-FxX']+|\d+u? << \d+)(?:[uUlL]*)\s*[,;]/g;
  return [...separated(text).matchAll(definition)].map(([, name, value]) => {
    const plain = value!.replace(/[_']/g, '');
    return `${isTypeScript ? 'TypeScript' : 'C++'} ${name} = ${plain.includes('<') ? plain : Number(plain)}`;
  });
}

/** Constants of the same name and value in several files. */
function definedTwice(all: readonly Source[]): string[] {
  const files = new Map<string, Set<string>>();
  for (const source of all)
    for (const constant of constantsOf(source))
      files.set(constant, (files.get(constant) ?? new Set()).add(source.file));
  return [...files].flatMap(([constant, where]) =>
    where.size > 1 ? [`${constant}: ${[...where].join(', ')}`] : [],
  );
}

/** Named numbers, and patterns of their literal values. Only the file that defines the name may contain the literal. */
const named: readonly (readonly [what: string, home: string, written: RegExp])[] = [
  ['RNR retry counts', 'kernel-bridge/ioctl/constants.ts', /\brnr_?retry\w*"?\s*(:|=|\?\?)\s*[67]\b/i],
  ['the slots of a host', 'kernel-bridge/schema/numbers.ts', /(?<!\.|\d )\b(254|253)\b(?! processes)/],
  ['masks of QPNs and PSNs', 'kernel-bridge/hca/engine/base/packet_headers.h', /[=&<({,]\s*0x(00)?[fF]{6}\b/],
  [
    'private data in an array',
    'kernel-bridge/ioctl/constants.ts',
    /^const \[.*\] = \[.*\b(56|148|180|196)\b/m,
  ],
  ["the size of EP_QUERY's answer", 'kernel-bridge/ioctl/structs.ts', /WvIoEpAttributes\.size\s*\+/],
];

/** Files written by scripts/generate-schema.mjs. */
const generated = /\/(schema\/generated|engine\/schema)\//;

function writtenOut(all: readonly Source[]): string[] {
  return named.flatMap(([what, home, written]) =>
    all
      .filter(
        ({ file, text }) =>
          file !== home &&
          !generated.test(file) &&
          written.test(text.replace(/\/\/.*|\/\*[\s\S]*?\*\//g, '')),
      )
      .map(({ file }) => `${what}: ${file}`),
  );
}

test('duplicate definitions and literal values are found', () => {
  const one = { file: 'a.h', text: "constexpr uint32_t kBytes = 12, kMask = 0xFF'FFFF;" };
  const other = { file: 'b.cc', text: 'constexpr uint64_t kMask = 16777215ull;  // kBytes = 12;' };
  assert.equal(definedTwice([one, { ...other, text: 'constexpr int kBytes = 13;' }]), []);
  assert.equal(definedTwice([one, other]), ['C++ kBytes = 12: a.h, b.cc', 'C++ kMask = 16777215: a.h, b.cc']);
  const names = ['a.ts', 'b.ts'].map((file) => ({
    file,
    text: 'export const KEY = 0xff_ff;\nconst n = 1 << 4;\n',
  }));
  assert.equal(definedTwice(names), [
    'TypeScript KEY = 65535: a.ts, b.ts',
    'TypeScript n = 1 << 4: a.ts, b.ts',
  ]);
  const [several, again] = ['const [a, b] = [56, 180];', 'const b = 180;'];
  assert.equal(
    definedTwice([
      { file: 'a.ts', text: several! },
      { file: 'b.ts', text: again! },
    ]),
    ['TypeScript b = 180: a.ts, b.ts'],
  );
  for (const text of [
    'const param = { rnrRetryCount: 6 };',
    'count = given.rnrRetryCount ?? 7;',
    'constexpr uint32_t kMostSlots = 254;',
    'if (slot > 253) return;',
    'qpn & 0xFFFFFF',
    'const [rep, rej] = [196, 148];',
    'const room = WvIoEpAttributes.size + 140;',
  ])
    assert.is(writtenOut([{ file: 'a.ts', text }]).length, 1, text);
  assert.equal(writtenOut([{ file: 'a.ts', text: 'const window = 1254; // 254, and rnrRetryCount: 6' }]), []);
});

test('no constant is defined twice in one language', () => {
  assert.ok(sources.flatMap(constantsOf).length > 500);
  assert.equal(definedTwice(sources), []);
});

test('named numbers are not written as literals', () => {
  const files = sources.map(({ file }) => file);
  for (const [what, home] of named) assert.ok(files.includes(home), what);
  assert.equal(writtenOut(sources), []);
});

test.run();
