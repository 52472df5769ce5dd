/** Cases of the devices themselves: events, removal, and several devices at the same time. Also the setup of the guests' devices. */
import { isDeepStrictEqual } from 'node:util';
import type { Rig } from '../interop/rig.js';
import { type Device, HOST, OURS, onDevice, type RdmaCase, rxe, Skipped, siw, THEIRS } from './case.js';

const program = (name: string): string => `test/rdma/programs/${name}.js`;
const LINK = 'eth1';

/** Sets up siw on the second link of both guests. Their first link has rxe from the start. */
export async function withSiw(rig: Rig): Promise<void> {
  const why = (await rig.inGuest(OURS, 'cat /etc/no-siw 2>/dev/null || true')).join(' ').trim();
  if (why !== '') throw new Skipped(why);
  for (const guest of [OURS, THEIRS]) await link(rig, guest, siw.name, 'siw');
}

/** Sets up a device of a type on the second link, and removes others. */
async function link(rig: Rig, guest: number, name: string, type: string): Promise<void> {
  await rig.inGuest(
    guest,
    [
      `modprobe ${type === 'rxe' ? 'rdma_rxe' : type}`,
      `for one in rxe1 siw0; do [ $one = ${name} ] || [ ! -e /sys/class/infiniband/$one ] || rdma link del $one; done`,
      `ip addr replace ${siw.at(guest)}/24 dev ${LINK}`,
      `ip link set ${LINK} up`,
      `[ -e /sys/class/infiniband/${name} ] || rdma link add ${name} type ${type} netdev ${LINK}`,
    ].join(' && '),
  );
}

interface DeviceReport {
  readonly before: boolean;
  readonly events: object;
  readonly ended: Readonly<Record<string, string>>;
  readonly gone: string;
  readonly again: boolean;
}

const REMOVED = 'DEVICE_REMOVED';
const expected = {
  before: true,
  events: { added: true, removed: false, down: true, up: true },
  ended: {
    cqAny: REMOVED,
    cqSolicited: REMOVED,
    cqError: REMOVED,
    getRequest: REMOVED,
    notifyDisconnect: REMOVED,
    deviceNotify: REMOVED,
  },
  gone: 'NOT_FOUND',
  again: true,
} satisfies DeviceReport;

async function device(rig: Rig, name: string, type: string): Promise<void> {
  await link(rig, OURS, name, type);
  const run = rig.nodeInGuest(OURS, onDevice, program('device'), siw.at(OURS), LINK, name, type);
  const reported = (await run.ok()).find((line) => line.startsWith('{'));
  if (reported !== JSON.stringify(expected)) throw run.failure(`Expected ${JSON.stringify(expected)}`);
  await beside(rig, [siw.at(OURS)], 1);
}

async function beside(rig: Rig, addresses: readonly string[], wanted: number): Promise<void> {
  const lines = await rig.nodeInGuest(OURS, { hca: 'auto' }, program('beside'), ...addresses).ok();
  const { kinds, guids } = JSON.parse(lines.find((line) => line.startsWith('{')) ?? '{}') as {
    kinds: string[];
    guids: number;
  };
  rig.note(kinds.join(', '));
  if (guids !== wanted) throw new Error(`${wanted} addresses are of ${guids} devices.`);
}

/**
 * The requests of programs/lacks.ts that a device does not support, and the capabilities that it reports. All other requests are executed,
 * whatever their result.
 */
interface Lacks {
  readonly reported: Readonly<Record<string, boolean>>;
  readonly lacking: readonly string[];
}

async function lacks(rig: Rig, device: Device, expected: Lacks): Promise<void> {
  const run = rig.nodeInGuest(OURS, onDevice, program('lacks'), device.at(OURS));
  const line = (await run.ok()).find((text) => text.startsWith('{')) ?? '{}';
  const { reported, ended } = JSON.parse(line) as {
    reported: Record<string, boolean>;
    ended: Record<string, string>;
  };
  if (!isDeepStrictEqual(reported, expected.reported))
    throw new Error(`Reported: ${JSON.stringify(reported)}.`);
  const wrong = Object.entries(ended).filter(([kind, text]) =>
    expected.lacking.includes(kind)
      ? !(text.startsWith('NOT_SUPPORTED: ') && text.includes(device.name))
      : text.startsWith('NOT_SUPPORTED'),
  );
  if (wrong.length > 0) throw new Error(wrong.map(([kind, text]) => `${kind}: ${text}`).join('\n'));
}

/** The device is removed while the program listens, and the next program finds it again after its return. */
export const deviceCases: readonly RdmaCase[] = [
  {
    name: `${rxe.name}: unsupported requests are rejected`,
    quick: true,
    run: (rig) =>
      lacks(rig, rxe, {
        reported: {
          iwarp: false,
          atomics: true,
          windows: true,
          fastRegions: false,
          fixedCqs: false,
          addressHandles: true,
        },
        lacking: ['fast region'],
      }),
  },
  {
    name: `${siw.name}: unsupported requests are rejected`,
    run: async (rig) => {
      await withSiw(rig);
      await lacks(rig, siw, {
        reported: {
          iwarp: true,
          atomics: false,
          windows: false,
          fastRegions: false,
          fixedCqs: true,
          addressHandles: false,
        },
        lacking: [
          'Send with immediate data',
          'Write with immediate data',
          'Send with immediate data, of a list',
          'compare and exchange',
          'fetch and add',
          'memory window',
          'fast region',
          'larger completion queue',
          'unreliable connection',
          'datagram queue pair',
          'address handle',
          'datagram listener',
          'datagram lookup',
        ],
      });
    },
  },
  {
    name: 'rxe1: events of addresses and link, removal while in use, and its return',
    quick: true,
    run: (rig) => device(rig, 'rxe1', 'rxe'),
  },
  {
    name: 'two rxe devices and the software HCA in one process',
    run: async (rig) => {
      await link(rig, OURS, 'rxe1', 'rxe');
      await beside(rig, [rxe.at(OURS), siw.at(OURS), '127.0.0.1'], 3);
    },
  },
  {
    name: "rping between a device and this host's software HCA, both roles",
    quick: true,
    run: async (rig) => {
      const args = ['-C', '3', '-V'];
      const server = rig.ours('rping', '-s', '-a', rxe.at(HOST), ...args);
      await server.line(/^listening/);
      const rping = 'test/interop/programs/rping.js';
      await rig
        .nodeInGuest(OURS, onDevice, rping, '-c', '-a', rxe.at(HOST), '-I', rxe.at(OURS), ...args)
        .ok();
      await server.ok();
      const there = rig.nodeInGuest(OURS, onDevice, rping, '-s', ...args);
      await there.line(/^listening/);
      await rig.ours('rping', '-c', '-a', rxe.at(OURS), '-I', rxe.at(HOST), ...args).ok();
      await there.ok();
    },
  },
];
