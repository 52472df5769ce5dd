// Generates functions that read and write all fields of a structure. They are derived from the tables in kernel-bridge/ioctl/layout.ts.
//
//   node scripts/make-layout-code.mjs [DIST]
//
// Reads the compiled tables from `dist` and writes `made-code.js` next to them, replacing the empty module of the sources. The generated
// module is not committed, so it always matches the tables. With the empty module, the tables are interpreted.
import { writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const bytesModule = 'kernel-bridge/ioctl/layout-bytes.js';
/** Folders of `dist` and their modules with tables. */
const rooms = {
  'kernel-bridge/ioctl': ['structs.js', 'hca-file.js', 'provider-data.js'],
  'kernel-bridge/kernel/cm': ['mad-layouts.js'],
};

const property = (key) => (/^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key));
const byteAt = (offset) => (offset === 0 ? 'b[at]' : `b[at + ${offset}]`);
const place = (offset) => (offset === 0 ? 'at' : `at + ${offset}`);

/** The bytes that contain an integer's bits. For each: the number of bits, and their offsets within the byte and within the value. */
function partsOf({ size, littleEndian }, offset) {
  if (littleEndian)
    return Array.from({ length: size }, (_, i) => ({ index: offset + i, take: 8, up: 0, value: i * 8 }));
  const [first, end] = [offset * 8, (offset + size) * 8];
  return Array.from({ length: Math.ceil(end / 8) - Math.floor(offset) }, (_, i) => {
    const index = Math.floor(offset) + i;
    const last = Math.min(end, index * 8 + 8);
    return { index, take: last - Math.max(first, index * 8), up: index * 8 + 8 - last, value: end - last };
  });
}

/** The fields of a structure, each with its type. */
function membersOf({ fields, table }) {
  return fields.map((info) => ({ ...info, type: table[info.name] }));
}

/** The name suffix of the functions that read and write an integer as a whole; undefined if its bytes are processed individually. */
function wholeInteger({ kind, size, littleEndian }, offset) {
  if (kind !== 'uint' || !Number.isInteger(offset)) return undefined;
  if (littleEndian) return size === 4 ? '32' : undefined;
  return size === 2 || size === 4 ? `${size * 8}be` : undefined;
}

/**
 * An expression for the value at `offset`. `inner` maps the tables of structures that have their own functions to the names of these
 * functions.
 */
function read(type, offset, inner) {
  const { kind, size, littleEndian } = type;
  if (kind === 'long') return `get64(b, ${place(offset)}, ${littleEndian})`;
  if (kind === 'bytes') return `copyBytes(b, ${place(offset)}, ${size})`;
  const whole = wholeInteger(type, offset);
  if (whole !== undefined) return `get${whole}(b, ${place(offset)})`;
  if (kind === 'uint') {
    const parts = partsOf(type, offset).map(({ index, take, up, value }) => {
      const low = up === 0 ? byteAt(index) : `(${byteAt(index)} >> ${up})`;
      const part = up + take === 8 ? low : `(${low} & ${2 ** take - 1})`;
      return value === 0 ? part : `(${part} << ${value})`;
    });
    return size === 4 ? `(${parts.join(' | ')}) >>> 0` : parts.join(' | ');
  }
  const members = membersOf(type).filter(({ reserved }) => !reserved);
  const values = members.map(({ key, type: own, offset: at }) => {
    const name = inner.get(own.table);
    const value =
      name === undefined ? read(own, offset + at, inner) : `read${name}(b, ${place(offset + at)})`;
    return `${property(key)}: ${value}`;
  });
  return `{ ${values.join(', ')} }`;
}

const zeros = { uint: '0', long: '0n', bytes: 'nothing', struct: 'none', union: 'none' };
const checks = {
  uint: (v, { size }) =>
    size === 1 || size === 2 || size === 4 ? `is${size * 8}(${v})` : `isUint(${v}, ${2 ** (size * 8) - 1})`,
  long: (v) => `isLong(${v})`,
  bytes: (v, { size }) => `isRun(${v}, ${size})`,
};

/**
 * Statements that destructure the value in the variable `from` (or return false), and statements that write it to `offset`. Omitted
 * members of a union are `none`.
 */
function write(type, offset, from, inner) {
  const isUnion = type.kind === 'union';
  const members = membersOf(type)
    .filter(({ reserved }) => !reserved)
    .map((one, i) => ({ ...one, v: `${from}_${i}`, at: offset + one.offset }));
  const leaf = ({ type: { kind } }) => kind in checks;
  const names = members.map(
    ({ key, v, type: { kind } }) => `${property(key)}: ${v} = ${isUnion ? 'none' : zeros[kind]}`,
  );
  const take = [
    `if (typeof ${from} !== 'object' || ${from} === null) return false;`,
    `const { ${names.join(', ')} } = ${from};`,
  ];
  const misfits = members.filter(leaf).map((one) => {
    const fits = checks[one.type.kind](one.v, one.type);
    return isUnion ? `${one.v} !== none && !${fits}` : `!${fits}`;
  });
  if (misfits.length > 0) take.push(`if (${misfits.join(' || ')}) return false;`);
  if (isUnion) take.push(`if (${members.map(({ v }) => `(${v} !== none)`).join(' + ')} > 1) return false;`);

  const put = [];
  /** Bytes that may contain bits of several integers. */
  const shared = new Map();
  const flush = () => {
    for (const [index, parts] of shared) put.push(`${byteAt(index)} = ${parts.join(' | ')};`);
    shared.clear();
  };
  if (isUnion) put.push(`clearBytes(b, ${place(offset)}, ${type.size});`);
  for (const {
    type: { kind, size, littleEndian, ...rest },
    v,
    at,
  } of members) {
    const whole = wholeInteger({ kind, size, littleEndian }, at);
    if (isUnion) put.push(`if (${v} !== none) {`);
    if (kind === 'long') put.push(`put64(b, ${place(at)}, ${v}, ${littleEndian});`);
    else if (kind === 'bytes') put.push(`putBytes(b, ${place(at)}, ${size}, ${v});`);
    else if (whole !== undefined) put.push(`put${whole}(b, ${place(at)}, ${v});`);
    else if (kind === 'uint') {
      for (const { index, take: count, up, value } of partsOf({ size, littleEndian }, at)) {
        const low = value === 0 ? v : `(${v} >>> ${value})`;
        const part = count === 8 ? low : `((${low} & ${2 ** count - 1}) << ${up})`;
        shared.set(index, [...(shared.get(index) ?? []), part]);
      }
    } else if (inner.has(rest.table)) {
      take.push(`if (!fits${inner.get(rest.table)}(${v})) return false;`);
      put.push(`put${inner.get(rest.table)}(b, ${place(at)}, ${v});`);
    } else {
      const code = write({ kind, size, ...rest }, at, v, inner);
      take.push(...code.take);
      put.push(...code.put);
    }
    if (!isUnion) continue;
    flush();
    put.push('}');
  }
  flush();
  for (const one of membersOf(type))
    if (one.reserved) put.push(`clearBytes(b, ${place(offset + one.offset)}, ${one.size});`);
  return { take, put };
}

/** Types and function names of nested structures that have their own functions, by table. */
function innerStructures(structures) {
  const found = new Map();
  const look = (type) => {
    if (type.table === undefined) return;
    const times = (found.get(type.table)?.times ?? 0) + 1;
    found.set(type.table, { type, times });
    for (const one of membersOf(type)) if (!one.reserved) look(one.type);
  };
  for (const one of structures) look(one);
  const several = [...found.values()].filter(({ times }) => times > 1);
  return several.map(({ type }, i) => ({ type, name: `Inner${i}` }));
}

/** The functions of a nested structure. `put` writes any value that `fits` accepts. */
function innerCode(type, name, inner) {
  const { take, put } = write(type, 0, 'v', inner);
  const lines = (list) => list.map((line) => `  ${line}`).join('\n');
  return `const read${name} = (b, at) => (${read(type, 0, inner)});
function fits${name}(v) {
${lines([...take, 'return true;'])}
}
function put${name}(b, at, v) {
${lines([...take.filter((line) => line.startsWith('const ')), ...put])}
}
`;
}

/** Creates the text of a module with the code of structures. `tableMark` distinguishes tables; `bytes` is the module of byte functions. */
export function moduleOf(structures, tableMark, bytes) {
  const several = innerStructures(structures);
  const inner = new Map(several.map(({ type, name }) => [type.table, name]));
  const functions = several.map(({ type, name }) => innerCode(type, name, inner));
  const codes = structures.map((one) => {
    const name = inner.get(one.table);
    if (name !== undefined)
      return `  ${JSON.stringify(one.name)}: {
    table: ${tableMark(one.table)},
    read: read${name},
    write: (b, at, v) => fits${name}(v) && (put${name}(b, at, v), true),
  },`;
    const { take, put } = write(one, 0, 'v', inner);
    return `  ${JSON.stringify(one.name)}: {
    table: ${tableMark(one.table)},
    read: (b, at) => (${read(one, 0, inner)}),
    write(b, at, v) {
${[...take, ...put, 'return true;'].map((line) => `      ${line}`).join('\n')}
    },
  },`;
  });
  return `// Generated from the tables in this folder by scripts/make-layout-code.mjs.
import { clearBytes, copyBytes, get16be, get32, get32be, get64, isLong, isRun, isUint, put16be, put32, put32be, put64, putBytes } from ${JSON.stringify(bytes)};

const nothing = new Uint8Array(0);
const none = Object.freeze({});
const is8 = (value) => isUint(value, 0xff);
const is16 = (value) => isUint(value, 0xffff);
const is32 = (value) => isUint(value, 0xffff_ffff);

${functions.join('\n')}
export const madeCode = {
${codes.join('\n')}
};
`;
}

/** The content of each generated file by its path. */
export async function madeFiles(dist) {
  const load = (path) => import(pathToFileURL(join(dist, path)).href);
  const { tableMark } = await load('kernel-bridge/ioctl/layout.js');
  const made = {};
  for (const [room, modules] of Object.entries(rooms)) {
    const exported = await Promise.all(modules.map((name) => load(`${room}/${name}`)));
    const structures = exported
      .flatMap(Object.values)
      .flatMap((one) =>
        Object.getPrototypeOf(one) === Object.prototype && !('fields' in one) ? Object.values(one) : one,
      )
      .filter((one) => one?.fields !== undefined && one.table !== undefined);
    const names = new Set(structures.map(({ name }) => name));
    if (names.size < structures.length) throw new Error(`Two structures of ${room} have the same name.`);
    const bytes = relative(room, bytesModule);
    const path = join(dist, room, 'made-code.js');
    made[path] = moduleOf(structures, tableMark, bytes.startsWith('.') ? bytes : `./${bytes}`);
  }
  return made;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
  for (const [path, text] of Object.entries(await madeFiles(dist))) {
    writeFileSync(path, text);
    console.log(`${text.split('    read: ').length - 1} structures in ${relative(dirname(dist), path)}`);
  }
}
