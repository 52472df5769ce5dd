// Compiles the addons, with a C++17 compiler and nothing else:
//
//   node scripts/build-native.mjs [--target win32-x64] [--out DIRECTORY] [--strict]
//
// The addons come into DIRECTORY (build/Release), the object files beside it. For Windows they are built on Linux, by mingw-w64
// (build/win32-x64). The compiler gets the sources of a folder at once, in a file that includes them, because most of its work on one
// source is the same headers. What is newer than its sources stays. The environment has the compiler, CXX, and further flags, CXXFLAGS
// and LDFLAGS. With --strict a warning is an error: for our own compilers; those of others may know new ones.
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
    'The addons are built on Linux, those for Windows, too; npm has them for it: @networkdirect/win32-x64.',
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
  console.error(`--target is ${values.target}; it can be win32-x64, or be left out.`);
  process.exit(1);
}
const out = resolve(values.out ?? (windows ? 'build/win32-x64' : 'build/Release'));
const hca = 'kernel-bridge/hca';

const words = (text) => (text ?? '').split(/\s+/).filter((word) => word !== '');
const crossPrefix = 'x86_64-w64-mingw32-';
const [compiler, ...compilerFlags] = words(process.env.CXX || (windows ? `${crossPrefix}g++-posix` : 'g++'));

/** The C++ files below a folder, without those of other systems. */
function sourcesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.cc'));
  return files
    .filter((file) => !file.split('/').includes(windows ? 'linux' : 'windows'))
    .sort()
    .map((file) => join(folder, file));
}

// The flag that leaves out what serves long distances between two instances of this package (docs/internals/wire.md).
const standardOnly = words(process.env.CXXFLAGS).includes('-DND_WITHOUT_EXTENSIONS');
const ofEngine = sourcesIn(`${hca}/engine`).filter(
  (file) => !standardOnly || !file.includes('/transport/extensions/'),
);

/** The sources of each addon. */
const addons = {
  networkdirect_hca: [...ofEngine, ...sourcesIn(`${hca}/addon`)],
};
// Real HCAs: loaded where there is one. What it needs of rdma-core it finds then. On Windows they have a driver instead.
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

/** Headers of Node-API and libuv: those that the package has, else those of the development dependencies and of this Node. */
function headers() {
  if (existsSync('headers')) return ['headers'];
  const require = createRequire(import.meta.url);
  const node = [process.env.npm_config_nodedir, resolve(process.execPath, '../..')]
    .filter((folder) => folder !== undefined && folder !== '')
    .map((folder) => join(folder, 'include/node'))
    .find((folder) => existsSync(join(folder, 'uv.h')));
  if (node === undefined) {
    throw new Error(
      `The headers of Node.js are not in ${resolve(process.execPath, '../../include/node')}. Install them (with Debian's Node.js: libnode-dev), or set npm_config_nodedir to the folder that has include/node.`,
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
  '-Wno-subobject-linkage', // a unit includes its sources, and what is local to them is seen in one file only
  ...['-I.', `-I${hca}`, `-I${hca}/engine`, ...headers().flatMap((folder) => ['-isystem', folder])],
  ...words(process.env.CXXFLAGS),
];

// Windows has nothing of platform/linux, which alone may use GNU's extensions of the language.
const strict = values.strict ? ['-Werror', ...(windows ? ['-Wpedantic'] : [])] : [];

/** Runs the compiler; throws what it says if it fails. */
const compile = (...parameters) => run(compiler, [...compilerFlags, ...parameters]);

function run(program, parameters) {
  return new Promise((done, fail) => {
    const child = spawn(program, parameters, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', ({ code, message }) =>
      fail(
        new Error(
          code === 'ENOENT' ? `There is no C++17 compiler: ${program} is not in PATH (or set CXX).` : message,
        ),
      ),
    );
    child.once('exit', (code, signal) =>
      code === 0 ? done() : fail(new Error(`${program} has failed (${signal ?? `exit code ${code}`}).`)),
    );
  });
}

const modifiedAt = (file) => (existsSync(file) ? statSync(file).mtimeMs : Number.POSITIVE_INFINITY);

/** Whether a file exists and none of its inputs is newer. */
const isCurrent = (file, inputs) =>
  existsSync(file) && inputs.every((one) => modifiedAt(one) <= modifiedAt(file));

/** The files that an object was made of, from what the compiler wrote beside it. */
function inputsOf(object) {
  const list = object.replace(/o$/, 'd');
  if (!existsSync(list)) return [list];
  return words(readFileSync(list, 'utf8').replaceAll('\\\n', ' ')).slice(1);
}

const objects = relative(root, join(out, 'objects'));

/** What the compiler gets at once: the sources of one folder, and the file that includes them. */
function unitsOf(addon, sources) {
  const units = new Map();
  for (const source of sources) {
    const room = relative(hca, dirname(source)).replaceAll('/', '-');
    // The headers of Windows define macros, which shall not meet what comes after.
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

// Other flags make other objects.
const record = join(objects, 'command.txt');
const command = [compiler, ...compilerFlags, ...flags].join('\n');
const sameCommand = existsSync(record) && readFileSync(record, 'utf8') === command;

for (const { file, sources } of units) {
  const text = sources.map((source) => `#include "${source}"\n`).join('');
  mkdirSync(dirname(file), { recursive: true });
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}

// An object whose sources are gone would be linked with the others by the benchmark's programs, which take all of them.
const wanted = new Set(units.map(objectOf));
for (const name of readdirSync(objects, { recursive: true, encoding: 'utf8' })) {
  const file = join(objects, name);
  if (name.endsWith('.o') && !wanted.has(file)) rmSync(file);
}

// The longest first, so that the CPUs finish together.
const old = units
  .filter((unit) => !sameCommand || !isCurrent(objectOf(unit), inputsOf(objectOf(unit))))
  .sort((a, b) => b.bytes - a.bytes);

/**
 * On Windows an addon is linked with its program: with an import library of all that the objects take from Node.js.
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

/** What follows the objects when an addon is linked. */
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
  console.error(`The addons were not built. ${error.message}`);
  process.exit(1);
}
