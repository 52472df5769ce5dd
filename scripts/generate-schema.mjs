// Generates both sides of what TypeScript and C++ share from its one description, kernel-bridge/schema:
//
//   node scripts/generate-schema.mjs [--check]
//
// Each module of the schema gives a module in kernel-bridge/schema/generated and a header in kernel-bridge/hca/engine/schema. They are
// committed. With --check nothing is written, and the exit code is 1 if one differs; `npm run lint` does that.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import esbuild from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = 'kernel-bridge/schema';
const typescript = `${sources}/generated`;
const headers = 'kernel-bridge/hca/engine/schema';

/** What the modules of the schema export, from their sources. */
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
/** `cqProducer` is `kCqProducer` in C++. */
const constant = (name, prefix = '') => `k${prefix}${capital(name)}`;
/** `byWire` is `BY_WIRE` in TypeScript, where it is no member. */
const upper = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
const numeral = (value, flags) => (flags || value > 0xffff ? `0x${value.toString(16)}` : String(value));
const numberOf = (one) => (typeof one === 'number' ? one : one[0]);
const meaningOf = (one) => (typeof one === 'number' ? undefined : one[1]);

/** Lines of at most so many columns. */
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
  return wrap(text, 126 - indent.length)
    .map((line) => `${indent}// ${line}\n`)
    .join('');
}
function tsComment(text, indent = '') {
  if (indent.length + text.length <= 100) return `${indent}/** ${text} */\n`;
  const lines = wrap(text, 105 - indent.length).map((line) => `${indent} * ${line}\n`);
  return `${indent}/**\n${lines.join('')}${indent} */\n`;
}
/** A declaration in C++ with its meaning behind it, or above it where that is too long. */
function cppLine(code, meaning, indent = '') {
  if (meaning === undefined) return `${indent}${code}\n`;
  const line = `${indent}${code}  // ${meaning}`;
  return line.length <= 130 ? `${line}\n` : `${cppComment(meaning, indent)}${indent}${code}\n`;
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

// ── Files

/** What makes the files of a module of the schema. */
const modules = { ring: ringFiles, numbers: numberFiles };

/** A module as biome formats it. */
function formatted(path, text) {
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const options = { input: text, encoding: 'utf8', cwd: root };
  return execFileSync(process.execPath, [biome, 'format', `--stdin-file-path=${path}`], options);
}

const madeBy = (name) => `Generated by scripts/generate-schema.mjs from kernel-bridge/schema/${name}.ts.`;

/** The text of each generated file, by its path from the root. */
export async function generatedFiles() {
  const schema = await load(Object.keys(modules));
  const files = {};
  for (const [name, make] of Object.entries(modules)) {
    const { ts, cpp } = make(schema);
    const module = `${typescript}/${name}.ts`;
    files[module] = formatted(module, `// ${madeBy(name)}\n${ts}`);
    files[`${headers}/${name}.h`] = `// ${madeBy(name)}\n#pragma once\n#include <cstdint>\n\n${cpp}`;
  }
  return files;
}

/** The generated files that are not what the schema gives, among those in `folder`. */
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
    for (const path of other)
      console.error(`${path} is not what kernel-bridge/schema gives. Write it: npm run schema`);
    process.exitCode = other.length === 0 ? 0 : 1;
  } else {
    for (const path of other) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), files[path]);
      console.log(path);
    }
  }
}
