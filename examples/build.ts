/** `networkdirect build`: compiles the native addons on this machine, where there is no package that has them prebuilt. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { Command } from 'commander';

/** The package's folder, from `dist/examples/`. */
const root = fileURLToPath(new URL('../../', import.meta.url));
const script = 'scripts/build-native.mjs';
/** The package with the C++ sources, their headers and the script that compiles them. A clone has them as they are. */
const sources = '@networkdirect/source';
const archive = 'native.tar.br';

/** Runs a program. @throws Error if it fails; it has said why. */
function run(program: string, parameters: string[], input?: Buffer): void {
  const { error, status } = spawnSync(program, parameters, {
    stdio: [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'],
    ...(input === undefined ? {} : { input }),
  });
  if (error !== undefined) throw new Error(`${program} cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`${program} has failed with exit code ${status}.`);
}

/** The archive of the sources: that of the installed package, or of one that npm fetches to a folder. */
function findSources(folder: string): string {
  const require = createRequire(import.meta.url);
  try {
    return require.resolve(`${sources}/${archive}`);
  } catch {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const fetched = ['pack', `${sources}@${version}`, '--pack-destination', folder, '--loglevel=error'];
    // npx tells where npm is; other package managers have no such command.
    const [, npm] = /^(.*)np[mx]-cli\.js$/.exec(process.env.npm_execpath ?? '') ?? [];
    if (npm === undefined) run('npm', fetched);
    else run(process.execPath, [`${npm}npm-cli.js`, ...fetched]);
    const [tarball = ''] = readdirSync(folder);
    run('tar', ['-x', '-z', '-f', join(folder, tarball), '-C', folder]);
    return join(folder, 'package', archive);
  }
}

function build(): void {
  const out = join(root, 'build/Release');
  if (existsSync(join(root, script))) {
    run(process.execPath, [join(root, script), '--out', out]);
    return;
  }
  const source = join(root, 'build/source');
  const fetched = join(root, 'build/fetched');
  try {
    for (const folder of [source, fetched]) mkdirSync(folder, { recursive: true });
    run('tar', ['-x', '-C', source], brotliDecompressSync(readFileSync(findSources(fetched))));
    run(process.execPath, [join(source, script), '--out', out]);
  } finally {
    for (const folder of [source, fetched, join(out, 'objects')])
      rmSync(folder, { recursive: true, force: true });
  }
}

export function buildCommand(fail: (error: unknown) => void): Command {
  return new Command('build')
    .description('compile the native addons on this machine; takes a C++17 compiler')
    .action(() => {
      try {
        build();
      } catch (error) {
        fail(error);
      }
    });
}
