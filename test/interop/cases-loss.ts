/** Cases of links that lose, duplicate, reorder or delay packets. Unreliable messages arrive completely or not at all. */
import * as z from 'zod';
import type { KernelOptionsInput } from '../../kernel-bridge/index.js';
import { FAMILIES, GUEST, HERE, type InteropCase, withNetem } from './case.js';
import { address, type Rig } from './rig.js';

const STREAM_PORT = 18_520;

const report = z.object({ sent: z.number(), whole: z.number(), distinct: z.number(), broken: z.number() });
type Report = z.output<typeof report>;

/** A disturbance by the guest's netem, or by this side's injected faults if we send. */
interface Disturbance {
  readonly loss: string;
  readonly netem: string;
  /** This side's injected faults. Undefined: it cannot inject this kind. */
  readonly faults?: NonNullable<KernelOptionsInput['faults']>;
  /** The effect that messages must show for the case to be valid. */
  happened(found: Report, type: 'uc' | 'ud'): boolean;
}

const some = ({ distinct, sent }: Report): boolean => distinct < sent;
const all = ({ distinct, sent }: Report): boolean => distinct === sent;

const DISTURBANCES: readonly Disturbance[] = [
  {
    loss: '1 % lost',
    netem: 'loss 1%',
    faults: { drop: 0.01 },
    // 400 datagrams may all get through, but not 1200 packets.
    happened: (found, type) => type === 'ud' || some(found),
  },
  { loss: '5 % lost', netem: 'loss 5%', faults: { drop: 0.05 }, happened: some },
  {
    loss: '5 % twice',
    netem: 'duplicate 5%',
    faults: { duplicate: 0.05 },
    // A datagram arrives twice; in a message, the duplicate packet is out of sequence.
    happened: (found, type) => (type === 'ud' ? all(found) && found.whole > found.sent : true),
  },
  {
    loss: '5 % reordered',
    netem: 'delay 10ms reorder 95%',
    faults: { reorder: 0.05 },
    happened: (found, type) => (type === 'ud' ? all(found) : some(found)),
  },
  { loss: '3 ms late', netem: 'delay 3ms', happened: all },
];

/**
 * The smallest share of messages that must arrive completely. 5% of packets are disturbed, a message has three packets, rxe also loses the
 * message after a broken one, and chance needs a margin.
 */
const LEAST = 0.5;

function check(text: string, { happened, loss }: Disturbance, type: 'uc' | 'ud'): Report {
  const found = report.parse(JSON.parse(text));
  const { sent, whole, distinct, broken } = found;
  const reported = `${whole} of ${sent} messages came whole, ${distinct} different ones, ${broken} broken`;
  if (broken > 0) throw new Error(`Broken messages were delivered: ${reported}.`);
  if (distinct < LEAST * sent)
    throw new Error(`More messages were lost than the link explains: ${reported}.`);
  if (type === 'uc' && whole > distinct) throw new Error(`Messages were delivered twice: ${reported}.`);
  if (!happened(found, type))
    throw new Error(`The link seems not to have behaved as requested (${loss}): ${reported}.`);
  return found;
}

async function stream(
  rig: Rig,
  type: 'uc' | 'ud',
  role: 'client' | 'server',
  family: 4 | 6,
  link: Disturbance,
): Promise<void> {
  const { faults = {}, netem } = link;
  const run = async () => {
    const there = rig.guest(GUEST, 'python3 /share/stream.py');
    await rig.listening(GUEST, 'tcp', STREAM_PORT);
    const ends = [
      type,
      role === 'client' ? 'send' : 'receive',
      address(HERE, family),
      address(GUEST, family),
    ] as const;
    const lines = await rig.stream(...ends, role === 'client' ? faults : {}).ok();
    const { sent, whole, distinct } = check(lines.at(-1) ?? '', link, type);
    rig.note(`${distinct} of ${sent} messages came, ${whole - distinct} of them again`);
    await there.ok();
  };
  return role === 'client' ? run() : withNetem(rig, netem, run);
}

function unreliable(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    (['uc', 'ud'] as const).flatMap((type) =>
      (['client', 'server'] as const).flatMap((role) =>
        DISTURBANCES.filter(({ faults }) => role === 'server' || faults !== undefined)
          .filter(({ loss }) => family === 4 || loss === '5 % lost')
          .map(
            (link): InteropCase => ({
              peer: 'stream.py',
              operation: `${type.toUpperCase()}, 400 messages`,
              role,
              family,
              loss: link.loss,
              quick: family === 4 && role === 'server' && link.loss === '5 % lost',
              run: (rig) => stream(rig, type, role, family, link),
            }),
          ),
      ),
    ),
  );
}

export const lossCases: readonly InteropCase[] = unreliable();
