import { createRequire } from 'node:module';
import type * as z from 'zod';
import { defaultOptions } from './default-options.js';
import { isPkeyTable, pkeysText } from './ioctl/pkey-tables.js';

type Zod = typeof import('zod');

/** What is wrong with a value. */
export interface OptionsIssue {
  /** The kind of mistake, such as `'invalid_type'`. */
  readonly code?: string | undefined;
  /** Keys and indices from the outermost value to the one that is wrong. */
  readonly path: readonly PropertyKey[];
  /** What would be right. */
  readonly message: string;
  /** Of `'unrecognized_keys'`: which. */
  readonly keys?: readonly string[] | undefined;
  /** Of `'invalid_key'`: what is wrong with the key. */
  readonly issues?: readonly OptionsIssue[] | undefined;
}

/** The error of {@link OptionsSchema.parse}: a ZodError. */
export interface OptionsError extends Error {
  /** One for each mistake. */
  readonly issues: readonly OptionsIssue[];
}

/** A checked value, or why it is none. */
export type OptionsResult<T> =
  | {
      /** The value is valid. */
      readonly success: true;
      /** The value with its defaults filled in. */
      readonly data: T;
    }
  | {
      /** The value is not valid. */
      readonly success: false;
      /** All mistakes. */
      readonly error: OptionsError;
    };

/** Checks values of one kind and fills in the defaults. */
export interface OptionsSchema<T> {
  /** @throws OptionsError */
  parse(value: unknown): T;
  /** As {@link parse}, with the error as a value. */
  safeParse(value: unknown): OptionsResult<T>;
}

/** Connection manager settings, complete; times in milliseconds unless named a code (4.096 µs × 2^code). */
export interface CmOptions {
  /** How long a sent message waits for its answer before it is sent again (REQ, REP, DREQ). */
  responseTimeoutCode: number;
  /** How often a message is sent again. */
  maxRetries: number;
  /** How long an ended connection's ids stay reserved. */
  timewaitMs: number;
  /** Service timeout code announced in an MRA when a request waits for its application. */
  mraServiceTimeoutCode: number;
}

/** RC settings, complete. */
export interface RcOptions {
  /** ACK timeout code of the QP, 4.096 µs × 2^code. */
  ackTimeoutCode: number;
  /**
   * Code of the shortest wait that this side requests of a peer whose message finds no Receive (12 is 0.64 ms, 0 is
   * 655 ms).
   */
  minRnrTimerCode: number;
  /**
   * Traffic class of connections whose path has none: six bits of DSCP above two that are 0 (ECN has its own option).
   * The REQ carries it to the passive side, which sends with the same. 0xa0 is DSCP 40.
   */
  trafficClass: number;
}

/** A seeded fault layer under the wire's transmit side, for tests. */
export interface FaultOptions {
  /** Of the random numbers. */
  seed: number;
  /** Probability that a packet is lost, 0 to 1. */
  drop: number;
  /** Probability that a packet comes twice. */
  duplicate: number;
  /** Probability that a packet comes late. */
  reorder: number;
  /** Probability that a byte of a packet is changed. */
  corrupt: number;
  /** CM attribute id, in decimal (16 REQ … 26 APR) → how many of the first such messages to drop. */
  dropMads: Record<string, number>;
}

/** Options of the soft kernel and its HCA, complete. */
export interface KernelOptions {
  /** The connection manager. */
  cm: CmOptions;
  /** Reliable connections. */
  rc: RcOptions;
  /** Interval of probes on idle established wire connections (zero-length RDMA WRITE); 0: none. */
  keepAliveMs: number;
  /**
   * The least time for which a message waits for a Receive that is posted late. It applies to a sender whose peer has
   * asked for 6 RNR retries or more and has no shared receive queue, and to a receiver that asks its peer for as
   * many: its RNR timers grow, so that 6 of them take this long (with other implementations at most a little more
   * than one second). A connection with a smaller count keeps that count and `rc.minRnrTimerCode`; with 0 all
   * connections do.
   */
  rnrPatienceMs: number;
  /** Sends connections' packets as ECN-capable, ECT(0). Received marks are answered by CNPs in any case. */
  ecn: boolean;
  /**
   * Maximum of PSNs in flight per QP; fewer after losses and congestion notifications, up to twice as many small
   * messages on the local link.
   */
  window: number;
  /**
   * Maximum of bytes in flight per QP towards another process with this engine, where the round trip is longer than 0.25 ms: the window
   * grows to what the path takes, up to this. Other peers get no more than `window`. 0: nor does any.
   */
  longWindowBytes: number;
  /**
   * The link for connections between processes of this host. `auto`: shared memory, where both processes belong to
   * the same user and neither forces the wire. `wire`: UDP. The HCA's counters `local_link_*` show the result.
   */
  link: 'auto' | 'wire';
  /**
   * How the checksum (ICRC) of IPv4 packets is checked, which covers an ID that UDP sockets hide. `solved`: accepted
   * if any ID explains it, which lets one corrupt packet in 2^15 pass; needs no privilege. `exact`: the ID is read by
   * a raw socket, which needs the privilege CAP_NET_RAW; without it opening fails. IPv6 has no such ID and is always
   * checked exactly.
   */
  icrc: 'solved' | 'exact';
  /**
   * Direct access: connected processes of this user map memory of `allocate()` whose keys allow it, and execute RDMA Writes, Reads and
   * atomics there themselves, without this process's processor. Both ends must allow it. Without it the peers cannot map the memory for
   * writing.
   */
  direct: boolean;
  /**
   * Writes all packets of the links to a new pcapng file at this path; `%p` becomes the process id. Nothing that exists is
   * overwritten, and no link is followed: if `x.pcapng` exists, the file is `x-2.pcapng`, and so on, up to `x-1000.pcapng`. Connections that are
   * made while a process has this option or `faults` use the wire, where packets can be seen; the local link has none.
   */
  capture: string;
  /**
   * Answers other processes of this user that ask for statistics (`nd stat`, `nd top`): counters, queue pairs, connections, and
   * sizes of registrations; never keys, addresses of memory, or what it holds. It costs nothing until somebody asks.
   */
  statistics: boolean;
  /** Bytes of the socket's receive buffer. */
  receiveBufferBytes: number;
  /** Faults of the link, for tests. */
  faults: FaultOptions;
  /**
   * P_Key tables of the ports: `[0xffff, 0x8001]` for all, or `{ eth0: [0x8001] }` by interface; other interfaces
   * have the default partition only. Connections use the first entry unless a queue pair's `pkeyIndex` or a path
   * record selects another. `setPartitions` replaces the tables while the kernel runs.
   */
  pkeys: number[] | Record<string, number[]>;
  /**
   * Which HCAs the soft kernel has. `auto`: the system's RDMA devices, and the software HCA for all addresses that none of them has;
   * `soft`: the software HCA alone; `rdma`: RDMA devices alone; or the name of one of them, such as `mlx5_0`. Where
   * there is none of those asked for, opening fails. Options of packets, timers, faults and captures are the software HCA's.
   */
  hca: string;
  /**
   * Behind which door the kernel is: `driver`, the WinVerbs driver of Windows; `soft`, the soft kernel with its software HCA; `auto`,
   * the driver where the system has one, else the soft kernel. What a thread has opened first it has from then on.
   */
  kernel: 'auto' | 'driver' | 'soft';
  /** Maximum wait for the soft kernel's thread when a device file is opened. */
  startTimeoutMs: number;
}

/** The properties that a caller gives; the others have their defaults. */
type Given<T> = { [K in keyof T]?: T[K] | undefined };

/** Options of the soft kernel and its HCA as callers give them; omitted ones have their defaults. */
export interface KernelOptionsInput extends Omit<Given<KernelOptions>, 'cm' | 'rc' | 'faults'> {
  /** The connection manager. */
  cm?: Given<CmOptions> | undefined;
  /** Reliable connections. */
  rc?: Given<RcOptions> | undefined;
  /** Faults of the link, for tests. */
  faults?: Given<FaultOptions> | undefined;
}
const onWindows = process.platform === 'win32';

const requireModule = createRequire(import.meta.url);

/**
 * A schema that is built for the first value to check: most programs give no options, and loading zod takes longer than
 * starting the kernel.
 *
 * @internal
 */
export function lazy<T, I>(build: (zod: Zod) => z.ZodType<T, I>): OptionsSchema<T> {
  let schema: z.ZodType<T, I> | undefined;
  const made = (): z.ZodType<T, I> => {
    schema ??= build(requireModule('zod') as Zod);
    return schema;
  };
  return { parse: (value) => made().parse(value), safeParse: (value) => made().safeParse(value) };
}

const cmSchema = (z: Zod, { cm } = defaultOptions) =>
  z.strictObject({
    responseTimeoutCode: z.int().min(0).max(31).default(cm.responseTimeoutCode),
    maxRetries: z.int().min(0).max(15).default(cm.maxRetries),
    timewaitMs: z.int().min(0).max(60_000).default(cm.timewaitMs),
    mraServiceTimeoutCode: z.int().min(0).max(31).default(cm.mraServiceTimeoutCode),
  });

const rcSchema = (z: Zod, { rc } = defaultOptions) =>
  z.strictObject({
    ackTimeoutCode: z.int().min(1).max(31).default(rc.ackTimeoutCode),
    minRnrTimerCode: z.int().min(0).max(31).default(rc.minRnrTimerCode),
    trafficClass: z
      .int()
      .min(0)
      .max(0xfc)
      .multipleOf(4, 'it takes a DSCP shifted left by two: a multiple of 4')
      .default(rc.trafficClass),
  });

const faultSchema = (z: Zod, { faults } = defaultOptions) => {
  const probability = z.number().min(0).max(1);
  return z.strictObject({
    seed: z.int().min(0).default(faults.seed),
    drop: probability.default(faults.drop),
    duplicate: probability.default(faults.duplicate),
    reorder: probability.default(faults.reorder),
    corrupt: probability.default(faults.corrupt),
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

const pkeysShape = (z: Zod) => {
  /** Entries of a port's P_Key table: the partitions of this host; the high bit means full member (IBA 1 §10.9). */
  const list = z.array(z.number()).refine(isPkeyTable, { error: pkeysText });
  return z.union([list, z.record(z.string(), list)], { error: pkeysText });
};

const hcaShape = (z: Zod) =>
  z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
      "it takes 'auto', 'soft', 'rdma' or the name of an RDMA device",
    );

const kernelShape = (z: Zod) =>
  z.enum(['auto', 'driver', 'soft']).refine((kernel) => onWindows || kernel !== 'driver', {
    error: 'only Windows has a WinVerbs driver',
  });

const kernelSchema = (z: Zod) =>
  z.strictObject({
    cm: cmSchema(z).prefault({}),
    rc: rcSchema(z).prefault({}),
    keepAliveMs: z.int().min(0).max(3_600_000).default(defaultOptions.keepAliveMs),
    rnrPatienceMs: z.int().min(0).max(600_000).default(defaultOptions.rnrPatienceMs),
    ecn: z.boolean().default(defaultOptions.ecn),
    window: z.int().min(1).max(4096).default(defaultOptions.window),
    longWindowBytes: z.int().min(0).max(1_073_741_824).default(defaultOptions.longWindowBytes),
    link: z.enum(['auto', 'wire']).default(defaultOptions.link),
    icrc: z.enum(['solved', 'exact']).default(defaultOptions.icrc),
    direct: z.boolean().default(defaultOptions.direct),
    capture: z
      .string()
      .refine((path) => !path.includes('\0'), 'must be a path without NUL characters')
      .default(defaultOptions.capture),
    statistics: z.boolean().default(defaultOptions.statistics),
    receiveBufferBytes: z.int().min(65_536).max(268_435_456).default(defaultOptions.receiveBufferBytes),
    faults: faultSchema(z).prefault({}),
    pkeys: pkeysShape(z).default(defaultOptions.pkeys),
    hca: hcaShape(z).default(defaultOptions.hca),
    kernel: kernelShape(z).default(defaultOptions.kernel),
    startTimeoutMs: z.int().min(100).max(600_000).default(defaultOptions.startTimeoutMs),
  });

/** Connection manager settings; times in milliseconds unless named a code (4.096 µs × 2^code). */
export const cmOptionsSchema = lazy<CmOptions, Given<CmOptions>>((zod) => cmSchema(zod));

/** RC settings of connections that the connection manager sets up. */
export const rcOptionsSchema = lazy<RcOptions, Given<RcOptions>>((zod) => rcSchema(zod));

/** P_Key tables of the ports. */
export const pkeysSchema = lazy<KernelOptions['pkeys'], KernelOptions['pkeys']>((zod) => pkeysShape(zod));

/** A seeded fault layer under the wire's transmit side, for tests. */
export const faultOptionsSchema = lazy<FaultOptions, Given<FaultOptions>>((zod) => faultSchema(zod));

/**
 * Options of the soft kernel and its HCA, which each thread of the program has for itself. The first open in the thread fixes them.
 * If the kernel fails and a later open starts another, the HCA stays, and of its options only `faults` and `capture` can change.
 * `ND_OPTIONS` (JSON of this shape) has the options of programs that pass none.
 */
export const kernelOptionsSchema = lazy<KernelOptions, KernelOptionsInput>(kernelSchema);
