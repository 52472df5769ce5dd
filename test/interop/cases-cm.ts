/** Cases of connection management: with tools, and message by message with rig/cm-peer.py as the guest's side. */
import {
  askGuest,
  bothEnd,
  CM_PORT,
  FAMILIES,
  GUEST,
  HERE,
  type InteropCase,
  serveGuest,
  withNetem,
} from './case.js';
import { address, type Rig } from './rig.js';

/** TCP port of cm-peer.py. */
const PEER_PORT = 18_517;
/** The guest that is shut off. */
const SPARE = 3;

/** Runs a behaviour of programs/cm-peer.ts against the guest's rdma_cm. */
const against = (rig: Rig, behaviour: string, family: 4 | 6): Promise<void> =>
  askGuest(rig, 'python3 /share/cm-peer.py', 'tcp', PEER_PORT, () =>
    rig.cmPeer(behaviour, address(HERE, family), address(GUEST, family)),
  );

const both = [
  { role: 'client', whose: 'ours' },
  { role: 'server', whose: 'theirs' },
] as const;

/** Every message is duplicated by this side's fault layer or by netem in the guest. */
const twice = FAMILIES.flatMap((family): InteropCase[] => [
  {
    peer: 'cm-peer.py',
    operation: 'each of our messages comes twice',
    role: 'both',
    family,
    quick: family === 4,
    run: (rig) => against(rig, 'ours-twice', family),
  },
  {
    peer: 'cm-peer.py',
    operation: "each of the guest's messages comes twice",
    role: 'both',
    family,
    loss: '100 % twice',
    run: (rig) => withNetem(rig, 'duplicate 100%', () => against(rig, 'theirs-twice', family)),
  },
]);

/** A separate guest is shut off, with connections of either side, with and without outstanding requests. */
const gone = FAMILIES.map(
  (family): InteropCase => ({
    peer: 'cm-peer.py',
    operation: 'guest shut off: 4 connections, requests of either side, accept(), requests to come',
    role: 'both',
    family,
    waits: 90,
    run: async (rig) => {
      await rig.boot(SPARE);
      try {
        rig.guest(SPARE, 'python3 /share/cm-peer.py');
        await rig.listening(SPARE, 'tcp', PEER_PORT);
        const here = rig.cmPeer('gone', address(HERE, family), address(SPARE, family));
        await here.line(/^ready/);
        await rig.cut(SPARE);
        here.stop('SIGUSR2');
        await here.ok();
      } finally {
        await rig.cut(SPARE).catch(() => {});
      }
    },
  }),
);

/** The guest's REJ of our reply is lost and not retransmitted. The connection ends after retransmissions of our reply. */
const rejectionLost = FAMILIES.map(
  (family): InteropCase => ({
    peer: 'cm-peer.py',
    operation: "the guest's rejection of our reply is lost",
    role: 'server',
    family,
    waits: 70,
    run: (rig) => against(rig, 'rejection-lost', family),
  }),
);

const inEitherRole = FAMILIES.flatMap((family) =>
  both.flatMap(({ role, whose }): InteropCase[] => [
    {
      peer: 'cm-peer.py',
      operation: 'private data whole, rejections with data and reason',
      role,
      family,
      quick: (role === 'client') === (family === 4),
      run: (rig) => against(rig, `private-of-${whose}`, family),
    },
    {
      peer: 'cm-peer.py, SIDR',
      operation: 'private data whole, rejections with data',
      role,
      family,
      quick: family === 6,
      run: (rig) => against(rig, `sidr-of-${whose}`, family),
    },
    {
      peer: 'cm-peer.py',
      operation: 'disconnected by both at once, DREQs cross',
      role,
      family,
      loss: '20 ms late',
      quick: role === 'client' && family === 4,
      run: (rig) => withNetem(rig, 'delay 20ms', () => against(rig, `crossing-of-${whose}`, family)),
    },
    {
      peer: 'cm-peer.py',
      operation: 'slow applications, MRA from either side',
      role,
      family,
      waits: 12,
      run: (rig) => against(rig, `mra-as-${role}`, family),
    },
    {
      peer: 'cm-peer.py',
      operation: 'each of our messages is lost, then retransmitted',
      role,
      family,
      quick: role === 'client' && family === 4,
      waits: 12,
      run: (rig) => against(rig, `ours-lost-as-${role}`, family),
    },
    {
      peer: 'cm-peer.py',
      operation: "each of the guest's messages is lost, then retransmitted",
      role,
      family,
      waits: 9,
      run: (rig) => against(rig, `theirs-lost-as-${role}`, family),
    },
  ]),
);

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

function rdmaCm(): InteropCase[] {
  return FAMILIES.flatMap((family): InteropCase[] => {
    const cm = (rig: Rig, behaviour: string, port = CM_PORT) =>
      rig.cm(behaviour, address(HERE, family), address(GUEST, family), port);
    const common = { peer: 'rdma_cm', family } as const;
    return [
      {
        ...common,
        operation: 'no listener there',
        role: 'client',
        quick: true,
        run: async (rig) => {
          await cm(rig, 'refused', 999).ok();
        },
      },
      {
        ...common,
        operation: 'no listener here',
        role: 'server',
        run: async (rig) => {
          // A process of this library must reply for the host.
          const server = cm(rig, 'reject');
          await server.line(/^listening/);
          const client = rig.guest(GUEST, `ucmatose -s ${address(HERE, family)} -p 998`);
          await client.line(/REJECTED/);
          // The program continues, and ends when it gets the expected event.
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
        run: (rig) => against(rig, 'sequence-of-theirs', family),
      },
    ];
  });
}

export const cmCases: readonly InteropCase[] = [
  ...ucmatose(),
  ...rdmaClient(),
  ...rdmaCm(),
  ...inEitherRole,
  ...twice,
  ...rejectionLost,
  ...gone,
];
