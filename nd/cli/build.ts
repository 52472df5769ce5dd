/** `networkdirect build`: compiles the native addons on this machine, where there is no package that has them prebuilt. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { Command } from 'commander';
import { Interrupted, onInterrupt } from './interrupts.js';

/** The package's folder, from `dist/nd/cli/`. */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const script = 'scripts/build-native.mjs';
/** The package with the C++ sources, their headers and the script that compiles them. A clone has them as they are. */
const sources = '@networkdirect/source';
const archive = 'native.tar.br';

/** Whether a program and those that it starts can be ended together: as a process group. */
const GROUPS = process.platform !== 'win32';

/** Runs a program. @throws Interrupted; Error if it fails, and it has said why. */
async function run(program: string, parameters: string[], input?: Buffer): Promise<void> {
  const child = spawn(program, parameters, {
    stdio: [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'],
    detached: GROUPS,
  });
  let interrupted = false;
  using _ = onInterrupt(() => {
    interrupted = true;
    if (!GROUPS || child.pid === undefined) child.kill();
    // While its output is open there is one process of the group at least, unless it has just ended.
    else if (child.exitCode === null) process.kill(-child.pid);
  });
  // A program that ends early says why; that it has not read everything says nothing.
  child.stdin?.on('error', () => {}).end(input);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', ({ message }) => reject(new Error(`${program} cannot be run: ${message}`)));
    child.once('close', resolve);
  });
  if (interrupted) throw new Interrupted();
  if (status !== 0) throw new Error(`${program} has failed with exit code ${status}.`);
}

/** What package.json of the packed package has: its version, and the digest of its sources. */
interface Packed {
  readonly version: string;
  /** As npm writes it: `sha512-` and base64. */
  readonly sourcesIntegrity: string;
}

const readPackage = (file: string): Packed => JSON.parse(readFileSync(file, 'utf8')) as Packed;

/** The archive of the installed package of the sources; undefined: none is installed, or one of another version. */
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

/** The archive of the package that npm fetches to an empty folder. */
async function fetchSources(version: string, folder: string): Promise<string> {
  const fetched = ['pack', `${sources}@${version}`, '--pack-destination', folder, '--loglevel=error'];
  // npx says where npm is; other package managers have no such command.
  const [, npm] = /^(.*)np[mx]-cli\.js$/.exec(process.env.npm_execpath ?? '') ?? [];
  if (npm === undefined) await run('npm', fetched);
  else await run(process.execPath, [`${npm}npm-cli.js`, ...fetched]);
  const [tarball] = readdirSync(folder);
  if (tarball === undefined) throw new Error(`npm has fetched nothing of ${sources}@${version}.`);
  await run('tar', ['-x', '-z', '-f', join(folder, tarball), '-C', folder, `package/${archive}`]);
  return join(folder, 'package', archive);
}

/** The archive's bytes. @throws Error if they are not those that the package was packed with. */
function readSources(file: string, { version, sourcesIntegrity }: Packed): Buffer {
  const bytes = readFileSync(file);
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  if (integrity === sourcesIntegrity) return bytes;
  throw new Error(
    `${file} must be ${archive} of ${sources}@${version} with the digest ${sourcesIntegrity}; got ${integrity}. Remove it, and check the registry that it came from.`,
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
    // A run that was killed may have left files.
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
    .description('compile the native addons on this machine; takes a C++17 compiler')
    .action(async () => {
      try {
        await build();
      } catch (error) {
        fail(error);
      }
    });
}
