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

/** Runs the command to its end. */
export async function conformance(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [command, 'conformance', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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
