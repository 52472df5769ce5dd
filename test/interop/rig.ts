/**
 * Linux guests with rdma_rxe in a separate network namespace, where this library's programs also run. The shell
 * scripts in rig/ build and boot the guests.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, copyFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KernelOptionsInput } from '../../kernel-bridge/index.js';
import { Program, TIMEOUT_SECONDS } from './process.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** The scripts are in the source folder, which is found from dist/test/interop. */
const scripts = here('../../../test/interop/rig');
const examples = here('../../test/interop/programs');

/** The package's folder. */
const root = here('../../..');

/** A file of rig/. */
const scriptPath = (name: string): string => `${scripts}/${name}`;

/** The scripts of rig/ that run in the guest. */
const guestScripts = (): readonly string[] => readdirSync(scripts).filter((name) => name.endsWith('.py'));

/** Addresses in the namespace: 1 for this host, and the guest's number for guests. */
export const address = (host: number, family: 4 | 6): string =>
  family === 4 ? `10.77.0.${host}` : `fd77::${host.toString(16)}`;

/** Addresses of a third host behind the guest, which routes to it. */
export const FAR = { 4: '10.78.0.2', 6: 'fd78::2' } as const;
/** The guest's addresses on that side. */
const GATEWAY = { 4: '10.78.0.1', 6: 'fd78::1' } as const;

/** Parameters of the guests, for the scripts' environment. */
export interface RigOptions {
  /** MTU of the link in bytes: 1500 makes a path MTU of 1024, 4200 one of 4096. */
  readonly linkMtu: number;
  /** Debian package of the guest's kernel, or undefined for Debian's current one. */
  readonly kernel?: string | undefined;
  /** Whether guests have Node.js instead of Python, to run this library on their devices, and a second link. */
  readonly node?: boolean;
}

/** A server of the examples, below dist. */
export const VALKEY_SERVER = 'examples/valkey/server.js';

/** Memory of a guest with Node.js, in megabytes, and its nice value. */
const NODE_MEMORY = '1024';
const NODE_NICE = '-10';
/** Path of this library in such a guest. */
const APP = '/app';

/** The reason why guests are not available here; undefined if they are. */
export function missing(): string | undefined {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root for a network namespace and tap devices';
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
  } catch {
    return 'needs /dev/net/tun';
  }
  const tools = ['qemu-system-x86_64', 'ip', 'cpio', 'modprobe', 'apt-get'];
  const absent = tools.filter((tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0);
  return absent.length > 0 ? `needs ${absent.join(', ')} (scripts/install-interop-tools.sh)` : undefined;
}

/** Options of the library for all programs of the matrix, set by the user. */
const commonOptions = (): KernelOptionsInput => JSON.parse(process.env.ND_OPTIONS ?? '{}');

export class Rig {
  private readonly programs = new Set<Program>();
  private readonly env: NodeJS.ProcessEnv;
  private captureFiles: string | undefined;
  private noted: string[] = [];

  /** MTU of the link in bytes. */
  readonly linkMtu: number;
  private readonly withNode: boolean;
  /** Folder of files that do not depend on the guests' kernel. */
  private readonly cache: string;

  /** @param name - Suffix of its namespace and folder: simultaneous rigs have different ones */
  constructor({ linkMtu, kernel, node = false }: RigOptions, name = '') {
    this.linkMtu = linkMtu;
    this.withNode = node;
    const { ROCE_NS = 'roce-interop', ROCE_RUN = join(tmpdir(), 'roce-interop-run') } = process.env;
    this.env = { ROCE_MTU: String(linkMtu), ROCE_NS: `${ROCE_NS}${name}`, ROCE_RUN: `${ROCE_RUN}${name}` };
    const { ROCE_CACHE, XDG_CACHE_HOME } = process.env;
    this.cache = ROCE_CACHE ?? join(XDG_CACHE_HOME ?? tmpdir(), 'roce-interop');
    const suffix = [node ? 'node' : undefined, kernel].filter((part) => part !== undefined);
    if (kernel !== undefined) this.env.KERNEL_PKG = kernel;
    if (node) Object.assign(this.env, { ROCE_MEM: NODE_MEMORY, ROCE_NICE: NODE_NICE, ROCE_LINKS: '2' });
    if (suffix.length > 0) this.env.ROCE_CACHE = [this.cache, ...suffix].join('-');
  }

  private script(name: string, args: readonly string[], label: string, env: NodeJS.ProcessEnv = {}): Program {
    const program = new Program(label, 'bash', [scriptPath(name), ...args], { ...this.env, ...env });
    this.programs.add(program);
    return program;
  }

  /** Builds the guests' image if it does not exist yet (a download of 75 MB). */
  async build(): Promise<void> {
    const what = this.withNode ? '--with-node' : '--with-python';
    await this.script('build-guest.sh', [what], 'build-guest').ok(600);
  }

  /** Boots guests of the image. */
  async boot(...guests: number[]): Promise<void> {
    for (const guest of guests) {
      await this.script('run-guest.sh', ['start', String(guest)], 'boot').ok(240);
      const [share] = await this.script('run-guest.sh', ['share', String(guest)], 'share').ok();
      for (const script of guestScripts()) copyFileSync(scriptPath(script), `${share}/${script}`);
    }
  }

  /** Copies this library into a guest with Node.js: the contents of the package, and its dependencies. */
  async deploy(guest: number): Promise<void> {
    const [share] = await this.script('run-guest.sh', ['share', String(guest)], 'share').ok();
    const parts =
      'package.json build/Release/*.node dist/nd dist/winverbs dist/kernel-bridge dist/test/interop/programs ' +
      'dist/test/rdma/programs dist/test/helpers dist/test/integration/winverbs-*.js ' +
      'dist/examples/valkey .cache/interop/node_modules';
    const modules =
      'zod commander cli-table3 string-width emoji-regex is-fullwidth-code-point strip-ansi ansi-regex ' +
      'uvu dequal diff kleur';
    const pack =
      `cd '${root}' && set -- ${parts} && for m in ${modules}; do [ ! -d node_modules/$m ] || set -- "$@" node_modules/$m; done && ` +
      `tar c --exclude='*.map' --exclude='*.d.*ts' "$@" > '${share}/app.tar'`;
    await new Program('deploy', 'bash', ['-c', pack]).ok();
    await this.inGuest(guest, `rm -rf ${APP} && mkdir ${APP} && tar x -f /share/app.tar -C ${APP}`);
  }

  /** Puts Debian's nvme, mkfs.ext4, fsck.ext4 and fio into a guest. The first time, packages are downloaded for that. */
  async addStorageTools(guest: number): Promise<void> {
    await this.addTools(guest, 'build-storage.sh');
    await this.inGuest(guest, 'mkdir -p /mnt && modprobe -a ext4 nvme-rdma');
  }

  /** Puts valkey-server and rdma-test into a guest. The first time, they are built, which takes minutes. */
  async addValkey(guest: number): Promise<void> {
    await this.addTools(guest, 'build-valkey.sh');
  }

  /** Unpacks the archive that a script of rig/ builds in a guest, once. The last line of the script's output is the archive's path. */
  private async addTools(guest: number, script: string): Promise<void> {
    const archive = (await this.script(script, [this.cache], script).ok(900)).at(-1)!;
    const [share] = await this.script('run-guest.sh', ['share', String(guest)], 'share').ok();
    copyFileSync(archive, `${share}/tools.tar`);
    await this.inGuest(guest, 'tar x -f /share/tools.tar -C /');
  }

  /** Starts a behaviour of programs/nvme.ts in the namespace. */
  nvme(behaviour: string, peer: string, nqn: string): Program {
    return this.node(here('./programs/nvme.js'), behaviour, peer, nqn);
  }

  /** Starts the Valkey server of examples/valkey in the namespace. */
  valkeyServer(own: string, port: number): Program {
    return this.node(here(`../../${VALKEY_SERVER}`), own, String(port));
  }

  /** Starts a sub-command of `nd` in the namespace. */
  nd(...args: string[]): Program {
    return this.node(here('../../nd/cli/nd.js'), ...args);
  }

  /** Starts a compiled script of this library (a path below dist) in a guest, with its own options of the library. */
  nodeInGuest(guest: number, options: KernelOptionsInput, script: string, ...args: string[]): Program {
    return this.nodeInGuestFor(guest, TIMEOUT_SECONDS, options, script, ...args);
  }

  /** Like {@link nodeInGuest}, but the script may run for the given number of seconds. */
  nodeInGuestFor(
    guest: number,
    seconds: number,
    options: KernelOptionsInput,
    script: string,
    ...args: string[]
  ): Program {
    const all = JSON.stringify({ startTimeoutMs: 120_000, ...options });
    const command = `cd ${APP} && ND_OPTIONS='${all}' exec node dist/${script} ${args.join(' ')}`;
    return this.guest(guest, command, seconds);
  }

  /** Ends a guest immediately, like a power cut. It sends nothing more. */
  async cut(guest: number): Promise<void> {
    await this.script('run-guest.sh', ['cut', String(guest)], 'cut').ok();
  }

  /** Shuts everything down. */
  async down(): Promise<void> {
    this.settle();
    await this.script('run-guest.sh', ['down'], 'down').ok();
  }

  /**
   * Begins a case. From now on, each process of this side writes its packets to a file.
   *
   * @param files - Common prefix of the files' names, or undefined for no files
   */
  begin(files: string | undefined): void {
    this.captureFiles = files;
    this.noted = [];
  }

  /** The measurements of the case, for the report. */
  get notes(): readonly string[] {
    return this.noted;
  }

  note(text: string): void {
    this.noted.push(text);
  }

  /** Ends programs left by the last case. */
  settle(): void {
    for (const program of this.programs) program.stop();
    this.programs.clear();
  }

  /**
   * Ends commands that stopped programs have left in a guest. Stopping a program here does not end it there. It would continue until its
   * time limit and occupy its command port, for which the next command waits.
   */
  async clear(guest: number): Promise<void> {
    await this.script('run-guest.sh', ['clear', '-t', String(TIMEOUT_SECONDS), String(guest)], 'clear').ok(
      TIMEOUT_SECONDS,
    );
  }

  /** Starts a command in a guest. After `seconds`, it is ended with its children. */
  guest(guest: number, command: string, seconds = TIMEOUT_SECONDS): Program {
    return this.script('run-guest.sh', ['exec', '-t', String(seconds), String(guest), command], command);
  }

  /** Runs a command in a guest and waits for its successful end. */
  async inGuest(guest: number, command: string, seconds = TIMEOUT_SECONDS): Promise<readonly string[]> {
    return this.guest(guest, command, seconds).ok(seconds + 15);
  }

  /** Waits until a program in a guest listens: on an RDMA port of the CM, at `device` if given, or on a TCP port. */
  async listening(guest: number, kind: 'rdma' | 'tcp', port: number, device = ''): Promise<void> {
    const look =
      kind === 'rdma'
        ? `rdma resource show cm_id | grep -q "${device}.*LISTEN.*:${port} "`
        : `netstat -ltn | grep -q ":${port} "`;
    await this.inGuest(guest, `until ${look}; do sleep 0.05; done`);
  }

  /** Starts a program of test/interop/programs in the namespace. */
  ours(program: string, ...args: string[]): Program {
    return this.node(`${examples}/${program}.js`, ...args);
  }

  /** Like {@link ours}, with additional options of the library. */
  oursWith(options: KernelOptionsInput, program: string, ...args: string[]): Program {
    return this.nodeWith(options, `${examples}/${program}.js`, ...args);
  }

  /** Starts a behaviour of programs/cm.ts in the namespace. */
  cm(behaviour: string, own: string, peer: string, port: number): Program {
    return this.node(here('./programs/cm.js'), behaviour, own, peer, String(port));
  }

  /** Starts a behaviour of programs/sidr.ts in the namespace. */
  sidr(behaviour: string, own: string, peer: string, port: number): Program {
    return this.node(here('./programs/sidr.js'), behaviour, own, peer, String(port));
  }

  /** Starts a behaviour of programs/cm-peer.ts in the namespace. */
  cmPeer(behaviour: string, own: string, peer: string): Program {
    return this.node(here('./programs/cm-peer.js'), behaviour, own, peer);
  }

  /** Starts programs/late.ts in the namespace. */
  late(role: string, own: string, peer: string): Program {
    return this.node(here('./programs/late.js'), role, own, peer);
  }

  /** Starts a behaviour of programs/verbs.ts in the namespace. */
  verbs(behaviour: string, own: string, peer: string): Program {
    return this.node(here('./programs/verbs.js'), behaviour, own, peer);
  }

  /** Starts programs/stream.ts in the namespace. Its packets are subject to faults. */
  stream(
    type: string,
    role: string,
    own: string,
    peer: string,
    faults: KernelOptionsInput['faults'],
  ): Program {
    return this.nodeWith({ faults }, here('./programs/stream.js'), type, role, own, peer);
  }

  /** Starts programs/path-mtu.ts in the namespace. */
  pathMtu(role: string, own: string, peer: string, port: number): Program {
    return this.node(here('./programs/path-mtu.js'), role, own, peer, String(port));
  }

  /** The namespace of the third host. */
  private get farSpace(): string {
    return `${this.env.ROCE_NS}-far`;
  }

  /** Calls `run` while a third host exists, which is reached through a guest. */
  async withFar(guest: number, run: () => Promise<void>): Promise<void> {
    const far = this.farSpace;
    const mtu = this.linkMtu;
    // The name must be created outside of the other namespaces, which have their own mounts.
    const near = `ip -n ${this.env.ROCE_NS}`;
    const inHost = (...lines: string[]) => new Program('third host', 'sh', ['-c', lines.join(' && ')]).ok();
    await this.inGuest(
      guest,
      `ip addr add ${GATEWAY[4]}/24 dev eth0 && ip addr add ${GATEWAY[6]}/64 dev eth0 nodad &&
        for one in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 > /proc/sys/net/$one; done
        for one in all eth0; do echo 0 > /proc/sys/net/ipv4/conf/$one/send_redirects; done`,
    );
    try {
      await inHost(
        `ip netns add ${far}`,
        `${near} link add far0 mtu ${mtu} type veth peer name eth0 mtu ${mtu} netns ${far}`,
        `${near} link set far0 master br0 up`,
        `ip -n ${far} link set lo up`,
        `ip -n ${far} link set eth0 up`,
        `ip -n ${far} addr add ${FAR[4]}/24 dev eth0`,
        `ip -n ${far} addr add ${FAR[6]}/64 dev eth0 nodad`,
        `ip -n ${far} route add default via ${GATEWAY[4]}`,
        `ip -n ${far} -6 route add default via ${GATEWAY[6]}`,
        `${near} route add ${FAR[4]} via ${address(guest, 4)}`,
        `${near} -6 route add ${FAR[6]} via ${address(guest, 6)}`,
      );
      await run();
    } finally {
      // The link disappears with its namespace when that has no processes any more. Routes to it would remain.
      for (const program of this.programs) program.stop();
      await inHost(
        `${near} route del ${FAR[4]}; ${near} -6 route del ${FAR[6]}; ${near} link del far0; ip netns del ${far}`,
      );
      await this.inGuest(
        guest,
        `ip addr del ${GATEWAY[4]}/24 dev eth0; ip addr del ${GATEWAY[6]}/64 dev eth0
          for one in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 0 > /proc/sys/net/$one; done`,
      );
    }
  }

  /** Starts a role of programs/ecn.ts on the third host. */
  farEcn(role: string, own: string, peer: string, port: number): Program {
    const env = { ROCE_NS: this.farSpace };
    return this.nodeIn(env, { ecn: true }, here('./programs/ecn.js'), [role, own, peer, String(port)]);
  }

  /** Starts a role of programs/ecn.ts in the namespace. */
  ecn(role: string, own: string, peer: string, port: number): Program {
    return this.nodeWith({ ecn: true }, here('./programs/ecn.js'), role, own, peer, String(port));
  }

  /** Starts programs/uc-gap.ts in the namespace. */
  ucGap(operation: string, own: string, peer: string): Program {
    return this.node(here('./programs/uc-gap.js'), operation, own, peer);
  }

  /** Starts rping here like {@link ours}. When it is ended by SIGTERM, it prints the HCA's counters. */
  countedRping(...args: string[]): Program {
    return this.node(here('./programs/rping-counted.js'), ...args);
  }

  /** Starts any script with Node in the namespace. */
  node(script: string, ...args: string[]): Program {
    return this.nodeWith({}, script, ...args);
  }

  /** Like {@link node}, with additional options of the library (`ND_OPTIONS`). */
  nodeWith(options: KernelOptionsInput, script: string, ...args: string[]): Program {
    return this.nodeIn({}, options, script, args);
  }

  private nodeIn(
    env: NodeJS.ProcessEnv,
    options: KernelOptionsInput,
    script: string,
    args: readonly string[],
  ): Program {
    const name = script.replace(/^.*\//, '');
    const files = this.captureFiles;
    const capture = files === undefined ? {} : { capture: `${files}-${name.replace('.js', '')}-%p.pcapng` };
    const all = JSON.stringify({ ...commonOptions(), ...options, ...capture });
    const label = `${name} ${args.join(' ')}`;
    return this.script('run-guest.sh', ['ns', process.execPath, script, ...args], label, {
      ...env,
      ND_OPTIONS: all,
    });
  }

  /** Commands in the namespace. */
  host(...command: string[]): Program {
    return this.script('run-guest.sh', ['ns', ...command], command.join(' '));
  }
}
