/** Statistics of objects, reported by the HCA as records of numbers. `ioctl/statistics-form.ts` defines the complete report of a process. */
import type { StatisticsForm } from './describe.js';

export const queuePair: StatisticsForm = {
  about: 'Statistics of a queue pair. Counts of work requests start at its creation and wrap at 2³².',
  ts: 'QueuePairStatistics',
  cpp: 'QpNumbers',
  fields: {
    qpn: { about: 'The queue pair number, as in packets.' },
    type: { about: '`RC`, `UC` or `UD`.', shown: 'string' },
    state: { about: '`RESET` to `ERROR`: the names of `QpState`.', shown: 'string' },
    local: {
      about: 'The local IP address; empty before the queue pair is connected.',
      shown: 'string',
      native: false,
    },
    remote: {
      about: "The peer's IP address; empty before the queue pair is connected.",
      shown: 'string',
      native: false,
    },
    remoteQpn: { about: "The peer's queue pair number; 0 before the queue pair is connected." },
    mtu: { about: 'Payload of a full packet, in bytes; 0 before the queue pair is connected.' },
    link: {
      about: 'The link: `local` (shared memory), `wire` (UDP), or `none` without a peer.',
      shown: ['local', 'wire', 'none'],
      native: false,
    },
    localLink: { about: 'Whether its link is the local one.', type: 'flag', shown: false },
    sendEntries: { about: 'Entries of the send queue.' },
    sendWaiting: { about: 'Work requests of the send queue that have not completed.' },
    sent: { about: 'Work requests of the send queue that have completed.' },
    receiveEntries: { about: 'Entries of the receive queue; 0 with a shared receive queue.' },
    receiveWaiting: { about: 'Receives waiting for a message.' },
    received: { about: 'Receives that a message has consumed.' },
    sharedReceives: {
      about: 'Whether it uses a shared receive queue; its counts are in `sharedReceived`.',
      type: 'flag',
    },
    window: { about: 'Packets (PSNs) that may be in flight.' },
    inFlight: { about: 'Packets in flight.' },
    retries: { about: 'Retransmissions of the oldest packet in flight.' },
    rnrRetries: { about: 'RNR NAKs received for the oldest packet in flight.' },
    rnrWaiting: { about: 'Whether it waits because the peer has no Receive posted.', type: 'flag' },
    roundTripNs: { about: 'Smoothed round-trip time in nanoseconds; 0: not measured.', type: 'u64' },
  },
};

export const memory: StatisticsForm = {
  about: 'Statistics of a memory region or window.',
  ts: 'MemoryStatistics',
  cpp: 'MemoryStatistics',
  fields: {
    kind: {
      about: 'The kind of registration; `fast`: a region for fast registration.',
      shown: ['region', 'window', 'fast'],
      native: false,
    },
    window: { about: 'Whether it is a window.', type: 'flag', shown: false },
    fast: { about: 'Whether it was allocated for fast registration.', type: 'flag', shown: false },
    length: { about: 'Length in bytes.', type: 'u64' },
    access: { about: 'Access rights: names of `WvAccess`.', shown: 'readonly string[]' },
    live: { about: 'Whether it is currently registered or bound.', type: 'flag' },
    allocated: { about: 'Whether it is memory from `allocate()`.', type: 'flag' },
  },
};
