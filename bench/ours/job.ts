/** The job of two processes of this library. Their command lines contain it as JSON. */
import * as z from 'zod';
import { commonTimeSchema } from '../common-time.js';

const size = z
  .int()
  .min(1)
  .max(1 << 30);
/** `auto`: the library chooses, which on one host is shared memory; `wire`: UDP. */
const link = z.enum(['auto', 'wire']).default('auto');
const seconds = z.number().positive().max(60);
/** How both sides wait: by spinning (`poll`), by blocking the thread (`block`) or in the event loop (`loop`). */
const wait = z.enum(['poll', 'block', 'loop']).default('poll');

export const jobSchema = z.discriminatedUnion('kind', [
  /** Ping-pong of Send and Receive on one of `queuePairs` open queue pairs: half of the round-trip time, in µs. */
  z.strictObject({
    kind: z.literal('ping-pong'),
    size,
    link,
    wait,
    seconds,
    queuePairs: z.int().min(1).max(20_000).default(1),
    /** Whether to use all open queue pairs round-robin. */
    inTurn: z.boolean().default(false),
    /** Pause between receiving a message and replying to it, in µs. Excluded from the result. */
    pause: z.int().min(0).max(1000).default(0),
  }),
  /** The same ping-pong through the NetworkDirect SPI, polling. */
  z.strictObject({ kind: z.literal('nd-ping-pong'), size, link, seconds }),
  /** Ping-pong of RDMA Writes to memory from `allocate()`, detected by polling the memory: half of the round-trip time, in µs. */
  z.strictObject({ kind: z.literal('write-poll'), size: size.min(4), link, seconds }),
  /** RDMA Writes, Reads or fetch-and-adds (of 8 bytes), all signaled. */
  z.strictObject({
    kind: z.enum(['write', 'read', 'add']),
    size,
    /** `bandwidth`: bytes per second; `rate`: requests per second; both with 16 in flight. `latency`: one request, in µs. */
    metric: z.enum(['bandwidth', 'rate', 'latency']).default('bandwidth'),
    link,
    seconds,
    memory: z.enum(['any', 'allocate']).default('any'),
    /** The behavior of the side that owns the memory. */
    target: z.enum(['sleeps', 'polls']).default('sleeps'),
    /** For `latency`: pause before each request, in µs, so that a target that was woken falls asleep again. Excluded from the result. */
    pause: z.int().min(0).max(1000).default(0),
  }),
  /** RDMA Writes or Reads between two addresses, in bytes per second, in programs that sleep while they wait. */
  z.strictObject({
    kind: z.literal('far'),
    operation: z.enum(['write', 'read']),
    size,
    inFlight: z.int().min(1).max(1024),
    addresses: z.tuple([z.ipv4(), z.ipv4()]),
    link,
    seconds,
    /** Counts in this time span instead of `seconds` after a warm-up. */
    within: commonTimeSchema.optional(),
  }),
  /** A stream of messages in one direction on one queue pair, in messages per second. */
  z.strictObject({ kind: z.literal('rate'), size, link, seconds }),
  /** Connections per second, after `warmUp` connections (0 includes the first). Default: the same number. */
  z.strictObject({
    kind: z.literal('connect'),
    link,
    count: z.int().min(1).max(100_000),
    warmUp: z.int().min(0).max(100_000).optional(),
    inFlight: z.int().min(1).max(1000),
  }),
  /** Resident memory of a connected queue pair of depth 16, in bytes. */
  z.strictObject({ kind: z.literal('resident'), link, queuePairs: z.int().min(1).max(20_000) }),
  /**
   * Round trips of 8 bytes per second between two queue pairs of each Worker, or with `across`, between each Worker and one of another
   * process. The figure is the sum, or the slowest times their number.
   */
  z.strictObject({
    kind: z.literal('workers'),
    link,
    seconds,
    workers: z.int().min(1).max(64),
    across: z.boolean().default(false),
    of: z.enum(['all', 'slowest']).default('all'),
  }),
  /** Post and poll of a request on the path to real HCAs, minus the time of the bare libibverbs calls, in µs. */
  z.strictObject({ kind: z.literal('verbs'), seconds, batch: z.int().min(1).max(32) }),
  /** Time from opening the provider to an open device, in ms. */
  z.strictObject({ kind: z.literal('open'), link }),
  /** CPU time with `queuePairs` idle connections, in % of one core. */
  z.strictObject({ kind: z.literal('rest'), link, seconds, queuePairs: z.int().min(1).max(20_000) }),
]);
export type Job = z.output<typeof jobSchema>;
export type JobInput = z.input<typeof jobSchema>;
export type JobOf<K extends Job['kind']> = Extract<Job, { kind: K }>;
