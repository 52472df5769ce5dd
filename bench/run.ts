/** Runs rows: each round measures all contestants one after another. */
import { crowdSample } from './crowd/crowd.js';
import { missingLink } from './distance/delayed-link.js';
import { measureDistance } from './distance/distance.js';
import { missingStore } from './map/stores.js';
import type { JobInput } from './ours/job.js';
import { measureAlone, measurePair } from './pair.js';
import { measureLibfabric, missingLibfabric } from './peers/libfabric.js';
import { measureNative, missingNative } from './peers/native-baselines.js';
import { missingPackage } from './peers/npm-package.js';
import { measureUcx, missingUcx } from './peers/ucx.js';
import { type Contestant, type Row, type Target, US } from './plan.js';
import type { Placement } from './processes.js';
import { type Figure, figureOf, type Sample } from './samples.js';
import { measureValkey } from './valkey/valkey.js';
import { measureProviderCalls, missingProviderCalls } from './windows/provider-calls.js';

const OURS = './ours/program.js';
const NODE = './peers/node-program.js';
const NET = './net/program.js';
const MAP = './map/program.js';

/** The samples of one contestant. */
export interface Measured {
  readonly label: string;
  readonly samples: readonly Sample[];
  /** Why the contestant cannot be measured on this machine. */
  readonly missing?: string | undefined;
  /** Why its measurement failed. */
  readonly failed?: string | undefined;
}

/** The result of one contestant of a row. */
export interface Outcome extends Measured {
  /**
   * In the row's unit: the median of the medians, or of the means if a contestant reports no medians. Undefined if nothing was measured.
   */
  readonly figure: Figure | undefined;
  readonly statistic: 'median' | 'mean';
  /** Median over the rounds of ours / theirs, with the statistic that both report. Undefined for our first contestant. */
  readonly ratio: Figure | undefined;
}

export interface TargetOutcome extends Target {
  /** Our figure or ratio; undefined if the peer is missing. */
  readonly value: number | undefined;
  readonly met: boolean | undefined;
}

export interface RowOutcome {
  readonly row: Row;
  readonly outcomes: readonly Outcome[];
  readonly targets: readonly TargetOutcome[];
}

export interface RunOptions {
  readonly rounds: number;
  readonly peers: boolean;
  readonly placement: Placement;
  readonly progress: (text: string) => void;
}

/** Measurements with several threads in one process are not pinned. */
const anywhere = ({ realtime }: Placement): Placement => ({ cpus: undefined, realtime: realtime === true });

/** The sum of several processes that measure simultaneously. */
async function measureTogether(processes: number, job: JobInput, placement: Placement): Promise<Sample> {
  const samples = await Promise.all(
    Array.from({ length: processes }, () => measureAlone(OURS, job, placement)),
  );
  return { mean: samples.reduce((sum, { mean }) => sum + mean, 0) };
}

function measure(contestant: Contestant, placement: Placement, round: number): Promise<Sample> {
  switch (contestant.by) {
    case 'networkdirect':
      if (contestant.job.kind === 'open' || contestant.job.kind === 'workers') {
        return measureTogether(contestant.processes ?? 1, contestant.job, anywhere(placement));
      }
      if (contestant.job.kind === 'verbs') return measureAlone(OURS, contestant.job, placement);
      return measurePair(OURS, contestant.job, placement);
    case 'net':
      if (contestant.job.over === 'MessagePort')
        return measureAlone(NET, contestant.job, placement, [], 'both');
      return measurePair(NET, contestant.job, placement);
    case 'map':
      return measurePair(
        MAP,
        contestant.job,
        placement,
        (contestant.job.readers ?? 1) > 1 ? 'both' : 'client',
      );
    case 'node':
      if (contestant.job.kind === 'worker') return measureAlone(NODE, contestant.job, anywhere(placement));
      if (contestant.job.kind === 'crc32') return measureAlone(NODE, contestant.job, placement);
      return measurePair(NODE, contestant.job, placement);
    case 'libfabric':
      return measureLibfabric(contestant.job, placement);
    case 'ucx':
      return measureUcx(contestant.job, placement);
    case 'native':
      return measureNative(contestant.job, placement);
    case 'provider-calls':
      return measureProviderCalls(contestant.job, placement);
    case 'distance':
      return measureDistance(contestant.job, placement);
    case 'valkey':
      return measureValkey(contestant.job, placement);
    case 'crowd':
      return crowdSample(contestant.job, contestant.figure, round);
  }
}

/** Why a contestant cannot be measured on this machine; undefined if it can. */
function whyMissing(contestant: Contestant): string | undefined {
  if (contestant.by === 'libfabric') return missingLibfabric();
  if (contestant.by === 'ucx') return missingUcx();
  if (contestant.by === 'distance') return missingLink(contestant.job.link);
  if (contestant.by === 'valkey') return missingLink('cable');
  if (contestant.by === 'provider-calls') return missingProviderCalls();
  if (contestant.by === 'net' && contestant.job.over === 'zeromq') return missingPackage('zeromq');
  if (contestant.by === 'map') return missingStore(contestant.job.over);
  // The job uses the same fake of rdma-core as the C++ program.
  if (contestant.by === 'networkdirect' && contestant.job.kind === 'verbs')
    return missingNative({ program: 'verbs' });
  return contestant.by === 'native' ? missingNative(contestant.job) : undefined;
}

export async function runRow(row: Row, options: RunOptions): Promise<RowOutcome> {
  const wanted = row.contestants.filter(({ label }) => options.peers || label.startsWith(US));
  const states = wanted.map((contestant) => ({
    contestant,
    label: contestant.label,
    samples: [] as Sample[],
    missing: whyMissing(contestant),
    failed: undefined as string | undefined,
  }));
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const state of states) {
      if (state.missing !== undefined || state.failed !== undefined) continue;
      options.progress(`${state.label}, round ${round} of ${options.rounds}`);
      try {
        state.samples.push(await measure(state.contestant, options.placement, round));
      } catch (error) {
        state.failed = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return outcomeOf(row, states);
}

/** Computes figures, ratios and targets from the samples. Ours are the first. */
export function outcomeOf(row: Row, measured: readonly Measured[]): RowOutcome {
  const ours = measured[0]!.samples;
  const outcomes = measured.map(({ label, samples, missing, failed }): Outcome => {
    const statistic = samples.every(({ median }) => median !== undefined) ? 'median' : 'mean';
    const values = samples.map((sample) => (sample[statistic] ?? sample.mean) / row.unit.base);
    return {
      label,
      samples,
      missing,
      failed,
      figure: values.length === 0 ? undefined : figureOf(values),
      statistic,
      ratio: label === US ? undefined : ratioOf(ours, samples),
    };
  });
  return { row, outcomes, targets: row.targets.map((target) => judge(row, target, outcomes)) };
}

/** Ours / theirs, computed in each round, so that other load on the machine affects both. */
function ratioOf(ours: readonly Sample[], theirs: readonly Sample[]): Figure | undefined {
  const rounds = Math.min(ours.length, theirs.length);
  if (rounds === 0) return undefined;
  const both = [...ours, ...theirs].every(({ median }) => median !== undefined);
  const value = ({ median, mean }: Sample) => (both ? median! : mean);
  return figureOf(Array.from({ length: rounds }, (_, i) => value(ours[i]!) / value(theirs[i]!)));
}

function judge(row: Row, target: Target, outcomes: readonly Outcome[]): TargetOutcome {
  const { against, of } = target;
  const outcome = outcomes.find(({ label }) => label === (against ?? of ?? outcomes[0]?.label));
  const value = against === undefined ? outcome?.figure?.value : outcome?.ratio?.value;
  if (value === undefined) return { ...target, value, met: undefined };
  return {
    ...target,
    value,
    met: row.unit.better === 'less' ? value <= target.factor : value >= target.factor,
  };
}
