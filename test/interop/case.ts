/** What a case of the interop matrix is, and the ways in which its two ends meet. */
import type { Program } from './process.js';
import type { Rig } from './rig.js';

/** Who this library is in a case. */
export type Role = 'client' | 'server' | 'both';

export interface InteropCase {
  /** The Linux program at the other end, or the kernel's part that is asked. */
  readonly peer: string;
  readonly operation: string;
  readonly role: Role;
  readonly family: 4 | 6;
  /** Path MTU in bytes that the case forces; undefined: what the link gives. */
  readonly mtu?: number;
  /** Per cent of the guest's packets that netem drops, or what else it does. */
  readonly loss?: string;
  /** Part of the short run. */
  readonly quick?: boolean;
  /** Throws when something is not as it should be. */
  run(rig: Rig): Promise<void>;
}

/** This host, and the guest that most cases talk to. */
export const HERE = 1;
export const GUEST = 2;

export const FAMILIES = [4, 6] as const;
export const MTUS = [256, 512, 1024, 2048, 4096] as const;

/** Both ends end well; the first one's failure is told, with the other's last words. */
export async function bothEnd(first: Program, second: Program, seconds = 90): Promise<void> {
  const outcomes = await Promise.allSettled([first.ok(seconds), second.ok(seconds)]);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []));
  if (failures.length > 0) throw new Error(failures.join('\n'));
}

/** A server here that says when it listens, and a client in the guest. */
export async function serveGuest(rig: Rig, server: Program, client: string): Promise<void> {
  await server.line(/^listening/);
  await bothEnd(rig.guest(GUEST, client), server);
}

/** A server in the guest on an RDMA or TCP port, and a client here. */
export async function askGuest(
  rig: Rig,
  server: string,
  kind: 'rdma' | 'tcp',
  port: number,
  client: () => Program,
  exitCodes: readonly number[] = [0],
): Promise<void> {
  const there = rig.guest(GUEST, server);
  await rig.listening(GUEST, kind, port);
  const here = client();
  try {
    await here.ok(90);
  } catch (error) {
    // What the guest's program has to say may explain it.
    await there.end(5).catch(() => {});
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
  const code = await there.end(90);
  if (!exitCodes.includes(code)) throw there.failure(`ended with exit code ${code}`);
}

/** Port of tools that meet over TCP. */
export const TCP_PORT = 18_515;
/** Index of an address family in the guest's GID table. */
export const gidIndex = (family: 4 | 6): number => (family === 4 ? 1 : 2);

/** Runs something while the guest's link is disturbed. */
export async function withNetem(rig: Rig, netem: string, run: () => Promise<void>): Promise<void> {
  await rig.inGuest(GUEST, `modprobe sch_netem; tc qdisc replace dev eth0 root netem ${netem}`);
  try {
    await run();
  } finally {
    await rig.inGuest(GUEST, 'tc qdisc del dev eth0 root');
  }
}
