/** Cases of single verbs: every NAK, all sizes and depths, and memory windows, with rig/verbs-peer.py as the guest's side. */
import { askGuest, FAMILIES, GUEST, HERE, type InteropCase, withNetem } from './case.js';
import { address, type Rig } from './rig.js';

const PEER_PORT = 18_516;
const LATE_PORT = 18_521;

const behaviours = [
  { behaviour: 'naks-of-theirs', operation: 'every NAK, RNR with finite and infinite retry', role: 'client' },
  { behaviour: 'naks-of-ours', operation: 'every NAK, RNR with finite and infinite retry', role: 'server' },
  {
    behaviour: 'transfer-of-ours',
    operation: 'SEND, WRITE, READ, 0 to 8 MiB, depth 1 and 16',
    role: 'client',
  },
  {
    behaviour: 'transfer-of-theirs',
    operation: 'SEND, WRITE, READ, 0 to 8 MiB, depth 1 and 16',
    role: 'server',
  },
  {
    behaviour: 'route-of-ours',
    operation: 'traffic class, flow label, hop limit at the guest',
    role: 'client',
  },
  { behaviour: 'checksums', operation: 'UDP checksums: none of the guest', role: 'both' },
  { behaviour: 'windows-of-theirs', operation: 'type 2 windows', role: 'client' },
  { behaviour: 'windows-of-ours', operation: 'type 2 windows', role: 'server' },
  { behaviour: 'regions-of-theirs', operation: 'invalidated and zero-based memory', role: 'client' },
  {
    behaviour: 'regions-of-ours',
    operation: 'fast registration, invalidated and zero-based regions',
    role: 'server',
  },
] as const;

const against = (rig: Rig, behaviour: string, family: 4 | 6): Promise<void> =>
  askGuest(rig, 'python3 /share/verbs-peer.py', 'tcp', PEER_PORT, () =>
    rig.verbs(behaviour, address(HERE, family), address(GUEST, family)),
  );

/** The default RNR time limit, over connections established by connection management. */
const late = FAMILIES.flatMap((family) =>
  (['client', 'server'] as const).map(
    (role): InteropCase => ({
      peer: 'late.py',
      operation: 'receives 5, 100 and 900 ms late, or none',
      role,
      family,
      quick: family === 4,
      waits: 12,
      run: (rig) =>
        askGuest(rig, 'python3 /share/late.py', 'tcp', LATE_PORT, () =>
          rig.late(role, address(HERE, family), address(GUEST, family)),
        ),
    }),
  ),
);

const gaps = FAMILIES.flatMap((family): InteropCase[] => {
  const common = { peer: 'verbs-peer.py', operation: 'NAK of a PSN out of sequence', family } as const;
  return [
    {
      ...common,
      role: 'client',
      loss: '3 % of ours lost',
      quick: family === 6,
      run: (rig) => against(rig, 'gaps-of-ours', family),
    },
    {
      ...common,
      role: 'server',
      loss: '3 % lost',
      run: (rig) => withNetem(rig, 'loss 3%', () => against(rig, 'gaps-of-theirs', family)),
    },
  ];
});

const behavioural = FAMILIES.flatMap((family) =>
  behaviours.map(
    ({ behaviour, operation, role }): InteropCase => ({
      peer: 'verbs-peer.py',
      operation,
      role,
      family,
      quick: !behaviour.startsWith('transfer') && family === (behaviour === 'checksums' ? 6 : 4),
      run: (rig) => against(rig, behaviour, family),
    }),
  ),
);

export const verbsCases: readonly InteropCase[] = [...behavioural, ...late, ...gaps];
