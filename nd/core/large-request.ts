/** LargeRequestThreshold is measured, as the SPI asks providers to: registering against copying. */
import type { IWVProtectionDomain } from '../../winverbs/index.js';
import { StatusError, WvAccess } from '../../winverbs/index.js';

/** The sizes that are compared are powers of two, in bytes. */
const SMALLEST = 4096;
/** The threshold where copying is faster at every size, in bytes. */
const LARGEST = 2 ** 20;
/** The least of so many runs counts: the others were interrupted. */
const RUNS = 3;

/** What is compared: each takes so many bytes once. */
export interface LargeRequestCosts {
  register(bytes: number): void;
  copy(bytes: number): void;
}

/**
 * The least size at which registering and deregistering memory takes no longer than copying it, in bytes.
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

/** The same of a device, whose memory `pd` registers. It takes a few milliseconds. */
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
    // Memory cannot be registered now (RLIMIT_MEMLOCK, the device's number of regions): copying is all that works.
    if (error instanceof StatusError) return LARGEST;
    throw error;
  }
}
