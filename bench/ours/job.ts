/** What one pair of processes of this library is to measure; it travels on their command lines as JSON. */
import { z } from 'zod';

const size = z
  .int()
  .min(1)
  .max(1 << 30);
/** `auto`: the library chooses, on one host the shared-memory link; `wire`: UDP. */
const link = z.enum(['auto', 'wire']).default('auto');
const seconds = z.number().positive().max(60);
/** `poll`: both sides spin; `block`: the threads wait; `loop`: the event loops do. */
const wait = z.enum(['poll', 'block', 'loop']).default('poll');

export const jobSchema = z.discriminatedUnion('kind', [
  /** Send and Receive there and back: half a round trip in µs, on one of `queuePairs` open ones. */
  z.strictObject({
    kind: z.literal('ping-pong'),
    size,
    link,
    wait,
    seconds,
    queuePairs: z.int().min(1).max(20_000).default(1),
    /** Use all open queue pairs, one after the other. */
    inTurn: z.boolean().default(false),
    /** µs from taking a message until it is answered, which do not count. */
    pause: z.int().min(0).max(1000).default(0),
  }),
  /** The same by the NetworkDirect SPI, polling. */
  z.strictObject({ kind: z.literal('nd-ping-pong'), size, link, seconds }),
  /** RDMA Write there and back, seen by looking at memory: half a round trip in µs. */
  z.strictObject({ kind: z.literal('write-poll'), size: size.min(4), link, seconds }),
  /** RDMA Writes or Reads one after the other: bytes per second. */
  z.strictObject({
    kind: z.enum(['write', 'read']),
    size,
    link,
    seconds,
    memory: z.enum(['any', 'allocate']).default('any'),
    /** What the side does whose memory is written or read. */
    target: z.enum(['sleeps', 'polls']).default('sleeps'),
  }),
  /** Messages one way on one queue pair: messages per second. */
  z.strictObject({ kind: z.literal('rate'), size, link, seconds }),
  /** Connections made, after `warmUp` others, as many unless told: per second. */
  z.strictObject({
    kind: z.literal('connect'),
    link,
    count: z.int().min(1).max(100_000),
    warmUp: z.int().min(1).max(100_000).optional(),
    inFlight: z.int().min(1).max(1000),
  }),
  /** Connected queue pairs of depth 16 in one process: resident bytes for each. */
  z.strictObject({ kind: z.literal('resident'), link, queuePairs: z.int().min(1).max(20_000) }),
  /** Time from the call that opens the provider to an open device: ms. */
  z.strictObject({ kind: z.literal('open'), link }),
  /** Processor time while nothing happens on `queuePairs` connections: % of one core. */
  z.strictObject({ kind: z.literal('rest'), link, seconds, queuePairs: z.int().min(1).max(20_000) }),
]);
export type Job = z.output<typeof jobSchema>;
export type JobInput = z.input<typeof jobSchema>;
export type JobOf<K extends Job['kind']> = Extract<Job, { kind: K }>;
