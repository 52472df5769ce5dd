/**
 * Structures of C that have pointers: one table, laid out for 32 and for 64 bits. Pads are where a C compiler puts them, so that the table need
 * not name those that only one of the widths has.
 */
import type { AnyField, AnyStruct, Fields, FieldType, Struct } from '../../ioctl/layout.js';
import { reserved, struct } from '../../ioctl/layout.js';
import { getUint, putUint } from '../../ioctl/layout-bytes.js';

/** Bytes of a pointer. */
export type PointerBytes = 4 | 8;

/** An address or a handle of native code, as a number: those of user mode are below 2^48. */
export function address(size: PointerBytes): FieldType<number> {
  return {
    name: `address[${size}]`,
    kind: 'uint',
    size,
    align: size,
    littleEndian: true,
    read: (from, at) => getUint(from, at, size, true),
    write: (to, at, value, path, refuse) => {
      if (!(Number.isSafeInteger(value) && value >= 0 && value < 2 ** (8 * size)))
        refuse(path, value, 'an address', size);
      putUint(to, at, size, true, value);
    },
    zero: () => 0,
  };
}

function gap(size: number, align: number): number {
  return (align - (size % align)) % align;
}

/** A structure with the pads that a C compiler adds. */
export function cStruct<const F extends Fields>(name: string, table: F): Struct<F> {
  const padded: Record<string, AnyField> = {};
  let size = 0;
  let align = 1;
  const pad = (bytes: number): void => {
    if (bytes > 0) padded[`pad_at_${size}`] = reserved(bytes);
    size += bytes;
  };
  for (const [field, type] of Object.entries(table)) {
    pad(gap(size, type.align));
    padded[field] = type;
    size += type.size;
    align = Math.max(align, type.align);
  }
  pad(gap(size, align));
  // Pads are no part of a value, so the type of the values is the table's.
  return struct(name, padded as F);
}

/** A field of a structure, or of one within it, by its path in C: `grh.hop_limit`. */
export interface PlacedField {
  readonly path: string;
  readonly offset: number;
  readonly size: number;
}

function isStruct(type: AnyField): type is AnyStruct {
  return 'fields' in type;
}

/** All fields of a structure but its pads, those of inner structures too. */
export function placedFields(structure: AnyField, path = '', base = 0): PlacedField[] {
  if (!isStruct(structure)) return [];
  const { table } = structure;
  return structure.fields
    .filter(({ reserved: isPad }) => !isPad)
    .flatMap(({ name, offset, size }) => [
      { path: path + name, offset: base + offset, size },
      ...placedFields(table[name]!, `${path}${name}.`, base + offset),
    ]);
}

/** The place of a field by its path, in bytes. @throws Error: there is no such field. */
export function offsetIn(structure: AnyField & { readonly name: string }, path: string): number {
  const field = placedFields(structure).find((one) => one.path === path);
  if (field === undefined) throw new Error(`${structure.name} has no ${path}`);
  return field.offset;
}
