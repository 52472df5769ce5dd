/**
 * A model of the verbs, and an interpreter that executes random sequences of them on the stack and compares. Each call must end in a
 * permitted status, each request must complete once and in order, and no wait may last forever.
 */
import fc from 'fast-check';
import { Status, statusName, type WvUnknown } from '../../winverbs/index.js';
import { Connections } from './verbs-model-connections.js';
import type { Coverage } from './verbs-model-coverage.js';
import type { Counted } from './verbs-model-objects.js';
import { ModelError, names, nothingLeft, outcome } from './verbs-model-outcome.js';
import { type Plan, plans, type Step } from './verbs-model-plan.js';

/** One run, from its first step to its end. */
class Run extends Connections {
  /** Creates the plan's initial objects. */
  async begin({ connected, shared, unreliable, datagrams }: Plan['begin']): Promise<void> {
    const first = { a: 0, b: 0, c: 0 };
    this.allocateMw({ op: 'allocateMw', ...first });
    if (connected) await this.connectPair(this.qps[0]!, this.qps[1]!, 7);
    const pair = async (create: Omit<Step, 'op'>): Promise<void> => {
      const from = this.qps.length;
      for (let n = 0; n < 2; n++) this.createQp({ op: 'createQp', ...create });
      await this.connectPair(this.qps[from]!, this.qps[from + 1]!, 7);
    };
    if (shared) {
      this.createSrq({ op: 'createSrq', ...first, b: 1 });
      await pair({ ...first, b: 64, c: 35 });
    }
    if (unreliable) await pair({ ...first, c: 64 + 35 });
    if (!datagrams) return;
    for (let n = 0; n < 2; n++) {
      this.createUd({ op: 'createUd', ...first, c: 63 });
      this.startUd({ op: 'startUd', ...first, a: n });
    }
    for (const b of [0, 4]) this.createAh({ op: 'createAh', ...first, b });
    await this.attach({ op: 'attach', ...first });
  }

  async step(step: Step): Promise<void> {
    await this[step.op](step);
  }

  /** Ends the run in an orderly way and checks that all awaited requests have ended. */
  async end(how: Plan['end'], order: number, alone: boolean): Promise<void> {
    this.pollAll();
    if (how === 'closeFile') {
      for (const file of this.files) file.close();
      for (const { what, request } of this.endings) await outcome(`${what} on a closed file`, request);
      for (const object of this.counted) while (object.users > 0) this.releaseQuietly(object);
    } else {
      const left = [...this.counted];
      for (let n = order; left.length > 0; n = (n * 31 + 17) % 10_007) {
        const [object] = left.splice(n % left.length, 1);
        while (object!.users > 0) this.releaseOnce(object!);
      }
      // Each object must be destroyed by its own release, not only by closing the file.
      if (alone) await nothingLeft();
    }
    this.provider.release();
    for (const { what, request, allowed } of this.endings) {
      const status = await outcome(what, request);
      if (allowed.includes(Status.SUCCESS) && status === Status.SUCCESS) this.coverage.add('event');
      if (how === 'release' && !allowed.includes(status)) {
        throw new ModelError(`${what} ended in ${statusName(status)}, not ${names(allowed)}.`);
      }
    }
  }

  /** Called after a step that threw: releases what it can, so that the next run starts clean. */
  abandon(): void {
    for (const file of this.files) file.close();
    for (const object of this.counted) while (object.users > 0) this.releaseQuietly(object);
    this.provider.release();
  }

  private releaseQuietly(object: Counted<WvUnknown>): void {
    object.users = object.real.release();
  }
}

/** Executes a plan. `alone`: no other thread of the process has objects, and leftovers are counted. */
export async function runPlan(
  { steps, end, order, begin }: Plan,
  alone: boolean,
  coverage: Coverage,
): Promise<void> {
  const run = new Run(coverage);
  try {
    await run.begin(begin);
    for (const step of steps) await run.step(step);
    await run.end(end, order, alone);
  } catch (error) {
    run.abandon();
    throw error;
  }
}

/** Runs of one seed are executed in batches, because fast-check's time limit would hide a run that hangs. */
const BATCH = 10;

/**
 * Runs random plans until `runs` are done or the time is over. Throws with the seed if one fails. `alone`: no other thread of the process
 * has objects.
 */
export async function runPlans(options: {
  seed: number;
  runs: number;
  milliseconds: number;
  alone: boolean;
  coverage: Coverage;
}): Promise<number> {
  const began = performance.now();
  let done = 0;
  for (let { seed } = options; done < options.runs; seed += 1000) {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        await runPlan(plan, options.alone, options.coverage);
        if (options.alone) await nothingLeft();
        done++;
      }),
      {
        seed,
        numRuns: Math.min(BATCH, options.runs - done),
        endOnFailure: process.env.ND_MODEL_SHRINK === undefined,
        includeErrorInReport: true,
      },
    );
    if (performance.now() - began > options.milliseconds) break;
  }
  return done;
}
