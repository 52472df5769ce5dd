/** The field types of structure tables: integers, bits, bytes and pads. */
import {
  copyBytes,
  get64,
  getUint,
  isLong,
  isRun,
  isUint,
  put64,
  putBytes,
  putUint,
} from './layout-bytes.js';
import type { FieldType, ReservedType } from './layout-types.js';

/** An unsigned integer of at most 32 bits. */
export interface UintType extends FieldType<number> {}

/** An unsigned integer of 64 bits. */
export interface Uint64Type extends FieldType<bigint> {}

/** Uninterpreted bytes. */
export interface BytesType extends FieldType<Uint8Array> {}

function integer(name: string, size: number, littleEndian: boolean, align = size): UintType {
  const max = 2 ** (size * 8) - 1;
  return {
    name,
    kind: 'uint',
    size,
    align,
    littleEndian,
    read: (from, at) => getUint(from, at, size, littleEndian),
    write: (to, at, value, path, refuse) => {
      if (!isUint(value, max)) refuse(path, value, `an integer from 0 to ${max}`, size);
      putUint(to, at, size, littleEndian, value);
    },
    zero: () => 0,
  };
}

function integer64(name: string, littleEndian: boolean): Uint64Type {
  return {
    name,
    kind: 'long',
    size: 8,
    align: 8,
    littleEndian,
    read: (from, at) => get64(from, at, littleEndian),
    write: (to, at, value, path, refuse) => {
      if (!isLong(value)) refuse(path, value, 'a bigint from 0 to 2^64 - 1', 8);
      put64(to, at, value, littleEndian);
    },
    zero: () => 0n,
  };
}

/** Unsigned, 8 bits. */
export const u8 = integer('u8', 1, true);
/** Unsigned, 16 bits, little-endian. */
export const u16 = integer('u16', 2, true);
/** Unsigned, 32 bits, little-endian. */
export const u32 = integer('u32', 4, true);
/** Unsigned, 64 bits, little-endian; a bigint. */
export const u64 = integer64('u64', true);
/** Unsigned, 16 bits, network order. */
export const u16be = integer('u16be', 2, false);
/** Unsigned, 24 bits, network order. */
export const u24be = integer('u24be', 3, false, 1);
/** Unsigned, 32 bits, network order. */
export const u32be = integer('u32be', 4, false);
/** Unsigned, 64 bits, network order; a bigint. */
export const u64be = integer64('u64be', false);

/** Unsigned, 1 to 32 bits, starting at the most significant unused bit of its byte; in network order if it spans several bytes. */
export function bits(width: number): UintType {
  return integer(`bits[${width}]`, width / 8, false, 1 / 8);
}

/** `size` uninterpreted bytes. Use `align` for bytes that stand for a C structure with larger members. */
export function bytes(size: number, align = 1): BytesType {
  return {
    name: `bytes[${size}]`,
    kind: 'bytes',
    size,
    align,
    read: (from, at) => copyBytes(from, at, size),
    write: (to, at, value, path, refuse) => {
      if (!isRun(value, size)) {
        const most = `at most ${size} bytes`;
        refuse(
          path,
          value,
          (value as unknown) instanceof Uint8Array ? most : `a Uint8Array of ${most}`,
          size,
        );
      }
      putBytes(to, at, size, value);
    },
    zero: () => new Uint8Array(size),
  };
}

/** `size` bytes of padding. */
export function reserved(size: number): ReservedType {
  return {
    name: `reserved[${size}]`,
    kind: 'reserved',
    size,
    align: 1,
    read: () => undefined,
    write: () => {},
    zero: () => undefined,
  };
}
