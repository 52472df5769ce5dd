/** Measurements over a link with delay: this library, TCP, or both at once. */
import { measurePair } from '../pair.js';
import type { Placement } from '../processes.js';
import type { Sample } from '../statistics.js';
import { type LinkShape, withLink } from './link.js';

export interface DistanceJob {
  readonly link: LinkShape;
  readonly kind: 'write' | 'read';
  /** Bytes of a message, and messages in flight. */
  readonly size: number;
  readonly inFlight: number;
  readonly seconds: number;
  /** Who sends: one alone, in bytes per second; or both at once, of which one's share of the link's rate counts, in %. */
  readonly who: 'ours' | 'theirs' | 'ours beside theirs' | 'theirs beside ours';
}

const OURS = './ours/program.js';
const NODE = './peers/node-program.js';

export function measureDistance(job: DistanceJob, { realtime }: Placement): Promise<Sample> {
  const { link, kind, size, inFlight, seconds, who } = job;
  return withLink(link, async ({ spaces, addresses }) => {
    const place: Placement = { cpus: undefined, realtime: realtime === true, spaces };
    const far = { kind: 'far', operation: kind, size, inFlight, seconds, addresses, link: 'wire' };
    const ours = () => measurePair(OURS, far, place);
    const theirs = () => measurePair(NODE, { kind: 'stream', size, seconds, host: addresses[1] }, place);
    if (who === 'ours') return ours();
    if (who === 'theirs') return theirs();
    const [one, other] = await Promise.all([ours(), theirs()]);
    const { mean } = who === 'ours beside theirs' ? one : other;
    return { mean: (100 * mean * 8) / (link.rateMbit * 1e6) };
  });
}
