/** Options of the connection manager: retransmission, time-outs. */
import type { OptionGroup } from './describe.js';

export const cmOptions: OptionGroup = {
  interface: 'CmOptions',
  about:
    'Connection manager settings, complete; times in milliseconds unless named a code (4.096 µs × 2^code).',
  options: {
    responseTimeoutCode: {
      about: 'How long a sent message (REQ, REP, DREQ) waits for its reply before it is retransmitted.',
      range: [0, 31],
      default: 20,
    },
    maxRetries: { about: 'How often a message is retransmitted.', range: [0, 15], default: 15 },
    timewaitMs: {
      about:
        "How long an ended connection's ids stay reserved; those of a rejected request longer by the time after which the peer repeats it, so " +
        'that a lost REJ is sent again.',
      range: [0, 60_000],
      default: 500,
    },
    mraServiceTimeoutCode: {
      about: 'Service timeout code announced in an MRA when a request waits for its application.',
      range: [0, 31],
      default: 24,
    },
  },
};
