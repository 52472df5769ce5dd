/** The test's side of ud-program.ts, which has a datagram socket per process. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { readCounters } from '../../kernel-bridge/index.js';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { programFile } from './programs.js';
import { HANG_MS } from './within.js';

const program = programFile(new URL('./ud-program.js', import.meta.url));

/** A received datagram. `status` is the name of a WV_WC_STATUS. */
export interface UdArrival {
  text: string;
  status: string;
  address: string;
  qpn: number;
  flags: number;
  immediateData: number;
  ipVersion: number;
}

/** The operations of a process. Statuses are returned as names: of the completion for sends, of the call for attach and detach. */
export interface UdOperations {
  open(args: { local: string; qkey: number }): Promise<{ qpn: number; mtu: number }>;
  /** `length`: the number of bytes to send instead of a text. */
  send(args: { to: string; qpn: number; text?: string; length?: number; qkey?: number }): Promise<string>;
  receive(args: object): Promise<UdArrival>;
  /** Replies to the last received datagram. */
  reply(args: { text: string }): Promise<string>;
  attach(args: { group: string }): Promise<string>;
  detach(args: { group: string }): Promise<string>;
  state(args: object): Promise<number>;
  /** Moves the queue pair from SQERROR to RTS. */
  recover(args: object): Promise<number>;
  close(args: object): Promise<null>;
  counters(args: object): Promise<ReturnType<typeof readCounters>>;
}

export interface UdCommand {
  id: number;
  op: keyof UdOperations;
  args: unknown;
}

export interface UdReply {
  id: number;
  value?: unknown;
  error?: string;
}

const alive = new Set<UdProcess>();

export class UdProcess {
  readonly exited: Promise<void>;
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, (reply: UdReply) => void>();
  private nextId = 1;
  private errors = '';

  private constructor(by: readonly string[], kernel: KernelOptionsInput) {
    const command = [...by, process.execPath, '--enable-source-maps', program];
    this.child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: { ...process.env, ND_OPTIONS: JSON.stringify(kernel) },
    });
    this.child.stderr?.on('data', (chunk) => {
      this.errors += String(chunk);
    });
    this.child.on('message', (reply: UdReply) => this.waiting.get(reply.id)?.(reply));
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        alive.delete(this);
        const error = `the process exited with ${signal ?? `code ${code}`}: ${this.errors}`;
        for (const [id, answer] of [...this.waiting]) answer({ id, error });
        resolve();
      });
    });
    alive.add(this);
  }

  /** `by`: the command that starts the process on another host. */
  static async start(by: readonly string[] = [], kernel: KernelOptionsInput = {}): Promise<UdProcess> {
    const started = new UdProcess(by, kernel);
    await started.answer('start', 0);
    return started;
  }

  call<K extends keyof UdOperations>(
    op: K,
    args: Parameters<UdOperations[K]>[0],
  ): ReturnType<UdOperations[K]> {
    const id = this.nextId++;
    const answer = this.answer(op, id);
    answer.catch(() => {});
    this.child.send({ id, op, args } satisfies UdCommand);
    return answer as ReturnType<UdOperations[K]>;
  }

  kill(): Promise<void> {
    this.child.kill('SIGKILL');
    return this.exited;
  }

  private async answer(op: string, id: number): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const reply = await new Promise<UdReply>((resolve) => {
      this.waiting.set(id, resolve);
      timer = setTimeout(() => resolve({ id, error: 'it did not complete' }), HANG_MS);
    });
    clearTimeout(timer);
    this.waiting.delete(id);
    if (reply.error !== undefined) throw new Error(`${op}: ${reply.error}`);
    return reply.value;
  }
}

/** Ends all processes that a test has left running. */
export async function endUdProcesses(): Promise<void> {
  await Promise.all([...alive].map((one) => one.kill()));
}
