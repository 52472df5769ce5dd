/** The forms that the schema uses to describe what TypeScript and C++ share. `scripts/generate-schema.mjs` writes both sides. */

/** A constant and its meaning. */
export type Constant = number | readonly [value: number, meaning: string];

/** Constants that belong together. */
export interface ConstantGroup {
  /** A comment written above the group. */
  readonly about: string;
  /** Bits, written in hexadecimal. */
  readonly flags?: boolean;
  /** `cpp`: only for C++, because TypeScript has the constants under other names (`ioctl/constants.ts`). */
  readonly only?: 'cpp';
  readonly members: Readonly<Record<string, Constant>>;
}

/** The form of a table in C++: an enumeration, or constants in a namespace of `nd`, optionally with a prefix. */
export type CppTable =
  | { readonly enum: string }
  | {
      readonly namespace: string;
      readonly prefix?: string;
      readonly type?: 'uint16_t' | 'int32_t' | 'size_t';
    };

/** Numbers with names on both sides. */
export interface NumberTable {
  readonly about: string;
  /** The name of the object in TypeScript. Absent: TypeScript has them from `ioctl/`. */
  readonly ts?: string;
  readonly cpp: CppTable;
  readonly flags?: boolean;
  readonly members: Readonly<Record<string, Constant>>;
}

/**
 * An option: a group, a whole number, a probability, a flag, one of several strings, or a value checked by
 * `option-checks/option-schemas.ts`.
 */
export type Option = { readonly about: string } & (
  | { readonly group: OptionGroup; readonly cpp?: string }
  | {
      readonly range: readonly [least: number, most: number];
      readonly default: number;
      /** With the error text for other numbers. */
      readonly multipleOf?: readonly [number, string];
      /** The C++ structure with this option; times are in nanoseconds there. */
      readonly cpp?: string;
    }
  | { readonly probability: true; readonly default: number }
  | { readonly default: boolean; readonly cpp?: string }
  | {
      readonly choice: readonly string[];
      readonly default: string;
      readonly cpp: string;
      /** The C++ enumeration of the choices. */
      readonly cppEnum: string;
    }
  | { readonly checked: string; readonly default: unknown; readonly cpp?: string }
);

/** Options of one object. */
export interface OptionGroup {
  readonly interface: string;
  readonly about: string;
  /** The C++ structure with all of these options. */
  readonly cpp?: string;
  readonly options: Readonly<Record<string, Option>>;
}

/** A number of a record. */
export interface Field {
  readonly about?: string;
  /** `u64`: a whole number up to 2⁵³; `flag`: a boolean; `path`, `gid`: bytes. Default: an unsigned 32-bit number. */
  readonly type?: 'u64' | 'flag' | 'path' | 'gid';
  /** The largest value. */
  readonly most?: number;
  readonly default?: number;
  /** Reported by queries, not settable by commands. */
  readonly query?: true;
  /** The mask bit of this field, if its name differs. */
  readonly bit?: string;
}

/** Numbers passed together between TypeScript and C++: an interface in TypeScript, a structure in C++. */
export interface RecordForm {
  readonly about: string;
  readonly ts: string;
  readonly cpp: string;
  /** The TypeScript function that encodes the record into words, in the order of the fields. */
  readonly put?: string;
  /** The mask of the fields that a command carries. */
  readonly mask?: {
    readonly ts: string;
    readonly cpp: string;
    readonly bits: Readonly<Record<string, Constant>>;
  };
  readonly fields: Readonly<Record<string, Field>>;
}

/** A value of a statistic. */
export interface Statistic {
  readonly about: string;
  /** The type reported by the HCA. Default: an unsigned 32-bit number. */
  readonly type?: 'u64' | 'flag';
  /** How it is reported: as a type, as one of several strings, or not at all. Default: as reported by the HCA. */
  readonly shown?: string | readonly string[] | false;
  /** Not a number of the HCA. */
  readonly native?: false;
}

/** Statistics of one kind of object: a TypeScript interface and numbers, and a C++ structure. */
export interface StatisticsForm {
  readonly about: string;
  readonly ts: string;
  readonly cpp: string;
  readonly fields: Readonly<Record<string, Statistic>>;
}

/** An event of an HCA: words and, for some events, bytes. */
export interface EventForm {
  readonly about?: string;
  /** The words, each with its C++ type if it has one of its own. */
  readonly words: Readonly<
    Record<
      string,
      { readonly about?: string; readonly cpp?: string; readonly flag?: true; readonly signed?: true }
    >
  >;
  /** TypeScript members that are not passed as words. */
  readonly more?: Readonly<
    Record<string, { readonly about: string; readonly ts: string; readonly from?: string }>
  >;
}
