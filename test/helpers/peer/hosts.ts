import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { byNetworkOf, inNewNetwork, inNewNetworkBeside } from '../network-namespace.js';

/** A simulated host: a network namespace, which exists as long as this object's process. */
export interface Host {
  readonly address: string;
  readonly interface: string;
  /** The file of its network namespace. */
  readonly network: string;
  /** The command that starts a process on this host. */
  readonly by: readonly string[];
}

/** Two hosts connected by a cable. */
export class TwoHosts {
  readonly hosts: readonly [Host, Host];

  private constructor(private readonly keepers: readonly [ChildProcess, ChildProcess]) {
    this.hosts = [hostOf(keepers[0], 1), hostOf(keepers[1], 2)];
  }

  static async start(): Promise<TwoHosts> {
    const wait = ['sh', '-c', 'echo ready && exec cat'];
    const first = await keeper(inNewNetwork(...wait));
    const second = await keeper(inNewNetworkBeside(first.pid!, ...wait));
    const two = new TwoHosts([first, second]);
    const [a, b] = two.hosts;
    const pidB = String(two.keepers[1].pid);
    two.run(a, [
      'ip',
      'link',
      'add',
      a.interface,
      'type',
      'veth',
      'peer',
      'name',
      b.interface,
      'netns',
      pidB,
    ]);
    for (const host of two.hosts) {
      two.run(host, ['ip', 'address', 'add', `${host.address}/24`, 'dev', host.interface]);
      two.run(host, ['ip', 'link', 'set', host.interface, 'up']);
    }
    for (const host of two.hosts) two.untilUp(host);
    return two;
  }

  pullCable(host: Host): void {
    this.run(host, ['ip', 'link', 'set', host.interface, 'down']);
  }

  plugCable(host: Host): void {
    this.run(host, ['ip', 'link', 'set', host.interface, 'up']);
    for (const each of this.hosts) this.untilUp(each);
  }

  /** It takes some time until a link is up and its addresses are listed. */
  private untilUp(host: Host): void {
    const until =
      'for i in $(seq 500); do ip -o link show dev "$0" | grep -q "state UP" && exit 0; done; exit 1';
    this.run(host, ['sh', '-c', until, host.interface]);
  }

  /** Runs a command on a host. Throws if it fails. */
  run(host: Host, command: readonly string[]): void {
    const [file = '', ...args] = [...host.by, ...command];
    const { status, stderr, error } = spawnSync(file, args);
    if (error !== undefined) throw error;
    if (status !== 0) throw new Error(`${command.join(' ')}: ${String(stderr).trim()}`);
  }

  end(): void {
    for (const keeper of this.keepers) keeper.stdin?.end();
  }
}

/** Starts the process of a namespace. It reports its start and exits with its input. */
function keeper([file, ...args]: readonly [string, ...string[]]): Promise<ChildProcess> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`The namespace's process exited with code ${code}.`)));
    child.stdout.once('data', () => resolve(child));
  });
}

function hostOf(keeper: ChildProcess, number: number): Host {
  return {
    address: `10.99.0.${number}`,
    interface: `nd${number}`,
    network: `/proc/${keeper.pid}/ns/net`,
    by: byNetworkOf(keeper.pid!),
  };
}
