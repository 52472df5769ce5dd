/** The parts of a row of the benchmark: contestants, units, targets. */

import type { CrowdFigures, CrowdJob } from './crowd/crowd.js';
import type { DistanceJob } from './distance/distance.js';
import type { MapJobInput } from './map/job.js';
import type { NetJobInput } from './net/job.js';
import type { JobInput } from './ours/job.js';
import type { LibfabricJob } from './peers/libfabric.js';
import type { NativeJob } from './peers/native-baselines.js';
import type { NodeJob } from './peers/node-program.js';
import type { UcxJob } from './peers/ucx.js';
import type { ValkeyRowJob } from './valkey/valkey.js';
import type { ProviderCallsJob } from './windows/provider-calls.js';

/** A measuring program and its job. */
export type Contestant = { readonly label: string } & (
  | {
      readonly by: 'networkdirect';
      readonly job: JobInput;
      /** Number of processes that execute the job simultaneously; the figure is their sum. Default: 1. */
      readonly processes?: number;
    }
  | { readonly by: 'net'; readonly job: NetJobInput }
  | { readonly by: 'map'; readonly job: MapJobInput }
  | { readonly by: 'node'; readonly job: NodeJob }
  | { readonly by: 'libfabric'; readonly job: LibfabricJob }
  | { readonly by: 'ucx'; readonly job: UcxJob }
  | { readonly by: 'native'; readonly job: NativeJob }
  | { readonly by: 'provider-calls'; readonly job: ProviderCallsJob }
  | { readonly by: 'distance'; readonly job: DistanceJob }
  | { readonly by: 'valkey'; readonly job: ValkeyRowJob }
  | { readonly by: 'crowd'; readonly job: CrowdJob; readonly figure: keyof CrowdFigures }
);

/** The unit of a row's figures. */
export interface Unit {
  readonly text: string;
  /** The unit's size, in base units of the samples. */
  readonly base: number;
  readonly better: 'less' | 'more';
}

/**
 * A limit for our figure: `factor` times the figure of `against`, or `factor` units. It is an upper limit, or a lower one where more is
 * better.
 */
export interface Target {
  readonly factor: number;
  /** The label of another contestant. */
  readonly against?: string;
  /** The label of our contestant to which a limit in units applies. Default: the first. */
  readonly of?: string;
  /** Whether it is a stretch goal. */
  readonly stretch?: boolean;
}

export interface Row {
  readonly name: string;
  readonly title: string;
  readonly unit: Unit;
  readonly contestants: readonly [Contestant, ...Contestant[]];
  readonly targets: readonly Target[];
  /** The row's position in a chart by message size. */
  readonly chart?: { readonly of: 'latency' | 'bandwidth'; readonly size: number };
}

export const MICROSECONDS: Unit = { text: 'µs', base: 1, better: 'less' };
export const NANOSECONDS: Unit = { text: 'ns', base: 1e-3, better: 'less' };
export const MILLISECONDS: Unit = { text: 'ms', base: 1, better: 'less' };
export const GIGABYTES: Unit = { text: 'GB/s', base: 1e9, better: 'more' };
export const MEGABYTES: Unit = { text: 'MB/s', base: 1e6, better: 'more' };
export const MILLIONS: Unit = { text: 'M/s', base: 1e6, better: 'more' };
export const PER_SECOND: Unit = { text: '/s', base: 1, better: 'more' };
export const KIBIBYTES: Unit = { text: 'KiB', base: 1024, better: 'less' };
export const MEBIBYTES: Unit = { text: 'MiB', base: 1 << 20, better: 'less' };
export const PERCENT: Unit = { text: '%', base: 1, better: 'less' };
export const SHARE: Unit = { text: '% of the link', base: 1, better: 'more' };

/** This library. */
export const US = 'networkdirect';
export const TCP = 'node:net TCP';
export const UNIX = 'node:net UNIX';
export const ZEROMQ = 'zeromq';
export const MESSAGE_PORT = 'MessagePort';

/** Scaled durations and counts of measurements. */
export class Amount {
  constructor(private readonly scale: number) {}

  /** Duration of a measurement that is limited by time. */
  get seconds(): number {
    return Math.max(0.01, 0.4 * this.scale);
  }

  /** Repetitions of a measurement that is limited by count. */
  of(count: number, least = 10): number {
    return Math.max(Math.min(count, least), Math.round(count * this.scale));
  }

  /** Warm-up repetitions. They only depend on the scale if that is below a tenth. */
  warmUp(count: number): number {
    return Math.max(1, Math.round(count * Math.min(1, 10 * this.scale)));
  }

  /** Number of messages of a size. Messages below 4 KiB count as 4 KiB, because these take nearly the same time. */
  messages(count: number, size: number): number {
    return this.of(Math.ceil(count / Math.max(1, size / 4096)));
  }
}

export const FI_SHM = 'libfabric shm';
export const UCX = 'UCX shm';
export const MIB = 1 << 20;

export function tcpStream(size: number, seconds: number): Contestant {
  return { label: TCP, by: 'node', job: { kind: 'stream', size, seconds } };
}
