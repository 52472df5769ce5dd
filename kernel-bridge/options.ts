import { createRequire } from 'node:module';
import type { z } from 'zod';
import { defaultOptions } from './default-options.js';

type Zod = typeof import('zod');

/** Checks values of one kind and fills in what they leave out. */
export interface OptionsSchema<S extends z.ZodType> {
  /** @throws ZodError */
  parse(value: unknown): z.output<S>;
  /** As {@link parse}, with the error as a value. */
  safeParse(value: unknown): z.ZodSafeParseResult<z.output<S>>;
}

const requireModule = createRequire(import.meta.url);

/**
 * A schema that is made when the first value is to be checked: most programs give no options, and loading zod takes
 * longer than starting the kernel.
 */
function lazy<S extends z.ZodType>(build: (zod: Zod) => S): OptionsSchema<S> {
  let schema: S | undefined;
  const made = (): S => {
    schema ??= build(requireModule('zod') as Zod);
    return schema;
  };
  return { parse: (value) => made().parse(value), safeParse: (value) => made().safeParse(value) };
}

const cmSchema = ({ z }: Zod, { cm } = defaultOptions) =>
  z.strictObject({
    /** How long a sent message waits for its answer before it is sent again (REQ, REP, DREQ). */
    responseTimeoutCode: z.int().min(0).max(31).default(cm.responseTimeoutCode),
    /** Times a message is sent again. */
    maxRetries: z.int().min(0).max(15).default(cm.maxRetries),
    /** How long an ended connection's ids stay out of use. */
    timewaitMs: z.int().min(0).max(60_000).default(cm.timewaitMs),
    /** Service timeout code announced in an MRA when a request waits for its application. */
    mraServiceTimeoutCode: z.int().min(0).max(31).default(cm.mraServiceTimeoutCode),
  });

const rcSchema = ({ z }: Zod, { rc } = defaultOptions) =>
  z.strictObject({
    /** ACK timeout code of the QP, 4.096 µs × 2^code. */
    ackTimeoutCode: z.int().min(1).max(31).default(rc.ackTimeoutCode),
    /** Code of the shortest time that a peer whose message finds no Receive is asked to wait (12 is 0.64 ms, 0 is 655 ms). */
    minRnrTimerCode: z.int().min(0).max(31).default(rc.minRnrTimerCode),
    /**
     * Traffic class of connections whose path names none: six bits of DSCP above two that are 0 (ECN has its own option).
     * The REQ tells it to the passive side, which sends with the same. 0xa0 is DSCP 40.
     */
    trafficClass: z
      .int()
      .min(0)
      .max(0xfc)
      .multipleOf(4, 'it takes a DSCP shifted left by two: a multiple of 4')
      .default(rc.trafficClass),
  });

const faultSchema = ({ z }: Zod, { faults } = defaultOptions) => {
  const probability = z.number().min(0).max(1);
  return z.strictObject({
    seed: z.int().min(0).default(faults.seed),
    drop: probability.default(faults.drop),
    duplicate: probability.default(faults.duplicate),
    reorder: probability.default(faults.reorder),
    corrupt: probability.default(faults.corrupt),
    /** CM attribute id, in decimal (16 REQ … 26 APR) → how many of the first such messages to drop. */
    dropMads: z
      .record(
        z.string().refine((key) => /^\d{2}$/.test(key) && Number(key) >= 0x10 && Number(key) <= 0x1a, {
          error: 'it takes the number of a CM attribute, 16 (REQ) to 26 (APR)',
        }),
        z.int().min(0).max(0xffff_ffff),
      )
      .default(faults.dropMads),
  });
};

const pkeysText =
  'it takes 1 to 64 P_Keys, each from 1 to 65535 but 32768 and none twice, or such a list for each interface name';

const pkeysShape = ({ z }: Zod) => {
  /** Entries of a port's P_Key table: partitions this host is a member of; the high bit says full member (IBA 1 §10.9). */
  const list = z.array(z.number()).refine(
    (pkeys) => {
      const known = pkeys.every((key) => Number.isInteger(key) && key > 0 && key <= 0xffff && key !== 0x8000);
      return known && pkeys.length >= 1 && pkeys.length <= 64 && new Set(pkeys).size === pkeys.length;
    },
    { error: pkeysText },
  );
  return z.union([list, z.record(z.string(), list)], { error: pkeysText });
};

const kernelSchema = (zod: Zod) => {
  const { z } = zod;
  return z.strictObject({
    cm: cmSchema(zod).prefault({}),
    rc: rcSchema(zod).prefault({}),
    /** Idle wire connections are probed this often, once established (zero-length RDMA WRITE); 0: never. */
    keepAliveMs: z.int().min(0).max(3_600_000).default(defaultOptions.keepAliveMs),
    /**
     * How long a message waits, at least, for a Receive that the other side posts late. As sender, for a peer that has asked for
     * 6 RNR retries or more and has no shared receive queue; as receiver, where this side asks the peer for as many: the times
     * that it asks for grow, so that 6 of them take as long (towards other implementations one second and a little, at most). A
     * connection with a smaller count of its own keeps to that, and to `rc.minRnrTimerCode`; 0: so do all.
     */
    rnrPatienceMs: z.int().min(0).max(600_000).default(defaultOptions.rnrPatienceMs),
    /** Marks what connections send as ECN-capable, ECT(0). Marks that arrive are answered by CNPs in any case. */
    ecn: z.boolean().default(defaultOptions.ecn),
    /**
     * PSNs in flight per QP, at most; fewer after losses and congestion notifications, up to twice as many small messages on the
     * local link.
     */
    window: z.int().min(1).max(4096).default(defaultOptions.window),
    /**
     * How connections between processes of this host travel: `auto`, by shared memory where both processes are the same user's
     * and neither forces the wire; `wire`, by UDP like any other. The HCA's counters `local_link_*` say what became of it.
     */
    link: z.enum(['auto', 'wire']).default(defaultOptions.link),
    /**
     * How the checksum (ICRC) of IPv4 packets is checked, which covers an ID that UDP sockets hide. `solved`: some ID explains it,
     * which lets one corrupt packet in 2^15 pass; needs nothing. `exact`: with the ID, by a raw socket, which takes the privilege
     * CAP_NET_RAW; without it opening fails. IPv6 has no such ID and is always checked exactly.
     */
    icrc: z.enum(['solved', 'exact']).default(defaultOptions.icrc),
    /**
     * Lets every process of this user read this one's memory (`PR_SET_PTRACER_ANY`), for single copies on the local link where
     * Yama restricts that. Without it, and with Yama, large messages between processes are copied twice.
     */
    allowPtrace: z.boolean().default(defaultOptions.allowPtrace),
    /**
     * Write what passes the links to this pcapng file; `%p` becomes the process id. What two processes exchange by shared memory
     * passes as whole packets, to be seen or to suffer `faults`, if either asks for them before the two first connect.
     */
    capture: z.string().default(defaultOptions.capture),
    receiveBufferBytes: z.int().min(65_536).max(268_435_456).default(defaultOptions.receiveBufferBytes),
    faults: faultSchema(zod).prefault({}),
    /**
     * P_Key tables of the ports, `[0xffff, 0x8001]` for all or `{ eth0: [0x8001] }` by interface; those that are not named have the
     * default partition only. The first entry is the one that connections use unless a queue pair's `pkeyIndex` or a path record
     * chooses another.
     */
    pkeys: pkeysShape(zod).default(defaultOptions.pkeys),
    /** How long opening a device file may wait for the soft kernel's thread. */
    startTimeoutMs: z.int().min(100).max(600_000).default(defaultOptions.startTimeoutMs),
  });
};

/** Connection manager settings; times in milliseconds unless named a code (4.096 µs × 2^code). */
export const cmOptionsSchema = lazy((zod) => cmSchema(zod));

/** RC settings given to connections that the connection manager sets up. */
export const rcOptionsSchema = lazy((zod) => rcSchema(zod));

/** A seeded fault layer under the wire's transmit side, for tests. */
export const faultOptionsSchema = lazy((zod) => faultSchema(zod));

/**
 * Options of the soft kernel and its HCA. The first open in a process starts the HCA and fixes `keepAliveMs`, `ecn`, `window`,
 * `rnrPatienceMs`, `link`, `icrc`, `allowPtrace` and `receiveBufferBytes`; the first in each thread fixes the rest for that thread. `faults` and `capture` are the process's:
 * those that a later thread asks for hold for all from then on, and those it leaves out stay as they are.
 * `ND_OPTIONS` (JSON of this shape) gives defaults for programs that pass none.
 */
export const kernelOptionsSchema = lazy(kernelSchema);

/** Options of the soft kernel and its HCA, complete. */
export type KernelOptions = z.output<ReturnType<typeof kernelSchema>>;
/** Options of the soft kernel and its HCA as callers give them: what is left out has its default. */
export type KernelOptionsInput = z.input<ReturnType<typeof kernelSchema>>;
/** Connection manager settings, complete. */
export type CmOptions = z.output<ReturnType<typeof cmSchema>>;
/** RC settings, complete. */
export type RcOptions = z.output<ReturnType<typeof rcSchema>>;
