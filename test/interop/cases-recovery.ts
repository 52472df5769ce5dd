/** Cases of a stream whose link loses or marks packets for a while. Its throughput must recover. */
import * as z from 'zod';
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
import { address, FAR, type Rig } from './rig.js';
import { Rounds } from './rounds.js';

const VERBS_PORT = 18_516;
const STREAM_PORT = 7475;
/** The share of its throughput that a stream must reach again. Other work on the machine may use the rest. */
const AGAIN = 0.6;
/** The maximum share that it may reach while the link marks. */
const CUT = 0.7;

async function recovery(rig: Rig, role: 'client' | 'server', family: 4 | 6): Promise<void> {
  rig.guest(GUEST, 'python3 /share/verbs-peer.py', 300);
  await rig.listening(GUEST, 'tcp', VERBS_PORT);
  const behaviour = role === 'client' ? 'recovery-of-ours' : 'recovery-of-theirs';
  const program = rig.verbs(behaviour, address(HERE, family), address(GUEST, family));
  const rounds = new Rounds(program);
  const before = await rounds.rate(2);
  let during = 0;
  let dropped = 0;
  await withNetem(rig, 'loss 5%', async () => {
    during = await rounds.rate();
    dropped = await queueCounter(rig, 'eth0', 'dropped');
  });
  if (dropped === 0) throw new Error('The link has lost nothing.');
  const after = await rounds.reach(AGAIN * before);
  program.stop('SIGTERM');
  rig.note((await program.ok()).at(-1) ?? '');
  rig.note(`MB/s: ${before} before, ${during} with 5 % lost (${dropped} packets), ${after} after`);
}

/** Packets of the guest pass a queue, which marks ECN-capable ones when it grows (RFC 3168, RED). */
async function marking(rig: Rig, run: () => Promise<void>): Promise<void> {
  const red = 'red limit 4000000 min 20000 max 60000 avpkt 1100 burst 30 bandwidth 8mbit probability 0.2 ecn';
  await rig.inGuest(
    GUEST,
    [
      'modprobe -a sch_tbf sch_red',
      'tc qdisc replace dev eth0 root handle 1: tbf rate 8mbit burst 8kb limit 4mb',
      `tc qdisc add dev eth0 parent 1:1 handle 10: ${red}`,
    ].join(' && '),
  );
  try {
    await run();
    const marked = await queueCounter(rig, 'eth0', 'marked');
    if (marked === 0) throw new Error('The queue has marked nothing.');
    rig.note(`the queue has marked ${marked} packets`);
  } finally {
    await rig.inGuest(GUEST, 'tc qdisc del dev eth0 root');
  }
}

const sender = z.object({ rcvd_cnp: z.number().positive(), retransmitted_pkts: z.number() });
const receiver = z.object({ rcvd_ecn_marked: z.number().positive(), sent_cnp: z.number().positive() });

/** rxe does not react to marks, so a stream between two processes of this side is routed through the guest, which marks for a while. */
async function notified(rig: Rig, family: 4 | 6): Promise<void> {
  const late = 'delay 10ms limit 10000';
  const link = (netem: string) => rig.inGuest(GUEST, `tc qdisc change dev ${INWARDS} root netem ${netem}`);
  const what = family === 4 ? 'protocol ip u32 match ip' : 'protocol ipv6 u32 match ip6';
  const stream = async () => {
    const far = rig.farEcn('receive', FAR[family], address(HERE, family), STREAM_PORT);
    await far.line(/^listening/);
    const near = rig.ecn('send', address(HERE, family), FAR[family], STREAM_PORT);
    const rounds = new Rounds(near);
    const count = () => Number(/(\d+) notifications/.exec(near.lines.at(-1) ?? '')?.[1]);
    const before = await rounds.rate(4);
    if (count() > 0) throw new Error('There were notifications before there were marks.');
    await link(`${late} loss 50% ecn`);
    const during = await rounds.rate(2);
    const reported = count();
    await link(`${late} loss 0%`);
    if (!(reported > 0)) throw new Error('No congestion notifications were sent.');
    if (during > CUT * before) throw new Error(`The rate was not cut: ${before} MB/s, then ${during} MB/s.`);
    const after = await rounds.reach(AGAIN * before);
    near.stop('SIGTERM');
    const { rcvd_cnp, retransmitted_pkts } = sender.parse(JSON.parse((await near.ok()).at(-1) ?? ''));
    const { rcvd_ecn_marked } = receiver.parse(JSON.parse((await far.ok()).at(-1) ?? ''));
    rig.note(`MB/s: ${before} before, ${during} with ${rcvd_ecn_marked} marks, ${after} after`);
    rig.note(`${rcvd_cnp} notifications, ${retransmitted_pkts} packets were retransmitted`);
  };
  await rig.withFar(GUEST, () => withNetemInwards(rig, late, stream, [`${what} dst ${FAR[family]}`]));
}

const peer = 'verbs-peer.py';
const againstVerbs = (rig: Rig, behaviour: string, family: 4 | 6): Promise<void> =>
  askGuest(rig, 'python3 /share/verbs-peer.py', 'tcp', VERBS_PORT, () =>
    rig.verbs(behaviour, address(HERE, family), address(GUEST, family)),
  );

export const recoveryCases: readonly InteropCase[] = FAMILIES.flatMap((family): InteropCase[] => [
  ...(['client', 'server'] as const).map(
    (role): InteropCase => ({
      peer,
      operation: 'throughput of WRITE and READ recovers',
      role,
      family,
      loss: '5 % lost for a while',
      quick: role === 'client' && family === 4,
      run: (rig) => recovery(rig, role, family),
    }),
  ),
  {
    peer,
    operation: 'marked WRITEs cause CNPs',
    role: 'server',
    family,
    loss: 'RED with ECN',
    quick: family === 4,
    run: (rig) => marking(rig, () => againstVerbs(rig, 'marks-of-theirs', family)),
  },
  {
    peer: 'this library, through the guest',
    operation: 'CNPs cut the rate, which recovers',
    role: 'both',
    family,
    loss: '50 % marked for a while',
    run: (rig) => notified(rig, family),
  },
]);
