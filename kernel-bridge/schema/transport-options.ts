/** Options of the transport: keep-alive, wait for late Receives, ECN, window. */
import type { Option } from './describe.js';

export const transportOptions = {
  keepAliveMs: {
    about: 'Interval of probes on idle established wire connections (zero-length RDMA WRITE); 0: none.',
    range: [0, 3_600_000],
    default: 10_000,
    cpp: 'TransportOptions',
  },
  rnrPatienceMs: {
    about:
      'The least time for which a message waits for a Receive that is posted late. It applies to a sender whose peer has asked for 6 RNR ' +
      'retries or more and has no shared receive queue, and to a receiver that asks its peer for as many: its RNR timers grow, so that 6 ' +
      'of them take this long (with other implementations at most a little more than one second). A connection with a smaller count keeps ' +
      'that count and `rc.minRnrTimerCode`; with 0 all connections do.',
    range: [0, 600_000],
    default: 1000,
    cpp: 'TransportOptions',
  },
  ecn: {
    about: "Sends connections' packets as ECN-capable, ECT(0). Received marks are always answered with CNPs.",
    default: false,
    cpp: 'TransportOptions',
  },
  window: {
    about:
      'Maximum of PSNs in flight per QP; fewer after losses and congestion notifications, up to twice as many small messages on the local ' +
      'link.',
    range: [1, 4096],
    default: 128,
    cpp: 'TransportOptions',
  },
  longWindowBytes: {
    about:
      'Maximum of bytes in flight per QP towards another process with this engine, where the round trip is longer than 0.25 ms: the window ' +
      'grows to what the path takes, up to this. Other peers get no more than `window`. 0: nor does any.',
    range: [0, 2 ** 30],
    default: 32 * 2 ** 20,
    cpp: 'TransportOptions',
  },
} satisfies Readonly<Record<string, Option>>;
