/** Measurements over a link with delay: this library, TCP, or both at the same time. */
import { type CommonTime, monotonicSeconds } from '../common-time.js';
import { measurePair } from '../pair.js';
import type { Placement } from '../processes.js';
import type { Sample } from '../samples.js';
import { type LinkShape, withLink } from './delayed-link.js';

export interface DistanceJob {
  readonly link: LinkShape;
  readonly kind: 'write' | 'read';
  /** Size of a message in bytes. */
  readonly size: number;
  readonly inFlight: number;
  readonly seconds: number;
  /** TCP congestion control. The default is that of the OS. */
  readonly tcp?: 'cubic' | undefined;
  /**
   * The senders. The figure of a single one is in bytes per second. If both send at the same time, it is the share of one in the link's
   * rate, in %.
   */
  readonly who: 'ours' | 'theirs' | 'ours beside theirs' | 'theirs beside ours';
}

/** Time for four processes to start, connect and reach their share of the link, in seconds. */
const SETTLING = 8;

const OURS = './ours/program.js';
const NODE = './peers/node-program.js';

export function measureDistance(job: DistanceJob, { realtime }: Placement): Promise<Sample> {
  const { link, kind, size, inFlight, seconds, who } = job;
  return withLink({ ...link, tcp: job.tcp }, async ({ spaces, addresses }) => {
    const place: Placement = { cpus: undefined, realtime: realtime === true, spaces };
    const far = { kind: 'far', operation: kind, size, inFlight, seconds, addresses, link: 'wire' };
    const stream = { kind: 'stream', size, seconds, host: addresses[1] };
    const ours = (within?: CommonTime) => measurePair(OURS, { ...far, within }, place);
    const theirs = (within?: CommonTime) => measurePair(NODE, { ...stream, within }, place);
    if (who === 'ours') return ours();
    if (who === 'theirs') return theirs();
    const from = monotonicSeconds() + SETTLING;
    const within = { from, until: from + seconds };
    const [one, other] = await Promise.all([ours(within), theirs(within)]);
    const { mean } = who === 'ours beside theirs' ? one : other;
    return { mean: (100 * mean * 8) / (link.rateMbit * 1e6) };
  });
}
