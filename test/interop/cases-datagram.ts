/** Cases of unreliable transports: UC, UD, service id resolution, multicast groups. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  askGuest,
  bothEnd,
  FAMILIES,
  GUEST,
  gidIndex,
  HERE,
  type InteropCase,
  serveGuest,
  TCP_PORT,
} from './case.js';
import type { Program } from './process.js';
import { address, type Rig } from './rig.js';

const SIDR_PORT = 7174;
const GROUP = '239.77.5.1';
const GROUP_V6 = 'ff15::77:5';
/** Maximum number of consecutive senders. */
const MOST_SENDERS = 4;
const TIMEOUT_MS = 3000;

/** The ibv_*_pingpong programs besides that of RC. */
function pingpong(): InteropCase[] {
  const variants = [
    { type: 'uc', mtu: 1024, size: 4096 },
    { type: 'uc', mtu: 256, size: 4097 },
    { type: 'uc', mtu: 4096, size: 10_001 },
    { type: 'ud', mtu: 4096, size: 4096 },
    { type: 'ud', mtu: 4096, size: 33 },
    { type: 'srq', mtu: 1024, size: 4096 },
  ] as const;
  return FAMILIES.flatMap((family) =>
    variants.flatMap(({ type, mtu, size }, index): InteropCase[] => {
      const tool = `ibv_${type}_pingpong`;
      const flags = `-n 200 -r 64 -s ${size}${type === 'ud' ? '' : ` -m ${mtu}`}`;
      const more = type === 'srq' ? ' -q 8' : '';
      const there = `${tool} -g ${gidIndex(family)} ${flags}${more}`;
      const ours = ['-t', type, '-I', address(HERE, family), ...`${flags}${more}`.split(' ')];
      const common = { peer: tool, operation: `SEND, ${size} bytes`, family, mtu } as const;
      return [
        {
          ...common,
          role: 'client',
          quick: index === 3 && family === 4,
          run: (rig) =>
            // The tool only listens on IPv4, but the queue pairs' addresses are of this family.
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              rig.ours('pingpong', '-a', address(GUEST, 4), ...ours),
            ),
        },
        {
          ...common,
          role: 'server',
          quick: index === 0 && family === 6,
          run: (rig) => serveGuest(rig, rig.ours('pingpong', ...ours), `${there} ${address(HERE, family)}`),
        },
      ];
    }),
  );
}

function allOps(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    [256, 1024, 4096].flatMap((mtu): InteropCase[] => {
      const there = `python3 /share/all-ops.py --uc --mtu ${mtu} --gid ${gidIndex(family)}`;
      const ours = ['--uc', '-m', String(mtu)];
      const common = { peer: 'all-ops.py', operation: 'every UC operation', family, mtu } as const;
      return [
        {
          ...common,
          role: 'client',
          run: (rig) =>
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              rig.ours('all-ops', '-a', address(GUEST, family), ...ours),
            ),
        },
        {
          ...common,
          role: 'server',
          quick: family === 4 && mtu === 256,
          run: (rig) =>
            serveGuest(
              rig,
              rig.ours('all-ops', '-I', address(HERE, family), ...ours),
              `${there} ${address(HERE, family)}`,
            ),
        },
      ];
    }),
  );
}

function udaddy(): InteropCase[] {
  const variants = [
    ['1 queue pair, 100 bytes', '-c 1 -C 10 -S 100'],
    ['1 queue pair, a whole packet', '-c 1 -C 10 -S 4096'],
    ['20 queue pairs at once', '-c 20 -C 4 -S 501'],
  ] as const;
  return FAMILIES.flatMap((family) =>
    variants.flatMap(([operation, flags], index): InteropCase[] => {
      const common = { peer: 'udaddy', operation, family } as const;
      return [
        {
          ...common,
          role: 'client',
          quick: index === 0,
          run: (rig) =>
            askGuest(rig, `udaddy -b ${address(GUEST, family)} ${flags}`, 'rdma', SIDR_PORT, () =>
              rig.ours('udaddy', '-s', address(GUEST, family), ...flags.split(' ')),
            ),
        },
        {
          ...common,
          role: 'server',
          quick: index === 2 && family === 4,
          run: (rig) =>
            serveGuest(
              rig,
              rig.ours('udaddy', '-b', address(HERE, family), ...flags.split(' ')),
              `udaddy -s ${address(HERE, family)} ${flags}`,
            ),
        },
      ];
    }),
  );
}

/** A missing listener and one that rejects, as reported by SIDR's status. */
function sidrRefusals(): InteropCase[] {
  return FAMILIES.flatMap((family): InteropCase[] => {
    const common = { peer: 'rdma_cm, SIDR', family } as const;
    const sidr = (rig: Rig, behaviour: string, port: number) =>
      rig.sidr(behaviour, address(HERE, family), address(GUEST, family), port);
    return [
      {
        ...common,
        operation: 'no listener there',
        role: 'client',
        quick: family === 4,
        run: async (rig) => {
          await sidr(rig, 'refused', 999).ok();
        },
      },
      {
        ...common,
        operation: 'rejection by the listener',
        role: 'server',
        run: async (rig) => {
          const server = sidr(rig, 'reject', SIDR_PORT);
          await server.line(/^listening/);
          await rig.guest(GUEST, `udaddy -s ${address(HERE, family)}`).line(/UNREACHABLE, error: 2/);
          await server.ok();
        },
      },
    ];
  });
}

/** On RoCEv2, the kernel's RDMA CM only joins IPv4 groups. */
function mckey(): InteropCase[] {
  const flags = ['-C', '10', '-S', '1000'];
  const ours = (rig: Rig, ...more: string[]) =>
    rig.ours('mckey', '-m', GROUP, '-b', address(HERE, 4), ...flags, ...more);
  const there = `mckey -m ${GROUP} -b ${address(GUEST, 4)} ${flags.join(' ')}`;
  const members = async (rig: Rig, count: number) => {
    const all = Array.from({ length: count }, () => ours(rig));
    await Promise.all(all.map((one) => one.line(/^joined/)));
    return all;
  };
  /**
   * Restarts a sender in the guest until all members have received their messages. mckey sends all messages without a pause, and rxe in a
   * slow guest (Linux 6.12) may only put some of them on the link.
   */
  const sendThere = async (rig: Rig, all: readonly Program[]): Promise<void> => {
    let complete = false;
    const ended = Promise.all(all.map((one) => one.ok(MOST_SENDERS * (TIMEOUT_MS / 1000) + 60)));
    ended.then(
      () => {
        complete = true;
      },
      () => {},
    );
    for (let senders = 1; !complete && senders <= MOST_SENDERS; senders += 1) {
      if (senders > 1) rig.note(`sender ${senders}: of what was sent before, something is missing`);
      await rig.guest(GUEST, `${there} -s`).ok();
      await Promise.race([ended, sleep(TIMEOUT_MS)]);
    }
    if (!complete) for (const one of all) one.stop();
    await ended;
  };
  /** The guest's member has attached its queue pair when its link lists the group's address twice. */
  const attached = (rig: Rig) =>
    rig.inGuest(
      GUEST,
      `until ip maddr show dev eth0 | grep -q "inet *${GROUP}" && rdma resource show qp | grep -q mckey; do sleep 0.05; done`,
    );
  const common = { peer: 'mckey', family: 4 } as const;
  return [
    {
      ...common,
      operation: 'group, 1 sender, 1 member',
      role: 'server',
      quick: true,
      run: async (rig) => {
        await sendThere(rig, await members(rig, 1));
      },
    },
    {
      ...common,
      operation: 'group, 1 sender, 3 member processes',
      role: 'server',
      run: async (rig) => {
        await sendThere(rig, await members(rig, 3));
      },
    },
    {
      ...common,
      operation: 'group, 1 sender, members on both hosts',
      role: 'client',
      quick: true,
      run: async (rig) => {
        const guest = rig.guest(GUEST, there);
        await attached(rig);
        const here = await members(rig, 2);
        await bothEnd(ours(rig, '-s'), guest);
        for (const one of here) await one.ok();
      },
    },
  ];
}

/** IPv6 groups, which the kernel's RDMA CM does not join. The guest's member attaches its queue pair itself. */
function groups(): InteropCase[] {
  const ours = (rig: Rig, ...more: string[]) =>
    rig.ours('mckey', '-m', GROUP_V6, '-b', address(HERE, 6), '-C', '10', '-S', '1000', ...more);
  const there = `${GROUP_V6} 10 1000`;
  const members = async (rig: Rig) => {
    const both = [ours(rig), ours(rig)] as const;
    await Promise.all(both.map((one) => one.line(/^joined/)));
    return both;
  };
  const common = { peer: 'group.py', family: 6 } as const;
  return [
    {
      ...common,
      operation: 'group, 1 sender, 2 member processes',
      role: 'server',
      run: async (rig) => {
        const [first, second] = await members(rig);
        await bothEnd(rig.guest(GUEST, `python3 /share/group.py ${there}`), first);
        await second.ok();
      },
    },
    {
      ...common,
      operation: 'group, 1 sender, members on both hosts',
      role: 'client',
      run: async (rig) => {
        const guest = rig.guest(GUEST, `python3 -u /share/group.py --member ${there}`);
        await guest.line(/^joined/);
        const [first, second] = await members(rig);
        await bothEnd(ours(rig, '-s'), guest);
        await first.ok();
        await second.ok();
      },
    },
  ];
}

export const datagramCases: readonly InteropCase[] = [
  ...pingpong(),
  ...allOps(),
  ...udaddy(),
  ...sidrRefusals(),
  ...mckey(),
  ...groups(),
];
