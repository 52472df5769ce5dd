/**
 * Network namespaces for tests: created directly if this process may do so, as root may, otherwise within a user namespace if the OS
 * permits these to all users.
 */
import { spawnSync } from 'node:child_process';

/** Commands that start another command in a new namespace, whose only interface is `lo`, down. */
const ways = { plain: ['unshare', '-n'], inUserNamespace: ['unshare', '-Urn'] } as const;

/** Starts a command after bringing `lo` up. */
const withLoopback = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh'] as const;

interface Found {
  readonly way?: keyof typeof ways;
  /** Why neither command works. */
  readonly problem?: string;
}
let found: Found | undefined;

function find(): Found {
  const cable = ['ip', 'link', 'add', 'nd0', 'type', 'veth', 'peer', 'name', 'nd1'];
  const problems = new Set<string>();
  for (const way of ['plain', 'inUserNamespace'] as const) {
    const [file, ...args] = [...ways[way], ...cable];
    const { status, stderr, error } = spawnSync(file!, args, { encoding: 'utf8' });
    if (status === 0) return { way };
    problems.add(error?.message ?? stderr.trim().replaceAll('\n', ' '));
  }
  return { problem: [...problems].join('; ') };
}

/** Why no namespace with a cable (veth) can be created here; undefined if it can. */
export function namespaceProblem(): string | undefined {
  found ??= find();
  return found.problem;
}

function theWay(): keyof typeof ways {
  const problem = namespaceProblem();
  if (found?.way === undefined) throw new Error(`Cannot create a network namespace: ${problem}.`);
  return found.way;
}

/** The command line that runs a command in a new namespace with `lo` up. */
export function inNewNetwork(...command: readonly string[]): [string, ...string[]] {
  const [file, ...args] = ways[theWay()];
  return [file, ...args, ...withLoopback, ...command];
}

/** The command that starts another command in the network namespace of a process that {@link inNewNetwork} started. */
export function byNetworkOf(pid: number): [string, ...string[]] {
  const user = theWay() === 'plain' ? [] : [`--user=/proc/${pid}/ns/user`, '--preserve-credentials'];
  return ['nsenter', ...user, `--net=/proc/${pid}/ns/net`];
}

/** As {@link inNewNetwork}, for a network to which the process `pid` may move interfaces. */
export function inNewNetworkBeside(pid: number, ...command: readonly string[]): [string, ...string[]] {
  return [...byNetworkOf(pid), ...ways.plain, ...withLoopback, ...command];
}
