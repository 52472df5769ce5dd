/** The baselines in C and C++: what the machine and its system can do without any library. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type Placement, Program } from '../processes.js';
import type { Sample } from '../statistics.js';

export interface NativeJob {
  readonly program: keyof typeof PROGRAMS;
  readonly args: readonly string[];
}

/** From dist/bench/peers to the package. */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = join(root, 'bench/native');
const binaries = join(root, 'dist/bench/native');
const engine = join(root, 'kernel-bridge/hca/engine');

/** What each is made of. */
const PROGRAMS = {
  line: { compiler: 'cc', files: [join(sources, 'line.c')] },
  eventfd: { compiler: 'cc', files: [join(sources, 'eventfd.c')] },
  vm: { compiler: 'cc', files: [join(sources, 'vm.c')] },
  copy: { compiler: 'cc', files: [join(sources, 'copy.c')] },
  udp: { compiler: 'cc', files: [join(sources, 'udp.c')] },
} as const;

/** What a program prints; those that copy tell bytes per second. */
const answerSchema = z.object({
  median: z.number().positive().optional(),
  mean: z.number().positive().optional(),
  bandwidth: z.number().positive().optional(),
});

export function missingNative({ program }: NativeJob): string | undefined {
  const { compiler, files } = PROGRAMS[program];
  if (!files.every((file) => existsSync(file))) return `bench/native has no ${program} in this version`;
  try {
    build(program);
    return undefined;
  } catch (error) {
    return `${compiler} cannot build ${program}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

export async function measureNative({ program, args }: NativeJob, { cpus }: Placement): Promise<Sample> {
  const placed = cpus === undefined ? ['--no-pin'] : ['--cpus', cpus.join(',')];
  const run = new Program(build(program), [...args, ...placed]);
  const { median, mean, bandwidth } = answerSchema.parse(JSON.parse(await run.rest()));
  const value = mean ?? bandwidth ?? median;
  if (value === undefined) throw new Error(`${program} told no figure.`);
  return { mean: value, ...(median === undefined ? {} : { median }) };
}

/** The program's path; it is compiled if a source is newer. */
function build(program: NativeJob['program']): string {
  const { compiler, files } = PROGRAMS[program];
  const binary = join(binaries, program);
  const headers = [sources, engine].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.h'))
      .map((name) => join(folder, name)),
  );
  const newest = Math.max(...[...files, ...headers].map((file) => statSync(file).mtimeMs));
  if (existsSync(binary) && statSync(binary).mtimeMs >= newest) return binary;
  mkdirSync(binaries, { recursive: true });
  const standard = compiler === 'cc' ? [] : ['-std=c++17', `-I${join(engine, '..')}`];
  execFileSync(compiler, ['-O2', '-Wall', '-Wextra', ...standard, '-o', binary, ...files, '-pthread'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return binary;
}
