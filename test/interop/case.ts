/** What a case of the interop matrix is, and the ways in which its two ends meet. */
import { PATIENCE, type Program } from './process.js';
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
  /** It waits for timers most of its time, of about so many seconds, and may run beside others that keep the machine busy. */
  readonly waits?: number;
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
export async function bothEnd(first: Program, second: Program, seconds = PATIENCE): Promise<void> {
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
    await here.ok();
  } catch (error) {
    // What the guest's program has to say may explain it.
    await there.end(5).catch(() => {});
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
  const code = await there.end();
  if (!exitCodes.includes(code)) throw there.failure(`ended with exit code ${code}`);
}

/** Port of tools that meet over TCP. */
export const TCP_PORT = 18_515;
/** Index of an address family in the guest's GID table. */
export const gidIndex = (family: 4 | 6): number => (family === 4 ? 1 : 2);

/** Packets that a queue has dropped, marked or let pass, as `tc -s` tells. */
export async function queueCounter(
  rig: Rig,
  device: string,
  what: 'dropped' | 'marked' | 'pkt',
): Promise<number> {
  const lines = await rig.inGuest(GUEST, `tc -s qdisc show dev ${device}`);
  const form = what === 'pkt' ? / (\d+) pkt/ : new RegExp(`${what} (\\d+)`);
  return Number(form.exec(lines.join(' '))?.[1] ?? 0);
}

/** Runs something while the guest's link is disturbed: what the guest sends. */
export async function withNetem(rig: Rig, netem: string, run: () => Promise<void>): Promise<void> {
  await rig.inGuest(GUEST, `modprobe sch_netem; tc qdisc replace dev eth0 root netem ${netem}`);
  try {
    await run();
  } finally {
    await rig.inGuest(GUEST, 'tc qdisc del dev eth0 root');
  }
}

/** The device that what comes in to the guest goes through in {@link withNetemInwards}. */
export const INWARDS = 'ifb0';

/**
 * Runs something while the other direction is disturbed: what this side sends. The guest does it, too, on what comes in: this
 * host's kernel may have no netem.
 *
 * @param what - The packets that are meant, as tc's u32 filter says it
 * @param but - Packets that are left alone though they are meant
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
      // A preference is of one protocol.
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
