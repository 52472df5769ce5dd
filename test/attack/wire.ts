/**
 * Attacks over UDP. A process on this host or another sends arbitrary packets to port 4791, as a peer or as itself.
 */
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import type { Attack, Outcome, Run } from './attack.js';
import type { Burst, Sent } from './flood.js';
import { Program } from './process.js';
import { type Place, Victims } from './victims.js';

const ADDRESS = '127.0.0.1';
/** Packets between two updates of the targets and their PSNs. */
const BURST = 128;
/** If the receiver solves for the IPv4 ID, it accepts one in this many wrong ICRCs. */
const SOLVED_ONE_IN = 2 ** 15;
/** Raw sockets with exact ICRCs: one of the victim and one of its partner. */
const RAW_SOCKETS = 2;

/**
 * Opens UDP sockets whose packets have ID 0, as in RoCEv2, and executes the program that uses them. Node.js cannot set that option
 * (IP_MTU_DISCOVER).
 */
const zeroIds = (sockets: number, source: string): string[] => [
  'python3',
  '-c',
  `
import os, socket, sys
fds = []
for n in range(${sockets}):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 10, 2)
    s.bind(('${source}', 0))
    os.set_inheritable(s.fileno(), True)
    fds.append(str(s.detach()))
os.execvp(sys.argv[1], sys.argv[1:] + fds)
`,
];
const SOCKETS = 6;

export interface Field {
  readonly kernel: KernelOptionsInput;
  readonly connections: number;
  readonly datagrams: number;
  /** Whether the attacker's packets have the IPv4 ID that their ICRCs assume, so that receivers do not solve for it. */
  readonly zeroIds: boolean;
  /** Whether the attacker is on another host, together with the partner. It only knows connections of other hosts. */
  readonly remote?: boolean;
}

const fast: KernelOptionsInput = { link: 'wire', rc: { ackTimeoutCode: 14 }, cm: { timewaitMs: 50 } };

/** A time long enough for any victim to reconnect. */
const IDLE_MS = 60_000;

const here = { address: ADDRESS, by: [] } as const;

async function floodOf(field: Field, run: Run): Promise<Outcome> {
  if (!field.remote) return floodFrom(field, run, { victim: here, partner: here });
  const network = await TwoHosts.start();
  try {
    const [victim, partner] = network.hosts;
    // The longest packets must pass, as on the loopback interface.
    for (const host of network.hosts) network.run(host, ['ip', 'link', 'set', host.interface, 'mtu', '9000']);
    return await floodFrom(field, run, { victim, partner });
  } finally {
    network.end();
  }
}

/** The attacker is on the partner's host. */
async function floodFrom(field: Field, run: Run, place: Place): Promise<Outcome> {
  const { build, seed, count, progress } = run;
  const { kernel, connections, datagrams } = field;
  const victims = await Victims.start({ build, seed, kernel, connections, datagrams, place });
  const source = place.partner.address;
  const by = [...place.partner.by, ...(field.zeroIds ? zeroIds(SOCKETS, source) : [])];
  const flood = new Program('flood', { build: 'plain', args: [source, place.victim.address, seed], by });
  await flood.next('start');
  const forbidden = await victims.spared();
  const total = { packets: 0, damaged: 0, damagedForAll: 0, refused: 0 };
  let idleUntil = performance.now() + IDLE_MS;
  while (total.packets < count) {
    const aims = await victims.aims();
    if (aims.length === 0) {
      // All targets are being replaced.
      if (performance.now() > idleUntil) throw new Error(`No victim has had a connection for ${IDLE_MS} ms.`);
      continue;
    }
    idleUntil = performance.now() + IDLE_MS;
    const packets = Math.min(BURST, count - total.packets);
    const sent = await flood.ask<Sent>({ aims, packets, forbidden } satisfies Burst);
    total.packets += sent.packets;
    total.damaged += sent.damaged;
    total.damagedForAll += sent.damagedForAll;
    total.refused += sent.refused;
    progress(total.packets);
  }
  flood.kill();
  const { findings, before, after, left } = await victims.end();
  // The sum over both, because either may have received a packet.
  const sum = (name: string): number => after[0].hca[name]! + after[1].hca[name]! - before.hca[name]!;
  const figures = {
    fast: sum('rcvd_fast'),
    reports: sum('rcvd_report'),
    fragments: sum('rcvd_fragment'),
    'peer sockets': sum('rx_peer_socket_opened'),
    solved: sum('rx_ipv4_id_solved'),
    icrc: sum('rx_icrc_errors'),
    'bad length': sum('wire_rx_bad_length'),
    'not ours': sum('rx_misdirected'),
    renewed: left.renewed,
    rounds: after[0].bystander.rounds,
    'system dropped': left.systemDropped,
    refused: total.refused,
  };
  const dropped = figures.icrc + figures['bad length'];
  const exact = kernel.icrc === 'exact';
  const luck = exact ? 0 : 10 + (10 * total.damaged) / SOLVED_ONE_IN;
  // With exact ICRCs, the OS also counts packets removed by its filters, which the raw socket does receive.
  const lost = (exact ? 0 : left.systemDropped) + total.refused;
  // With exact ICRCs, a packet to the multicast QPN arrives at one UDP socket and at the raw sockets of both processes.
  const damaged = total.damaged + (exact ? RAW_SOCKETS * total.damagedForAll : 0);
  if (dropped > damaged || dropped < damaged - luck - lost) {
    findings.push(`counters: ${dropped} packets were dropped as damaged; expected ${damaged}`);
  }
  const came = sum('wire_rx_packets');
  if (came < total.packets - lost) {
    findings.push(`counters: ${came} packets have arrived; ${total.packets} were sent`);
  }
  if (field.remote && left.renewed > 0) {
    findings.push(`connections: ${left.renewed} were ended by packets of a host that is not their peer's`);
  }
  if (!field.remote && connections > 0 && field.zeroIds && !exact && figures.fast < total.packets / 100) {
    findings.push('the attack: hardly any packet has taken the fast path');
  }
  // Both peers of a victim's connection use this package, so they have agreed on fragments.
  if (!field.remote && connections > 0 && figures.fragments < total.packets / 5000) {
    findings.push('the attack: hardly any fragment was accepted');
  }
  return { done: total.packets, findings, figures };
}

const wireAttack = (
  name: string,
  what: string,
  counts: { full: number; short: number },
  field: Field,
): Attack => ({
  name,
  what,
  unit: 'packets',
  ...counts,
  seldom: name === 'wire',
  needs: field.remote ? ['namespaces', 'python3'] : ['python3'],
  run: (run) => floodOf(field, run),
});

export const wireAttacks: readonly Attack[] = [
  wireAttack(
    'wire',
    'a process that knows QPNs, PSNs and rkeys of reliable connections sends in their peers’ names',
    { full: 2_500_000, short: 20_000 },
    { kernel: fast, connections: 6, datagrams: 0, zeroIds: true },
  ),
  wireAttack(
    'wire-exact',
    'the same, where ICRCs are checked exactly',
    { full: 1_000_000, short: 12_000 },
    { kernel: { ...fast, icrc: 'exact' }, connections: 4, datagrams: 1, zeroIds: true },
  ),
  wireAttack(
    'wire-datagrams',
    'datagrams to UD queue pairs and their group',
    { full: 1_000_000, short: 12_000 },
    { kernel: fast, connections: 0, datagrams: 4, zeroIds: false },
  ),
  wireAttack(
    'wire-pkeys',
    'connections and datagrams in several partitions, packets with any P_Key',
    { full: 1_000_000, short: 12_000 },
    { kernel: { ...fast, pkeys: [0xffff, 0x8001, 0x8002] }, connections: 3, datagrams: 3, zeroIds: true },
  ),
  wireAttack(
    'wire-remote',
    'another host that knows QPNs, PSNs and rkeys of connections that are not its own, and sends datagrams',
    { full: 1_000_000, short: 12_000 },
    { kernel: fast, connections: 4, datagrams: 2, zeroIds: true, remote: true },
  ),
];
