/** Options of the faults injected into outgoing packets. */
import type { OptionGroup } from './describe.js';

export const faultOptions: OptionGroup = {
  interface: 'FaultOptions',
  about: 'Faults injected into outgoing packets, with seeded random numbers, for tests.',
  cpp: 'FaultRates',
  options: {
    seed: { about: 'Seed of the random number generator.', range: [0, Number.MAX_SAFE_INTEGER], default: 1 },
    drop: { about: 'Probability that a packet is lost.', probability: true, default: 0 },
    duplicate: { about: 'Probability that a packet arrives twice.', probability: true, default: 0 },
    reorder: { about: 'Probability that a packet arrives late.', probability: true, default: 0 },
    corrupt: { about: 'Probability that a byte of a packet is changed.', probability: true, default: 0 },
    dropMads: {
      about:
        'Number of CM messages to drop, counted from the first, by attribute id in decimal (16 REQ … 26 APR).',
      checked: 'Record<string, number>',
      default: {},
    },
  },
};
