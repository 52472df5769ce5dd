/** Two simulated hosts, connected by a point-to-point link of TUN interfaces. Its relay may drop large packets. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Host, TwoHosts } from './peer/hosts.js';
import { programFile } from './programs.js';

const source = fileURLToPath(new URL('../../../test/helpers/tun-relay.cc', import.meta.url));
const program = programFile(new URL('./tunnel-program.js', import.meta.url));

/** The interface's name on both hosts. */
export const TUNNEL = 'tunnel0';
/** Addresses of the ends. */
export const ENDS = [
  { v4: '10.98.7.1', v6: 'fd98:7::1' },
  { v4: '10.98.7.2', v6: 'fd98:7::2' },
] as const;

/** A process that reads lines and replies to each with one line. */
export class LineProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;

  constructor([file = '', ...args]: readonly string[]) {
    this.#child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#reader = createInterface({ input: this.#child.stdout! });
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** @throws Error if the program has exited */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('The program exited without a reply.');
    return value;
  }

  async ask(line: string): Promise<string> {
    this.#child.stdin!.write(`${line}\n`);
    return await this.line();
  }

  async end(): Promise<void> {
    const exited = this.#child.exitCode === null ? once(this.#child, 'exit') : undefined;
    this.#child.stdin!.end();
    await exited;
    this.#reader.close();
  }
}

export class Tunnel {
  private constructor(
    readonly two: TwoHosts,
    private readonly relay: LineProgram,
    private readonly folder: string,
    private readonly programs: LineProgram[] = [],
  ) {}

  get hosts(): readonly [Host, Host] {
    return this.two.hosts;
  }

  /** @param mtu - MTU of the interfaces */
  static async start(mtu: number): Promise<Tunnel> {
    const folder = mkdtempSync(join(tmpdir(), 'nd-tunnel-'));
    const binary = join(folder, 'tun-relay');
    const [compiler = 'g++', ...words] = (process.env.CXX ?? 'g++').split(' ');
    const { status, stderr } = spawnSync(compiler, [...words, '-std=c++17', '-o', binary, source], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`Cannot compile the relay: ${stderr}`);
    const two = await TwoHosts.start();
    const relay = new LineProgram([binary, ...two.hosts.map(({ network }) => network), TUNNEL]);
    const tunnel = new Tunnel(two, relay, folder);
    await relay.line();
    for (const [i, host] of two.hosts.entries()) {
      const [own, peer] = [ENDS[i]!, ENDS[1 - i]!];
      const ip = (...args: string[]) => two.run(host, ['ip', ...args]);
      // Brings the interface up first, because Linux does not create a route to an IPv6 peer while the interface is down.
      ip('link', 'set', TUNNEL, 'mtu', `${mtu}`, 'up');
      ip('address', 'add', own.v4, 'peer', peer.v4, 'dev', TUNNEL);
      ip('address', 'add', own.v6, 'peer', peer.v6, 'dev', TUNNEL, 'nodad');
    }
    return tunnel;
  }

  /** Changes the MTU of both ends. */
  setMtu(mtu: number): void {
    for (const host of this.hosts) this.two.run(host, ['ip', 'link', 'set', TUNNEL, 'mtu', `${mtu}`]);
  }

  /** Drops packets of more than `bytes` bytes; 0: none. */
  async dropAbove(bytes: number): Promise<void> {
    await this.relay.ask(`${bytes}`);
  }

  /**
   * Starts a process with a listener on the first host, and one on the second that connects to it: `connect`, `write BYTES`
   * (tunnel-program.ts).
   */
  async pair(family: 'v4' | 'v6'): Promise<LineProgram> {
    const [a, b] = this.hosts;
    const [server, client] = [ENDS[0][family], ENDS[1][family]];
    const listening = new LineProgram([...a.by, process.execPath, program, 'server', server]);
    this.programs.push(listening);
    const port = await listening.line();
    const connecting = new LineProgram([...b.by, process.execPath, program, 'client', client, server, port]);
    this.programs.push(connecting);
    return connecting;
  }

  async endPrograms(): Promise<void> {
    await Promise.all(this.programs.splice(0).map((one) => one.end()));
  }

  async end(): Promise<void> {
    await this.endPrograms();
    await this.relay.end();
    this.two.end();
    rmSync(this.folder, { recursive: true });
  }
}
