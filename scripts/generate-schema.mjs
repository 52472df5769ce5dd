// Generates both sides of the definitions that TypeScript and C++ share from their single description, kernel-bridge/schema:
//
//   node scripts/generate-schema.mjs [--check]
//
// Each module of the schema generates a module in kernel-bridge/schema/generated and a header in kernel-bridge/hca/engine/schema. They are
// committed. With --check, nothing is written, and the exit code is 1 if one differs; `npm run lint` does that.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import esbuild from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = 'kernel-bridge/schema';
const typescript = `${sources}/generated`;
const headers = 'kernel-bridge/hca/engine/schema';

/** The exports of the schema's modules, from their sources. */
async function load(names) {
  const contents = names.map((name) => `export * from './${name}.js';`).join('\n');
  const { outputFiles } = await esbuild.build({
    stdin: { contents, resolveDir: join(root, sources), loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

// ── Text

const capital = (name) => name[0].toUpperCase() + name.slice(1);
/** `cqProducer` becomes `kCqProducer` in C++. */
const constant = (name, prefix = '') => `k${prefix}${capital(name)}`;
/** A standalone constant: `byWire` becomes `BY_WIRE` in TypeScript. */
const upper = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
const numeral = (value, flags) => (flags || value > 0xffff ? `0x${value.toString(16)}` : String(value));
const numberOf = (one) => (typeof one === 'number' ? one : one[0]);
const meaningOf = (one) => (typeof one === 'number' ? undefined : one[1]);

/** Wraps text to lines of at most `columns` columns. */
function wrap(text, columns) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== '' && line.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
function cppComment(text, indent = '') {
  return wrap(text, 117 - indent.length)
    .map((line) => `${indent}// ${line}\n`)
    .join('');
}
function tsComment(text, indent = '') {
  if (indent.length + text.length <= 100) return `${indent}/** ${text} */\n`;
  const lines = wrap(text, 105 - indent.length).map((line) => `${indent} * ${line}\n`);
  return `${indent}/**\n${lines.join('')}${indent} */\n`;
}
/** A C++ declaration with its comment on the same line, or above it if that is too long. */
function cppLine(code, meaning, indent = '') {
  if (meaning === undefined) return `${indent}${code}\n`;
  const line = `${indent}${code}  // ${meaning}`;
  return line.length <= 120 ? `${line}\n` : `${cppComment(meaning, indent)}${indent}${code}\n`;
}

// ── Constants

const entries = (members) =>
  Object.entries(members).map(([name, one]) => ({ name, value: numberOf(one), meaning: meaningOf(one) }));

function tsMembers({ members, flags }) {
  return entries(members)
    .map(
      ({ name, value, meaning }) =>
        `${meaning ? tsComment(meaning, '  ') : ''}  ${name}: ${numeral(value, flags)},\n`,
    )
    .join('');
}

function cppConstants({ members, flags }, prefix, type = 'uint32_t') {
  return entries(members)
    .map(({ name, value, meaning }) =>
      cppLine(`constexpr ${type} ${constant(name, prefix)} = ${numeral(value, flags)};`, meaning),
    )
    .join('');
}

function cppTable({ about, cpp, ...table }) {
  if (cpp.enum !== undefined) {
    const members = entries(table.members).map(({ name, value, meaning }) =>
      cppLine(`${constant(name)} = ${numeral(value, table.flags)},`, meaning, '  '),
    );
    return `${cppComment(about)}enum class ${cpp.enum} : uint32_t {\n${members.join('')}};\n`;
  }
  const prefix = cpp.prefix === undefined ? '' : capital(cpp.prefix);
  return `${cppComment(about)}namespace ${cpp.namespace} {\n${cppConstants(table, prefix, cpp.type)}}  // namespace ${cpp.namespace}\n`;
}

function ringFiles({ ring }) {
  const shared = ring.filter(({ only }) => only === undefined);
  return {
    ts: `/** Layout of the rings that JavaScript and the HCA share (schema/ring.ts). Words are indexes into a \`Uint32Array\`. */
export const abi = {
${shared.map((group) => `${cppComment(group.about, '  ')}${tsMembers(group)}`).join('\n')}} as const;
`,
    cpp: `namespace nd::abi {

${ring.map((group) => `${cppComment(group.about)}${cppConstants(group)}`).join('\n')}
}  // namespace nd::abi
`,
  };
}

function numberFiles({ single, numbers }) {
  const named = numbers.filter(({ ts }) => ts !== undefined);
  const alone = entries(single);
  return {
    ts: [
      ...alone.map(
        ({ name, value, meaning }) =>
          `${tsComment(meaning)}export const ${upper(name)} = ${numeral(value)};\n`,
      ),
      ...named.map(
        (table) => `${tsComment(table.about)}export const ${table.ts} = {\n${tsMembers(table)}} as const;\n`,
      ),
    ].join('\n'),
    includes: ['cstddef', 'cstdint'],
    cpp: `namespace nd {

${[
  ...alone.map(
    ({ name, value, meaning }) =>
      `${cppComment(meaning)}constexpr uint32_t ${constant(name)} = ${numeral(value)};\n`,
  ),
  ...numbers.map(cppTable),
].join('\n')}
}  // namespace nd
`,
  };
}

// ── Options

const grouped = (value, separator) => String(value).replace(/\B(?=(\d{3})+$)/g, separator);
const tsNumber = (value) => (value < 10_000 ? String(value) : grouped(value, '_'));
const cppNumber = (value) => (value < 10_000 ? String(value) : grouped(value, "'"));
const firstSentence = (text) => /^.*?\.(?= |$)/.exec(text)?.[0] ?? text;

function tsTypeOf({ group, range, probability, choice, checked, default: given }) {
  if (group !== undefined) return group.interface;
  if (range !== undefined || probability) return 'number';
  if (choice !== undefined) return choice.map((one) => `'${one}'`).join(' | ');
  return checked ?? typeof given;
}

function tsLiteral(value) {
  if (typeof value === 'number') return tsNumber(value);
  return JSON.stringify(value).replaceAll('"', "'");
}

const hasChecks = ({ options }) =>
  Object.values(options).some(
    ({ group, checked }) => checked !== undefined || (group !== undefined && hasChecks(group)),
  );

/** The zod schema of an option. `checks` has the checks that go beyond a range. */
function zodOf(name, { group, range, multipleOf, probability, choice, checked }) {
  if (group !== undefined) return `${name}Shape(z${hasChecks(group) ? ', checks' : ''}).prefault({})`;
  if (probability) return 'z.number().min(0).max(1)';
  if (choice !== undefined) return `z.enum([${choice.map((one) => `'${one}'`).join(', ')}])`;
  if (checked !== undefined) return `checks.${name}(z)`;
  if (range === undefined) return 'z.boolean()';
  const most = range[1] === Number.MAX_SAFE_INTEGER ? '' : `.max(${tsNumber(range[1])})`;
  const multiple = multipleOf === undefined ? '' : `.multipleOf(${multipleOf[0]}, '${multipleOf[1]}')`;
  return `z.int().min(${tsNumber(range[0])})${most}${multiple}`;
}

const innerGroups = ({ options }) => Object.entries(options).filter(([, { group }]) => group !== undefined);

function optionsInterface({ interface: name, about, options }) {
  const members = Object.entries(options).map(
    ([key, option]) => `${tsComment(option.about, '  ')}  ${key}: ${tsTypeOf(option)};\n`,
  );
  return `${tsComment(about)}export interface ${name} {\n${members.join('')}}\n`;
}

function defaultsOf({ options }, indent) {
  const members = Object.entries(options).map(([key, { group, default: given }]) =>
    group === undefined
      ? `${indent}  ${key}: ${tsLiteral(given)},\n`
      : `${indent}  ${key}: ${defaultsOf(group, `${indent}  `)},\n`,
  );
  return `{\n${members.join('')}${indent}}`;
}

function optionsShape(name, group) {
  const members = Object.entries(group.options).map(([key, option]) => {
    const given = `defaultOptions${name === 'kernel' ? '' : `.${name}`}.${key}`;
    return `    ${key}: ${zodOf(key, option)}${option.group === undefined ? `.default(${given})` : ''},\n`;
  });
  return `export const ${name}Shape = (z: Zod${hasChecks(group) ? ', checks: OptionChecks' : ''}) =>\n  z.strictObject({\n${members.join('')}  });\n`;
}

/** The name, type and default of an option in C++, and the statement that reads it. */
function cppOption(name, { range, probability, choice, cppEnum, default: given }) {
  if (probability) return { type: 'double', given: '0', read: `number("${name}", &o->${name}, 0, 1)` };
  if (choice !== undefined) {
    const texts = choice.map((one) => `"${one}"`).join(', ');
    return {
      type: cppEnum,
      given: `${cppEnum}::${constant(given)}`,
      read: `choice("${name}", &o->${name}, {${texts}})`,
    };
  }
  if (typeof given === 'boolean') return { type: 'bool', given, read: `boolean("${name}", &o->${name})` };
  if (range === undefined) return { type: 'std::string', read: `string("${name}", &o->${name})` };
  const limits = range.map(cppNumber).join(', ');
  if (name.endsWith('Ms')) {
    const member = name.replace(/Ms$/, 'Ns');
    const read = `milliseconds("${name}", &o->${member}, ${limits})`;
    return { member, type: 'uint64_t', given: cppNumber(given * 1e6), read };
  }
  // The sums of these values exceed 32 bits.
  const type = range[1] >= 2 ** 30 ? 'uint64_t' : 'uint32_t';
  return { type, given: cppNumber(given), read: `uint("${name}", &o->${name}, ${limits})` };
}

function cppOptions(structure, members) {
  const all = members.map(([name, option]) => ({
    member: name,
    about: option.about,
    ...cppOption(name, option),
  }));
  const fields = all.map(({ type, member, given, about }) =>
    cppLine(`${type} ${member}${given === undefined ? '' : ` = ${given}`};`, firstSentence(about), '  '),
  );
  return `struct ${structure} {
${fields.join('')}};

template <typename Reader>
void readOptions(Reader& reader, ${structure}* o) {
  reader${all.map(({ read }) => `.${read}`).join('\n      ')};
}
`;
}

function optionFiles({ options }) {
  const inner = innerGroups(options);
  const all = [...inner.map(([, { group }]) => group), options];
  const checked = all.flatMap((group) =>
    Object.entries(group.options).filter(([, one]) => one.checked !== undefined),
  );
  const flat = all.flatMap((group) =>
    Object.entries(group.options)
      .filter(([, one]) => one.group === undefined && one.checked !== 'Record<string, number>')
      .map(([name, one]) => [name, one, one.cpp ?? group.cpp]),
  );
  const structures = [...new Set(flat.flatMap(([, , cpp]) => cpp ?? []))];
  const enumerations = flat.filter(([, { cppEnum }]) => cppEnum !== undefined);
  const ofHca = Object.entries(options.options).filter(([, { cpp }]) => cpp !== undefined);
  return {
    ts: `import type * as z from 'zod';

type Zod = typeof import('zod');

${all.map(optionsInterface).join('\n')}
/** Options of the software HCA. */
export type HcaOptions = Pick<
  KernelOptions,
${ofHca.map(([name]) => `  | '${name}'\n`).join('')}>;

/**
 * Defaults of all options.
 *
 * @internal
 */
export const defaultOptions: KernelOptions = ${defaultsOf(options, '')};

/**
 * Checks of options beyond a range.
 *
 * @internal
 */
export interface OptionChecks {
${checked.map(([name, one]) => `  ${name}(zod: Zod): z.ZodType<${one.checked}, ${one.checked}>;\n`).join('')}}

${inner.map(([name, { group }]) => `/** @internal */\n${optionsShape(name, group)}`).join('\n')}
/** @internal */
${optionsShape('kernel', options)}`,
    cpp: `namespace nd {

${enumerations
  .map(
    ([, { about, choice, cppEnum }]) =>
      `${cppComment(firstSentence(about))}enum class ${cppEnum} : uint8_t { ${choice.map((one) => constant(one)).join(', ')} };\n`,
  )
  .join('\n')}
${structures
  .map((structure) =>
    cppOptions(
      structure,
      flat.filter(([, , cpp]) => cpp === structure),
    ),
  )
  .join('\n')}
}  // namespace nd
`,
    includes: ['cstdint', 'string'],
  };
}

// ── Records

const fieldsOf = ({ fields }) => Object.entries(fields).map(([name, field]) => ({ name, ...field }));
/** The fields that are passed as words. */
const wordsOf = (record) =>
  fieldsOf(record).filter(({ type, query }) => type !== 'path' && type !== 'gid' && !query);
const tsTypes = { flag: 'boolean', path: 'PathParameters', gid: 'Uint8Array' };
const tsField = ({ type }) => tsTypes[type] ?? 'number';

function recordInterface({ ts, about, ...record }) {
  const members = fieldsOf(record).map(
    (field) => `${field.about ? tsComment(field.about, '  ') : ''}  ${field.name}: ${tsField(field)};\n`,
  );
  return `${tsComment(about)}export interface ${ts} {\n${members.join('')}}\n`;
}

function maskTable({ ts, mask: { ts: name, bits } }) {
  const members = entries(bits).map((one) => ({
    ...one,
    meaning: one.meaning ?? `{@link ${ts}.${one.name}}`,
  }));
  const lines = members.map(
    ({ name: bit, value, meaning }) => `  /** ${meaning} */\n  ${bit}: ${numeral(value, value > 9)},\n`,
  );
  return `/** Bits for the fields of {@link ${ts}} that a modify sets. */\nexport const ${name} = {\n${lines.join('')}} as const;\n`;
}

/** A function that writes the fields to `words`. Fields that a mask excludes may be missing. */
function putFunction({ ts, put, mask, ...record }) {
  const type = mask === undefined ? ts : `Partial<${ts}>`;
  const lines = wordsOf(record).map(({ name, type: kind }, at) => {
    const value =
      kind === 'flag'
        ? `from.${name} ? 1 : 0`
        : mask === undefined
          ? `from.${name}`
          : `from.${name} ?? missing`;
    return `  words[${at}] = ${value};\n`;
  });
  const missing = mask === undefined ? '' : '  const missing = Number.NaN;\n';
  const about = `Encodes {@link ${ts}}.${mask === undefined ? '' : ' A missing field becomes NaN, which native code rejects if its bit is in the mask.'}`;
  return `${tsComment(about)}export function ${put}({ words }: SharedWords, from: ${type}): void {\n${missing}${lines.join('')}}\n`;
}

const cppTypes = { u64: 'uint64_t', flag: 'bool' };
const largest = { u64: Number.MAX_SAFE_INTEGER, flag: 1 };

function recordStructure({ cpp, about, mask, ...record }) {
  const fields = fieldsOf(record).filter(({ type }) => type !== 'path');
  const members = fields.map(({ name, type, default: given = type === 'flag' ? false : 0, about: meaning }) =>
    cppLine(
      `${cppTypes[type] ?? 'uint32_t'} ${name} = ${typeof given === 'number' ? cppNumber(given) : given};`,
      meaning,
      '  ',
    ),
  );
  const visits = wordsOf(record).map(({ name, type, most, bit = name }) => {
    const value = cppNumber(most ?? largest[type] ?? 0xffff_ffff);
    return `visit("${name}", &T::${name}, ${value}, ${mask?.bits[bit] === undefined ? 0 : `${mask.cpp}::${constant(bit)}`})`;
  });
  const bits =
    mask === undefined
      ? ''
      : `${cppTable({ about: `Bits for the fields of ${cpp} that a modify sets.`, cpp: { namespace: mask.cpp }, members: mask.bits, flags: true })}\n`;
  return `${bits}${cppComment(about)}struct ${cpp} {
${members.join('')}
  template <typename Visit>
  static bool each(Visit visit) {
    using T = ${cpp};
    return ${visits.join(' &&\n           ')};
  }
};
`;
}

function attributeFiles({ attributes, path, words }) {
  const masked = attributes.filter(({ mask }) => mask !== undefined);
  const numbers = wordsOf(path);
  for (const record of attributes)
    if (record.put !== undefined && wordsOf(record).length > words.pathAt)
      throw new Error(`${record.ts} must have at most ${words.pathAt} words, which those of a path follow`);
  if (words.pathAt + numbers.length > words.ownerAt || words.ownerAt >= words.count)
    throw new Error('words must have room for a path followed by an owner');
  return {
    ts: `${[recordInterface(path), ...attributes.map(recordInterface), ...masked.map(maskTable)].join('\n')}
/** Positions in the words and bytes. */
export const gidBytes = ${words.gidBytes};
export const pathAt = ${words.pathAt};
export const ownerAt = ${words.ownerAt};
export const madAt = ${words.madAt};
export const madBytes = ${words.madBytes};

/** The memory of a command's arguments and results. */
export interface SharedWords {
  /** Parameters and results, and from {@link pathAt} on the numbers of a path. */
  readonly words: Float64Array;
  /** Source and destination GIDs of a path, 16 bytes each, and a MAD. */
  readonly bytes: Uint8Array;
}

/** Encodes a path. Returns false without a path, or if an address does not have 16 bytes. */
export function putPath({ words, bytes }: SharedWords, path: PathParameters | undefined): boolean {
  if (path?.source?.length !== gidBytes || path.destination?.length !== gidBytes) return false;
  bytes.set(path.source, 0);
  bytes.set(path.destination, gidBytes);
${numbers.map(({ name }, at) => `  words[pathAt${at === 0 ? '' : ` + ${at}`}] = path.${name};\n`).join('')}  return true;
}

/** Encodes a MAD. Returns false if it does not have 256 bytes. */
export function putMad({ bytes }: SharedWords, mad: Uint8Array): boolean {
  if (mad.length !== madBytes) return false;
  bytes.set(mad, madAt);
  return true;
}

${attributes
  .filter(({ put }) => put !== undefined)
  .map(putFunction)
  .join('\n')}`,
    cpp: `namespace nd {

// each() of a structure calls \`visit\` with the name, the member, the largest value and the mask bit of each word in order, until it
// returns false.

${attributes.map(recordStructure).join('\n')}
// The memory of a command's arguments and results: numbers and bytes.
struct WordPlaces {
  static constexpr size_t kCount = ${words.count}, kPathAt = ${words.pathAt}, kOwnerAt = ${words.ownerAt}, kMadAt = ${words.madAt}, kBytes = ${words.madAt + words.madBytes};
};

// Calls \`visit\` with the name, the member and the largest value of each number of a path, in the order of the words.
template <typename Path, typename Visit>
bool eachWordOfPath(Path& path, Visit visit) {
  return ${numbers.map(({ name, most = 0xffff_ffff }) => `visit("${name}", path.${name}, ${cppNumber(most)})`).join(' &&\n         ')};
}

}  // namespace nd
`,
    includes: ['cstddef', 'cstdint'],
  };
}

// ── Statistics

const nativeOf = ({ fields }) => Object.entries(fields).filter(([, { native }]) => native !== false);
const shownOf = ({ fields }) => Object.entries(fields).filter(([, { shown }]) => shown !== false);
const textsOf = (shown) => shown.map((one) => `'${one}'`);

function statisticType({ type, shown }) {
  if (Array.isArray(shown)) return textsOf(shown).join(' | ');
  return shown || (type === 'flag' ? 'boolean' : 'number');
}
function statisticCheck({ type, shown }) {
  if (Array.isArray(shown)) return `z.enum([${textsOf(shown).join(', ')}])`;
  if (shown === 'string') return 'text';
  if (shown !== undefined) return 'z.array(text)';
  return type === 'flag' ? 'z.boolean()' : 'count';
}

function tsStatistics(name, form) {
  const native = nativeOf(form);
  const reads = native.map(([key, { type }], at) => {
    const value = `numbers[at${at === 0 ? '' : ` + ${at}`}]!`;
    return `    ${key}: ${type === 'flag' ? `${value} !== 0` : value},\n`;
  });
  return `${tsComment(form.about)}export interface ${form.ts} {
${shownOf(form)
  .map(([key, one]) => `${tsComment(one.about, '  ')}  readonly ${key}: ${statisticType(one)};\n`)
  .join('')}}

/** Checks {@link ${form.ts}}. */
export const ${name}Shape = (z: Zod, count: z.ZodNumber, text: z.ZodString) =>
  z.object({
${shownOf(form)
  .map(([key, one]) => `    ${key}: ${statisticCheck(one)},\n`)
  .join('')}  });

/** Length of each record of the HCA, in numbers. */
export const ${name}Numbers = ${native.length};

/** Decodes the record that begins at this index. */
export function ${name}At(numbers: Float64Array, at: number) {
  return {
${reads.join('')}  };
}
`;
}

function cppStatistics({ about, cpp, ...form }) {
  const native = nativeOf(form);
  return `${cppComment(about)}struct ${cpp} {
${native
  .map(([name, one]) =>
    cppLine(
      `${cppTypes[one.type] ?? 'uint32_t'} ${name} = ${one.type === 'flag' ? 'false' : 0};`,
      one.about,
      '  ',
    ),
  )
  .join('')}
  static constexpr size_t kNumbers = ${native.length};
  // Calls \`visit\` with each number in order.
  template <typename Visit>
  void each(Visit visit) const {
${native.map(([name]) => `    visit(${name});\n`).join('')}  }
};
`;
}

function statisticFiles({ queuePair, memory }) {
  return {
    ts: `import type * as z from 'zod';

type Zod = typeof import('zod');

${tsStatistics('queuePair', queuePair)}
${tsStatistics('memory', memory)}`,
    cpp: `namespace nd {

${cppStatistics(queuePair)}
${cppStatistics(memory)}
}  // namespace nd
`,
    includes: ['cstddef', 'cstdint'],
  };
}

// ── Events

/** `errno` is a macro in C++. */
const parameter = (name) => (name === 'errno' ? 'error' : name);

function eventFiles({ events }) {
  const all = Object.entries(events).map(([kind, event], index) => ({ kind, index: index + 1, ...event }));
  const most = Math.max(...all.map(({ words }) => Object.keys(words).length));
  const types = all.map(({ kind, about, words, more = {} }) => {
    const members = [
      ...Object.entries(more).map(([name, one]) => [name, one.about, one.ts]),
      ...Object.entries(words).map(([name, one]) => [name, one.about, one.flag ? 'boolean' : 'number']),
    ].map(
      ([name, meaning, type]) => `${meaning ? tsComment(meaning, '      ') : ''}      ${name}: ${type};\n`,
    );
    return `${about ? tsComment(about, '  ') : ''}  | {\n      type: '${kind}';\n${members.join('')}    }\n`;
  });
  const reads = all.map(({ kind, index, words, more = {} }) => {
    const members = [
      `type: '${kind}'`,
      ...Object.entries(more).map(([name, { from }]) => (name === from ? name : `${name}: ${from}`)),
      ...Object.entries(words).map(
        ([name, { flag, signed }], at) =>
          `${name}: word(words, ${at})${flag ? ' !== 0' : signed ? ' | 0' : ''}`,
      ),
    ];
    return `    case ${index}:\n      return { ${members.join(', ')} };\n`;
  });
  const makers = all.map(({ kind, about, words }) => {
    const given = Object.entries(words).map(
      ([name, { cpp, flag, signed }]) =>
        `${cpp ?? (flag ? 'bool' : signed ? 'int32_t' : 'uint32_t')} ${parameter(name)}`,
    );
    const values = Object.entries(words).map(([name, { cpp, signed }]) =>
      cpp === undefined && !signed ? parameter(name) : `static_cast<uint32_t>(${parameter(name)})`,
    );
    const comment = about ? cppComment(about, '  ') : '';
    const lines = (text) => wrap(text, 114).join('\n      ');
    const body = lines(`return {Kind::${constant(kind)}, {${values.join(', ')}}};`);
    return `${comment}  ${lines(`static HcaEvent ${kind}(${given.join(', ')}) {`)}\n    ${body}\n  }\n`;
  });
  return {
    ts: `import { gidBytes, madAt, type SharedWords } from './attributes.js';
import type { BY_WIRE, CqEventType, QpEventType, SrqEventType } from './numbers.js';

/** An event of an HCA. */
export type HcaEvent =
${types.join('').trimEnd()};

/** A 32-bit number as an integer. A double, as in the array, would require a heap object in each object that stores it. */
export function word(words: Float64Array, at: number): number {
  return words[at]! >>> 0;
}

/** Decodes an event of this kind from the words, or returns undefined without one. \`mad\`: the bytes of a MAD. */
export function eventOf(kind: number, { words, bytes }: SharedWords, mad: Uint8Array): HcaEvent | undefined {
  switch (kind) {
${reads.join('')}    default:
      return undefined;
  }
}
`,
    cpp: `namespace nd {

// An event of an HCA. The members of each kind are its words.
struct HcaEvent {
  enum class Kind : uint32_t { kNone, ${all.map(({ kind }) => constant(kind)).join(', ')} };
  static constexpr size_t kMostWords = ${most};
  Kind kind = Kind::kNone;
  uint32_t words[kMostWords] = {};

${makers.join('')}};

}  // namespace nd
`,
    includes: ['cstddef', 'cstdint'],
    headers: ['schema/numbers.h'],
  };
}

/** The page of the options for readers; its text stands before the mark. */
const page = 'docs/reference/options.md';
const pageMark = '<!-- From here on generated by `npm run schema`, from kernel-bridge/schema. -->\n';

function limitsOf({ range, multipleOf, probability, choice, checked, default: given }) {
  if (probability) return '0 to 1';
  if (choice !== undefined) return choice.map((one) => `\`'${one}'\``).join(', ');
  if (checked !== undefined)
    return checked
      .replace("'auto' | 'driver' | 'soft'", "`'auto'`, `'driver'`, `'soft'`")
      .replaceAll(' | ', ' or ')
      .replaceAll('<', '\\<');
  if (range === undefined) return typeof given;
  const most = range[1] === Number.MAX_SAFE_INTEGER ? 'and more' : `to ${grouped(range[1], ',')}`;
  return `${grouped(range[0], ',')} ${most}${multipleOf === undefined ? '' : `, a multiple of ${multipleOf[0]}`}`;
}

function optionRows({ options }, prefix = '') {
  return Object.entries(options)
    .filter(([, { group }]) => group === undefined)
    .map(([name, option]) => {
      const given =
        typeof option.default === 'number'
          ? grouped(option.default, ',')
          : JSON.stringify(option.default).replaceAll('"', "'");
      return `| \`${prefix}${name}\` | \`${given}\` | ${limitsOf(option)} | ${firstSentence(option.about)} |\n`;
    })
    .join('');
}

function optionsPage({ options }) {
  const head = '| option | default | values | meaning |\n|---|---|---|---|\n';
  const [text] = readFileSync(join(root, page), 'utf8').split(pageMark);
  const groups = innerGroups(options).map(
    ([name, { group }]) => `\n### \`${name}\`\n\n${group.about}\n\n${head}${optionRows(group, `${name}.`)}`,
  );
  return `${text}${pageMark}\n${head}${optionRows(options)}${groups.join('')}`;
}

// ── Files

/** The generator for each module of the schema. */
const modules = {
  ring: ringFiles,
  numbers: numberFiles,
  options: optionFiles,
  attributes: attributeFiles,
  statistics: statisticFiles,
  events: eventFiles,
};

/** Formats a module with biome. */
function formatted(path, text) {
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const options = { input: text, encoding: 'utf8', cwd: root };
  return execFileSync(process.execPath, [biome, 'format', `--stdin-file-path=${path}`], options);
}

const madeBy = (name) => `Generated by scripts/generate-schema.mjs from kernel-bridge/schema/${name}.ts.`;

/** The text of each generated file by its path from the root. */
export async function generatedFiles() {
  const schema = await load(Object.keys(modules));
  const files = {};
  for (const [name, make] of Object.entries(modules)) {
    const { ts, cpp, includes = ['cstdint'], headers: own = [] } = make(schema);
    const included = [
      ...includes.map((header) => `#include <${header}>\n`),
      ...own.map((header) => `#include "${header}"\n`),
    ].join('');
    const module = `${typescript}/${name}.ts`;
    files[module] = formatted(module, `// ${madeBy(name)}\n${ts}`);
    files[`${headers}/${name}.h`] = `// ${madeBy(name)}\n#pragma once\n${included}\n${cpp}`;
  }
  files[page] = optionsPage(schema);
  return files;
}

/** The generated files in `folder` that are out of date. */
export function differing(files, folder = root) {
  return Object.entries(files).flatMap(([path, text]) => {
    const file = join(folder, path);
    return existsSync(file) && readFileSync(file, 'utf8') === text ? [] : [path];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await generatedFiles();
  const other = differing(files);
  if (process.argv.includes('--check')) {
    for (const path of other) console.error(`${path} differs from kernel-bridge/schema. Run npm run schema`);
    process.exitCode = other.length === 0 ? 0 : 1;
  } else {
    for (const path of other) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), files[path]);
      console.log(path);
    }
  }
}
