/**
 * Cases of acknowledgements and READ responses that overtake each other on the way to rxe. After Linux 6.1 (seen on
 * 6.12, and in the source of 7.3-rc7) its completer accepts an acknowledgement of an earlier request while it receives
 * a READ response (check_psn, which is meant for NAKs). It then loses its state (comp.opcode becomes -1), and finds the
 * response's next packet out of sequence. It completes the READ with success, although data is missing, and its queue
 * pair fails without notice to the peer. A delay of only one of the two does no harm, so our packets are correct.
 */
import {
  askGuest,
  FAMILIES,
  GUEST,
  INWARDS,
  type InteropCase,
  queueCounter,
  withNetemInwards,
} from './case.js';
import { withOpcode } from './packet-filters.js';
import type { Program } from './process.js';
import { address, type Rig } from './rig.js';
import { RPING_PORT, RPING_SERVER_ENDS } from './rping-ends.js';

/** Longer than rping takes from a SEND to the next READ, shorter than rxe's response timeout. */
const LATE = 'delay 200ms';
const FLAGS = '-C 3 -S 30000';

/** The first packet of a READ response is on time, so that rxe is in the middle of the response. */
const variants = [
  { loss: 'our ACKs late', late: ['RC_ACKNOWLEDGE'] },
  { loss: 'our READ responses late', late: ['RC_READ_RESPONSE_MIDDLE', 'RC_READ_RESPONSE_LAST'] },
  {
    loss: 'our ACKs and READ responses late',
    late: ['RC_ACKNOWLEDGE', 'RC_READ_RESPONSE_MIDDLE', 'RC_READ_RESPONSE_LAST'],
    amid: true,
  },
] as const;

/** Whether the guest's rxe fails on a late acknowledgement during a READ response. */
export async function failsByLateAcks(rig: Rig): Promise<boolean> {
  const [release = ''] = await rig.inGuest(GUEST, 'uname -r');
  const [major = 0, minor = 0] = release.split('.', 2).map(Number);
  return major > 6 || (major === 6 && minor >= 2);
}

const server = (family: 4 | 6): string => `rping -s -v -a ${address(GUEST, family)} ${FLAGS}`;
const client = (family: 4 | 6): readonly string[] => [
  '-c',
  '-a',
  address(GUEST, family),
  '-V',
  ...FLAGS.split(' '),
];
const said = ({ lines }: Program, what: string): boolean => lines.some((line) => line.includes(what));

/** The first READ, without a preceding acknowledgement, succeeds. The second one makes rxe's queue pair fail. */
async function fails(rig: Rig, family: 4 | 6): Promise<void> {
  const there = rig.guest(GUEST, server(family));
  await rig.listening(GUEST, 'rdma', RPING_PORT);
  const here = rig.oursWith({ keepAliveMs: 1000 }, 'rping', ...client(family));
  const failed = rig.inGuest(
    GUEST,
    "until rdma resource show qp | grep -q 'type RC state ERR'; do sleep 0.05; done",
  );
  const first = await Promise.race([failed, here.end()]);
  if (first === 0) throw new Error('rxe continues, unlike before.');
  if (typeof first === 'number') throw here.failure("has given up, and rxe's queue pair had not failed");
  await here.end();
  await there.end();
  if (!said(here, 'The server hung up during ping 1.'))
    throw here.failure('has not lost its peer in its second ping');
  if (!said(there, 'server ping data: rdma-ping-1') || said(there, 'failed'))
    throw there.failure('has not taken the second READ for a good one');
}

async function late(rig: Rig, family: 4 | 6, { late, ...rest }: (typeof variants)[number]): Promise<void> {
  const failing = 'amid' in rest && (await failsByLateAcks(rig));
  const run = async () => {
    if (failing) await fails(rig, family);
    else
      await askGuest(
        rig,
        server(family),
        'rdma',
        RPING_PORT,
        () => rig.ours('rping', ...client(family)),
        RPING_SERVER_ENDS,
      );
    if ((await queueCounter(rig, INWARDS, 'pkt')) === 0) throw new Error('Nothing was late.');
  };
  const what = late.map((opcode) => withOpcode(family, opcode));
  await withNetemInwards(rig, LATE, run, what);
  if (failing) rig.note('rxe fails by an acknowledgement that comes late, amid a READ response');
}

export const lateAckCases: readonly InteropCase[] = FAMILIES.flatMap((family) =>
  variants.map(
    (variant): InteropCase => ({
      peer: 'rping -s',
      operation: '3 pings of 30,000 bytes',
      role: 'client',
      family,
      loss: variant.loss,
      run: (rig) => late(rig, family, variant),
    }),
  ),
);
