/** `networkdirect build`: compiles the native addons on this machine if no package has them prebuilt. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { Command } from 'commander';
import { Interrupted, onInterrupt } from './interrupts.js';

/** The package folder, from `dist/nd/cli/`. */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const script = 'scripts/build-native.mjs';
/** The package with the C++ sources, their headers and the script that compiles them. A clone has these files in place. */
const sources = '@networkdirect/source';
const archive = 'native.tar.br';

/** Whether a program and its children can be ended together, as a process group. */
const GROUPS = process.platform !== 'win32';

/** Runs a program. @throws Interrupted; Error if it fails after printing the reason */
async function run(program: string, parameters: string[], input?: Buffer): Promise<void> {
  const child = spawn(program, parameters, {
    stdio: [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'],
    detached: GROUPS,
  });
  let interrupted = false;
  using _ = onInterrupt(() => {
    interrupted = true;
    if (!GROUPS || child.pid === undefined) child.kill();
    // While its output is open, at least one process of the group exists, unless it has just exited.
    else if (child.exitCode === null) process.kill(-child.pid);
  });
  // A program that exits early prints the reason. The error of its standard input adds nothing.
  child.stdin?.on('error', () => {}).end(input);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', ({ message }) => reject(new Error(`Cannot run ${program}: ${message}`)));
    child.once('close', resolve);
  });
  if (interrupted) throw new Interrupted();
  if (status !== 0) throw new Error(`${program} failed with exit code ${status}.`);
}

/** The fields of the packed package's package.json: its version and the digest of its sources. */
interface Packed {
  readonly version: string;
  /** Digest in npm's format: `sha512-` and base64. */
  readonly sourcesIntegrity: string;
}

const readPackage = (file: string): Packed => JSON.parse(readFileSync(file, 'utf8')) as Packed;

/** The archive of the installed source package; undefined if none of this version is installed. */
function installedSources(version: string): string | undefined {
  const require = createRequire(import.meta.url);
  let manifest: string;
  try {
    manifest = require.resolve(`${sources}/package.json`);
  } catch {
    return undefined;
  }
  return readPackage(manifest).version === version ? join(dirname(manifest), archive) : undefined;
}

/** Downloads the package into an empty folder with npm, and returns the archive. */
async function fetchSources(version: string, folder: string): Promise<string> {
  const fetched = ['pack', `${sources}@${version}`, '--pack-destination', folder, '--loglevel=error'];
  // npx reports where npm is; other package managers do not.
  const [, npm] = /^(.*)np[mx]-cli\.js$/.exec(process.env.npm_execpath ?? '') ?? [];
  if (npm === undefined) await run('npm', fetched);
  else await run(process.execPath, [`${npm}npm-cli.js`, ...fetched]);
  const [tarball] = readdirSync(folder);
  if (tarball === undefined) throw new Error(`npm did not download ${sources}@${version}.`);
  await run('tar', ['-x', '-z', '-f', join(folder, tarball), '-C', folder, `package/${archive}`]);
  return join(folder, 'package', archive);
}

/** Reads the archive. @throws Error if its digest differs from the one that the package was packed with */
function readSources(file: string, { version, sourcesIntegrity }: Packed): Buffer {
  const bytes = readFileSync(file);
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  if (integrity === sourcesIntegrity) return bytes;
  throw new Error(
    `${file} must be ${archive} of ${sources}@${version} with the digest ${sourcesIntegrity}; got ${integrity}. Remove it and check the registry it came from.`,
  );
}

async function build(): Promise<void> {
  const out = join(root, 'build/Release');
  if (existsSync(join(root, script))) {
    await run(process.execPath, [join(root, script), '--out', out]);
    return;
  }
  const source = join(root, 'build/source');
  const fetched = join(root, 'build/fetched');
  const left = [source, fetched, join(out, 'objects')];
  const clear = (): void => {
    for (const folder of left) rmSync(folder, { recursive: true, force: true });
  };
  const packed = readPackage(join(root, 'package.json'));
  try {
    // A killed run may have left files.
    clear();
    for (const folder of [source, fetched]) mkdirSync(folder, { recursive: true });
    const { version } = packed;
    const bytes = readSources(installedSources(version) ?? (await fetchSources(version, fetched)), packed);
    await run('tar', ['-x', '-C', source], brotliDecompressSync(bytes));
    await run(process.execPath, [join(source, script), '--out', out]);
  } finally {
    clear();
  }
}

export function buildCommand(fail: (error: unknown) => void): Command {
  return new Command('build')
    .description('compile the native addons on this machine (requires a C++17 compiler)')
    .action(async () => {
      try {
        await build();
      } catch (error) {
        fail(error);
      }
    });
}
