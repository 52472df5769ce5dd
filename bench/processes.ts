/** The measured processes: starts each on a separate CPU and reads its output as text or line by line. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** The placement of the two processes of a measurement. */
export interface Placement {
  /** CPU numbers, or undefined if the process is not pinned. */
  readonly cpus: readonly [client: number, server: number] | undefined;
  /** Whether the processes get real-time priority, above all other programs of the machine. */
  readonly realtime?: boolean;
  /** Network namespaces of the two processes. */
  readonly spaces?: readonly [client: string, server: string];
}

/** The lowest real-time priority, which exceeds that of all programs without one. */
const PRIORITY = '1';

/** The start of a command line that places the program. `both`: on both CPUs; without a role: on any. */
export function placed({ cpus, realtime, spaces }: Placement, role?: 'client' | 'server' | 'both'): string[] {
  const side = role === 'client' ? 0 : 1;
  const cpu = role === undefined ? undefined : role === 'both' ? cpus?.join(',') : cpus?.[side];
  const space = role === undefined ? undefined : spaces?.[side];
  return [
    ...(space === undefined ? [] : ['ip', 'netns', 'exec', space]),
    ...(realtime === true ? ['chrt', '--rr', PRIORITY] : []),
    ...(cpu === undefined ? [] : ['taskset', '-c', `${cpu}`]),
  ];
}

/** Whether this process may start programs with real-time priority. */
export function mayBeRealtime(): boolean {
  const { status } = spawnSync('chrt', ['--rr', PRIORITY, 'true'], { stdio: 'ignore' });
  return status === 0;
}

/** Time limit of one measurement, in ms. */
const LIMIT_MS = 120_000;

/** Chooses two of the CPUs that this process may use. */
export function choosePlacement(): Placement {
  let list: string;
  try {
    list = execFileSync('taskset', ['-cp', String(process.pid)], { encoding: 'utf8' });
  } catch {
    return { cpus: undefined };
  }
  const cpus = (list.split(':')[1] ?? '').split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  const [client, server] = cpus;
  return { cpus: client === undefined || server === undefined ? undefined : [client, server] };
}

/** A started process. The owner must {@link end} it. */
export class Program {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exit: Promise<string>;
  #errors = '';

  constructor(
    private readonly command: string,
    args: readonly string[],
    place: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ) {
    const [first, ...rest] = [...place, command, ...args];
    const child = spawn(first!, rest, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-2000);
    });
    const timer = setTimeout(() => {
      this.#errors += `\nIt exceeded the time limit of ${LIMIT_MS / 1000} s.`;
      child.kill('SIGKILL');
    }, LIMIT_MS);
    this.#exit = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        resolve(code === 0 ? '' : `it exited with ${signal ?? `code ${code}`}`);
      });
    });
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The next line of output. @throws Error if the output has ended */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done !== true) return value;
    throw await this.#failure('it printed nothing');
  }

  /** The remaining output. @throws Error if the process fails */
  async rest(): Promise<string> {
    const lines: string[] = [];
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
      lines.push(next.value);
    }
    if ((await this.#exit) !== '') throw await this.#failure('');
    return lines.join('\n');
  }

  /** Waits until the process listens on a TCP port. */
  async listening(port: number): Promise<void> {
    while (!isListening(port)) {
      if (!this.running) throw await this.#failure(`it does not listen on port ${port}`);
      await sleep(5);
    }
  }

  /** Sends SIGTERM, so that the process can remove its files and end its children. */
  end(): void {
    if (this.running) this.#child.kill();
  }

  async #failure(fallback: string): Promise<Error> {
    const why = (await this.#exit) || fallback;
    const errors = this.#errors.trim();
    return new Error(`${this.command}: ${why}${errors === '' ? '' : `: ${errors}`}`);
  }
}

function isListening(port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6'].some(
    (file) =>
      existsSync(file) &&
      readFileSync(file, 'utf8')
        .split('\n')
        .some((line) => {
          const [, local, , state] = line.trim().split(/\s+/);
          return state === '0A' && local?.endsWith(suffix) === true;
        }),
  );
}

/** A TCP port without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('The OS did not assign a port.');
  return address.port;
}

/** Whether a program can be started by its name. */
export function isInstalled(command: string): boolean {
  return (process.env.PATH ?? '').split(':').some((folder) => existsSync(`${folder}/${command}`));
}
