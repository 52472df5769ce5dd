/**
 * Big-endian bit-field layouts as data. A layout lists every bit of a message in wire order, reserved ones
 * included, so that `emit` is the exact inverse of `parse` for any bytes, and the table is the documentation.
 */
import { compileBits, type ReadBits, type WriteBits } from './bit-layout-code.js';

/** An unsigned field of 1 to 32 bits: a number. */
export interface BitsField {
  readonly kind: 'bits';
  readonly width: number;
}

/** An unsigned 64-bit field: a bigint. */
export interface LongField {
  readonly kind: 'long';
  readonly width: 64;
}

/** A run of whole bytes; `width` is in bits. */
export interface BytesField {
  readonly kind: 'bytes';
  readonly width: number;
}

export type Field = BitsField | LongField | BytesField;
export type Fields = Readonly<Record<string, Field>>;

/** A field of `width` bits (1 to 32). */
export const bits = (width: number): BitsField => ({ kind: 'bits', width });
export const u8 = bits(8);
export const u16 = bits(16);
export const u24 = bits(24);
export const u32 = bits(32);
export const u64: LongField = { kind: 'long', width: 64 };
/** A run of `count` bytes. */
export const bytes = (count: number): BytesField => ({ kind: 'bytes', width: count * 8 });

type FieldValue<F extends Field> = F extends BitsField ? number : F extends LongField ? bigint : Uint8Array;

/** The value form of a layout: one property per field. */
export type LayoutValue<F extends Fields> = { -readonly [K in keyof F]: FieldValue<F[K]> };

/** Where a field is: `bit` counts from the first byte's most significant bit. */
export interface FieldPlace {
  readonly name: string;
  readonly kind: Field['kind'];
  readonly bit: number;
  readonly width: number;
}

function readBits(from: Uint8Array, firstBit: number, width: number): number {
  let value = 0;
  for (let bit = firstBit; bit < firstBit + width; ) {
    const take = Math.min(8 - (bit % 8), firstBit + width - bit);
    const chunk = ((from[bit >> 3] ?? 0) >> (8 - (bit % 8) - take)) & ((1 << take) - 1);
    value = value * (1 << take) + chunk;
    bit += take;
  }
  return value;
}

function writeBits(to: Uint8Array, firstBit: number, width: number, value: number): void {
  let left = value;
  for (let end = firstBit + width; end > firstBit; ) {
    const start = Math.max(firstBit, (end - 1) & ~7);
    const take = end - start;
    const shift = (8 - (end % 8)) % 8;
    const mask = ((1 << take) - 1) << shift;
    to[start >> 3] = ((to[start >> 3] ?? 0) & ~mask) | ((left % (1 << take)) << shift);
    left = Math.floor(left / (1 << take));
    end = start;
  }
}

/** Messages that are seldom used are not worth the making of code. */
const USES_BEFORE_CODE = 16;

/** A fixed-size message part, parsed and emitted from its table, by code of its own once it is used often. */
export class Layout<F extends Fields> {
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  readonly fields: readonly FieldPlace[];
  #uses = 0;
  #read: ReadBits | undefined;
  #write: WriteBits | undefined;

  constructor(name: string, fields: F) {
    this.name = name;
    const places: FieldPlace[] = [];
    let bit = 0;
    for (const [field, { kind, width }] of Object.entries(fields)) {
      if (kind !== 'bits' && bit % 8 !== 0) throw new Error(`${name}.${field} does not start on a byte.`);
      places.push({ name: field, kind, bit, width });
      bit += width;
    }
    if (bit % 8 !== 0) throw new Error(`${name} has ${bit} bits, which is no whole number of bytes.`);
    this.fields = places;
    this.size = bit / 8;
  }

  /** The value at `at`. Byte runs are copies. Throws RangeError when fewer than `size` bytes are there. */
  parse(from: Uint8Array, at = 0): LayoutValue<F> {
    if (at < 0 || from.length - at < this.size) {
      throw new RangeError(`${this.name} takes ${this.size} bytes, only ${from.length - at} are there.`);
    }
    // Made of the same table, so of the same type.
    if (this.#read) return this.#read(from, at) as LayoutValue<F>;
    this.#count();
    const value: Record<string, number | bigint | Uint8Array> = {};
    for (const { name, kind, bit, width } of this.fields) {
      const first = at * 8 + bit;
      if (kind === 'bits') value[name] = readBits(from, first, width);
      else if (kind === 'bytes') value[name] = new Uint8Array(from.subarray(first / 8, (first + width) / 8));
      else value[name] = (BigInt(readBits(from, first, 32)) << 32n) | BigInt(readBits(from, first + 32, 32));
    }
    return value as LayoutValue<F>;
  }

  /**
   * Writes every byte of the layout at `at`; missing fields are zero, shorter byte runs are padded with zeros.
   * Throws RangeError, before anything is written, for a value that its field cannot hold.
   */
  emit(value: Partial<LayoutValue<F>>, to: Uint8Array = new Uint8Array(this.size), at = 0): Uint8Array {
    const given = value as Readonly<Record<string, number | bigint | Uint8Array | undefined>>;
    if (at < 0 || to.length - at < this.size) {
      throw new RangeError(`${this.name} takes ${this.size} bytes, only ${to.length - at} are there.`);
    }
    // What the code refuses is written, or refused in words, by the walk.
    if (this.#write?.(to, at, value)) return to;
    this.#count();
    for (const place of this.fields) this.#check(place, given[place.name]);
    to.fill(0, at, at + this.size);
    for (const { name, kind, bit, width } of this.fields) {
      const item = given[name];
      if (item === undefined) continue;
      const first = at * 8 + bit;
      if (kind === 'bits') {
        writeBits(to, first, width, item as number);
      } else if (kind === 'bytes') {
        to.set(item as Uint8Array, first / 8);
      } else {
        writeBits(to, first, 32, Number((item as bigint) >> 32n));
        writeBits(to, first + 32, 32, Number((item as bigint) & 0xffff_ffffn));
      }
    }
    return to;
  }

  #count(): void {
    if (++this.#uses !== USES_BEFORE_CODE) return;
    const code = compileBits(this.fields, this.size);
    this.#read = code?.read;
    this.#write = code?.write;
  }

  #check({ name, kind, width }: FieldPlace, item: number | bigint | Uint8Array | undefined): void {
    if (item === undefined) return;
    const fits =
      kind === 'bits'
        ? Number.isInteger(item) && (item as number) >= 0 && (item as number) < 2 ** width
        : kind === 'long'
          ? (item as bigint) >= 0n && (item as bigint) < 1n << 64n
          : (item as Uint8Array).length * 8 <= width;
    if (fits) return;
    throw new RangeError(
      kind === 'bytes'
        ? `${this.name}.${name} holds ${width / 8} bytes, not ${(item as Uint8Array).length}.`
        : `${this.name}.${name} holds ${width} bits; ${String(item)} does not fit.`,
    );
  }
}
