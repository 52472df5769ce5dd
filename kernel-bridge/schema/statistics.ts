/** Statistics of objects, which the HCA gives as records of numbers. `ioctl/statistics-form.ts` has the whole of what a process reports. */
import type { StatisticsForm } from './describe.js';

export const queuePair: StatisticsForm = {
  about: 'A queue pair. Numbers of work requests count from its creation and begin again at 2³².',
  ts: 'QueuePairStatistics',
  cpp: 'QpNumbers',
  fields: {
    qpn: { about: 'The queue pair number, as in packets.' },
    type: { about: '`RC`, `UC` or `UD`.', shown: 'string' },
    state: { about: '`RESET` to `ERROR`: the names of `QpState`.', shown: 'string' },
    local: {
      about: "This side's IP address; empty before the queue pair is connected.",
      shown: 'string',
      native: false,
    },
    remote: {
      about: "The peer's IP address; empty before the queue pair is connected.",
      shown: 'string',
      native: false,
    },
    remoteQpn: { about: "The peer's queue pair number; 0 before." },
    mtu: { about: 'Bytes of payload in a packet; 0 before.' },
    link: {
      about: '`local`: shared memory; `wire`: UDP; `none`: it has no peer.',
      shown: ['local', 'wire', 'none'],
      native: false,
    },
    localLink: { about: 'Its link is the local one.', type: 'flag', shown: false },
    sendEntries: { about: 'Entries of the send queue.' },
    sendWaiting: { about: 'Work requests of the send queue that have not completed.' },
    sent: { about: 'Work requests of the send queue that have completed.' },
    receiveEntries: { about: 'Entries of the receive queue; 0 with a shared receive queue.' },
    receiveWaiting: { about: 'Receives that wait for a message.' },
    received: { about: 'Receives that a message has consumed.' },
    sharedReceives: {
      about:
        'Whether it takes its receives from a shared receive queue, whose numbers are in `sharedReceived`.',
      type: 'flag',
    },
    window: { about: 'Packets (PSNs) that may be in flight.' },
    inFlight: { about: 'Packets in flight.' },
    retries: { about: 'How often the oldest of these was retransmitted.' },
    rnrRetries: { about: 'How often the peer has answered it with an RNR NAK.' },
    rnrWaiting: { about: 'Whether it waits because the peer has no Receive.', type: 'flag' },
    roundTripNs: { about: 'The smoothed time of a round trip in nanoseconds; 0: not measured.', type: 'u64' },
  },
};

export const memory: StatisticsForm = {
  about: 'A memory region or window.',
  ts: 'MemoryStatistics',
  cpp: 'MemoryStatistics',
  fields: {
    kind: {
      about: '`fast`: a region for fast registration.',
      shown: ['region', 'window', 'fast'],
      native: false,
    },
    window: { about: 'It is a window.', type: 'flag', shown: false },
    fast: { about: 'It was allocated for fast registration.', type: 'flag', shown: false },
    length: { about: 'Bytes.', type: 'u64' },
    access: { about: 'Names of `WvAccess`.', shown: 'readonly string[]' },
    live: { about: 'Whether it is registered, or bound, at present.', type: 'flag' },
    allocated: { about: 'Whether it is memory of `allocate()`.', type: 'flag' },
  },
};
