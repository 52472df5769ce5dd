/** Options of the connection manager: retransmission and timeouts. */
import type { OptionGroup } from './describe.js';

export const cmOptions: OptionGroup = {
  interface: 'CmOptions',
  about:
    'All options of the connection manager. Times are in milliseconds unless described as codes (4.096 µs × 2^code).',
  options: {
    responseTimeoutCode: {
      about:
        'Time to wait for the reply to a message (REQ, REP, DREQ) before it is retransmitted, as a code.',
      range: [0, 31],
      default: 20,
    },
    maxRetries: { about: 'Maximum number of retransmissions of a message.', range: [0, 15], default: 15 },
    timewaitMs: {
      about:
        "Time for which an ended connection's ids remain reserved. Those of a rejected request remain reserved for one more retransmission interval of the peer, so " +
        'that a lost REJ can be retransmitted.',
      range: [0, 60_000],
      default: 500,
    },
    mraServiceTimeoutCode: {
      about: 'Service timeout announced in an MRA while a request waits for its application, as a code.',
      range: [0, 31],
      default: 24,
    },
  },
};
