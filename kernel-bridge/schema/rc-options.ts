/** Options of reliable connections: ACK time-out, RNR timer, traffic class. */
import type { OptionGroup } from './describe.js';

export const rcOptions: OptionGroup = {
  interface: 'RcOptions',
  about: 'RC settings, complete.',
  options: {
    ackTimeoutCode: {
      about: 'ACK timeout code of the QP, 4.096 µs × 2^code.',
      range: [1, 31],
      // 0.54 s, as in Linux 6.12.
      default: 17,
    },
    minRnrTimerCode: {
      about:
        'Code of the shortest wait that this side requests of a peer whose message finds no Receive (12 is 0.64 ms, 0 is 655 ms).',
      range: [0, 31],
      default: 12,
    },
    trafficClass: {
      about:
        'Traffic class of connections whose path has none: six bits of DSCP above two that are 0 (ECN has its own option). The REQ carries ' +
        'it to the passive side, which sends with the same. 0xa0 is DSCP 40.',
      range: [0, 0xfc],
      multipleOf: [4, 'it takes a DSCP shifted left by two: a multiple of 4'],
      default: 0,
    },
  },
};
