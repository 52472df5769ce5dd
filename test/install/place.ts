/** An empty folder, into which a row installs packages, and the commands that it runs there. */
import { spawn } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { inNewNetwork, namespaceProblem } from '../helpers/network-namespace.js';
import { nodeOf, programOf, root } from './tools.js';

/** The time limit of one command. All rows together should take minutes. */
const LONGEST_MS = 120_000;
/** The time limit of compiling the addons. */
const LONGEST_BUILD_MS = 900_000;
/** The part of a failed command's output that is shown: the number of last lines, and of characters of each. */
const SHOWN = { lines: 20, characters: 300 };

/** How packages get into the folder. */
export const managers = ['npm', 'pnpm', 'yarn', 'pnp'] as const;
export type Manager = (typeof managers)[number];

interface Ended {
  readonly status: number | string;
  readonly stdout: string;
  readonly output: string;
}

/** The path of a program found on the PATH. */
function onPath(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      return realpathSync(join(folder, name));
    } catch {
      // The number of the next folder.
    }
  }
  return undefined;
}

export class Place {
  /** The folder for packages, and the only folder on the PATH, which has node, npm and a shell but no compiler. */
  readonly folder: string;
  readonly #bin: string;
  readonly #registry: string;
  readonly #around: string;
  readonly node: string;
  /** The runtime of programs; undefined: Node.js. */
  runtime: readonly string[] | undefined;
  #manager: Manager = 'npm';

  private constructor(registry: string, node: string) {
    this.#registry = registry;
    this.node = node;
    this.#around = mkdtempSync(join(tmpdir(), 'nd-install-'));
    this.folder = join(this.#around, 'app');
    this.#bin = join(this.#around, 'bin');
    mkdirSync(this.folder);
    mkdirSync(this.#bin);
    symlinkSync(node, join(this.#bin, 'node'));
    for (const name of ['npm', 'sh']) symlinkSync(onPath(name)!, join(this.#bin, name));
    this.write('package.json', '{ "private": true }');
  }

  /** @param version - Version of Node.js */
  static async make(registry: string, version: string): Promise<Place> {
    return new Place(registry, await nodeOf(version));
  }

  remove(): void {
    rmSync(this.#around, { recursive: true });
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** Copies programs of this folder's `programs`. */
  copy(...names: readonly string[]): void {
    for (const name of names)
      copyFileSync(join(root, 'test/install/programs', name), join(this.folder, basename(name)));
  }

  /** A folder next to the one that contains the packages. */
  elsewhere(): string {
    const folder = join(this.#around, 'elsewhere');
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** Installs packages, and checks that this exits with status 0. */
  async install(manager: Manager, ...names: readonly string[]): Promise<void> {
    this.#manager = manager;
    const installs: Record<Manager, () => Promise<string[]>> = {
      npm: async () => ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'],
      pnpm: async () => [
        ...[await programOf('pnpm'), 'add', `--registry=${this.#registry}`],
        `--store-dir=${join(this.#around, 'store')}`,
      ],
      yarn: async () => [this.node, await programOf('yarn'), 'add'],
      pnp: async () => [this.node, await programOf('yarn'), 'add'],
    };
    const ended = await this.#run([...(await installs[manager]()), ...names], {
      npm_config_registry: this.#registry,
      YARN_NPM_REGISTRY_SERVER: this.#registry,
      YARN_UNSAFE_HTTP_WHITELIST: '*',
      YARN_NODE_LINKER: manager === 'pnp' ? 'pnp' : 'node-modules',
    });
    check(ended, 0, `${manager} install ${names.join(' ')}`);
  }

  /** Runs a program of Node.js without a network except the loopback interface, and checks that it prints `output` and exits with 0. */
  async prints(text: string, ...args: readonly string[]): Promise<void> {
    const { ended, said } = await this.#program(args);
    check(ended, 0, said);
    if (ended.stdout.trimEnd() !== text)
      throw new Error(`${said} printed ${JSON.stringify(ended.stdout)}, not ${JSON.stringify(text)}`);
  }

  /** Like {@link prints}, for a program that must exit with 0 and may print anything. Returns its standard output. */
  async succeeds(...args: readonly string[]): Promise<string> {
    const { ended, said } = await this.#program(args);
    check(ended, 0, said);
    return ended.stdout;
  }

  /** Like {@link prints}, for a program that must exit with 1. */
  async refuses(pattern: RegExp, ...args: readonly string[]): Promise<void> {
    const { ended, said } = await this.#program(args);
    check(ended, 1, said);
    if (!pattern.test(ended.output))
      throw new Error(`${said} did not print ${pattern}:\n${tail(ended.output)}`);
  }

  /** Runs a command such as a compiler with this process's PATH, and checks that it exits with status 0. */
  async builds(...command: readonly string[]): Promise<void> {
    const path = `${this.#bin}${delimiter}${process.env.PATH}`;
    const env = { PATH: path, npm_config_registry: this.#registry };
    check(await this.#run(command, env, LONGEST_BUILD_MS), 0, command.join(' '));
  }

  async #program(args: readonly string[]): Promise<{ ended: Ended; said: string }> {
    const node = this.#manager === 'pnp' ? [this.node, await programOf('yarn'), 'node'] : [this.node];
    const command = [...(this.runtime ?? node), ...args];
    const apart = namespaceProblem() === undefined ? inNewNetwork(...command) : command;
    const ended = await this.#run(apart, { PATH: `${this.#bin}${delimiter}${process.env.PATH}` });
    return { ended, said: args.map((one) => basename(one)).join(' ') };
  }

  #run(command: readonly string[], more: NodeJS.ProcessEnv, longestMs = LONGEST_MS): Promise<Ended> {
    const [file, ...args] = command;
    const { NODE_OPTIONS: _, ND_OPTIONS: __, ...env } = process.env;
    const variables = {
      ...{ ...env, PATH: this.#bin, YARN_ENABLE_TELEMETRY: 'false' },
      // The user's cache may contain an earlier build of this version.
      YARN_GLOBAL_FOLDER: join(this.#around, 'yarn'),
    };
    // Output goes to files. If an error ends Node.js, it loses the end of a long line in a pipe, and bundles are one line.
    const [out, error] = ['stdout', 'stderr'].map((name) => join(this.#around, name)) as [string, string];
    const files = [openSync(out, 'w'), openSync(error, 'w')];
    return new Promise((resolve, reject) => {
      const child = spawn(file!, args, {
        cwd: this.folder,
        env: { ...variables, ...more },
        stdio: ['ignore', ...files],
        timeout: longestMs,
        killSignal: 'SIGKILL',
      });
      for (const one of files) closeSync(one);
      child.on('error', reject);
      child.on('close', (code, signal) => {
        const stdout = readFileSync(out, 'utf8');
        resolve({ status: code ?? signal!, stdout, output: stdout + readFileSync(error, 'utf8') });
      });
    });
  }
}

function tail(text: string): string {
  const lines = text.trimEnd().split('\n').slice(-SHOWN.lines);
  return lines.map((line) => line.slice(0, SHOWN.characters)).join('\n');
}

function check({ status, output }: Ended, expected: number, what: string): void {
  if (status !== expected) throw new Error(`${what} ended with ${status}, not ${expected}:\n${tail(output)}`);
}
