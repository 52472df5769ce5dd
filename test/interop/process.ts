/** A program of a case, here or in a guest, with its output line by line. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A program that runs for more seconds than this counts as hanging. No result depends on it, and the machine may be busy. */
export const TIMEOUT_SECONDS = 150;
/** Maximum number of output lines that a failure shows. */
const SHOWN = 12;

export class Program {
  readonly lines: string[] = [];
  private readonly child: ChildProcess;
  private readonly ended: Promise<number>;
  private watchers = new Set<() => void>();
  private over = false;

  constructor(
    readonly name: string,
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ) {
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.lines.push(line);
        this.tell();
      });
    }
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.lines.push(String(error));
        resolve(127);
      });
      this.child.once('close', (code, signal) => resolve(signal === null ? (code ?? 1) : 128));
    });
    this.ended.then(() => {
      this.over = true;
      this.tell();
    });
  }

  private tell(): void {
    for (const watcher of this.watchers) watcher();
  }

  /** Waits for an output line that matches. @throws Error if the program ends or the time elapses before */
  line(pattern: RegExp, seconds = TIMEOUT_SECONDS): Promise<string> {
    return new Promise((resolve, reject) => {
      let seen = 0;
      const finish = (done: () => void) => {
        clearTimeout(timer);
        this.watchers.delete(look);
        done();
      };
      const look = () => {
        for (; seen < this.lines.length; seen += 1) {
          const line = this.lines[seen]!;
          if (pattern.test(line)) return finish(() => resolve(line));
        }
        if (this.over) finish(() => reject(this.failure(`ended without a line like ${pattern}`)));
      };
      const timer = setTimeout(
        () => finish(() => reject(this.failure(`printed no line like ${pattern} within ${seconds} s`))),
        seconds * 1000,
      );
      this.watchers.add(look);
      look();
    });
  }

  /** Waits until `enough` is satisfied by the output. @throws Error if the program ends or the time elapses before */
  until(enough: () => boolean, what: string, seconds = TIMEOUT_SECONDS): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (done: () => void) => {
        clearTimeout(timer);
        this.watchers.delete(look);
        done();
      };
      const look = () => {
        if (enough()) finish(resolve);
        else if (this.over) finish(() => reject(this.failure(`ended before it had printed ${what}`)));
      };
      const timer = setTimeout(
        () => finish(() => reject(this.failure(`has not printed ${what} within ${seconds} s`))),
        seconds * 1000,
      );
      this.watchers.add(look);
      look();
    });
  }

  /** Waits for the end and returns the exit code. @throws Error if the time elapses, after stopping the program */
  async end(seconds = TIMEOUT_SECONDS): Promise<number> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, seconds * 1000, 'late');
    });
    const first = await Promise.race([this.ended, late]);
    clearTimeout(timer);
    if (first !== 'late') return first;
    this.stop();
    throw this.failure(`did not end within ${seconds} s`);
  }

  /** Waits for a successful end. @throws Error on any other exit code */
  async ok(seconds = TIMEOUT_SECONDS): Promise<readonly string[]> {
    const code = await this.end(seconds);
    if (code !== 0) throw this.failure(`ended with exit code ${code}`);
    return this.lines;
  }

  stop(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.over) this.child.kill(signal);
  }

  /** Creates an error with the program's last lines. */
  failure(what: string): Error {
    const last = this.lines.slice(-SHOWN).map((line) => `    ${line.slice(0, 160)}`);
    return new Error([`${this.name} ${what}`, ...last].join('\n'));
  }
}
