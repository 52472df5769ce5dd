import { DEFAULT_PKEY } from './ioctl/constants.js';

/**
 * Defaults of the options of the soft kernel and its HCA. `options.ts` has their meaning and limits.
 *
 * @internal
 */
export const defaultOptions = {
  cm: {
    responseTimeoutCode: 20,
    maxRetries: 15,
    timewaitMs: 500,
    mraServiceTimeoutCode: 24,
  },
  rc: {
    /** 17 is 0.54 s, as in Linux 6.12. */
    ackTimeoutCode: 17,
    minRnrTimerCode: 12,
    trafficClass: 0,
  },
  keepAliveMs: 10_000,
  rnrPatienceMs: 1000,
  ecn: false,
  window: 128,
  longWindowBytes: 33_554_432,
  link: 'auto' as 'auto' | 'wire',
  icrc: 'solved' as 'solved' | 'exact',
  direct: true,
  capture: '',
  statistics: true,
  receiveBufferBytes: 4_194_304,
  faults: {
    seed: 1,
    drop: 0,
    duplicate: 0,
    reorder: 0,
    corrupt: 0,
    dropMads: {} as Record<string, number>,
  },
  pkeys: [DEFAULT_PKEY],
  /** `auto`, `soft`, `rdma` or the name of a device. */
  hca: 'auto',
  kernel: 'auto' as 'auto' | 'driver' | 'soft',
  startTimeoutMs: 10_000,
};
