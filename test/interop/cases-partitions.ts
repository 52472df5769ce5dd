/** Cases of partitions. rxe is only in the default partition, as a full member. */
import { askGuest, FAMILIES, GUEST, HERE, type InteropCase } from './case.js';
import { address, type Rig } from './rig.js';
import { RPING_PORT, RPING_SERVER_ENDS, serveRping } from './rping-ends.js';

const PINGS = 5;
/** Longer than all connection attempts take. */
const SECONDS = 90;
/** A full member communicates with a limited one. */
const limitedMember = { pkeys: [0x7fff] };
const elsewhere = { pkeys: [0x8123] };

/** A connection in a partition that rxe is not in gets no reply and is not established. */
async function staysOut(rig: Rig, family: 4 | 6): Promise<void> {
  const there = rig.guest(GUEST, `timeout ${SECONDS} rping -s -a ${address(GUEST, family)} -v`);
  await rig.listening(GUEST, 'rdma', RPING_PORT);
  const here = rig.oursWith(elsewhere, 'rping', '-c', '-a', address(GUEST, family), '-C', '1');
  const code = await here.end(SECONDS);
  await there.end(SECONDS);
  if (code === 0 || there.lines.some((line) => line.includes('rdma-ping')))
    throw here.failure('has reached a peer of another partition');
  if (!here.lines.some((line) => line.includes('did not reply')))
    throw here.failure('has not reported the missing reply');
}

export const partitionCases: readonly InteropCase[] = FAMILIES.flatMap((family): InteropCase[] => [
  {
    peer: 'rping -s',
    operation: 'a limited member of its partition',
    role: 'client',
    family,
    quick: family === 4,
    run: (rig) =>
      askGuest(
        rig,
        `rping -s -a ${address(GUEST, family)} -C ${PINGS} -v`,
        'rdma',
        RPING_PORT,
        () =>
          rig.oursWith(limitedMember, 'rping', '-c', '-a', address(GUEST, family), '-V', '-C', String(PINGS)),
        RPING_SERVER_ENDS,
      ),
  },
  {
    peer: 'rping -c',
    operation: 'a limited member of its partition',
    role: 'server',
    family,
    quick: family === 6,
    run: (rig) =>
      serveRping(
        rig,
        rig.oursWith(limitedMember, 'rping', '-s', '-a', address(HERE, family), '-C', String(PINGS), '-v'),
        `rping -c -a ${address(HERE, family)} -C ${PINGS} -V`,
        PINGS,
      ),
  },
  {
    peer: 'rping -s',
    operation: 'another partition: no connection',
    role: 'client',
    family,
    waits: 92,
    run: (rig) => staysOut(rig, family),
  },
]);
