/** `nd conformance` as a process, for tests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The file of the command. */
export const command = fileURLToPath(new URL('../../examples/nd.js', import.meta.url));

/** How the command has ended. */
export interface Ended {
  readonly code: number | null;
  readonly lines: string[];
  readonly errors: string;
}

/** Where the command runs: what starts a process there. */
export interface Place {
  readonly by: readonly string[];
}

/** Runs the command to its end. */
export function conformance(...args: string[]): Promise<Ended> {
  return conformanceAt({ by: [] }, ...args);
}

/** Runs the command to its end, somewhere else. */
export async function conformanceAt({ by }: Place, ...args: string[]): Promise<Ended> {
  const [file = '', ...rest] = [...by, process.execPath, command, 'conformance', ...args];
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines: output.trimEnd().split('\n'), errors };
}
