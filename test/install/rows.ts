/** The rows of `npm run test:install`. Each installs the packed package into an empty folder and runs programs there. */
import { deepStrictEqual } from 'node:assert';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Manager, Place } from './place.js';
import { packages, programOf, root, SUPPORTED, versionOf } from './tools.js';

export interface Row {
  readonly name: string;
  /** Whether continuous integration runs this row. */
  readonly quick?: true;
  /** The version of Node.js; default: the one with long-term support. */
  readonly node?: string;
  run(place: Place): Promise<void>;
}

const RECEIVED = 'received 42';
const own = 'networkdirect';

/** The oldest version that the package supports, and the newest of the other maintained ones. */
const NODES = ['20.19.0', '22.23.3', SUPPORTED, '26.10.0'] as const;

/** The first program of the README and its expected output. */
function hello(): { readonly text: string; readonly output: string } {
  const [, text, output] =
    /^```js hello\.js\n(.*?)^```$.*?^```text\n(.*?)\n```$/ms.exec(
      readFileSync(join(root, 'README.md'), 'utf8'),
    ) ?? [];
  if (text === undefined || output === undefined)
    throw new Error('README.md must have hello.js and its output.');
  return { text, output };
}

/** Packages in a `node_modules` folder whose manifests have an install script. */
function withInstallScripts(folder: string): string[] {
  const manifests = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('package.json'),
  );
  return manifests.filter((path) => {
    const { scripts = {} } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as { scripts?: object };
    const isNative = existsSync(join(folder, path, '../binding.gyp'));
    return isNative || ['preinstall', 'install', 'postinstall'].some((name) => name in scripts);
  });
}

/** The programs that each package manager and version of Node.js runs. */
async function runPrograms(place: Place): Promise<void> {
  place.copy('byte.cjs', 'driver.cjs', 'imported.mjs', 'one.cjs', 'one.mjs', 'required.cjs');
  await place.prints(RECEIVED, 'imported.mjs');
  await place.prints(RECEIVED, 'required.cjs');
  for (const first of ['import', 'require']) await place.prints('one instance', 'one.mjs', first);
}

const ofNode = NODES.map((version): Row => {
  const run = async (place: Place): Promise<void> => {
    await place.install('npm', own);
    const modules = join(place.folder, 'node_modules');
    deepStrictEqual(withInstallScripts(modules), [], 'packages with install scripts');
    deepStrictEqual(existsSync(join(modules, own, 'build')), false, 'the package has addons of its own');
    await runPrograms(place);
    const { text, output } = hello();
    place.write('hello.mjs', text);
    await place.prints(output, 'hello.mjs');
    const nd = `node_modules/${own}/dist/nd/cli/nd.js`;
    await place.succeeds(nd, 'demo', '--iterations', '10', '--rounds', '1', '--json');
  };
  const name = `npm, Node.js ${version}`;
  return { name, node: version, run, ...(version === NODES[0] ? { quick: true } : {}) };
});

const byManager = (manager: Manager, name: string): Row => ({
  name,
  quick: true,
  async run(place) {
    await place.install(manager, own);
    await runPrograms(place);
  },
});

/** Installs the package and other packages with npm, without their install scripts. */
const beside = (place: Place, ...names: readonly (keyof typeof packages)[]): Promise<void> =>
  place.install('npm', '--ignore-scripts', own, ...names.map((name) => packages[name]));

const testRunners: Row[] = [
  {
    name: 'Jest, CommonJS',
    quick: true,
    async run(place) {
      await beside(place, 'jest');
      place.copy('byte.cjs', 'driver.cjs', 'one.cjs', 'jest.test.js');
      // Two test files in one process, each with its own modules.
      place.write('second.test.js', "require('./jest.test.js');");
      await place.succeeds('node_modules/jest/bin/jest.js', '--runInBand');
    },
  },
  {
    name: 'Jest, ES modules',
    async run(place) {
      await beside(place, 'jest');
      place.copy('byte.cjs', 'driver.cjs', 'one.cjs', 'jest-esm.test.mjs');
      place.write('require-first.test.mjs', readFileSync(join(place.folder, 'jest-esm.test.mjs'), 'utf8'));
      place.write('jest.config.json', '{ "transform": {}, "testMatch": ["**/*.test.mjs"] }');
      await place.succeeds('--experimental-vm-modules', 'node_modules/jest/bin/jest.js');
    },
  },
  {
    name: 'ts-jest',
    async run(place) {
      await beside(place, 'jest', 'ts-jest', 'typescript', '@types/node');
      place.copy('byte.cjs', 'driver.cjs', 'one.cjs');
      // Stored without a TypeScript extension here, because the packages that it imports are not installed here.
      place.write('imported.test.ts', readFileSync(join(root, 'test/install/programs/ts-jest.txt'), 'utf8'));
      place.write('jest.config.json', '{ "preset": "ts-jest" }');
      const compilerOptions = {
        ...{ module: 'node16', isolatedModules: true, allowJs: true, strict: true, types: ['node'] },
      };
      place.write('tsconfig.json', JSON.stringify({ compilerOptions }));
      await place.succeeds('node_modules/jest/bin/jest.js');
    },
  },
  {
    name: 'vitest, in processes and in threads',
    async run(place) {
      await beside(place, 'vitest');
      place.copy('byte.cjs', 'driver.cjs', 'one.cjs', 'vitest.test.mjs');
      for (const pool of ['forks', 'threads'])
        await place.succeeds('node_modules/vitest/vitest.mjs', 'run', `--pool=${pool}`);
    },
  },
];

/** The error message of bundles that contain the package. */
const OUTSIDE =
  /Error: networkdirect cannot be part of a bundle, .*Mark networkdirect as external \(esbuild: /;

/** Bundles with esbuild into a folder, as a module of this format. */
function byEsbuild(place: Place, entry: string, format: 'cjs' | 'esm', folder: string, external?: true) {
  const file = join(
    relative(place.folder, folder),
    `${format}-${entry.replace(/\..*/, '')}.${format === 'cjs' ? 'cjs' : 'mjs'}`,
  );
  const options = [
    '--bundle',
    '--platform=node',
    `--format=${format}`,
    `--outfile=${file}`,
    '--log-level=error',
  ];
  const esbuild = 'node_modules/esbuild/bin/esbuild';
  const more = external ? ['--external:networkdirect'] : [];
  return place.succeeds(esbuild, entry, ...options, ...more).then(() => file);
}

const bundlers: Row[] = [
  {
    name: 'esbuild, the package external',
    quick: true,
    async run(place) {
      await beside(place, 'esbuild');
      place.copy('byte.cjs', 'imported.mjs');
      const { text, output } = hello();
      place.write('hello.mjs', text);
      await place.prints(RECEIVED, await byEsbuild(place, 'imported.mjs', 'cjs', place.folder, true));
      await place.prints(output, await byEsbuild(place, 'hello.mjs', 'esm', place.folder, true));
    },
  },
  {
    name: 'esbuild, the package bundled in',
    quick: true,
    async run(place) {
      await beside(place, 'esbuild');
      place.copy('byte.cjs', 'imported.mjs', 'required.cjs');
      place.write('hello.mjs', hello().text);
      for (const folder of [place.folder, place.elsewhere()]) {
        await place.refuses(OUTSIDE, await byEsbuild(place, 'imported.mjs', 'cjs', folder));
        await place.refuses(OUTSIDE, await byEsbuild(place, 'required.cjs', 'cjs', folder));
        await place.refuses(OUTSIDE, await byEsbuild(place, 'hello.mjs', 'esm', folder));
      }
    },
  },
  {
    name: 'webpack, the package external',
    async run(place) {
      await beside(place, 'webpack');
      place.copy('byte.cjs', 'imported.mjs', 'required.cjs', 'webpack.cjs');
      for (const entry of ['./imported.mjs', './required.cjs']) {
        await place.succeeds('webpack.cjs', entry, 'external');
        await place.prints(RECEIVED, 'bundle.cjs');
      }
    },
  },
  {
    name: 'webpack, the package bundled in',
    async run(place) {
      await beside(place, 'webpack');
      place.copy('byte.cjs', 'imported.mjs', 'required.cjs', 'webpack.cjs');
      for (const entry of ['./imported.mjs', './required.cjs']) {
        await place.succeeds('webpack.cjs', entry);
        await place.refuses(OUTSIDE, 'bundle.cjs');
      }
    },
  },
];

const runtimes: Row[] = [
  {
    name: '--permission',
    quick: true,
    async run(place) {
      await place.install('npm', own);
      place.copy('byte.cjs', 'imported.mjs');
      const allowed = ['--allow-addons', '--allow-worker', '--allow-fs-read=*'];
      await place.prints(RECEIVED, '--permission', ...allowed, 'imported.mjs');
      await place.refuses(
        /must allow what this package needs: /,
        '--permission',
        '--allow-fs-read=*',
        'imported.mjs',
      );
    },
  },
  ...(['bun', 'deno'] as const).map(
    (name): Row => ({
      name: `${name} ${versionOf(name)}, a sentence`,
      async run(place) {
        await place.install('npm', own);
        place.copy('byte.cjs', 'imported.mjs');
        place.runtime = [await programOf(name), ...(name === 'deno' ? ['run', '-A'] : [])];
        const sentence =
          /The runtime must be Node\.js; got (Bun|Deno) [\d.]+, .* Run the program with node\./;
        await place.refuses(sentence, 'imported.mjs');
      },
    }),
  ),
  {
    name: 'npm without optional dependencies, a sentence',
    quick: true,
    async run(place) {
      await place.install('npm', '--omit=optional', own);
      place.copy('byte.cjs', 'required.cjs');
      await place.refuses(/neither built here nor in .* npx networkdirect build/, 'required.cjs');
    },
  },
];

/** A module that uses all types, and one without those of Node.js, which `networkdirect/net` needs. */
const TYPES = `
import { openNetworkDirect, openNetworkDirect2 } from 'networkdirect';
import { openProvider } from 'networkdirect/winverbs';
import { openDeviceFile } from 'networkdirect/kernel-bridge';
import { Status } from 'networkdirect/kernel';
export { createServer } from 'networkdirect/net';
export async function run(): Promise<string[]> {
  using v1 = openNetworkDirect();
  using v2 = openNetworkDirect2();
  using winverbs = openProvider();
  using adapter = v1.openAdapter('127.0.0.1');
  await using connector = adapter.createConnector();
  return [v2, winverbs, connector, openDeviceFile, Status].map((value) => typeof value);
}
`;
const PLAIN = TYPES.replace(/^.*networkdirect\/net.*$/m, '');

/** Options of compilers for programs that also check the types of libraries. */
const compilations: readonly { readonly files: readonly string[]; readonly options: object }[] = [
  { files: ['types.mts', 'types.cts'], options: { lib: ['es2023', 'esnext.disposable'] } },
  {
    files: ['types.mts'],
    options: {
      ...{ module: 'preserve', moduleResolution: 'bundler', exactOptionalPropertyTypes: true },
      ...{ noUncheckedIndexedAccess: true, isolatedModules: true },
    },
  },
  { files: ['plain.mts', 'plain.cts'], options: { types: [] } },
];

const tool = (path: string): string => join(root, 'node_modules', path);

const contents: Row[] = [
  {
    name: 'types, in programs of each kind',
    quick: true,
    async run(place) {
      await place.install('npm', own);
      for (const kind of ['mts', 'cts']) {
        place.write(`types.${kind}`, TYPES);
        place.write(`plain.${kind}`, PLAIN);
      }
      for (const { files, options } of compilations) {
        const compilerOptions = {
          ...{ strict: true, noEmit: true, target: 'es2022', module: 'nodenext' },
          ...{ types: ['node'], typeRoots: [tool('@types')], ...options },
        };
        place.write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
        await place.succeeds(tool('typescript/bin/tsc'), '-p', 'tsconfig.json');
      }
    },
  },
  {
    name: 'publint, Are The Types Wrong',
    quick: true,
    async run(place) {
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
      const tarball = join(root, `build/package/${own}-${version}.tgz`);
      await place.succeeds(tool('publint/src/cli.js'), 'run', '--strict', tarball);
      await place.succeeds(tool('@arethetypeswrong/cli/dist/index.js'), tarball, '--profile', 'node16');
    },
  },
  {
    name: 'stack traces, licences',
    quick: true,
    async run(place) {
      await place.install('npm', own);
      place.copy('stack.cjs');
      const plain = await place.succeeds('stack.cjs');
      if (!/^ +at Provider\.openAdapter \(.*\/dist\/chunks\/provider-.*\.js:\d+:\d+\)$/m.test(plain))
        throw new Error(`A stack trace must name functions; got:\n${plain}`);
      const mapped = await place.succeeds('--enable-source-maps', 'stack.cjs');
      if (!/^ +at Provider\.openAdapter \(.*\/nd\/v1\/provider\.ts:\d+:\d+\)$/m.test(mapped))
        throw new Error(`With source maps it must name lines of TypeScript; got:\n${mapped}`);
      const installed = [own, ...readdirSync(join(place.folder, 'node_modules/@networkdirect'))];
      for (const name of installed) {
        const folder = join(place.folder, 'node_modules', name === own ? own : `@networkdirect/${name}`);
        const files = ['LICENSE', ...(name === own ? [] : ['THIRD-PARTY-NOTICES.md'])];
        for (const file of files)
          if (!existsSync(join(folder, file))) throw new Error(`${name} must contain ${file}.`);
      }
    },
  },
  {
    name: 'npx networkdirect build',
    async run(place) {
      await place.install('npm', '--omit=optional', own);
      await place.builds('npm', 'exec', '--no', '--', own, 'build');
      await runPrograms(place);
    },
  },
];

export const rows: readonly Row[] = [
  ...ofNode,
  byManager('pnpm', `pnpm ${versionOf('pnpm')}`),
  byManager('yarn', `Yarn ${versionOf('yarn')}, node_modules`),
  byManager('pnp', `Yarn ${versionOf('yarn')}, Plug'n'Play`),
  ...testRunners,
  ...bundlers,
  ...runtimes,
  ...contents,
];
