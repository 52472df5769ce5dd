/** `networkdirect build`: compiles the native addons on this machine, where there is no package that has them prebuilt. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { Command } from 'commander';

/** The package's folder, from `dist/examples/`. */
const root = fileURLToPath(new URL('../../', import.meta.url));
/** The C++ sources, their headers and the script that compiles them. A clone has them as they are. */
const archive = join(root, 'native.tar.br');

/** Runs a program. @throws Error if it fails; it has said why. */
function run(program: string, parameters: string[], input?: Buffer): void {
  const { error, status } = spawnSync(program, parameters, {
    stdio: [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'],
    ...(input === undefined ? {} : { input }),
  });
  if (error !== undefined) throw new Error(`${program} cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`${program} has failed with exit code ${status}.`);
}

function build(): void {
  const script = 'scripts/build-native.mjs';
  const out = join(root, 'build/Release');
  if (!existsSync(archive)) {
    run(process.execPath, [join(root, script), '--out', out]);
    return;
  }
  const source = join(root, 'build/source');
  try {
    mkdirSync(source, { recursive: true });
    run('tar', ['-x', '-C', source], brotliDecompressSync(readFileSync(archive)));
    run(process.execPath, [join(source, script), '--out', out]);
  } finally {
    rmSync(source, { recursive: true, force: true });
    rmSync(join(out, 'objects'), { recursive: true, force: true });
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
