/**
 * Finds the native addons: those built from this source tree (`build/Release`, for Windows `build/win32-x64`),
 * otherwise those of this platform's package, an optional dependency such as `@networkdirect/linux-x64-gnu`.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { adviceForOptions } from './permissions.js';
import { checkSurroundings } from './surroundings.js';

const require = createRequire(import.meta.url);

/** The folder of locally built addons, relative to the compiled file in `dist/kernel-bridge/hca/`. */
const builtHere = `../../../build/${process.platform === 'win32' ? 'win32-x64' : 'Release'}`;

/** Number of bytes of an executable that include the name of its program interpreter. */
const HEAD_BYTES = 4096;

/** The C library of this Node.js: its executable contains the name of the dynamic linker. */
function cLibrary(): 'gnu' | 'musl' {
  const head = Buffer.alloc(HEAD_BYTES);
  try {
    const file = openSync(process.execPath, 'r');
    try {
      readSync(file, head, 0, HEAD_BYTES, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // The executable cannot be read; most hosts have glibc.
  }
  return head.includes('/ld-musl-') ? 'musl' : 'gnu';
}

/** The package with the addons for this platform; it exists for some platforms only. */
function platformPackage(): string {
  const libc = process.platform === 'linux' ? `-${cLibrary()}` : '';
  return `@networkdirect/${process.platform}-${process.arch}${libc}`;
}

/** Whether `require` did not find the addon. It cannot be another module, because an addon requires none. */
const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND';

/** The dynamic linker's message for EMFILE and ENFILE. */
const NO_DESCRIPTOR = /Too many open files/;

function adviceFor(why: string, platform: string): string {
  if (NO_DESCRIPTOR.test(why)) {
    return 'This process has no file descriptor left; close some, or raise its limit (RLIMIT_NOFILE, ulimit -n).';
  }
  const install = `Install it with its optional dependencies, which have it prebuilt for some platforms (here ${platform})`;
  if (process.platform === 'win32') {
    if (process.arch === 'x64') return `${install}.`;
    return `It exists for x64 only: install Node.js for x64, which Windows on ${process.arch} can run.`;
  }
  return `${install}, or build it with a C++17 compiler: npx networkdirect build`;
}

/**
 * Loads an addon. An environment variable with its file name has precedence.
 *
 * @param name - As in the file's name, `networkdirect_hca.node`.
 * @throws Error with the reason and the cure; `code` is `'EMFILE'` if no file descriptor is left.
 */
export function loadAddonFile(name: 'hca' | 'verbs'): unknown {
  checkSurroundings();
  const file = `networkdirect_${name}.node`;
  const chosen = process.env[`NETWORKDIRECT_${name.toUpperCase()}_ADDON`];
  const built = chosen ?? `${builtHere}/${file}`;
  let platform: string | undefined;
  try {
    try {
      return require(built);
    } catch (error) {
      if (chosen !== undefined || !isMissing(error)) throw error;
      platform = platformPackage();
      return require(`${platform}/${file}`);
    }
  } catch (cause) {
    platform ??= platformPackage();
    const text = cause instanceof Error ? cause.message.split('\n')[0]! : String(cause);
    const why = chosen === undefined && isMissing(cause) ? `neither built here nor in ${platform}` : text;
    const what = name === 'hca' ? "The software HCA's native addon" : 'The native addon for real HCAs';
    const { code } = cause as NodeJS.ErrnoException;
    const advice = adviceForOptions(code) ?? adviceFor(why, platform);
    const error = new Error(`${what} cannot be loaded (${why.replace(/\.$/, '')}). ${advice}`, { cause });
    throw NO_DESCRIPTOR.test(why) ? Object.assign(error, { code: 'EMFILE' }) : error;
  }
}
