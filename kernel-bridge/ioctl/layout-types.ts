/** The types of structures: of a field, of a table of fields, and of their values. */

/** Throws the error for a value that its field cannot hold. `expected` describes the valid values. */
export type Refuse = (path: string, value: unknown, expected: string, size: number) => never;

/** Layout, reader and writer of one field. `V` is its decoded value, `I` its encoder's input. */
export interface FieldType<V, I = V> {
  /** Such as `u32be` or `bytes[16]`; for structures, the name of the interface. */
  readonly name: string;
  /** How the field is read and written: `uint` up to 32 bits as a number, `long` 64 bits as a bigint, `reserved` not at all. */
  readonly kind: 'uint' | 'long' | 'bytes' | 'reserved' | 'struct' | 'union';
  /** Bytes; for {@link bits}, eighths. */
  readonly size: number;
  /** Alignment in bytes: offsets are multiples of it. */
  readonly align: number;
  /** Integers: the first byte is the least significant. */
  readonly littleEndian?: boolean;
  /** Reads the field at byte `at`. The caller has checked that the bytes are there. */
  read(from: Uint8Array, at: number): V;
  /** Writes the field into bytes that are zero. `path` names it in errors. */
  write(to: Uint8Array, at: number, value: I, path: string, refuse: Refuse): void;
  /** The value of bytes that are all zero. */
  zero(): V;
}

/** Padding: zero when written, ignored when read, not part of the value. */
export interface ReservedType extends FieldType<undefined> {
  /** Distinguishes padding from fields with a value. */
  readonly kind: 'reserved';
}

/** A field of any type; only its own table knows the type. */
export type AnyField = FieldType<unknown, never>;

/** A table of fields. */
export type Fields = Readonly<Record<string, AnyField>>;

/** The key of a field in a value: `MaxQpWr` → `maxQpWr`, `pkt_life` → `pktLife`. */
export type FieldKey<S extends string> = S extends `${infer A}_${infer B}`
  ? `${Uncapitalize<A>}${Capitalize<FieldKey<B>>}`
  : Uncapitalize<S>;

/** Expands a computed type, so that editors show its members instead of the computation. */
type Expand<T> = T extends infer O ? { [K in keyof O]: O[K] } : never;

/** The key of a table's field in the value; `never` for padding. */
type VisibleKey<F extends Fields, K extends keyof F & string> = F[K] extends ReservedType
  ? never
  : FieldKey<K>;

/** A decoded value of a table. */
export type FieldsValue<F extends Fields> = Expand<{
  -readonly [K in keyof F & string as VisibleKey<F, K>]: F[K] extends FieldType<infer V, infer _> ? V : never;
}>;

/** The encoder's input for a table: omitted fields are zero. */
export type FieldsInput<F extends Fields> = Expand<{
  readonly [K in keyof F & string as VisibleKey<F, K>]?:
    | (F[K] extends FieldType<infer _, infer I> ? I : never)
    | undefined;
}>;

/** Name, position and size of a field. */
export interface FieldInfo {
  /** The name in the structure's definition. */
  readonly name: string;
  /** The key in the TypeScript value. */
  readonly key: string;
  /** Bytes from the start of the structure; for {@link bits}, eighths. */
  readonly offset: number;
  /** Bytes; for {@link bits}, eighths. */
  readonly size: number;
  /** The name of its {@link FieldType}. */
  readonly type: string;
  /** Whether the field is padding, which a value does not have. */
  readonly reserved: boolean;
}

/** A binary structure, created from a table of fields by {@link struct}, {@link packed} or {@link union}. */
export interface Struct<F extends Fields> extends FieldType<FieldsValue<F>, FieldsInput<F>> {
  /** The fields in order, including padding. */
  readonly fields: readonly FieldInfo[];
  /** The table that the structure was created from. */
  readonly table: F;
  /**
   * Writes a value into new bytes, or into `out` from `offset` on. Every byte of the structure is written; omitted
   * fields and padding become zero. A `bytes` field accepts fewer bytes than its size. Nothing is written if a value is
   * refused.
   *
   * @throws StatusError INVALID_PARAMETER for a value that its field cannot hold, BUFFER_TOO_SMALL if `out` is short.
   */
  encode(value: FieldsInput<F>, out?: Uint8Array, offset?: number): Uint8Array;
  /**
   * The same as {@link encode}, but into memory of this structure that the next call reuses. For requests, whose bytes are copied when they
   * are sent.
   */
  encodeOnce(value: FieldsInput<F>): Uint8Array;
  /**
   * Reads a value; bytes behind the structure are ignored. Byte arrays in the value are copies.
   *
   * @throws StatusError BUFFER_TOO_SMALL if there are fewer than `size` bytes.
   */
  decode(bytes: Uint8Array, offset?: number): FieldsValue<F>;
}

/** The value of a structure: `Value<typeof WvIoId>`. */
export type Value<S> = S extends FieldType<infer V, infer _> ? V : never;

/** The input of a structure's encoder. */
export type Input<S> = S extends FieldType<infer _, infer I> ? I : never;

/** Any structure, where only size and name matter. */
export type AnyStruct = Struct<Fields>;
