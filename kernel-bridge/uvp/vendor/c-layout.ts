/**
 * C structures with pointers: one table for both 32 and 64 bits. Padding is inserted as by a C compiler, so that the table does not
 * contain padding that only one of them requires.
 */
import type { AnyField, AnyStruct, Fields, FieldType, Struct } from '../../ioctl/layout.js';
import { reserved, struct } from '../../ioctl/layout.js';
import { getUint, putUint } from '../../ioctl/layout-bytes.js';

/** Size of a pointer, in bytes. */
export type PointerBytes = 4 | 8;

/** A native address or handle as a number. In user mode these are below 2^48. */
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

/** Creates a structure with the padding that a C compiler adds. */
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
  // Values do not contain padding, so they have the type of the table's values.
  return struct(name, padded as F);
}

/** A field of a structure or of a nested one, by its path in C: `grh.hop_limit`. */
export interface PlacedField {
  readonly path: string;
  readonly offset: number;
  readonly size: number;
}

function isStruct(type: AnyField): type is AnyStruct {
  return 'fields' in type;
}

/** Returns all fields of a structure and of nested ones, without padding. */
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

/** Returns the offset of a field by its path, in bytes. @throws Error if there is no such field */
export function offsetIn(structure: AnyField & { readonly name: string }, path: string): number {
  const field = placedFields(structure).find((one) => one.path === path);
  if (field === undefined) throw new Error(`${structure.name} does not have a field ${path}.`);
  return field.offset;
}
