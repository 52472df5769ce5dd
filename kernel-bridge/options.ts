import { z } from 'zod';

const probability = z.number().min(0).max(1);

/** Connection manager settings; times in milliseconds unless named a code (4.096 µs × 2^code). */
export const cmOptionsSchema = z.strictObject({
  /** How long a sent message waits for its answer before it is sent again (REQ, REP, DREQ). */
  responseTimeoutCode: z.int().min(0).max(31).default(20),
  /** Times a message is sent again. */
  maxRetries: z.int().min(0).max(15).default(15),
  /** How long an ended connection's ids stay out of use. */
  timewaitMs: z.int().min(0).max(60_000).default(500),
  /** Service timeout code announced in an MRA when a request waits for its application. */
  mraServiceTimeoutCode: z.int().min(0).max(31).default(24),
});

/** RC settings given to connections that the connection manager sets up. */
export const rcOptionsSchema = z.strictObject({
  /** ACK timeout code of the QP, 4.096 µs × 2^code. 17 is 0.54 s, as Linux 6.12. */
  ackTimeoutCode: z.int().min(1).max(31).default(17),
  /** RNR NAK timer code announced to the peer (AETH §1.8: 12 is 0.64 ms, 0 is 655 ms). */
  minRnrTimerCode: z.int().min(0).max(31).default(12),
});

/** A seeded fault layer under the wire's transmit side, for tests. */
export const faultOptionsSchema = z.strictObject({
  seed: z.int().min(0).default(1),
  drop: probability.default(0),
  duplicate: probability.default(0),
  reorder: probability.default(0),
  corrupt: probability.default(0),
  /** CM attribute id (0x10 REQ … 0x18 SIDR_REP) → how many of the first such messages to drop. */
  dropMads: z
    .record(z.string().regex(/^\d+$/, 'it takes the number of a CM attribute'), z.int().min(0))
    .default({}),
});

const pkeysText =
  'it takes 1 to 64 P_Keys, each from 1 to 65535 but 32768 and none twice, or such a list for each interface name';

/** Entries of a port's P_Key table: partitions this host is a member of; the high bit says full member (IBA 1 §10.9). */
const pkeyListSchema = z.array(z.number()).refine(
  (pkeys) => {
    const known = pkeys.every((key) => Number.isInteger(key) && key > 0 && key <= 0xffff && key !== 0x8000);
    return known && pkeys.length >= 1 && pkeys.length <= 64 && new Set(pkeys).size === pkeys.length;
  },
  { error: pkeysText },
);

/** P_Key tables: one for all ports, or by interface name; interfaces that are not named have the default partition only. */
export const pkeysSchema = z.union([pkeyListSchema, z.record(z.string(), pkeyListSchema)], {
  error: pkeysText,
});

/**
 * Options of the soft kernel and its HCA. The first open in a process starts the HCA and fixes `keepAliveMs`, `window`, `link`,
 * `allowPtrace` and `receiveBufferBytes`; the first in each thread fixes the rest for that thread. `faults` and `capture` are the process's:
 * those that a later thread asks for hold for all from then on, and those it leaves out stay as they are.
 * `ND_OPTIONS` (JSON of this shape) gives defaults for programs that pass none.
 */
export const kernelOptionsSchema = z.strictObject({
  cm: cmOptionsSchema.prefault({}),
  rc: rcOptionsSchema.prefault({}),
  /** Idle wire connections are probed this often (zero-length RDMA WRITE); 0: never. */
  keepAliveMs: z.int().min(0).max(3_600_000).default(10_000),
  /** PSNs in flight per QP. */
  window: z.int().min(1).max(4096).default(128),
  /**
   * How connections between processes of this host travel: `auto`, by shared memory where both processes are the same user's
   * and neither forces the wire; `wire`, by UDP like any other. The HCA's counters `local_link_*` say what became of it.
   */
  link: z.enum(['auto', 'wire']).default('auto'),
  /**
   * Lets every process of this user read this one's memory (`PR_SET_PTRACER_ANY`), for single copies on the local link where
   * Yama restricts that. Without it, and with Yama, large messages between processes are copied twice.
   */
  allowPtrace: z.boolean().default(false),
  /**
   * Write what passes the links to this pcapng file; `%p` becomes the process id. What two processes exchange by shared memory
   * passes as whole packets, to be seen or to suffer `faults`, if either asks for them before the two first connect.
   */
  capture: z.string().default(''),
  receiveBufferBytes: z.int().min(65_536).max(268_435_456).default(4_194_304),
  faults: faultOptionsSchema.prefault({}),
  /**
   * P_Key tables of the ports, `[0xffff, 0x8001]` for all or `{ eth0: [0x8001] }` by interface. The first entry is the one that
   * connections use unless a queue pair's `pkeyIndex` or a path record chooses another.
   */
  pkeys: pkeysSchema.default([0xffff]),
  /** How long opening a device file may wait for the soft kernel's thread. */
  startTimeoutMs: z.int().min(100).max(600_000).default(10_000),
});

/** Options of the soft kernel and its HCA, complete. */
export type KernelOptions = z.output<typeof kernelOptionsSchema>;
/** Options of the soft kernel and its HCA as callers give them: what is left out has its default. */
export type KernelOptionsInput = z.input<typeof kernelOptionsSchema>;
/** Connection manager settings, complete. */
export type CmOptions = z.output<typeof cmOptionsSchema>;
/** RC settings, complete. */
export type RcOptions = z.output<typeof rcOptionsSchema>;
