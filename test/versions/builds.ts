/** Builds other versions of this package, for tests of two versions on one host. The builds remain in `build/versions` for the next run. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECT } from '../../kernel-bridge/hca/index.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The last commit without a common dialect number. It uses frames of version 3, a hello of version 5, and names without a number. */
const OLDER = '6f47a42';

/** The file that defines the dialect. */
const definitions: ReadonlyMap<string, string> = new Map([
  ['kernel-bridge/hca/engine/schema/numbers.h', 'kDialect = '],
  ['kernel-bridge/schema/generated/numbers.ts', 'DIALECT = '],
]);

/** One build of this package. */
export interface OtherBuild {
  readonly name: 'older' | 'next';
  /** The file of a compiled program, by its source's path without `.ts`. */
  program(path: string): string;
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: root, maxBuffer: 2 ** 30 });
}

function run(folder: string, script: string): void {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`npm run ${script} has failed in ${folder}:\n${stdout}\n${stderr}`);
}

/** The files of a commit. */
function unpackOlder(folder: string): void {
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', OLDER) });
}

/** Replaces the dialect by the next number in the file that defines it. */
function changed(file: string, bytes: Buffer): Buffer {
  const before = definitions.get(file);
  if (before === undefined) return bytes;
  const text = bytes.toString();
  if (!text.includes(`${before}${DIALECT};`))
    throw new Error(`${file} does not define '${before}${DIALECT};'.`);
  return Buffer.from(text.replace(`${before}${DIALECT};`, `${before}${DIALECT + 1};`));
}

/** The files of this tree with the next dialect. Unchanged files keep their times, and so do their build results. */
function copyNext(folder: string): void {
  const files = git('ls-files', '-z', '--cached', '--others', '--exclude-standard').toString().split('\0');
  for (const file of files.filter((name) => name !== '' && existsSync(join(root, name)))) {
    const to = join(folder, file);
    const bytes = changed(file, readFileSync(join(root, file)));
    if (existsSync(to) && readFileSync(to).equals(bytes)) continue;
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, bytes);
  }
}

/** Builds the version, or only the parts that have changed since an earlier run. */
export function otherBuild(name: OtherBuild['name']): OtherBuild {
  const folder = join(root, 'build/versions', name);
  const stamp = join(folder, 'built-of');
  if (name === 'next' || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== OLDER) {
    console.log(`building the ${name} version; the first time takes some minutes …`);
    mkdirSync(folder, { recursive: true });
    if (name === 'older') unpackOlder(folder);
    else copyNext(folder);
    if (!existsSync(join(folder, 'node_modules')))
      symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    run(folder, 'build:native');
    run(folder, 'build');
    if (name === 'older') writeFileSync(stamp, OLDER);
  }
  return { name, program: (path) => join(folder, 'dist', `${path}.js`) };
}
