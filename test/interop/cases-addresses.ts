/** Cases of link-local addresses, which need a scope, and of path MTUs, which depend on the interfaces. */
import * as z from 'zod';
import { askGuest, CM_PORT, FAMILIES, GUEST, HERE, type InteropCase, serveGuest, TCP_PORT } from './case.js';
import { address, type Rig } from './rig.js';
import { RPING_PORT, RPING_SERVER_ENDS, serveRping } from './rping-ends.js';

const SIDR_PORT = 7174;
/** Index of the link-local address in the guest's GID table. */
const LINK_LOCAL_GID = 0;
/** The interfaces of the two hosts. */
const GUEST_LINK = 'eth0';
const OUR_LINK = 'br0';

/** An interface's link-local address among the lines of `ip -o addr`. */
function linkLocal(lines: readonly string[]): string {
  const found = lines
    .map((line) => /inet6 (fe80::[0-9a-f:]+)\//.exec(line)?.[1])
    .find((one) => one !== undefined);
  if (found === undefined) throw new Error(`No link-local address in: ${lines.join(' / ')}`);
  return found;
}

interface Link {
  /** Addresses as this side writes them. */
  readonly own: string;
  readonly peer: string;
  /** The same addresses as the guest writes them. */
  readonly ours: string;
  readonly theirs: string;
}

async function link(rig: Rig): Promise<Link> {
  const show = ['ip', '-6', '-o', 'addr', 'show', 'dev'];
  const here = linkLocal(await rig.host(...show, OUR_LINK).ok());
  const there = linkLocal(await rig.inGuest(GUEST, [...show, GUEST_LINK].join(' ')));
  return {
    own: `${here}%${OUR_LINK}`,
    peer: `${there}%${OUR_LINK}`,
    ours: `${here}%${GUEST_LINK}`,
    theirs: `${there}%${GUEST_LINK}`,
  };
}

const PINGS = 5;
const rpingFlags = ['-C', String(PINGS), '-S', '5000', '-V'];
const udaddyFlags = ['-C', '10', '-S', '100'];
const ucmatoseFlags = ['-c', '10', '-C', '4', '-S', '200'];

const linkLocals: readonly Omit<InteropCase, 'family'>[] = [
  {
    peer: 'rping -s',
    operation: 'link-local addresses',
    role: 'client',
    quick: true,
    run: async (rig) => {
      const { own, peer, theirs } = await link(rig);
      const there = `rping -s -a ${theirs} -C ${PINGS} -S 5000`;
      const ours = () => rig.ours('rping', '-c', '-a', peer, '-I', own, ...rpingFlags);
      await askGuest(rig, there, 'rdma', RPING_PORT, ours, RPING_SERVER_ENDS);
    },
  },
  {
    peer: 'rping -c',
    operation: 'link-local addresses',
    role: 'server',
    quick: true,
    run: async (rig) => {
      const { own, ours } = await link(rig);
      const server = rig.ours('rping', '-s', '-v', '-a', own);
      await serveRping(rig, server, `rping -c -a ${ours} ${rpingFlags.join(' ')}`, PINGS);
    },
  },
  {
    peer: 'ucmatose',
    operation: 'link-local addresses, 10 connections',
    role: 'client',
    run: async (rig) => {
      const { own, peer, theirs } = await link(rig);
      await askGuest(rig, `ucmatose -b ${theirs} ${ucmatoseFlags.join(' ')}`, 'rdma', CM_PORT, () =>
        rig.ours('ucmatose', '-s', peer, '-b', own, ...ucmatoseFlags),
      );
    },
  },
  {
    peer: 'udaddy',
    operation: 'link-local addresses',
    role: 'client',
    run: async (rig) => {
      const { own, peer, theirs } = await link(rig);
      await askGuest(rig, `udaddy -b ${theirs} ${udaddyFlags.join(' ')}`, 'rdma', SIDR_PORT, () =>
        rig.ours('udaddy', '-s', peer, '-b', own, ...udaddyFlags),
      );
    },
  },
  {
    peer: 'udaddy',
    operation: 'link-local addresses',
    role: 'server',
    run: async (rig) => {
      const { own, ours } = await link(rig);
      await serveGuest(
        rig,
        rig.ours('udaddy', '-b', own, ...udaddyFlags),
        `udaddy -s ${ours} ${udaddyFlags.join(' ')}`,
      );
    },
  },
  {
    peer: 'all-ops.py',
    operation: 'link-local addresses, every RC operation',
    role: 'client',
    run: async (rig) => {
      const { own } = await link(rig);
      await askGuest(
        rig,
        `python3 /share/all-ops.py --mtu 1024 --gid ${LINK_LOCAL_GID}`,
        'tcp',
        TCP_PORT,
        () => rig.ours('all-ops', '-a', address(GUEST, 4), '-I', own),
      );
    },
  },
  {
    peer: 'all-ops.py',
    operation: 'link-local addresses, every RC operation',
    role: 'server',
    run: async (rig) => {
      const { own } = await link(rig);
      await serveGuest(
        rig,
        rig.ours('all-ops', '-I', own),
        `python3 /share/all-ops.py --mtu 1024 --gid ${LINK_LOCAL_GID} ${address(HERE, 4)}`,
      );
    },
  },
];

const found = z.object({ activeMtu: z.number(), pathMtu: z.number(), refusal: z.string() });

/** Calls `run` with other interface MTUs on both sides. */
async function withLinkMtu(rig: Rig, bytes: number, run: () => Promise<void>): Promise<void> {
  const set = async (mtu: number) => {
    for (const name of [`tap${GUEST}`, OUR_LINK]) {
      await rig.host('ip', 'link', 'set', name, 'mtu', String(mtu)).ok();
    }
    const active = mtu >= 4200 ? 4096 : 1024;
    await rig.inGuest(
      GUEST,
      `ip link set ${GUEST_LINK} mtu ${mtu}; until ibv_devinfo | grep -q "active_mtu:[[:space:]]*${active} "; do sleep 0.05; done`,
    );
  };
  await set(bytes);
  try {
    await run();
  } finally {
    await set(rig.linkMtu);
  }
}

const linkMtus = [
  { bytes: 1500, pathMtu: 1024 },
  { bytes: 9000, pathMtu: 4096 },
] as const;

function pathMtus(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    linkMtus.flatMap(({ bytes, pathMtu }) =>
      (['client', 'server'] as const).map((role): InteropCase => {
        const program = (rig: Rig) =>
          rig.pathMtu(
            role === 'client' ? 'connect' : 'listen',
            address(HERE, family),
            address(GUEST, family),
            CM_PORT,
          );
        const check = (line: string) => {
          const { activeMtu, pathMtu: had, refusal } = found.parse(JSON.parse(line));
          if (activeMtu !== pathMtu)
            throw new Error(`Our port has ${activeMtu} on a link of ${bytes} bytes.`);
          if (had !== pathMtu)
            throw new Error(`The connection has a path MTU of ${had} instead of ${pathMtu}.`);
          if (pathMtu < 4096 && refusal === '') throw new Error('A larger path MTU was not refused.');
        };
        return {
          peer: 'ucmatose',
          operation: 'path MTU from the link',
          role,
          family,
          mtu: pathMtu,
          loss: `${bytes} byte link`,
          quick: family === 4 && role === 'client' && bytes === 1500,
          run: (rig) =>
            withLinkMtu(rig, bytes, async () => {
              if (role === 'client') {
                const server = rig.guest(GUEST, `ucmatose -b ${address(GUEST, family)} -C 0`);
                await rig.listening(GUEST, 'rdma', CM_PORT);
                check((await program(rig).ok()).at(-1) ?? '');
                await server.ok();
              } else {
                const server = program(rig);
                await server.line(/^listening/);
                const client = rig.guest(GUEST, `ucmatose -s ${address(HERE, family)} -C 0`);
                check((await server.ok()).at(-1) ?? '');
                await client.ok();
              }
            }),
        };
      }),
    ),
  );
}

export const addressCases: readonly InteropCase[] = [
  ...linkLocals.map((one): InteropCase => ({ ...one, family: 6 })),
  ...pathMtus(),
];
