// Compiles the addons. Requires only a C++17 compiler.
//
//   node scripts/build-native.mjs [--target win32-x64] [--out DIRECTORY] [--strict]
//
// The addons are written to DIRECTORY (default: build/Release), and the object files next to it. For Windows they are cross-compiled on
// Linux with mingw-w64 (to build/win32-x64). All sources of a folder are compiled as one unit, in a file that includes them, because most
// of the compile time is spent on the same headers. Objects that are newer than their sources are kept. The environment variables CXX,
// CXXFLAGS and LDFLAGS set the compiler and additional flags. With --strict, warnings are errors: only for our compilers, because others
// may have new warnings.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
if (process.platform !== 'linux') {
  console.log(
    'The addons can only be built on Linux, including those for Windows. The npm package @networkdirect/win32-x64 has those for Windows.',
  );
  process.exit(0);
}
const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    strict: { type: 'boolean', default: false },
    target: { type: 'string', default: 'linux' },
  },
});
const windows = values.target === 'win32-x64';
if (!windows && values.target !== 'linux') {
  console.error(`--target must be win32-x64 or omitted; got ${values.target}.`);
  process.exit(1);
}
const out = resolve(values.out ?? (windows ? 'build/win32-x64' : 'build/Release'));
const hca = 'kernel-bridge/hca';

const words = (text) => (text ?? '').split(/\s+/).filter((word) => word !== '');
const crossPrefix = 'x86_64-w64-mingw32-';
const [compiler, ...compilerFlags] = words(process.env.CXX || (windows ? `${crossPrefix}g++-posix` : 'g++'));

/** The C++ files in a folder, without those for other operating systems. */
function sourcesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.cc'));
  return files
    .filter((file) => !file.split('/').includes(windows ? 'linux' : 'windows'))
    .sort()
    .map((file) => join(folder, file));
}

// Flag that omits the extensions between two instances of this package, which serve long distances (docs/internals/wire.md).
const standardOnly = words(process.env.CXXFLAGS).includes('-DND_WITHOUT_EXTENSIONS');
const ofEngine = sourcesIn(`${hca}/engine`).filter(
  (file) => !standardOnly || !file.includes('/transport/extensions/'),
);

/** The sources of each addon. */
const addons = {
  networkdirect_hca: [...ofEngine, ...sourcesIn(`${hca}/addon`)],
};
// The addon for real HCAs, which is loaded if there is one and then finds rdma-core at run time. On Windows, they have a driver instead.
if (!windows) {
  addons.networkdirect_verbs = [
    ...sourcesIn(`${hca}/verbs`),
    `${hca}/addon/backing_store.cc`,
    `${hca}/addon/command_face.cc`,
    `${hca}/addon/linux/v8_functions.cc`,
    `${hca}/engine/objects/cq.cc`,
    `${hca}/engine/objects/qp_states.cc`,
    `${hca}/engine/platform/linux/os.cc`,
  ];
}

/** Include folders of Node-API and libuv: those of the package or, if absent, those of the development dependencies and this Node.js. */
function headers() {
  if (existsSync('headers')) return ['headers'];
  const require = createRequire(import.meta.url);
  const node = [process.env.npm_config_nodedir, resolve(process.execPath, '../..')]
    .filter((folder) => folder !== undefined && folder !== '')
    .map((folder) => join(folder, 'include/node'))
    .find((folder) => existsSync(join(folder, 'uv.h')));
  if (node === undefined) {
    throw new Error(
      `The headers of Node.js were not found in ${resolve(process.execPath, '../../include/node')}. Install them (with Debian's Node.js: libnode-dev), or set npm_config_nodedir to the folder that has include/node.`,
    );
  }
  return [dirname(require.resolve('node-addon-api')), require('node-api-headers').include_dir, node];
}

const flags = [
  ...['-std=c++17', '-O3', ...(windows ? [] : ['-fPIC'])],
  ...['-pthread', '-fno-exceptions', '-fno-rtti', '-fno-omit-frame-pointer'],
  ...[
    '-fvisibility=hidden',
    '-DNAPI_VERSION=8',
    '-DNAPI_DISABLE_CPP_EXCEPTIONS',
    '-DBUILDING_NODE_EXTENSION',
  ],
  ...(windows
    ? ['-D_WIN32_WINNT=0x0A00', '-DNOMINMAX', '-DWIN32_LEAN_AND_MEAN']
    : ['-D_FILE_OFFSET_BITS=64']),
  ...['-Wall', '-Wextra', '-Wshadow', '-Wno-missing-field-initializers'],
  '-Wno-unused-parameter',
  '-Wno-subobject-linkage', // a unit includes its sources, and their internal-linkage types are only used in one file
  ...['-I.', `-I${hca}`, `-I${hca}/engine`, ...headers().flatMap((folder) => ['-isystem', folder])],
  ...words(process.env.CXXFLAGS),
];

// Windows uses nothing of platform/linux, the only part that may use GNU extensions of the language.
const strict = values.strict ? ['-Werror', ...(windows ? ['-Wpedantic'] : [])] : [];

/** Runs the compiler. @throws Error if it fails */
const compile = (...parameters) => run(compiler, [...compilerFlags, ...parameters]);

function run(program, parameters) {
  return new Promise((done, fail) => {
    const child = spawn(program, parameters, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', ({ code, message }) =>
      fail(
        new Error(
          code === 'ENOENT'
            ? `No C++17 compiler: ${program} is not in PATH. Install it or set CXX.`
            : message,
        ),
      ),
    );
    child.once('exit', (code, signal) =>
      code === 0 ? done() : fail(new Error(`${program} failed (${signal ?? `exit code ${code}`}).`)),
    );
  });
}

const modifiedAt = (file) => (existsSync(file) ? statSync(file).mtimeMs : Number.POSITIVE_INFINITY);

/** Whether a file exists and none of its inputs is newer. */
const isCurrent = (file, inputs) =>
  existsSync(file) && inputs.every((one) => modifiedAt(one) <= modifiedAt(file));

/** The files from which an object was compiled, according to the dependency file of the compiler. */
function inputsOf(object) {
  const list = object.replace(/o$/, 'd');
  if (!existsSync(list)) return [list];
  return words(readFileSync(list, 'utf8').replaceAll('\\\n', ' ')).slice(1);
}

const objects = relative(root, join(out, 'objects'));

/** Groups the sources into compilation units: those of one folder, and the file that includes them. */
function unitsOf(addon, sources) {
  const units = new Map();
  for (const source of sources) {
    const room = relative(hca, dirname(source)).replaceAll('/', '-');
    // The headers of Windows define macros that must not affect other sources.
    const name = room.endsWith('windows') ? `${room}-${basename(source, '.cc')}` : room;
    const unit = units.get(name) ?? { file: join(objects, addon, `${name}.cc`), sources: [], bytes: 0 };
    units.set(name, unit);
    unit.sources.push(source);
    unit.bytes += statSync(source).size;
  }
  return [...units.values()];
}

const unitsOfAddons = Object.entries(addons).map(([addon, sources]) => [addon, unitsOf(addon, sources)]);
const units = unitsOfAddons.flatMap(([, some]) => some);
const objectOf = ({ file }) => file.replace(/cc$/, 'o');

// Different flags produce different objects.
const record = join(objects, 'command.txt');
const command = [compiler, ...compilerFlags, ...flags].join('\n');
const sameCommand = existsSync(record) && readFileSync(record, 'utf8') === command;

for (const { file, sources } of units) {
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  mkdirSync(dirname(file), { recursive: true });
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}

// The benchmark's programs link all objects, so objects whose sources were deleted must be removed.
const wanted = new Set(units.map(objectOf));
for (const name of readdirSync(objects, { recursive: true, encoding: 'utf8' })) {
  const file = join(objects, name);
  if (name.endsWith('.o') && !wanted.has(file)) rmSync(file);
}

// The longest first, so that all CPUs finish together.
const old = units
  .filter((unit) => !sameCommand || !isCurrent(objectOf(unit), inputsOf(objectOf(unit))))
  .sort((a, b) => b.bytes - a.bytes);

/**
 * Creates the import library that links an addon for Windows to its program. It has all symbols of Node.js that the objects use.
 */
async function programLibrary(parts) {
  const { stdout } = spawnSync(`${crossPrefix}nm`, ['-u', ...parts], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const names = new Set((stdout ?? '').match(/(?<=[\s_])(napi|node_api|uv)_\w+/g));
  const library = join(objects, 'libnode.a');
  writeFileSync(join(objects, 'node.def'), `LIBRARY node.exe\nEXPORTS\n${[...names].sort().join('\n')}\n`);
  await run(`${crossPrefix}dlltool`, ['-d', join(objects, 'node.def'), '-l', library]);
  return library;
}

/** Linker arguments that follow the objects of an addon. */
const librariesFor = async (parts) =>
  windows
    ? [
        '-static',
        await programLibrary(parts),
        ...['ws2_32', 'iphlpapi', 'synchronization', 'bcrypt', 'advapi32', 'ntdll'].map(
          (name) => `-l${name}`,
        ),
      ]
    : ['-ldl'];

async function compileNext() {
  for (let unit = old.shift(); unit !== undefined; unit = old.shift())
    await compile(...flags, ...strict, '-MMD', '-c', unit.file, '-o', objectOf(unit));
}

try {
  const begun = Date.now();
  const count = old.length;
  if (count > 0) {
    console.log(`Compiling ${old.reduce((sum, { sources }) => sum + sources.length, 0)} files of C++ …`);
    writeFileSync(record, sameCommand ? command : '');
    await Promise.all(Array.from({ length: availableParallelism() }, compileNext));
    writeFileSync(record, command);
  }
  for (const [name, itsUnits] of unitsOfAddons) {
    const addon = join(out, `${name}.node`);
    const parts = itsUnits.map(objectOf);
    if (isCurrent(addon, parts)) continue;
    await compile(
      '-shared',
      '-pthread',
      '-Wl,--gc-sections',
      ...words(process.env.LDFLAGS),
      '-o',
      addon,
      ...parts,
      ...(await librariesFor(parts)),
    );
    console.log(relative(root, addon));
  }
  if (count > 0) console.log(`Done in ${Math.round((Date.now() - begun) / 1000)} s.`);
} catch (error) {
  console.error(`Cannot build the addons. ${error.message}`);
  process.exit(1);
}
