/** Layouts of transmitted structures as tables of named fields and their offsets. All integers are little-endian. */

/** A field: its offset and size, and functions that read and write its value. */
export interface Field<T> {
  /** Offset from the start of the structure, in bytes. */
  readonly at: number;
  /** Size in bytes. */
  readonly size: number;
  read(bytes: Buffer, at: number): T;
  write(bytes: Buffer, at: number, value: T): void;
}

type Fields = Readonly<Record<string, Field<unknown>>>;

/** The values of a structure by field name. */
export type Values<F extends Fields> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** The type of the values that a layout parses. */
export type Parsed<L> = L extends Layout<infer F> ? Values<F> : never;

/** The layout of a structure of fixed length. */
export class Layout<F extends Fields> {
  /**
   * Creates a layout.
   *
   * @param name - name in error messages
   * @param bytes - length of the structure
   * @throws RangeError if a field is not within the structure
   */
  constructor(
    readonly name: string,
    readonly bytes: number,
    readonly fields: F,
  ) {
    for (const [key, { at, size }] of Object.entries(fields)) {
      if (at + size > bytes)
        throw new RangeError(`${name}.${key} must end within ${bytes} bytes; got ${at + size}.`);
    }
  }

  /** Parses a structure. @throws RangeError if there are too few bytes */
  parse(from: Buffer, at = 0): Values<F> {
    this.#check(from, at);
    const entries = Object.entries(this.fields).map(([key, field]) => [key, field.read(from, at + field.at)]);
    return Object.fromEntries(entries) as Values<F>;
  }

  /** Writes the given values and leaves other bytes unchanged. @throws RangeError as {@link parse}, or for an invalid value */
  emit(values: Partial<Values<F>>, into: Buffer, at = 0): void {
    this.#check(into, at);
    for (const [key, value] of Object.entries(values)) {
      const field = this.fields[key];
      if (field === undefined) throw new RangeError(`${this.name} does not have a field ${key}.`);
      field.write(into, at + field.at, value);
    }
  }

  /** Creates a structure with the given values and zeros elsewhere. */
  make(values: Partial<Values<F>>): Buffer {
    const bytes = Buffer.alloc(this.bytes);
    this.emit(values, bytes);
    return bytes;
  }

  #check(bytes: Buffer, at: number): void {
    if (bytes.length - at < this.bytes) {
      throw new RangeError(`${this.name} must have ${this.bytes} bytes; got ${bytes.length - at}.`);
    }
  }
}

/** An unsigned integer of 1 to 6 bytes. */
export const uint = (at: number, size: number): Field<number> => ({
  at,
  size,
  read: (bytes, from) => bytes.readUIntLE(from, size),
  write: (bytes, to, value) => {
    bytes.writeUIntLE(value, to, size);
  },
});
export const u8 = (at: number): Field<number> => uint(at, 1);
export const u16 = (at: number): Field<number> => uint(at, 2);
export const u24 = (at: number): Field<number> => uint(at, 3);
export const u32 = (at: number): Field<number> => uint(at, 4);

const HIGH = 0x1_0000_0000;

/** An unsigned 64-bit count. Values from 2^53 on would lose precision, but no count is that large. */
export const u64 = (at: number): Field<number> => ({
  at,
  size: 8,
  read: (bytes, from) => bytes.readUInt32LE(from) + bytes.readUInt32LE(from + 4) * HIGH,
  write: (bytes, to, value) => {
    bytes.writeUInt32LE(value % HIGH, to);
    bytes.writeUInt32LE(Math.floor(value / HIGH), to + 4);
  },
});

/** A 64-bit value with full precision. */
export const big64 = (at: number): Field<bigint> => ({
  at,
  size: 8,
  read: (bytes, from) => bytes.readBigUInt64LE(from),
  write: (bytes, to, value) => {
    bytes.writeBigUInt64LE(value, to);
  },
});

/** Padded ASCII text. The padding is removed from the value. */
export const text = (at: number, size: number, pad: ' ' | '\0' = '\0'): Field<string> => ({
  at,
  size,
  read: (bytes, from) => {
    const all = bytes.toString('latin1', from, from + size);
    const end = all.indexOf('\0');
    return (end === -1 ? all : all.slice(0, end)).trimEnd();
  },
  write: (bytes, to, value) => {
    if (value.length > size)
      throw new RangeError(`Text must have at most ${size} characters; got '${value}'.`);
    bytes.write(value.padEnd(size, pad), to, size, 'latin1');
  },
});

/** Raw bytes. The value is a copy. */
export const raw = (at: number, size: number): Field<Uint8Array> => ({
  at,
  size,
  read: (bytes, from) => Uint8Array.prototype.slice.call(bytes, from, from + size),
  write: (bytes, to, value) => {
    if (value.length !== size)
      throw new RangeError(`The field must have ${size} bytes; got ${value.length}.`);
    bytes.set(value, to);
  },
});
