/**
 * Cases of UC messages that lose a packet on the way to rxe. rxe continues with a later message, except after a WRITE of which it has
 * received the start but not the end. Its responder only resets the last opcode if a receive was consumed (do_class_d1e_error), which a
 * WRITE does not do, so it rejects every later message. This is true for Linux 6.1 and later.
 */
import * as z from 'zod';
import { GUEST, HERE, type InteropCase } from './case.js';
import { withOpcode } from './packet-filters.js';
import { address, type Rig } from './rig.js';

const PORT = 18_520;

const variants = [
  { operation: 'send', what: 'SEND', lost: 'SEND_MIDDLE', goesOn: true },
  { operation: 'write-imm', what: 'WRITE with immediate', lost: 'WRITE_FIRST', goesOn: true },
  { operation: 'write-imm', what: 'WRITE with immediate', lost: 'WRITE_MIDDLE', goesOn: false },
  { operation: 'write', what: 'WRITE', lost: 'WRITE_MIDDLE', goesOn: false },
] as const;

const report = z.object({ before: z.number(), after: z.number(), broken: z.number(), marked: z.boolean() });

async function gap(rig: Rig, family: 4 | 6, { operation, lost, goesOn }: (typeof variants)[number]) {
  rig.guest(GUEST, 'python3 /share/stream.py');
  await rig.listening(GUEST, 'tcp', PORT);
  await rig.inGuest(
    GUEST,
    `modprobe -a sch_ingress cls_u32 act_gact && tc qdisc add dev eth0 ingress &&
      tc filter add dev eth0 parent ffff: ${withOpcode(family, `UC_${lost}`)} action drop`,
  );
  try {
    const ours = rig.ucGap(operation, address(HERE, family), address(GUEST, family));
    const found = report.parse(JSON.parse((await ours.ok()).at(-1) ?? ''));
    const reported = JSON.stringify(found);
    const dropped = await rig.inGuest(GUEST, 'tc -s filter show dev eth0 parent ffff:');
    if (!/\(dropped 1,/.test(dropped.join(' ')))
      throw new Error(`Not one packet was lost: ${dropped.join(' ')}`);
    if (found.before !== 1) throw new Error(`Nothing arrived before the loss: ${reported}`);
    if (found.after !== 0 || found.broken !== 0)
      throw new Error(`The incomplete message was delivered: ${reported}`);
    if (found.marked !== goesOn)
      throw new Error(
        goesOn ? `No later message arrived: ${reported}` : `rxe continues, unlike before: ${reported}`,
      );
  } finally {
    await rig.inGuest(GUEST, 'tc qdisc del dev eth0 ingress');
  }
}

export const ucCases: readonly InteropCase[] = ([4] as const).flatMap((family) =>
  variants.map(
    (variant): InteropCase => ({
      peer: 'stream.py',
      operation: `UC ${variant.what}, ${variant.goesOn ? 'rxe goes on' : 'rxe takes nothing more'}`,
      role: 'client',
      family,
      loss: `${variant.lost} lost`,
      run: (rig) => gap(rig, family, variant),
    }),
  ),
);
