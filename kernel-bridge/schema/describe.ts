/** The forms in which the schema describes what TypeScript and C++ share. `scripts/generate-schema.mjs` writes both sides. */

/** A constant and its meaning. */
export type Constant = number | readonly [value: number, meaning: string];

/** Constants that belong together. */
export interface ConstantGroup {
  /** What they are; a comment above them. */
  readonly about: string;
  /** Bits, written in hexadecimal. */
  readonly flags?: boolean;
  /** `cpp`: TypeScript has them under other names (`ioctl/constants.ts`). */
  readonly only?: 'cpp';
  readonly members: Readonly<Record<string, Constant>>;
}

/** Where C++ has a table: an enumeration, or constants of a namespace of `nd`, with a prefix or without. */
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
