// Writes the tarballs of a release to build/package:
//
//   node scripts/pack.mjs [--local | --code]
//
// The package's JavaScript is joined to a few files that contain each module once (pack-code.mjs), and so are its declarations
// (pack-types.mjs). Each folder of build/prebuilt becomes a package for that platform, an optional dependency of the main package. The C++
// sources are one archive in a separate package that `networkdirect build` downloads, because most systems never need it. With --local, the
// addons of build/Release become this platform's package: only for tests, because they need this system's libraries. With --code, only the
// package folder is written, without declarations: `npm run bench` measures that with the addons of build/Release.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants } from 'node:zlib';
import { notices } from './notices.mjs';
import { packCode } from './pack-code.mjs';
import { packTypes } from './pack-types.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { values } = parseArgs({ options: { local: { type: 'boolean' }, code: { type: 'boolean' } } });
const own = JSON.parse(readFileSync('package.json', 'utf8'));
const packages = resolve('build/package');
const stage = join(packages, own.name);
const dist = resolve('dist');
const addons = ['networkdirect_hca.node', 'networkdirect_verbs.node'];
/** Guards against files that are packed by mistake; not a size to optimize for. */
const limits = { files: 200, bytes: 6_000_000 };

rmSync(packages, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });

const json = (file, value) => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);

/** Copies a file of this folder to the same path in the stage. */
function copy(file) {
  mkdirSync(dirname(join(stage, file)), { recursive: true });
  copyFileSync(file, join(stage, file));
}

/** The public modules, from the exports in package.json. */
const entries = Object.values(own.exports)
  .filter((target) => typeof target === 'object')
  .map((target) => relative(dist, resolve(target.default)));

/** Programs that are run from their own files, in addition to the public modules. */
const programs = ['nd/cli/nd.js', 'nd/cli/tools/mrrate-thread.js'];
/** Deliberately broken providers, for tests of the conformance suite. */
const left = ['nd/conformance/mutants/index.js'];
await packCode(dist, join(stage, 'dist'), entries, programs, left);
for (const file of ['kernel-thread.cjs', 'kernel-thread.cjs.map'])
  copy(`dist/kernel-bridge/door/soft/${file}`);

/** The package is CommonJS and has ES modules that export the same (pack-code.mjs). */
const forms = ({ types, default: file }) => ({
  import: { types: types.replace(/ts$/, 'mts'), default: file.replace(/js$/, 'mjs') },
  default: { types, default: file },
});

function writeManifest(more) {
  const { private: _, scripts: __, devDependencies: ___, ...kept } = own;
  json(join(stage, 'package.json'), {
    ...kept,
    type: 'commonjs',
    exports: Object.fromEntries(
      Object.entries(own.exports).map(([name, target]) => [name, target.types ? forms(target) : target]),
    ),
    files: ['dist', 'CHANGELOG.md', 'SECURITY.md'],
    ...more,
  });
}

if (values.code) {
  mkdirSync(join(stage, 'build'));
  symlinkSync(resolve('build/Release'), join(stage, 'build/Release'));
  writeManifest({});
  process.exit();
}
execFileSync('npm', ['run', '--silent', 'types'], { stdio: 'inherit' });
await packTypes(dist, entries, join(stage, 'dist'));

for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md']) copy(file);
await import('./stage-source.mjs');
const archive = execFileSync(
  'tar',
  [
    ...['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'],
    ...['-C', 'build/source', '-c', '.'],
  ],
  { maxBuffer: 2 ** 28 },
);
/** The folders with addons for other platforms, by platform name. */
function prebuilt() {
  if (values.local) return { [`${process.platform}-${process.arch}-gnu`]: 'build/Release' };
  const folder = 'build/prebuilt';
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => existsSync(join(folder, name, addons[0])))
    : [];
  if (names.length === 0) throw new Error('No prebuilt addons were found. Run scripts/build-prebuilt.sh.');
  return Object.fromEntries(names.map((name) => [name, join(folder, name)]));
}

const { version, author, license, homepage, repository, bugs, engines } = own;

/** Creates an additional package. Returns its folder, to which its files are to be written. */
function companion(name, description, readme, { files, ...more }) {
  const folder = join(packages, name);
  mkdirSync(folder);
  copyFileSync('LICENSE', join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'THIRD-PARTY-NOTICES.md'), notices(more.os?.[0] ?? 'source'));
  const fullName = `@${own.name}/${name}`;
  writeFileSync(join(folder, 'README.md'), `# ${fullName}\n\n${readme}\n`);
  const common = { author, license, homepage, repository, bugs, engines, type: 'commonjs' };
  const all = { ...common, files: [...files, 'THIRD-PARTY-NOTICES.md'], ...more };
  json(join(folder, 'package.json'), { name: fullName, version, description, ...all });
  return { name: fullName, target: folder };
}

const sources = companion(
  'source',
  `The C++ sources of ${own.name}'s native addons`,
  `The C++ sources of the native addons of [${own.name}](${homepage}), which \`npx networkdirect build\` compiles. \`native.tar.br\` is a tar archive, compressed by Brotli.`,
  { files: ['native.tar.br'] },
);
const compressed = brotliCompressSync(archive, {
  params: { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
});
writeFileSync(join(sources.target, 'native.tar.br'), compressed);
/** Calls Windows drivers. It has an install script, so other platforms must not get it. */
const koffi = { files: ['*.node', 'koffi.cjs'], dependencies: { koffi: own.devDependencies.koffi } };
const platforms = Object.entries(prebuilt()).map(([platform, folder]) => {
  const [os, cpu, libc] = platform.split('-');
  const text = `The native addons of [${own.name}](${homepage}) for ${platform}.`;
  const { name, target } = companion(platform, `The native addons of ${own.name} for ${platform}`, text, {
    ...{ os: [os], cpu: [cpu], files: ['*.node'] },
    ...(libc === undefined ? {} : { libc: [libc === 'gnu' ? 'glibc' : libc] }),
    ...(os === 'win32' ? koffi : {}),
  });
  if (os === 'win32') copyFileSync('kernel-bridge/windows/koffi.cjs', join(target, 'koffi.cjs'));
  // Only Linux has an addon for real HCAs.
  const there = addons.filter((addon) => os === 'linux' || addon === addons[0]);
  for (const addon of there) copyFileSync(join(folder, addon), join(target, addon));
  return { name, target };
});

writeManifest({
  // `networkdirect build` only compiles sources with this digest.
  sourcesIntegrity: `sha512-${createHash('sha512').update(compressed).digest('base64')}`,
  optionalDependencies: {
    ...own.optionalDependencies,
    ...Object.fromEntries(platforms.map(({ name }) => [name, version])),
  },
});

const pack = (folder) =>
  JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', folder], { cwd: packages, encoding: 'utf8' }),
  )[0];
for (const { target } of [sources, ...platforms]) {
  const { filename, unpackedSize } = pack(target);
  console.log(`${filename}: ${unpackedSize} bytes unpacked`);
}
const { filename, entryCount, unpackedSize } = pack(stage);
console.log(`${filename}: ${entryCount} files, ${unpackedSize} bytes unpacked`);
if (entryCount > limits.files || unpackedSize > limits.bytes) {
  console.error(`The package must have at most ${limits.files} files and ${limits.bytes} bytes.`);
  process.exit(1);
}
