/** The `nd` command in separate processes, as users start it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { programFile } from './programs.js';

/** The file of the `nd` command. */
export const ND = programFile(new URL('../../nd/cli/nd.js', import.meta.url));

/** The result of a process. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running tool. */
export class NdTool {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';
  #look: (() => void)[] = [];
  #over = false;

  /** @param more - whether standard input stays open after `input` */
  constructor(args: readonly string[], input?: Uint8Array, more = false) {
    this.process = spawn(process.execPath, [ND, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.process
      .stdout!.setEncoding('latin1')
      .on('data', (text: string) => this.#heard(() => (this.#stdout += text)));
    this.process
      .stderr!.setEncoding('latin1')
      .on('data', (text: string) => this.#heard(() => (this.#stderr += text)));
    const stdin = this.process.stdin!.on('error', () => {});
    if (more) stdin.write(input);
    else stdin.end(input);
    this.ended = new Promise((resolve, reject) => {
      this.process.once('error', reject);
      this.process.once('close', (code, signal) => {
        this.#over = true;
        this.#heard(() => {});
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  /** Waits until its output matches. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#stdout) ?? pattern.exec(this.#stderr);
      if (found !== null) return found;
      if (this.#over) throw new Error(`Expected output ${pattern}; got:\n${this.#stdout}\n${this.#stderr}`);
      await new Promise<void>((resolve) => this.#look.push(resolve));
    }
  }

  #heard(take: () => void): void {
    take();
    for (const look of this.#look.splice(0)) look();
  }
}

/** Runs a tool to its end. */
export function runNd(...args: string[]): Promise<Ended> {
  return new NdTool(args).ended;
}

/** Starts a server and waits until it listens. */
export async function startServer(tool: string, ...args: string[]): Promise<NdTool> {
  const server = new NdTool([tool, '-s', ...args]);
  await server.printed(/Listening on /);
  return server;
}
