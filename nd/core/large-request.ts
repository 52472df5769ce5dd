/** Measures LargeRequestThreshold, as the SPI requires of providers: registering compared with copying. */
import type { IWVProtectionDomain } from '../../winverbs/index.js';
import { StatusError, WvAccess } from '../../winverbs/index.js';

/** Smallest size compared, in bytes; the sizes are powers of two. */
const SMALLEST = 4096;
/** The threshold in bytes if copying is faster at every size. */
const LARGEST = 2 ** 20;
/** Number of runs. Only the fastest run counts, because the others may have been interrupted. */
const RUNS = 3;

/** The operations compared, each executed once for a number of bytes. */
export interface LargeRequestCosts {
  register(bytes: number): void;
  copy(bytes: number): void;
}

/**
 * Returns the smallest size in bytes that is not slower to register and deregister than to copy.
 *
 * @param most - the largest registration, in bytes
 * @param now - a clock, in any unit
 */
export function largeRequestThreshold(most: number, costs: LargeRequestCosts, now: () => number): number {
  const least = (run: (bytes: number) => void, bytes: number): number => {
    let shortest = Infinity;
    for (let i = 0; i < RUNS; i += 1) {
      const begun = now();
      run(bytes);
      shortest = Math.min(shortest, now() - begun);
    }
    return shortest;
  };
  const last = Math.min(LARGEST, most);
  for (let bytes = SMALLEST; bytes < last; bytes *= 2) {
    if (least(costs.register, bytes) <= least(costs.copy, bytes)) return bytes;
  }
  return LARGEST;
}

/** Measures the threshold of a device, whose memory `pd` registers, in a few milliseconds. */
export function measureLargeRequest(pd: IWVProtectionDomain, most: number): number {
  const source = new Uint8Array(LARGEST).fill(1);
  const target = new Uint8Array(LARGEST).fill(2);
  const access = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;
  const costs: LargeRequestCosts = {
    register: (bytes) => pd.deregisterMemory(pd.registerMemory(source.subarray(0, bytes), access)),
    copy: (bytes) => target.set(source.subarray(0, bytes)),
  };
  try {
    return largeRequestThreshold(most, costs, () => performance.now());
  } catch (error) {
    // Memory cannot be registered at present (RLIMIT_MEMLOCK, or the device's limit of regions), so only copying works.
    if (error instanceof StatusError) return LARGEST;
    throw error;
  }
}
