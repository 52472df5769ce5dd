/** Cases of connection management, message by message; rig/cm-peer.py is the guest's side. */
import { askGuest, FAMILIES, GUEST, HERE, type InteropCase, withNetem } from './case.js';
import { address, type Rig } from './rig.js';

const PEER_PORT = 18_517;

/** A behaviour of programs/cm-peer.ts against the guest's rdma_cm. */
const against = (rig: Rig, behaviour: string, family: 4 | 6): Promise<void> =>
  askGuest(rig, 'python3 /share/cm-peer.py', 'tcp', PEER_PORT, () =>
    rig.cmPeer(behaviour, address(HERE, family), address(GUEST, family)),
  );

const both = [
  { role: 'client', whose: 'ours' },
  { role: 'server', whose: 'theirs' },
] as const;

export const cmCases: readonly InteropCase[] = FAMILIES.flatMap((family) =>
  both.flatMap(({ role, whose }): InteropCase[] => [
    {
      peer: 'cm-peer.py',
      operation: 'private data whole, rejections with data and reason',
      role,
      family,
      quick: true,
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
  ]),
);
