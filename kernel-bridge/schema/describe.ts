/** The forms in which the schema describes what TypeScript and C++ share. `scripts/generate-schema.mjs` writes both sides. */

/** A constant and its meaning. */
export type Constant = number | readonly [value: number, meaning: string];

/** Constants that belong together. */
export interface ConstantGroup {
  /** A comment above the group. */
  readonly about: string;
  /** Bits, written in hexadecimal. */
  readonly flags?: boolean;
  /** `cpp`: TypeScript has them under other names (`ioctl/constants.ts`). */
  readonly only?: 'cpp';
  readonly members: Readonly<Record<string, Constant>>;
}

/** The form of a table in C++: an enumeration, or constants in a namespace of `nd`, with or without a prefix. */
export type CppTable =
  | { readonly enum: string }
  | {
      readonly namespace: string;
      readonly prefix?: string;
      readonly type?: 'uint16_t' | 'int32_t' | 'size_t';
    };

/** Numbers that both sides name. */
export interface NumberTable {
  readonly about: string;
  /** The name of the object in TypeScript; missing: there they come from `ioctl/`. */
  readonly ts?: string;
  readonly cpp: CppTable;
  readonly flags?: boolean;
  readonly members: Readonly<Record<string, Constant>>;
}

/** An option: a group of others, a whole number, a probability, a flag, one of several texts, or what `option-checks/option-schemas.ts` checks. */
export type Option = { readonly about: string } & (
  | { readonly group: OptionGroup; readonly cpp?: string }
  | {
      readonly range: readonly [least: number, most: number];
      readonly default: number;
      /** With the text that refuses other numbers. */
      readonly multipleOf?: readonly [number, string];
      /** The structure in C++ that has it; there a time is in nanoseconds. */
      readonly cpp?: string;
    }
  | { readonly probability: true; readonly default: number }
  | { readonly default: boolean; readonly cpp?: string }
  | {
      readonly choice: readonly string[];
      readonly default: string;
      readonly cpp: string;
      /** The enumeration of the choices. */
      readonly cppEnum: string;
    }
  | { readonly checked: string; readonly default: unknown; readonly cpp?: string }
);

/** Options in one object. */
export interface OptionGroup {
  readonly interface: string;
  readonly about: string;
  /** The structure in C++ that has them all. */
  readonly cpp?: string;
  readonly options: Readonly<Record<string, Option>>;
}

/** A number of a record. */
export interface Field {
  readonly about?: string;
  /** `u64`: a whole number up to 2⁵³; `flag`: a boolean; `path`, `gid`: bytes. By default an unsigned number of 32 bits. */
  readonly type?: 'u64' | 'flag' | 'path' | 'gid';
  /** The largest value. */
  readonly most?: number;
  readonly default?: number;
  /** A query reports it, and no command sets it. */
  readonly query?: true;
  /** The bit of the mask that carries it, if that has another name. */
  readonly bit?: string;
}

/** Numbers that cross together: an interface in TypeScript, a structure in C++. */
export interface RecordForm {
  readonly about: string;
  readonly ts: string;
  readonly cpp: string;
  /** The function of TypeScript that encodes it into words, in the order of the fields. */
  readonly put?: string;
  /** Which fields a command carries. */
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
  /** The type that the HCA reports; by default an unsigned number of 32 bits. */
  readonly type?: 'u64' | 'flag';
  /** The form in which it is reported: a type, one of several texts, or not at all. By default the HCA's. */
  readonly shown?: string | readonly string[] | false;
  /** Not a number of the HCA. */
  readonly native?: false;
}

/** Statistics of one kind of object: an interface and numbers in TypeScript, a structure in C++. */
export interface StatisticsForm {
  readonly about: string;
  readonly ts: string;
  readonly cpp: string;
  readonly fields: Readonly<Record<string, Statistic>>;
}

/** An event of an HCA: words, and of some also bytes. */
export interface EventForm {
  readonly about?: string;
  /** The words, each with its type in C++ if it has one of its own. */
  readonly words: Readonly<
    Record<
      string,
      { readonly about?: string; readonly cpp?: string; readonly flag?: true; readonly signed?: true }
    >
  >;
  /** Members of TypeScript that do not come as words. */
  readonly more?: Readonly<
    Record<string, { readonly about: string; readonly ts: string; readonly from?: string }>
  >;
}
