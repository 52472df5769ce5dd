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

/** A mistake in a value. */
export interface OptionsIssue {
  /** The kind of mistake, such as `'invalid_type'`. */
  readonly code?: string | undefined;
  /** Keys and indices from the outermost value to the invalid one. */
  readonly path: readonly PropertyKey[];
  /** The description of valid values. */
  readonly message: string;
  /** The unknown keys, for `'unrecognized_keys'`. */
  readonly keys?: readonly string[] | undefined;
  /** The mistakes of the key, for `'invalid_key'`. */
  readonly issues?: readonly OptionsIssue[] | undefined;
}

/** The error of {@link OptionsSchema.parse}: a ZodError. */
export interface OptionsError extends Error {
  /** All mistakes. */
  readonly issues: readonly OptionsIssue[];
}

/** A checked value, or the error. */
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
  /** The same as {@link parse}, but returns the error as a value. */
  safeParse(value: unknown): OptionsResult<T>;
}

export type { CmOptions, FaultOptions, KernelOptions, RcOptions } from '../schema/generated/options.js';

/** The properties that a caller passes; the others have their defaults. */
type Given<T> = { [K in keyof T]?: T[K] | undefined };

/** Options of the soft kernel and its HCA as passed by callers; omitted ones have their defaults. */
export interface KernelOptionsInput extends Omit<Given<KernelOptions>, 'cm' | 'rc' | 'faults'> {
  /** Options of the connection manager. */
  cm?: Given<CmOptions> | undefined;
  /** Options of reliable connections. */
  rc?: Given<RcOptions> | undefined;
  /** Faults injected into the link, for tests. */
  faults?: Given<FaultOptions> | undefined;
}
const onWindows = process.platform === 'win32';

const requireModule = createRequire(import.meta.url);

/**
 * A schema that is built for the first value to check: most programs pass no options, and loading zod takes longer than
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
  return {
    parse: (value) => made().parse(value, { error: (issue) => expectedOf(made(), issue) }),
    safeParse: (value) => made().safeParse(value, { error: (issue) => expectedOf(made(), issue) }),
  };
}

/** `'a', 'b' or 'c'`. */
function alternatives(values: readonly string[]): string {
  const quoted = values.map((one) => `'${one}'`);
  return [quoted.slice(0, -1).join(', '), quoted.at(-1)].filter(Boolean).join(' or ');
}

/** The parts of a schema that an error reads. */
interface Described {
  readonly def: {
    readonly type: string;
    readonly innerType?: Described;
    readonly shape?: Readonly<Record<string, Described>>;
    readonly valueType?: Described;
  };
  readonly minValue?: number | null;
  readonly maxValue?: number | null;
  readonly isInt?: boolean;
  readonly options?: readonly string[];
}

/** The schema of an option, without its default. */
function schemaAt(outer: Described, path: readonly PropertyKey[]): Described {
  const schema = outer.def.innerType;
  if (schema !== undefined) return schemaAt(schema, path);
  const [key, ...rest] = path;
  const inner = key === undefined ? undefined : (outer.def.shape?.[String(key)] ?? outer.def.valueType);
  return inner === undefined ? outer : schemaAt(inner, rest);
}

/** The expected value at the path of a mistake, in place of zod's text. Checks with a text of their own keep it. */
function expectedOf(
  schema: unknown,
  { path = [] }: { readonly path?: readonly PropertyKey[] | undefined },
): string {
  const { def, minValue, maxValue, isInt, options } = schemaAt(schema as Described, path);
  if (def.shape !== undefined) return `must be an object with ${Object.keys(def.shape).join(', ')}`;
  if (options !== undefined && def.type === 'enum') return `must be ${alternatives(options)}`;
  switch (def.type) {
    case 'number':
      return `must be ${isInt ? 'an integer' : 'a number'} from ${minValue} to ${maxValue}`;
    case 'boolean':
      return 'must be true or false';
    case 'record':
      return 'must be an object';
    default:
      return `must be a ${def.type}`;
  }
}

/** The checks of options with more than a range. */
const checks: OptionChecks = {
  dropMads: (z) =>
    z.record(
      z.string().refine((key) => /^\d{2}$/.test(key) && Number(key) >= 0x10 && Number(key) <= 0x1a, {
        error: 'must contain only numbers of CM attributes as keys, from 16 (REQ) to 26 (APR)',
      }),
      z.int().min(0).max(0xffff_ffff),
    ),
  capture: (z) => z.string().refine((path) => !path.includes('\0'), 'must be a path without NUL characters'),
  pkeys: (z) => {
    /** Entries of a port's P_Key table: the partitions of this host. A set high bit means full member (IBA 1 §10.9). */
    const list = z.array(z.number()).refine(isPkeyTable, { error: pkeysText });
    return z.union([list, z.record(z.string(), list)], { error: pkeysText });
  },
  hca: (z) =>
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
        "must be 'auto', 'soft', 'rdma' or the name of an RDMA device",
      ),
  kernel: (z) =>
    z.enum(['auto', 'driver', 'soft']).refine((kernel) => onWindows || kernel !== 'driver', {
      error: "must be 'auto' or 'soft', because WinVerbs drivers exist on Windows only",
    }),
};

/** Valid values of other options with `link: 'local'`. */
const withLocalLink = { hca: ['auto', 'soft'], kernel: ['auto', 'soft'], icrc: ['solved'] };

/** Options of the connection manager. Times are in milliseconds unless described as codes (4.096 µs × 2^code). */
export const cmOptionsSchema = lazy<CmOptions, Given<CmOptions>>(cmShape);

/** Options of the reliable connections that the connection manager sets up. */
export const rcOptionsSchema = lazy<RcOptions, Given<RcOptions>>(rcShape);

/** P_Key tables of the ports. */
export const pkeysSchema = lazy<KernelOptions['pkeys'], KernelOptions['pkeys']>(checks.pkeys);

/** Faults injected into outgoing packets, with seeded random numbers; for tests. */
export const faultOptionsSchema = lazy<FaultOptions, Given<FaultOptions>>((zod) => faultsShape(zod, checks));

/**
 * Options of the soft kernel and its HCA, separate for each thread of a program. The first open in the thread
 * determines them. If the kernel fails and a later open starts another, the HCA stays, and only its options `faults`
 * and `capture` can change. `ND_OPTIONS` (JSON of this form) has the options of programs that pass none.
 */
export const kernelOptionsSchema = lazy<KernelOptions, KernelOptionsInput>((zod) =>
  kernelShape(zod, checks).superRefine((options, { addIssue }) => {
    if (options.link !== 'local') return;
    for (const [field, takes] of Object.entries(withLocalLink) as [keyof typeof withLocalLink, string[]][]) {
      if (takes.includes(options[field])) continue;
      const message = `must be ${alternatives(takes)} with the option link: 'local', which means the software HCA without UDP sockets`;
      addIssue({ code: 'custom', path: [field], message });
    }
  }),
);
