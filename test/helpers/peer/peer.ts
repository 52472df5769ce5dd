import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { KernelOptionsInput } from '../../../winverbs/index.js';
import { programFile } from '../programs.js';
import { suspendProcess } from '../windows-process.js';
import { HANG_MS, within as outcomeWithin } from '../within.js';
import type {
  Answer,
  Arguments,
  Command,
  Completions,
  Layer,
  Operation,
  Reply,
  SpinReport,
} from './protocol.js';

const ownProgram = programFile(new URL('./program.js', import.meta.url));

/** A command that the peer could not execute. `status` is the name of a StatusError's status. */
export class PeerError extends Error {
  constructor(
    message: string,
    readonly status: string | undefined,
  ) {
    super(message);
  }
}

export interface PeerOptions {
  /** Kernel options of the peer, passed in its environment. */
  readonly kernel?: KernelOptionsInput;
  /** The command that starts the process, such as `unshare -n`. */
  readonly by?: readonly string[];
  /** The program of another build of this package. Default: that of this build. */
  readonly program?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The warning that another process owns UDP port 4791, including the line that Node.js appends. */
const portHeld = /^\(node:\d+\) NetworkDirectWarning: UDP port 4791 .* is held by .*\r?\n(\(Use .*\r?\n)?/gm;

const alive = new Set<Peer>();

/** Another process that executes commands. */
export class Peer {
  readonly exited: Promise<Exit>;
  #errors = '';
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #nextId = 1;
  #nextName = 1;
  #spinning: (() => void) | undefined;

  private constructor({ kernel = {}, by = [], program = ownProgram }: PeerOptions) {
    const command = [...by, process.execPath, '--enable-source-maps', program];
    this.#child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: { ...process.env, ND_OPTIONS: JSON.stringify({ startTimeoutMs: HANG_MS, ...kernel }) },
    });
    this.#child.stderr?.on('data', (chunk) => {
      this.#errors += String(chunk);
    });
    this.#child.on('message', (reply: Reply) => {
      if (reply.id === -1) this.#spinning?.();
      this.#waiting.get(reply.id)?.(reply);
    });
    this.exited = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        alive.delete(this);
        const error = { message: `the process exited with ${signal ?? `code ${code}`}: ${this.errors}` };
        for (const [id, answer] of [...this.#waiting]) answer({ id, error });
        resolve({ code, signal });
      });
    });
    alive.add(this);
  }

  static async start(options: PeerOptions = {}): Promise<Peer> {
    const peer = new Peer(options);
    await peer.#answer('start', 0);
    return peer;
  }

  /** Its standard error so far, without messages that are not errors: on Windows, only one process on a host owns the port. */
  get errors(): string {
    return process.platform === 'win32' ? this.#errors.replace(portHeld, '') : this.#errors;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Resolves when its standard error matches. */
  async said(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.#errors))
      await within(
        once(this.#child.stderr!, 'data'),
        `Expected output ${pattern}; got '${this.#errors}'; nothing else arrived`,
      );
  }

  /** Sends a command. The peer starts commands in order. */
  call<K extends Operation>(op: K, args: Arguments<K>, worker?: string): Promise<Answer<K>> {
    const id = this.#nextId++;
    const command: Command = { id, op, args, ...(worker === undefined ? {} : { worker }) };
    const answer = this.#answer(op, id);
    // If a test fails before it awaits this reply, the test has already reported the reason.
    answer.catch(() => {});
    this.#child.send(command);
    return answer as Promise<Answer<K>>;
  }

  async listen(layer: Layer, address: string, options: { port?: number; worker?: string } = {}) {
    const as = `listener ${this.#nextName++}`;
    const { worker, ...more } = options;
    const port = await this.call('listen', { as, layer, address, ...more }, worker);
    return new PeerListener(this, as, layer, address, port, worker);
  }

  /** Makes the HCA receive packets of strangers on UDP port 4791. */
  openToStrangers(): Promise<void> {
    return this.call('openToStrangers', {});
  }

  /** Creates a name for a new link. */
  newLink(): string {
    return `link ${this.#nextName++}`;
  }

  /** Kills the process, as by kill -9. */
  kill(): Promise<Exit> {
    this.#child.kill('SIGKILL');
    return this.exited;
  }

  /** Stops the process, so that it exists but does nothing. */
  suspend(): void {
    if (process.platform === 'win32') suspendProcess(this.pid);
    else this.#child.kill('SIGSTOP');
  }

  /** Ends the process in the given way and returns the result. The test fails if it does not exit. */
  async leave(how: Arguments<'leave'>['how']): Promise<Exit> {
    this.call('leave', { how }).catch(() => {});
    return await within(this.exited, `The process did not end by '${how}'`);
  }

  /** Resolves as soon as the peer has started to spin. */
  spinning(): Promise<void> {
    return new Promise((resolve) => {
      this.#spinning = resolve;
    });
  }

  counters() {
    return this.call('counters', {});
  }

  async #answer(op: string, id: number): Promise<unknown> {
    const reply = await within(
      new Promise<Reply>((resolve) => {
        this.#waiting.set(id, resolve);
      }),
      `'${op}' did not end`,
    ).finally(() => this.#waiting.delete(id));
    if (reply.error !== undefined) throw new PeerError(`${op}: ${reply.error.message}`, reply.error.status);
    return reply.value;
  }
}

/** A listener of a peer. */
export class PeerListener {
  constructor(
    readonly peer: Peer,
    readonly name: string,
    readonly layer: Layer,
    readonly address: string,
    readonly port: number,
    readonly worker: string | undefined,
  ) {}

  /** Accepts the next connection after posting a number of Receives. */
  async accept(receives = 0, data = ''): Promise<PeerLink> {
    const as = this.peer.newLink();
    const said = await this.peer.call('accept', { listener: this.name, as, receives, data }, this.worker);
    return new PeerLink(this.peer, as, said, this.worker);
  }

  release(): Promise<void> {
    return this.peer.call('unlisten', { listener: this.name }, this.worker);
  }
}

/** A connection of a peer. */
export class PeerLink {
  constructor(
    readonly peer: Peer,
    readonly name: string,
    /** Private data of the other side's request or reply. */
    readonly said: string,
    readonly worker?: string | undefined,
  ) {}

  receive(count: number): Promise<void> {
    return this.peer.call('receive', { link: this.name, count }, this.worker);
  }

  receiveNow(): Promise<{ text: string; microseconds: number }> {
    return this.peer.call('receiveNow', { link: this.name }, this.worker);
  }

  send(...texts: string[]): Promise<void> {
    return this.peer.call('send', { link: this.name, texts }, this.worker);
  }

  poll(): Promise<Completions> {
    return this.peer.call('poll', { link: this.name }, this.worker);
  }

  results(sends: number, receives: number): Promise<Completions> {
    return this.peer.call('results', { link: this.name, sends, receives }, this.worker);
  }

  notifyDisconnect(): Promise<string> {
    return this.peer.call('notifyDisconnect', { link: this.name }, this.worker);
  }

  /** Starts Disconnect. Returns the completions that were available when the call returned. */
  startDisconnect(): Promise<Completions> {
    return this.peer.call('disconnect', { link: this.name }, this.worker);
  }

  /** The status of the Disconnect. */
  disconnected(): Promise<string> {
    return this.peer.call('disconnected', { link: this.name }, this.worker);
  }

  async disconnect(): Promise<string> {
    await this.startDisconnect();
    return await this.disconnected();
  }

  spinUntilDisconnected(): Promise<SpinReport> {
    return this.peer.call('spinUntilDisconnected', { link: this.name }, this.worker);
  }

  release(): Promise<void> {
    return this.peer.call('release', { link: this.name }, this.worker);
  }
}

/** Options of {@link connectTo}. */
export interface Joining {
  /** Receives posted before the connection is established. */
  readonly accepterReceives?: number;
  readonly connecterReceives?: number;
  /** Private data. */
  readonly request?: string;
  readonly reply?: string;
  /** A Worker of the connecting process. */
  readonly worker?: string;
  /** The address to connect to. Default: the listener's. */
  readonly to?: string;
  /** The connecting side's address. Default: the same. */
  readonly from?: string;
}

/** Connects a peer to a listener. Returns the active and the passive link. */
export async function connectTo(
  listener: PeerListener,
  client: Peer,
  options: Joining = {},
): Promise<[PeerLink, PeerLink]> {
  const { address, port, layer } = listener;
  const as = client.newLink();
  const { worker, to = address, from = to } = options;
  const accepting = listener.accept(options.accepterReceives, options.reply);
  const args = {
    as,
    layer,
    from,
    to,
    port,
    receives: options.connecterReceives ?? 0,
    data: options.request ?? '',
  };
  const connecting = client.call('connect', args, worker);
  const [passive, said] = await Promise.all([accepting, connecting]);
  return [new PeerLink(client, as, said, worker), passive];
}

/** The promise's outcome, or a failure if it takes too long. */
export function within<T>(promise: Promise<T>, what: string, milliseconds = HANG_MS): Promise<T> {
  return outcomeWithin(promise, milliseconds, () => new Error(`${what} within ${milliseconds} ms.`));
}

/** Ends all remaining peers except `kept`; for use after each test. */
export async function endPeers(kept: readonly Peer[] = []): Promise<void> {
  await Promise.all([...alive].filter((peer) => !kept.includes(peer)).map((peer) => peer.kill()));
}
