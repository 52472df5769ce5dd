/**
 * The order of cases. They run one after another against one guest. Cases that mostly wait for timers run at the same time as the others,
 * in their own namespace with their own guest.
 */
import { GUEST, type InteropCase } from './case.js';
import { Rig, type RigOptions } from './rig.js';

/** A case and its index in the table. */
export interface Numbered {
  readonly one: InteropCase;
  /** Number of the lane, from 0. */
  readonly index: number;
}

/** A guest's boot takes as long as this much waiting, in seconds. */
const WORTH_A_GUEST = 60;

const waits = ({ one }: Numbered): number => one.waits ?? 0;

/** The lanes of a run; the first one is empty only if all are. */
export function lanesOf(cases: readonly InteropCase[]): readonly (readonly Numbered[])[] {
  const all = cases.map((one, index) => ({ one, index }));
  const busy = all.filter((it) => waits(it) === 0);
  const waiting = all.filter((it) => waits(it) > 0);
  const seconds = waiting.reduce((sum, it) => sum + waits(it), 0);
  if (busy.length === 0 || seconds < WORTH_A_GUEST) return [all];
  // The longest case comes first, so that little is left when the other lane has finished.
  return [busy, waiting.sort((a, b) => waits(b) - waits(a))];
}

/**
 * Runs the lanes of cases in parallel. Shuts everything down before it returns or throws.
 *
 * @param run - Runs one case; an error ends the lane
 * @param keep - Whether guests continue to run
 */
export async function runLanes(
  options: RigOptions,
  cases: readonly InteropCase[],
  run: (rig: Rig, it: Numbered) => Promise<void>,
  keep: boolean,
): Promise<void> {
  const lanes = lanesOf(cases);
  const rigs = lanes.map((_, n) => new Rig(options, n === 0 ? '' : `-${n + 1}`));
  const runLane = async (rig: Rig, lane: readonly Numbered[]) => {
    try {
      await rig.boot(GUEST);
      if (rig === rigs[0]) {
        const [release] = await rig.inGuest(GUEST, 'uname -r');
        console.error(`Linux ${release}, link MTU ${options.linkMtu}, guests: ${lanes.length}`);
      }
      for (const it of lane) await run(rig, it);
    } finally {
      if (!keep) await rig.down();
    }
  };
  await rigs[0]!.build();
  const ends = await Promise.allSettled(lanes.map((lane, n) => runLane(rigs[n]!, lane)));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
