/** Cases of the devices themselves: events, removal, several side by side; and how the guests get their devices. */
import type { Rig } from '../interop/rig.js';
import { HOST, OURS, onDevice, type RdmaCase, rxe, Skipped, siw, THEIRS } from './case.js';

const program = (name: string): string => `test/rdma/programs/${name}.js`;
const LINK = 'eth1';

/** Both guests have siw on their second link; the first one, as they boot, has rxe. */
export async function withSiw(rig: Rig): Promise<void> {
  const why = (await rig.inGuest(OURS, 'cat /etc/no-siw 2>/dev/null || true')).join(' ').trim();
  if (why !== '') throw new Skipped(why);
  for (const guest of [OURS, THEIRS]) await link(rig, guest, siw.name, 'siw');
}

/** A device of a type on the second link, and no other. */
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

interface Told {
  readonly before: boolean;
  readonly events: object;
  readonly ended: Readonly<Record<string, string>>;
  readonly gone: string;
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
} satisfies Told;

async function device(rig: Rig, name: string, type: string): Promise<void> {
  await link(rig, OURS, name, type);
  const run = rig.nodeInGuest(OURS, onDevice, program('device'), siw.at(OURS), LINK, name);
  const told = (await run.ok()).find((line) => line.startsWith('{'));
  if (told !== JSON.stringify(expected)) throw run.failure(`Expected ${JSON.stringify(expected)}`);
  // librdmacm may have the device open until the process ends.
  await rig.inGuest(OURS, `while [ -e /sys/class/infiniband/${name} ]; do sleep 0.1; done`);
  await link(rig, OURS, name, type);
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

/** The device is taken away while the program listens, and the next program finds it again. */
export const deviceCases: readonly RdmaCase[] = [
  {
    name: 'rxe1: events of addresses and link; removal in use, and again',
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
      const rping = 'examples/interop/rping.js';
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
