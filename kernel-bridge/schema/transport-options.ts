/** Options of the transport: keep-alive, RNR wait, ECN, window. */
import type { Option } from './describe.js';

export const transportOptions = {
  keepAliveMs: {
    about:
      'Interval of probes (zero-length RDMA Writes) on idle connections over UDP, in milliseconds; 0 disables them.',
    range: [0, 3_600_000],
    default: 10_000,
    cpp: 'TransportOptions',
  },
  rnrTimeoutMs: {
    about:
      'Minimum time that a message waits for a Receive (RNR), in milliseconds. It applies to a sender whose peer has requested 6 RNR ' +
      'retries or more and has no shared receive queue, and to a receiver that requests as many of its peer: its RNR timers grow, so that 6 ' +
      'retries take this long (with other implementations slightly more than one second at most). A connection with a smaller count keeps ' +
      'that count and `rc.minRnrTimerCode`; with 0 all connections do.',
    range: [0, 600_000],
    default: 1000,
    cpp: 'TransportOptions',
  },
  ecn: {
    about:
      'Sends packets of connections as ECN-capable, ECT(0). Received marks always cause CNPs, with or without this option.',
    default: false,
    cpp: 'TransportOptions',
  },
  window: {
    about:
      'Maximum number of PSNs in flight per QP (on the local link, up to twice as many small messages); losses and congestion notifications ' +
      'reduce it.',
    range: [1, 4096],
    default: 128,
    cpp: 'TransportOptions',
  },
  longWindowBytes: {
    about:
      'Maximum number of bytes in flight per QP to another process with this engine over a round trip of more than 0.25 ms; the window grows ' +
      'to this size if the path allows it. Other peers are limited to `window`. With 0, all peers are.',
    range: [0, 2 ** 30],
    default: 32 * 2 ** 20,
    cpp: 'TransportOptions',
  },
} satisfies Readonly<Record<string, Option>>;
