/** Third-party programs from npm that install or run packages. Each has its own folder in `.cache/install`, which is kept. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
const cache = join(root, '.cache/install');
const { arch } = process;
/** Platform names with a C library, as npm packages use them. scripts/check-musl.sh tests musl. */
const glibc = arch === 'arm64' ? 'aarch64' : arch;

/** The version of Node.js with long-term support, used by rows that do not name another one. */
export const SUPPORTED = '24.22.1';

/** Each program, with its package and its path there. */
const PROGRAMS: Readonly<Record<'pnpm' | 'yarn' | 'bun' | 'deno', readonly [string, string]>> = {
  pnpm: [`@pnpm/exe.linux-${arch}@12.21.0`, 'pnpm'],
  yarn: ['@yarnpkg/cli-dist@4.18.1', 'bin/yarn.js'],
  bun: [`@oven/bun-linux-${glibc}@1.4.5`, 'bin/bun'],
  deno: [`@deno/linux-${arch}-glibc@2.9.6`, 'deno'],
};

/** Packages that are dependencies of a program. */
export const packages = {
  esbuild: 'esbuild@0.28.2',
  jest: 'jest@30.5.2',
  'ts-jest': 'ts-jest@29.4.15',
  typescript: 'typescript@6.0.3',
  '@types/node': '@types/node@20.19.43',
  vitest: 'vitest@5.1.2',
  webpack: 'webpack@5.113.0',
} as const;

const installing = new Map<string, Promise<void>>();

async function install(folder: string, name: string): Promise<void> {
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  writeFileSync(join(fresh, 'package.json'), '{ "private": true }');
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await promisify(execFile)('npm', ['install', ...flags, name], { cwd: fresh });
  renameSync(fresh, folder);
}

/** The path of a file in the package `name@version`. The first call installs the package. */
async function fileOf(name: string, path: string): Promise<string> {
  const folder = join(cache, name.replaceAll('/', '+'));
  if (!existsSync(folder)) {
    if (!installing.has(folder)) installing.set(folder, install(folder, name));
    await installing.get(folder);
  }
  return join(folder, 'node_modules', name.slice(0, name.lastIndexOf('@')), path);
}

/** The executable of a version of Node.js. */
export const nodeOf = (version: string): Promise<string> =>
  fileOf(`node-linux-${arch}@${version}`, 'bin/node');

export const programOf = (name: keyof typeof PROGRAMS): Promise<string> => fileOf(...PROGRAMS[name]);

/** The version of a program, for the names of rows. */
export const versionOf = (name: keyof typeof PROGRAMS): string => PROGRAMS[name][0].split('@').at(-1)!;
