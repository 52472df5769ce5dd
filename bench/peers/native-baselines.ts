/** The baselines in C and C++: the machine and its OS without any library, and parts of the engine in isolation. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { isInstalled, type Placement, Program, placed } from '../processes.js';
import type { Sample } from '../samples.js';

export interface NativeJob {
  /** A file of bench/native, without its extension. */
  readonly program:
    | 'line'
    | 'eventfd'
    | 'vm'
    | 'copy'
    | 'copies'
    | 'udp'
    | 'icrc'
    | 'queue_pairs'
    | 'verbs'
    | 'delayed_link';
  readonly args: readonly string[];
}

/** Paths are relative to dist/bench/peers. */
const sources = fileURLToPath(new URL('../../../bench/native', import.meta.url));
const binaries = fileURLToPath(new URL('../native', import.meta.url));

/** The output of a program. */
const answerSchema = z.object({
  median: z.number().positive().optional(),
  mean: z.number().positive().optional(),
  /** Bytes per second over the whole measurement. */
  bandwidth: z.number().positive().optional(),
});

/** Why each requested program cannot be built; undefined if it was built. */
const built = new Map<string, string | undefined>();

export function missingNative({ program }: Pick<NativeJob, 'program'>): string | undefined {
  if (!built.has(program)) built.set(program, build(program));
  return built.get(program);
}

function build(program: string): string | undefined {
  if (!isInstalled('make')) return 'make is not installed';
  try {
    execFileSync('make', ['-s', '-C', sources, `BUILD=${binaries}`, program], {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return undefined;
  } catch (error) {
    return `make cannot build ${program}: ${(error as { stderr?: string }).stderr?.trim() ?? String(error)}`;
  }
}

export const nativeProgram = (program: NativeJob['program']): string => `${binaries}/${program}`;

export async function measureNative({ program, args }: NativeJob, placement: Placement): Promise<Sample> {
  const { cpus } = placement;
  const where = cpus === undefined ? ['--no-pin'] : ['--cpus', cpus.join(',')];
  const run = new Program(nativeProgram(program), [...args, ...where], placed(placement));
  const { median, mean, bandwidth } = answerSchema.parse(JSON.parse(await run.rest()));
  const value = mean ?? bandwidth ?? median;
  if (value === undefined) throw new Error(`${program} did not print a figure.`);
  return { mean: value, ...(median === undefined ? {} : { median }) };
}
