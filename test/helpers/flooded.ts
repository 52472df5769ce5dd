/** Measures how a stranger's flood of connection requests affects two processes on this host: new connections and an existing one. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { KernelOptionsInput } from '../../kernel-bridge/option-checks/option-schemas.js';
import { connectTo, Peer, type PeerLink, type PeerListener } from './peer/peer.js';
import { programFile } from './programs.js';

const program = programFile(new URL('./flood-program.js', import.meta.url));
/** A port without a listener. */
const NOBODY = 9;
/** Maximum duration of a flood in s. */
const MOST_SECONDS = 120;

export interface Flooded {
  /** Connections established and ended per second. */
  readonly connects: number;
  readonly echoes: number;
}

/** Runs `measure` while a stranger floods a port of the address, by default one without a listener. */
export async function duringFlood<T>(address: string, measure: () => Promise<T>, port = NOBODY): Promise<T> {
  const child = fork(program, [address, String(port), String(MOST_SECONDS)]);
  try {
    await once(child, 'message');
    return await measure();
  } finally {
    child.kill('SIGKILL');
  }
}

/** A server, a client and a connection between them. */
export class FloodScene {
  private constructor(
    readonly server: Peer,
    readonly client: Peer,
    readonly listener: PeerListener,
    readonly near: PeerLink,
    readonly far: PeerLink,
  ) {}

  static async start(address: string, kernel: KernelOptionsInput = {}): Promise<FloodScene> {
    const server = await Peer.start({ kernel });
    const client = await Peer.start({ kernel });
    await Promise.all([server.openToStrangers(), client.openToStrangers()]);
    const listener = await server.listen('wv', address);
    const [near, far] = await connectTo(listener, client, { accepterReceives: 1, connecterReceives: 1 });
    return new FloodScene(server, client, listener, near, far);
  }

  /** Establishes `count` connections one after another. */
  async connect(count: number): Promise<number> {
    const begun = performance.now();
    for (let n = 0; n < count; n++) {
      const [near, far] = await connectTo(this.listener, this.client);
      await near.disconnect();
      await Promise.all([near.release(), far.release()]);
    }
    return (1000 * count) / (performance.now() - begun);
  }

  /** Executes `count` round trips on the existing connection. */
  async echo(count: number): Promise<number> {
    const begun = performance.now();
    for (let n = 0; n < count; n++) {
      await this.near.send(`there ${n}`);
      await this.#arrived(this.far, `there ${n}`);
      await this.far.receive(1);
      await this.far.send(`back ${n}`);
      await this.#arrived(this.near, `back ${n}`);
      await this.near.receive(1);
    }
    return (1000 * count) / (performance.now() - begun);
  }

  async #arrived(link: PeerLink, text: string): Promise<void> {
    const { receives } = await link.results(0, 1);
    const [one] = receives;
    if (one?.status !== 'SUCCESS' || one.text !== text)
      throw new Error(`Expected '${text}'; got ${JSON.stringify(receives)}.`);
  }

  async measure(count: number): Promise<Flooded> {
    return { echoes: await this.echo(count), connects: await this.connect(count) };
  }

  /** MADs dropped by both processes, because too many were for unknown services or from one source. */
  async dropped(): Promise<number> {
    let sum = 0;
    for (const peer of [this.server, this.client]) {
      const { hca } = await peer.counters();
      sum += (hca!.mad_dropped_no_service ?? 0) + (hca!.mad_queue_source_full ?? 0);
    }
    return sum;
  }
}
