/** The processes of an attack: starting them on a build of the addon, sending requests, and ending them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { HANG_MS } from '../helpers/within.js';

/** Builds of the native code. */
export const builds = ['plain', 'asan'] as const;
export type Build = (typeof builds)[number];

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The environment of a process for a build, as in scripts/asan-addon.sh. */
export function environmentOf(build: Build): Record<string, string> {
  if (build === 'plain') return {};
  const [compiler = 'g++', ...words] = (process.env.CXX ?? 'g++').split(' ');
  const library = (name: string): string => {
    const { stdout } = spawnSync(compiler, [...words, `-print-file-name=${name}`], { encoding: 'utf8' });
    return stdout.trim();
  };
  return {
    NETWORKDIRECT_HCA_ADDON: `${root}test/native/build/asan/networkdirect_hca.node`,
    LD_PRELOAD: `${library('libasan.so')} ${library('libstdc++.so.6')}`,
    ASAN_OPTIONS: 'detect_leaks=0:handle_segv=1:abort_on_error=1',
    UBSAN_OPTIONS: 'print_stacktrace=1',
  };
}

export interface Start {
  readonly build: Build;
  readonly args: readonly (string | number)[];
  readonly options?: KernelOptionsInput;
  /** The command that starts the process, such as `nsenter`. */
  readonly by?: readonly string[];
}

const alive = new Set<Program>();

/** A program of this folder in a separate process. Its replies arrive in the order of the requests. */
export class Program {
  readonly exited: Promise<string>;
  /** The end of its standard error. */
  errors = '';
  over: string | undefined;
  readonly #child: ChildProcess;
  readonly #waiting: { resolve: (answer: unknown) => void; reject: (error: Error) => void }[] = [];
  #answers: unknown[] = [];

  constructor(
    readonly name: string,
    { build, args, options, by = [] }: Start,
  ) {
    const program = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
    const command = [...by, process.execPath, '--enable-source-maps', program, ...args.map(String)];
    const environment = { ...process.env, ...environmentOf(build) };
    if (options !== undefined) {
      environment.ND_OPTIONS = JSON.stringify({ startTimeoutMs: HANG_MS, ...options });
    }
    this.#child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: environment,
    });
    alive.add(this);
    this.#child.stderr!.on('data', (chunk) => {
      this.errors = `${this.errors}${chunk}`.slice(-20_000);
    });
    this.#child.on('message', (answer) => {
      const next = this.#waiting.shift();
      if (next !== undefined) next.resolve(answer);
      else this.#answers.push(answer);
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        alive.delete(this);
        this.over = signal ?? `exit code ${code}`;
        for (const { reject } of this.#waiting.splice(0)) reject(this.#ended());
        resolve(this.over);
      });
    });
  }

  #ended(): Error {
    return new Error(`${this.name} has ended (${this.over}). ${this.errors.trim()}`);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Returns the next message. */
  async next<T>(what: string): Promise<T> {
    if (this.#answers.length > 0) return this.#answers.shift() as T;
    if (this.over !== undefined) throw this.#ended();
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#waiting.push({ resolve: resolve as (answer: unknown) => void, reject });
        timer = setTimeout(() => {
          reject(new Error(`${this.name} hangs: no reply to '${what}' in ${HANG_MS / 1000} s`));
        }, HANG_MS);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the next message, without a time limit. */
  async last<T>(): Promise<T> {
    if (this.#answers.length > 0) return this.#answers.shift() as T;
    if (this.over !== undefined) throw this.#ended();
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ resolve: resolve as (answer: unknown) => void, reject });
    });
  }

  ask<T>(question: string | object): Promise<T> {
    if (this.over !== undefined) return Promise.reject(this.#ended());
    this.#child.send(question as string);
    return this.next<T>(typeof question === 'string' ? question : Object.keys(question).join(', '));
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#child.kill(signal);
  }
}

/** Ends the processes left by an attack. */
export async function endAll(): Promise<void> {
  for (const program of alive) program.kill();
  await Promise.all([...alive].map(({ exited }) => exited));
}
