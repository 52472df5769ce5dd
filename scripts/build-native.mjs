// Compiles the addons, with a C++17 compiler and nothing else:
//
//   node scripts/build-native.mjs [--out DIRECTORY] [--strict]
//
// The addons come into DIRECTORY (build/Release), the object files beside it. What is newer than its sources stays. The
// environment has the compiler, CXX, and further flags, CXXFLAGS and LDFLAGS. With --strict a warning is an error: for our own
// compilers; those of others may know new ones.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
if (process.platform !== 'linux') {
  console.log('The addons are for Linux. On Windows the drivers of real HCAs need none.');
  process.exit(0);
}
const { values } = parseArgs({
  options: { out: { type: 'string', default: 'build/Release' }, strict: { type: 'boolean', default: false } },
});
const out = resolve(values.out);
const hca = 'kernel-bridge/hca';

const words = (text) => (text ?? '').split(/\s+/).filter((word) => word !== '');
const [compiler = 'g++', ...compilerFlags] = words(process.env.CXX || 'g++');

/** The C++ files below a folder, without those of other systems. */
function sourcesIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.cc'));
  return files
    .filter((file) => !file.split('/').includes('windows'))
    .sort()
    .map((file) => join(folder, file));
}

const addons = {
  networkdirect_hca: [...sourcesIn(`${hca}/engine`), ...sourcesIn(`${hca}/addon`)],
  // Real HCAs: loaded where there is one. What it needs of rdma-core it finds then.
  networkdirect_verbs: [
    ...sourcesIn(`${hca}/verbs`),
    `${hca}/addon/backing_store.cc`,
    `${hca}/engine/objects/cq.cc`,
    `${hca}/engine/objects/qp_states.cc`,
    `${hca}/engine/platform/linux/os.cc`,
  ],
};

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
  ...['-std=c++17', '-O3', '-fPIC', '-pthread', '-fno-exceptions', '-fno-rtti', '-fno-omit-frame-pointer'],
  ...[
    '-fvisibility=hidden',
    '-DNAPI_VERSION=8',
    '-DNAPI_DISABLE_CPP_EXCEPTIONS',
    '-DBUILDING_NODE_EXTENSION',
  ],
  ...['-D_FILE_OFFSET_BITS=64', '-Wall', '-Wextra', '-Wshadow', '-Wno-missing-field-initializers'],
  '-Wno-unused-parameter',
  ...[`-I${hca}`, `-I${hca}/engine`, ...headers().flatMap((folder) => ['-isystem', folder])],
  ...words(process.env.CXXFLAGS),
];

const strict = values.strict ? ['-Werror'] : [];

/** Runs the compiler; throws what it says if it fails. */
function compile(...parameters) {
  return new Promise((done, fail) => {
    const child = spawn(compiler, [...compilerFlags, ...parameters], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.once('error', ({ code, message }) =>
      fail(
        new Error(
          code === 'ENOENT'
            ? `There is no C++17 compiler: ${compiler} is not in PATH (or set CXX).`
            : message,
        ),
      ),
    );
    child.once('exit', (code, signal) =>
      code === 0 ? done() : fail(new Error(`${compiler} has failed (${signal ?? `exit code ${code}`}).`)),
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

const objects = join(out, 'objects');
const objectOf = (source) => join(objects, source.replace(/cc$/, 'o'));
mkdirSync(objects, { recursive: true });

// Other flags make other objects.
const record = join(objects, 'command.txt');
const command = [compiler, ...compilerFlags, ...flags].join('\n');
const sameCommand = existsSync(record) && readFileSync(record, 'utf8') === command;

const all = [...new Set(Object.values(addons).flat())];
const old = all.filter(
  (source) => !sameCommand || !isCurrent(objectOf(source), [source, ...inputsOf(objectOf(source))]),
);

async function compileNext() {
  for (let source = old.pop(); source !== undefined; source = old.pop()) {
    mkdirSync(dirname(objectOf(source)), { recursive: true });
    await compile(...flags, ...strict, '-MMD', '-c', source, '-o', objectOf(source));
  }
}

try {
  const begun = Date.now();
  const count = old.length;
  if (count > 0) {
    console.log(`Compiling ${count} files of C++ …`);
    writeFileSync(record, sameCommand ? command : '');
    await Promise.all(Array.from({ length: availableParallelism() }, compileNext));
    writeFileSync(record, command);
  }
  for (const [name, sources] of Object.entries(addons)) {
    const addon = join(out, `${name}.node`);
    const parts = sources.map(objectOf);
    if (isCurrent(addon, parts)) continue;
    await compile(
      '-shared',
      '-pthread',
      '-Wl,--gc-sections',
      ...words(process.env.LDFLAGS),
      '-o',
      addon,
      ...parts,
      '-ldl',
    );
    console.log(relative(root, addon));
  }
  if (count > 0) console.log(`Done in ${Math.round((Date.now() - begun) / 1000)} s.`);
} catch (error) {
  console.error(`The addons were not built. ${error.message}`);
  process.exit(1);
}
