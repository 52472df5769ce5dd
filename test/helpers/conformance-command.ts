/** `nd conformance` as a process, for tests. */
import { type ChildProcess, type ChildProcessByStdio, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { programFile } from './programs.js';

/** The file of the command. */
export const command = programFile(new URL('../../nd/cli/nd.js', import.meta.url));

/** Result of the command. */
export interface Ended {
  readonly code: number | null;
  readonly lines: string[];
  readonly errors: string;
}

/** Options of a run: the command that starts a process on the host, and kernel options. */
export interface Place {
  readonly by: readonly string[];
  readonly kernel?: KernelOptionsInput;
}

/** A process that serves the other half. */
export interface Serving {
  readonly child: ChildProcess;
  /** Its printed instructions for starting the other side. */
  readonly peer: string;
  readonly token: string;
}

function start({ by, kernel }: Place, stdio: StdioOptions, ...args: string[]) {
  const [file = '', ...rest] = [...by, process.execPath, command, 'conformance', ...args];
  const env = kernel === undefined ? process.env : { ...process.env, ND_OPTIONS: JSON.stringify(kernel) };
  return spawn(file, rest, { stdio, env }) as ChildProcessByStdio<null, Readable, Readable>;
}

/** Starts a process that serves the other half; the caller must kill it. */
export async function serving(place: Place, ...args: string[]): Promise<Serving> {
  const child = start(place, ['ignore', 'ignore', 'pipe'], '--serve', ...args);
  const [line] = (await once(createInterface({ input: child.stderr }), 'line')) as [string];
  const [, token, peer] = /ND_CONFORMANCE_TOKEN=([0-9a-f]{32}) .* --peer (\S+)$/.exec(line) ?? [];
  if (token === undefined || peer === undefined) {
    child.kill();
    throw new Error(`Expected the command line for the other side; got ${line}`);
  }
  return { child, peer, token };
}

/** Runs the command to its end. */
export function conformance(...args: string[]): Promise<Ended> {
  return conformanceAt({ by: [] }, ...args);
}

/** Runs the command to its end, on another host. */
export async function conformanceAt(place: Place, ...args: string[]): Promise<Ended> {
  const child = start(place, ['ignore', 'pipe', 'pipe'], ...args);
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
