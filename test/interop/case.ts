/** The interface of a case of the interop matrix, and the ways to connect its two sides. */
import { type Program, TIMEOUT_SECONDS } from './process.js';
import type { Rig } from './rig.js';

/** The role of this library in a case. */
export type Role = 'client' | 'server' | 'both';

export interface InteropCase {
  /** The Linux program on the other side, or the part of the kernel. */
  readonly peer: string;
  readonly operation: string;
  readonly role: Role;
  readonly family: 4 | 6;
  /** Path MTU in bytes that the case sets, or undefined for that of the link. */
  readonly mtu?: number;
  /** Percentage of the guest's packets that netem drops, or another disturbance. */
  readonly loss?: string;
  /**
   * Set for cases that mostly wait for timers, and may run at the same time as others that keep the machine busy: the approximate number of
   * seconds.
   */
  readonly waits?: number;
  /** Whether it belongs to the short run. */
  readonly quick?: boolean;
  /** Runs the case. Throws on a failure. */
  run(rig: Rig): Promise<void>;
}

/** This host, and the guest of most cases. */
export const HERE = 1;
export const GUEST = 2;

export const FAMILIES = [4, 6] as const;
export const MTUS = [256, 512, 1024, 2048, 4096] as const;

/** Waits until both sides have succeeded. Reports the failure of one with the last lines of the other. */
export async function bothEnd(first: Program, second: Program, seconds = TIMEOUT_SECONDS): Promise<void> {
  const outcomes = await Promise.allSettled([first.ok(seconds), second.ok(seconds)]);
  const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason.message)] : []));
  if (failures.length > 0) throw new Error(failures.join('\n'));
}

/** Runs a server here that reports when it listens, and a client in the guest. */
export async function serveGuest(rig: Rig, server: Program, client: string): Promise<void> {
  await server.line(/^listening/);
  await bothEnd(rig.guest(GUEST, client), server);
}

/** Runs a server in the guest on an RDMA or TCP port, and a client here. */
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
    await here.ok();
  } catch (error) {
    // The output of the guest's program may explain the failure.
    await there.end(5).catch(() => {});
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
  const code = await there.end();
  if (!exitCodes.includes(code)) throw there.failure(`ended with exit code ${code}`);
}

/** Port of tools that exchange their addresses over TCP. */
export const TCP_PORT = 18_515;
/** Port of the connection manager's tools. */
export const CM_PORT = 7471;
/** Index of an address family in the guest's GID table. */
export const gidIndex = (family: 4 | 6): number => (family === 4 ? 1 : 2);

/** The number of packets that a queue has dropped, marked or passed, from `tc -s`. */
export async function queueCounter(
  rig: Rig,
  device: string,
  what: 'dropped' | 'marked' | 'pkt',
): Promise<number> {
  const lines = await rig.inGuest(GUEST, `tc -s qdisc show dev ${device}`);
  const form = what === 'pkt' ? / (\d+) pkt/ : new RegExp(`${what} (\\d+)`);
  return Number(form.exec(lines.join(' '))?.[1] ?? 0);
}

/** Calls `run` while packets from the guest are disturbed. */
export async function withNetem(rig: Rig, netem: string, run: () => Promise<void>): Promise<void> {
  await rig.inGuest(GUEST, `modprobe sch_netem; tc qdisc replace dev eth0 root netem ${netem}`);
  try {
    await run();
  } finally {
    await rig.inGuest(GUEST, 'tc qdisc del dev eth0 root');
  }
}

/** The device through which packets enter the guest in {@link withNetemInwards}. */
export const INWARDS = 'ifb0';

/**
 * Calls `run` while packets from this side are disturbed. The guest disturbs them on reception, because this host's kernel may lack netem.
 *
 * @param what - The selected packets, as tc's u32 filter
 * @param but - Packets to leave alone although they are selected
 */
export async function withNetemInwards(
  rig: Rig,
  netem: string,
  run: () => Promise<void>,
  what: readonly string[] = ['protocol all u32 match u32 0 0'],
  but: readonly string[] = [],
): Promise<void> {
  const filter = 'tc filter add dev eth0 parent ffff:';
  await rig.inGuest(
    GUEST,
    [
      'modprobe -a ifb act_mirred act_gact cls_u32 sch_ingress sch_netem',
      `ip link show ${INWARDS} >/dev/null 2>&1 || ip link add ${INWARDS} type ifb`,
      `ip link set ${INWARDS} up`,
      `tc qdisc replace dev ${INWARDS} root netem ${netem}`,
      'tc qdisc add dev eth0 ingress',
      // A preference is only valid for one protocol.
      ...but.map((one, n) => `${filter} pref ${n + 1} ${one} action pass`),
      ...what.map(
        (one) => `${filter} pref ${but.length + 1} ${one} action mirred egress redirect dev ${INWARDS}`,
      ),
    ].join(' && '),
  );
  try {
    await run();
  } finally {
    await rig.inGuest(GUEST, `tc qdisc del dev eth0 ingress; ip link del ${INWARDS}`);
  }
}
