/** The cases of the interop matrix: role × operation × address family × MTU × loss. */
import {
  askGuest,
  bothEnd,
  FAMILIES,
  GUEST,
  gidIndex,
  HERE,
  INWARDS,
  type InteropCase,
  MTUS,
  queueCounter,
  serveGuest,
  TCP_PORT,
  withNetem,
  withNetemInwards,
} from './case.js';
import { addressCases } from './cases-addresses.js';
import { cmCases } from './cases-cm.js';
import { datagramCases } from './cases-datagram.js';
import { verbsCases } from './cases-errors.js';
import { failsByLateAcks, lateAckCases } from './cases-late-acks.js';
import { lossCases } from './cases-loss.js';
import { nvmeCases } from './cases-nvme.js';
import { partitionCases } from './cases-partitions.js';
import { perftestCases } from './cases-perftest.js';
import { processCases } from './cases-processes.js';
import { qperfCases } from './cases-qperf.js';
import { recoveryCases } from './cases-recovery.js';
import { ucCases } from './cases-uc.js';
import { withOpcode } from './packet-filters.js';
import { address, type Rig } from './rig.js';
import { RPING_PORT, RPING_SERVER_ENDS, serveRping } from './rping-ends.js';

function rping(): InteropCase[] {
  const variants: readonly (readonly [operation: string, pings: number, flags: readonly string[]])[] = [
    ['64 bytes', 10, ['-v']],
    ['1 byte more than a packet', 5, ['-S', '1025']],
    ['65,000 bytes', 3, ['-S', '65000']],
  ];
  return FAMILIES.flatMap((family) =>
    variants.flatMap(([operation, pings, flags], index): InteropCase[] => [
      {
        peer: 'rping -s',
        operation,
        role: 'client',
        family,
        quick: index === 0,
        run: (rig) =>
          askGuest(
            rig,
            `rping -s -a ${address(GUEST, family)} -C ${pings} ${flags.join(' ')}`,
            'rdma',
            RPING_PORT,
            () => rig.ours('rping', '-c', '-a', address(GUEST, family), '-V', '-C', String(pings), ...flags),
            RPING_SERVER_ENDS,
          ),
      },
      {
        peer: 'rping -c',
        operation,
        role: 'server',
        family,
        quick: index === 2,
        run: (rig) =>
          serveRping(
            rig,
            rig.ours('rping', '-s', '-v', '-a', address(HERE, family)),
            `rping -c -a ${address(HERE, family)} -V -C ${pings} ${flags.join(' ')}`,
            pings,
          ),
      },
    ]),
  );
}

function allOps(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    MTUS.flatMap((mtu): InteropCase[] => {
      const there = `python3 /share/all-ops.py --errors --mtu ${mtu} --gid ${gidIndex(family)}`;
      const ours = ['-m', String(mtu)];
      return [
        {
          peer: 'all-ops.py',
          operation: 'every RC operation',
          role: 'client',
          family,
          mtu,
          quick: mtu === 1024,
          run: (rig) =>
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              rig.ours('all-ops', '-a', address(GUEST, family), '-e', ...ours),
            ),
        },
        {
          peer: 'all-ops.py',
          operation: 'every RC operation',
          role: 'server',
          family,
          mtu,
          quick: mtu === 4096,
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

/** The same with exactly checked ICRCs, which on IPv4 needs a raw socket. */
function exactIcrc(): InteropCase[] {
  const options = { icrc: 'exact' } as const;
  const common = { peer: 'all-ops.py', operation: 'every RC operation, exact ICRC', family: 4 } as const;
  return ([1024, 4096] as const).flatMap((mtu): InteropCase[] => {
    const there = `python3 /share/all-ops.py --errors --mtu ${mtu} --gid ${gidIndex(4)}`;
    const ours = ['-m', String(mtu)];
    return [
      {
        ...common,
        role: 'client',
        mtu,
        quick: mtu === 4096,
        run: (rig) =>
          askGuest(rig, there, 'tcp', TCP_PORT, () =>
            rig.oursWith(options, 'all-ops', '-a', address(GUEST, 4), '-e', ...ours),
          ),
      },
      {
        ...common,
        role: 'server',
        mtu,
        run: (rig) =>
          serveGuest(
            rig,
            rig.oursWith(options, 'all-ops', '-I', address(HERE, 4), ...ours),
            `${there} ${address(HERE, 4)}`,
          ),
      },
    ];
  });
}

function pingpong(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    MTUS.filter((mtu) => mtu !== 512 && mtu !== 2048).flatMap((mtu): InteropCase[] => {
      const there = `ibv_rc_pingpong -g ${gidIndex(family)} -m ${mtu} -n 50`;
      return [
        {
          peer: 'ibv_rc_pingpong',
          operation: 'SEND, 4096 bytes',
          role: 'client',
          family,
          mtu,
          run: (rig) =>
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              // The tool listens for IPv4 only; the queue pairs' addresses are the family's.
              rig.ours(
                'pingpong',
                '-a',
                address(GUEST, 4),
                '-I',
                address(HERE, family),
                '-m',
                String(mtu),
                '-n',
                '50',
              ),
            ),
        },
        {
          peer: 'ibv_rc_pingpong',
          operation: 'SEND, 4096 bytes',
          role: 'server',
          family,
          mtu,
          quick: mtu === 1024 && family === 6,
          run: (rig) =>
            serveGuest(
              rig,
              rig.ours('pingpong', '-I', address(HERE, family), '-m', String(mtu), '-n', '50'),
              `${there} ${address(HERE, family)}`,
            ),
        },
      ];
    }),
  );
}

/** The same traffic through a link that drops, delays, duplicates or reorders packets of the guest, or of this side. */
function disturbed(): InteropCase[] {
  const disturbances: readonly (readonly [loss: string, netem: string])[] = [
    ['1 % lost', 'loss 1%'],
    ['5 % lost', 'loss 5%'],
    ['5 % twice', 'duplicate 5%'],
    ['5 % reordered', 'delay 10ms reorder 95%'],
    ['3 ms late', 'delay 3ms'],
  ];
  // Each packet is delayed differently: most are out of order, and rxe's requester waits for its timer again and again.
  // Slow.
  const jitter: (typeof disturbances)[number] = ['2 to 4 ms late', 'delay 3ms 1ms'];
  const pings = 20;
  const flags = `-C ${pings} -S 30000`;
  const client = (rig: Rig, family: 4 | 6) =>
    askGuest(
      rig,
      `rping -s -a ${address(GUEST, family)} ${flags}`,
      'rdma',
      RPING_PORT,
      () => rig.ours('rping', '-c', '-a', address(GUEST, family), '-V', ...flags.split(' ')),
      RPING_SERVER_ENDS,
    );
  const server = (rig: Rig, family: 4 | 6) =>
    serveRping(
      rig,
      rig.ours('rping', '-s', '-v', '-a', address(HERE, family)),
      `rping -c -a ${address(HERE, family)} ${flags} -V`,
      pings,
    );
  const operation = `${pings} pings of 30,000 bytes`;
  const reorders = (netem: string): boolean => netem.includes('reorder');
  const theirs = (family: 4 | 6, [loss, netem]: (typeof disturbances)[number]): InteropCase[] => [
    {
      ...{ peer: 'rping -s', operation, role: 'client', family, loss },
      run: (rig) => withNetem(rig, netem, () => client(rig, family)),
    },
    {
      ...{ peer: 'rping -c', operation, role: 'server', family, loss },
      quick: loss === '5 % lost' && family === 4,
      run: (rig) => withNetem(rig, netem, () => server(rig, family)),
    },
  ];
  const both = FAMILIES.flatMap((family) =>
    disturbances.flatMap(([loss, netem]): InteropCase[] => [
      ...theirs(family, [loss, netem]),
      {
        ...{ peer: 'rping -s', operation, role: 'client', family, loss: `ours ${loss}` },
        run: async (rig) => {
          // cases-late-acks.ts has the result of the others.
          const onTime = reorders(netem) && (await failsByLateAcks(rig));
          const run = async () => {
            await client(rig, family);
            const passed = await queueCounter(rig, INWARDS, 'pkt');
            if (passed === 0)
              throw new Error('Nothing of what this side has sent has passed the disturbance.');
          };
          const but = onTime ? [withOpcode(family, 'RC_ACKNOWLEDGE')] : [];
          await withNetemInwards(rig, netem, run, undefined, but);
          if (onTime) rig.note('acknowledgements were in time');
        },
      },
    ]),
  );
  return [...both, ...theirs(4, jitter)];
}

const CM_PORT = 7471;
/** TCP port of cm-peer.py. */
const CM_PEER_PORT = 18_517;

function ucmatose(): InteropCase[] {
  const variants = [
    ['1 connection', 1, '-C 10 -S 1000'],
    ['100 connections at once', 100, '-C 4 -S 200'],
  ] as const;
  return FAMILIES.flatMap((family) =>
    variants.flatMap(([operation, connections, flags]): InteropCase[] => [
      {
        peer: 'ucmatose',
        operation,
        role: 'client',
        family,
        quick: family === 4 && connections > 1,
        run: (rig) =>
          askGuest(
            rig,
            `ucmatose -b ${address(GUEST, family)} -c ${connections} ${flags}`,
            'rdma',
            CM_PORT,
            () =>
              rig.ours(
                'ucmatose',
                '-s',
                address(GUEST, family),
                '-c',
                String(connections),
                ...flags.split(' '),
              ),
          ),
      },
      {
        peer: 'ucmatose',
        operation,
        role: 'server',
        family,
        run: (rig) =>
          serveGuest(
            rig,
            rig.ours('ucmatose', '-b', address(HERE, family), '-c', String(connections), ...flags.split(' ')),
            `ucmatose -s ${address(HERE, family)} -c ${connections} ${flags}`,
          ),
      },
    ]),
  );
}

function rdmaClient(): InteropCase[] {
  return FAMILIES.flatMap((family): InteropCase[] => [
    {
      peer: 'rdma_server',
      operation: '1 message each way',
      role: 'client',
      family,
      run: (rig) =>
        askGuest(rig, `rdma_server -s ${address(GUEST, family)}`, 'rdma', CM_PORT, () =>
          rig.ours('rdma-client', '-s', address(GUEST, family)),
        ),
    },
    {
      peer: 'rdma_client',
      operation: '1 message each way',
      role: 'server',
      family,
      run: (rig) => serveGuest(rig, rig.ours('rdma-client'), `rdma_client -s ${address(HERE, family)}`),
    },
  ]);
}

function connectionManagement(): InteropCase[] {
  return FAMILIES.flatMap((family): InteropCase[] => {
    const cm = (rig: Rig, behaviour: string, port = CM_PORT) =>
      rig.cm(behaviour, address(HERE, family), address(GUEST, family), port);
    const common = { peer: 'rdma_cm', family } as const;
    return [
      {
        ...common,
        operation: 'nobody listens there',
        role: 'client',
        quick: true,
        run: async (rig) => {
          await cm(rig, 'refused', 999).ok();
        },
      },
      {
        ...common,
        operation: 'nobody listens here',
        role: 'server',
        run: async (rig) => {
          // A process of this library must answer for the host.
          const server = cm(rig, 'reject');
          await server.line(/^listening/);
          const client = rig.guest(GUEST, `ucmatose -s ${address(HERE, family)} -p 998`);
          await client.line(/REJECTED/);
          // It continues, and ends when it gets the expected event.
          await rig.guest(GUEST, `ucmatose -s ${address(HERE, family)}`).line(/REJECTED.*error: 28/);
          await server.ok();
        },
      },
      {
        ...common,
        operation: 'rejection by the listener',
        role: 'server',
        quick: family === 4,
        run: async (rig) => {
          const server = cm(rig, 'reject');
          await server.line(/^listening/);
          const client = rig.guest(GUEST, `ucmatose -s ${address(HERE, family)}`);
          await client.line(/REJECTED.*error: 28/);
          await server.ok();
        },
      },
      {
        ...common,
        operation: 'rejection of the reply',
        role: 'client',
        run: async (rig) => {
          const server = rig.guest(GUEST, `ucmatose -b ${address(GUEST, family)}`);
          await rig.listening(GUEST, 'rdma', CM_PORT);
          await cm(rig, 'reject-reply').ok();
          await server.line(/REJECTED/);
        },
      },
      {
        ...common,
        operation: '200 connections, one after another',
        role: 'client',
        run: async (rig) => {
          const server = rig.guest(GUEST, `ucmatose -b ${address(GUEST, family)} -c 200 -C 0`);
          await rig.listening(GUEST, 'rdma', CM_PORT);
          await bothEnd(cm(rig, 'sequence'), server);
        },
      },
      {
        peer: 'cm-peer.py',
        family,
        operation: '200 connections, one after another',
        role: 'server',
        run: (rig) =>
          askGuest(rig, 'python3 /share/cm-peer.py', 'tcp', CM_PEER_PORT, () =>
            rig.cmPeer('sequence-of-theirs', address(HERE, family), address(GUEST, family)),
          ),
      },
    ];
  });
}

export const cases: readonly InteropCase[] = [
  ...rping(),
  ...allOps(),
  ...exactIcrc(),
  ...pingpong(),
  ...ucmatose(),
  ...rdmaClient(),
  ...connectionManagement(),
  ...cmCases,
  ...datagramCases,
  ...verbsCases,
  ...perftestCases,
  ...qperfCases,
  ...disturbed(),
  ...lateAckCases,
  ...lossCases,
  ...recoveryCases,
  ...partitionCases,
  ...nvmeCases,
  ...ucCases,
  ...addressCases,
  ...processCases,
];
