import { createRequire } from 'node:module';
import type * as z from 'zod';
import { isPkeyTable, pkeysText } from '../ioctl/pkey-tables.js';
import {
  type CmOptions,
  cmShape,
  type FaultOptions,
  faultsShape,
  type KernelOptions,
  kernelShape,
  type OptionChecks,
  type RcOptions,
  rcShape,
} from '../schema/generated/options.js';

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

export type { CmOptions, FaultOptions, KernelOptions, RcOptions } from '../schema/generated/options.js';

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

/** The checks of options that have more than a range. */
const checks: OptionChecks = {
  dropMads: (z) =>
    z.record(
      z.string().refine((key) => /^\d{2}$/.test(key) && Number(key) >= 0x10 && Number(key) <= 0x1a, {
        error: 'it takes the number of a CM attribute, 16 (REQ) to 26 (APR)',
      }),
      z.int().min(0).max(0xffff_ffff),
    ),
  capture: (z) => z.string().refine((path) => !path.includes('\0'), 'must be a path without NUL characters'),
  pkeys: (z) => {
    /** Entries of a port's P_Key table: the partitions of this host; the high bit means full member (IBA 1 §10.9). */
    const list = z.array(z.number()).refine(isPkeyTable, { error: pkeysText });
    return z.union([list, z.record(z.string(), list)], { error: pkeysText });
  },
  hca: (z) =>
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
        "it takes 'auto', 'soft', 'rdma' or the name of an RDMA device",
      ),
  kernel: (z) =>
    z.enum(['auto', 'driver', 'soft']).refine((kernel) => onWindows || kernel !== 'driver', {
      error: 'only Windows has a WinVerbs driver',
    }),
};

/** What other options can be where `link` is `local`. */
const withLocalLink = { hca: ['auto', 'soft'], kernel: ['auto', 'soft'], icrc: ['solved'] };

/** Connection manager settings; times in milliseconds unless named a code (4.096 µs × 2^code). */
export const cmOptionsSchema = lazy<CmOptions, Given<CmOptions>>(cmShape);

/** RC settings of connections that the connection manager sets up. */
export const rcOptionsSchema = lazy<RcOptions, Given<RcOptions>>(rcShape);

/** P_Key tables of the ports. */
export const pkeysSchema = lazy<KernelOptions['pkeys'], KernelOptions['pkeys']>(checks.pkeys);

/** A seeded fault layer under the wire's transmit side, for tests. */
export const faultOptionsSchema = lazy<FaultOptions, Given<FaultOptions>>((zod) => faultsShape(zod, checks));

/**
 * Options of the soft kernel and its HCA, which each thread of the program has for itself. The first open in the thread fixes them.
 * If the kernel fails and a later open starts another, the HCA stays, and of its options only `faults` and `capture` can change.
 * `ND_OPTIONS` (JSON of this shape) has the options of programs that pass none.
 */
export const kernelOptionsSchema = lazy<KernelOptions, KernelOptionsInput>((zod) =>
  kernelShape(zod, checks).superRefine((options, { addIssue }) => {
    if (options.link !== 'local') return;
    for (const [field, takes] of Object.entries(withLocalLink) as [keyof typeof withLocalLink, string[]][]) {
      if (takes.includes(options[field])) continue;
      const message = `must be '${takes.join("' or '")}' with the option link: 'local', which means the software HCA without UDP sockets`;
      addIssue({ code: 'custom', path: [field], message });
    }
  }),
);
