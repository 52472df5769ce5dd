/** Cases of connection management, message by message; rig/cm-peer.py is the guest's side. */
import { askGuest, FAMILIES, GUEST, HERE, type InteropCase, withNetem } from './case.js';
import { address, type Rig } from './rig.js';

const PEER_PORT = 18_517;
/** The guest to shut off. */
const SPARE = 3;

/** A behaviour of programs/cm-peer.ts against the guest's rdma_cm. */
const against = (rig: Rig, behaviour: string, family: 4 | 6): Promise<void> =>
  askGuest(rig, 'python3 /share/cm-peer.py', 'tcp', PEER_PORT, () =>
    rig.cmPeer(behaviour, address(HERE, family), address(GUEST, family)),
  );

const both = [
  { role: 'client', whose: 'ours' },
  { role: 'server', whose: 'theirs' },
] as const;

/** Every message twice, by this side's fault layer or by netem in the guest. */
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

/** A separate guest is shut off: connections of either side, with and without outstanding requests. */
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

/** The guest's REJ of our reply is lost: nobody repeats it, so our replies end it. */
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
      operation: 'each of our messages is lost, then sent again',
      role,
      family,
      quick: role === 'client' && family === 4,
      waits: 12,
      run: (rig) => against(rig, `ours-lost-as-${role}`, family),
    },
    {
      peer: 'cm-peer.py',
      operation: "each of the guest's messages is lost, then sent again",
      role,
      family,
      waits: 9,
      run: (rig) => against(rig, `theirs-lost-as-${role}`, family),
    },
  ]),
);

export const cmCases: readonly InteropCase[] = [...inEitherRole, ...twice, ...rejectionLost, ...gone];
