/** Options of reliable connections: ACK timeout, RNR timer, traffic class. */
import type { OptionGroup } from './describe.js';

export const rcOptions: OptionGroup = {
  interface: 'RcOptions',
  about: 'All options of reliable connections (RC).',
  options: {
    ackTimeoutCode: {
      about: 'ACK timeout of the QP, as a code: 4.096 µs × 2^code.',
      range: [1, 31],
      // 0.54 s, as in Linux 6.12.
      default: 17,
    },
    minRnrTimerCode: {
      about:
        'Minimum wait requested of a peer for whose message no Receive is posted (RNR), as a code: 12 is 0.64 ms, 0 is 655 ms.',
      range: [0, 31],
      default: 12,
    },
    trafficClass: {
      about:
        'Traffic class of connections whose path has none: six bits of DSCP above two zero bits, because ECN has its own option. The REQ carries ' +
        'it to the passive side, which uses the same. 0xa0 is DSCP 40.',
      range: [0, 0xfc],
      multipleOf: [4, 'must be a multiple of 4 from 0 to 252, a DSCP shifted left by two'],
      default: 0,
    },
  },
};
