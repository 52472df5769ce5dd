/** Cases of rping, on a good link and on disturbed ones. */
import {
  askGuest,
  FAMILIES,
  GUEST,
  HERE,
  INWARDS,
  type InteropCase,
  queueCounter,
  withNetem,
  withNetemInwards,
} from './case.js';
import { failsByLateAcks } from './cases-late-acks.js';
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

/** The same traffic over a link that drops, delays, duplicates or reorders packets of the guest or of this side. */
function disturbed(): InteropCase[] {
  const disturbances: readonly (readonly [loss: string, netem: string])[] = [
    ['1 % lost', 'loss 1%'],
    ['5 % lost', 'loss 5%'],
    ['5 % twice', 'duplicate 5%'],
    ['5 % reordered', 'delay 10ms reorder 95%'],
    ['3 ms late', 'delay 3ms'],
  ];
  // Each packet is delayed differently, so most are out of order, and rxe's requester repeatedly waits for its timer. This is slow.
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
          // The other variants are in cases-late-acks.ts.
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

export const rpingCases = rping();
export const disturbedRpingCases = disturbed();
