/**
 * Requirements of tests besides Node.js and a compiler. A test that the machine cannot run is skipped, and a line `SKIP
 * <reason>` reports why to scripts/run-tests.mjs.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { Test } from 'uvu';
import { namespaceProblem } from './network-namespace.js';

const onWindows = process.platform === 'win32';

const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);

/** An IPv4 address of this host that other hosts could use. */
export const interfaceAddress = addresses.find(
  ({ family, internal }) => family === 'IPv4' && !internal,
)?.address;

/** The reason why a program cannot be used: it is not on the PATH. */
function absent(program: string, debianPackage: string): string | undefined {
  const isThere = spawnSync(program, ['--version']).error === undefined;
  return isThere ? undefined : `${program} is not installed (apt-get install ${debianPackage})`;
}

/** The bit of CAP_NET_RAW (13, linux/capability.h). */
const CAP_NET_RAW = 1n << 13n;

function effectiveCapabilities(): bigint {
  const bits = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return BigInt(`0x${bits ?? '0'}`);
}

/** For each requirement, a function that returns why this machine does not meet it, with a cure. */
const needs = {
  /** tshark, which decodes captures. */
  tshark: () => absent('tshark', 'tshark'),
  /** Python, which opens the sockets of packet attacks. */
  python3: () => absent('python3', 'python3'),
  /** Shells for tests of command-line completion. */
  bash: () => absent('bash', 'bash'),
  zsh: () => absent('zsh', 'zsh'),
  fish: () => absent('fish', 'fish'),
  /** setpriv, which removes privileges from a program. */
  setpriv: () => absent('setpriv', 'util-linux'),
  /** Simulated hosts: network namespaces with a cable between them. */
  namespaces: () => {
    const tool = absent('unshare', 'util-linux') ?? absent('ip', 'iproute2');
    if (tool !== undefined) return tool;
    const problem = namespaceProblem();
    if (problem === undefined) return undefined;
    return `cannot create a network namespace with a veth pair: ${problem} (run as root, or permit user namespaces)`;
  },
  /** Simulated hosts with TUN interfaces. */
  TUN: () =>
    process.getuid?.() !== 0
      ? 'TUN interfaces in two network namespaces require root (run as root)'
      : existsSync('/dev/net/tun')
        ? undefined
        : 'there is no /dev/net/tun (modprobe tun; docker run --device /dev/net/tun)',
  /** CAP_NET_RAW, which permits receiving unmodified packets. */
  'raw sockets': () =>
    (effectiveCapabilities() & CAP_NET_RAW) === 0n
      ? 'no privilege to open raw sockets (run as root, or permit user namespaces)'
      : undefined,
  /** A shell, which limits the resources of a program. */
  limits: () => (onWindows ? 'process limits require a Linux shell (run it on Linux)' : undefined),
  /** Direct access of peers to memory from `allocate()`. */
  'direct access': () =>
    onWindows ? 'mapped sections cannot be protected from writes (run it on Linux)' : undefined,
  '127.0.0.1': () => undefined,
  '::1': () =>
    addresses.some(({ address }) => address === '::1')
      ? undefined
      : 'the loopback interface has no address ::1 (switch IPv6 on; docker run --sysctl net.ipv6.conf.all.disable_ipv6=0)',
  /** An address that does not belong to the loopback interface. */
  interface: () =>
    interfaceAddress === undefined
      ? 'this host only has a loopback IPv4 address (connect it to a network)'
      : undefined,
} satisfies Record<string, () => string | undefined>;

/** The name of a need. */
export type Need = keyof typeof needs;

/** Why this machine does not meet these needs, with a remedy; undefined if it does. */
export function lacking(...names: readonly Need[]): string | undefined {
  for (const name of names) {
    const reason = needs[name]();
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/**
 * Returns the suite for tests with needs. If the machine meets them, it is unchanged. Otherwise each test is skipped, and no hook runs.
 */
export function needing<T>(test: Test<T>, ...names: readonly Need[]): Test<T> {
  const reason = lacking(...names);
  if (reason === undefined) return test;
  const skip = (): void => {
    console.log(`SKIP ${reason}`);
    test.skip();
  };
  const hook = Object.assign(() => {}, { each: () => {} });
  return Object.assign(skip, { only: skip, skip, before: hook, after: hook, run: test.run });
}
