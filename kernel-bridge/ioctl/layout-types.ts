/** The types of structures: of a field, of a table of fields, and of their values. */

/** Throws the error for a value that its field cannot hold. `takes` describes the valid values. */
export type Refuse = (path: string, value: unknown, takes: string, size: number) => never;

/** Layout, reader and writer of one field. `V` is its decoded value, `I` its encoder's input. */
export interface FieldType<V, I = V> {
  /** Such as `u32be` or `bytes[16]`; of structures the name of the interface. */
  readonly name: string;
  /** How the field is read and written: `uint` up to 32 bits as a number, `long` 64 bits as a bigint, `reserved` not at all. */
  readonly kind: 'uint' | 'long' | 'bytes' | 'reserved' | 'struct' | 'union';
  /** Bytes; eighths for {@link bits}. */
  readonly size: number;
  /** Bytes; offsets are multiples of it. */
  readonly align: number;
  /** Of integers: the first byte is the least significant. */
  readonly littleEndian?: boolean;
  /** Reads the field at byte `at`. The caller has checked that the bytes are there. */
  read(from: Uint8Array, at: number): V;
  /** Writes the field into bytes that are zero. `path` names it in errors. */
  write(to: Uint8Array, at: number, value: I, path: string, refuse: Refuse): void;
  /** The value of bytes that are all zero. */
  zero(): V;
}

/** A pad: zero when written, ignored when read, no part of the value. */
export interface ReservedType extends FieldType<undefined> {
  /** Tells pads from fields with a value. */
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

/** Spells out a computed type, so that editors show its members and not the computation. */
type Expand<T> = T extends infer O ? { [K in keyof O]: O[K] } : never;

/** The key of a table's field in the value; none for pads. */
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
  /** As in the structure's definition. */
  readonly name: string;
  /** As in the TypeScript value. */
  readonly key: string;
  /** Bytes from the start of the structure; in eighths for {@link bits}. */
  readonly offset: number;
  /** Bytes; eighths for {@link bits}. */
  readonly size: number;
  /** The name of its {@link FieldType}. */
  readonly type: string;
  /** It is a pad, which a value does not have. */
  readonly reserved: boolean;
}

/** A binary structure, made from a table of fields by {@link struct}, {@link packed} or {@link union}. */
export interface Struct<F extends Fields> extends FieldType<FieldsValue<F>, FieldsInput<F>> {
  /** The fields in their order, pads included. */
  readonly fields: readonly FieldInfo[];
  /** The table that it was made from. */
  readonly table: F;
  /**
   * Writes a value into new bytes, or into `out` from `offset` on. Every byte of the structure is written; omitted
   * fields and reserved bytes become zero. A `bytes` field may be given fewer bytes than its size. Nothing is written
   * if a value is refused.
   *
   * @throws StatusError INVALID_PARAMETER for a value that its field cannot hold, BUFFER_TOO_SMALL if `out` is short.
   */
  encode(value: FieldsInput<F>, out?: Uint8Array, offset?: number): Uint8Array;
  /**
   * As {@link encode}, into memory of this structure that the next call reuses: for a request, which is copied when it
   * is sent.
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
