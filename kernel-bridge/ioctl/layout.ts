/**
 * Binary structures as tables of fields. From one table come the encoder, the decoder, the offsets and sizes, the
 * names for people and the TypeScript type of the value.
 *
 * Integers are little-endian, those with the suffix `be` big-endian (network order). Layouts are those of a C
 * compiler on x64: every pad is a `reserved` field of its own, and a table that would need a hidden pad is refused.
 */
import {
  bytesCode,
  compile,
  type FieldCode,
  integer64Code,
  integerCode,
  type ReadStruct,
  structCode,
  unionCode,
  type WriteStruct,
} from './layout-code.js';
import { Status, StatusError } from './status.js';

/** How one field is laid out, read and written. `V` is its value, `I` what an encoder takes for it. */
export interface FieldType<V, I = V> {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Bytes; offsets are multiples of it. */
  readonly align: number;
  /** The caller has checked that the bytes are there. */
  read(view: DataView, at: number): V;
  /** Writes all bytes of the field. `path` names it in errors. */
  write(view: DataView, at: number, value: I, path: string): void;
  /** The value of bytes that are all zero. */
  zero(): V;
  /**
   * What {@link read} and {@link write} do, as code; without it the structures around it are walked through.
   *
   * @internal
   */
  readonly code?: FieldCode | undefined;
}

/** A pad: zero when written, ignored when read, no part of the value. */
export interface ReservedType extends FieldType<undefined> {
  readonly reserved: true;
}

/** A field whose type only its own table knows. */
export type AnyField = FieldType<unknown, never>;

/** A table of fields. */
export type Fields = Readonly<Record<string, AnyField>>;

/** The key of a field in a value: `MaxQpWr` → `maxQpWr`, `pkt_life` → `pktLife`. */
export type FieldKey<S extends string> = S extends `${infer A}_${infer B}`
  ? `${Uncapitalize<A>}${Capitalize<FieldKey<B>>}`
  : Uncapitalize<S>;

/** Spells a computed type out, so that editors show the members and not the computation. */
type Expand<T> = T extends infer O ? { [K in keyof O]: O[K] } : never;

/** The key of a table's field in the value; none for pads. */
type VisibleKey<F extends Fields, K extends keyof F & string> = F[K] extends ReservedType
  ? never
  : FieldKey<K>;

/** What a table's decoder answers. */
export type FieldsValue<F extends Fields> = Expand<{
  -readonly [K in keyof F & string as VisibleKey<F, K>]: F[K] extends FieldType<infer V, infer _> ? V : never;
}>;

/** What a table's encoder takes: fields left out are zero. */
export type FieldsInput<F extends Fields> = Expand<{
  readonly [K in keyof F & string as VisibleKey<F, K>]?:
    | (F[K] extends FieldType<infer _, infer I> ? I : never)
    | undefined;
}>;

/** Where a field lies. */
export interface FieldInfo {
  /** As in the structure's definition. */
  readonly name: string;
  /** As in the TypeScript value. */
  readonly key: string;
  /** Bytes from the start of the structure. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
  readonly type: string;
  readonly reserved: boolean;
}

/** A binary structure, made by {@link struct} of a table of fields. */
export interface Struct<F extends Fields> extends FieldType<FieldsValue<F>, FieldsInput<F>> {
  readonly fields: readonly FieldInfo[];
  /**
   * Writes a value: into new bytes, or into `out` from `offset` on. Every byte of the structure is written; fields
   * left out and reserved bytes become zero. A `bytes` field takes fewer bytes than it holds.
   *
   * @throws StatusError INVALID_PARAMETER for a value that its field cannot hold, BUFFER_TOO_SMALL if `out` is short.
   */
  encode(value: FieldsInput<F>, out?: Uint8Array, offset?: number): Uint8Array;
  /**
   * As {@link encode}, into bytes of this structure that the next call writes again: for a request, which is copied when it
   * is sent.
   */
  encodeOnce(value: FieldsInput<F>): Uint8Array;
  /**
   * Reads a value; what follows the structure is left alone. Byte arrays in the value are copies.
   *
   * @throws StatusError BUFFER_TOO_SMALL if fewer than `size` bytes are there.
   */
  decode(bytes: Uint8Array, offset?: number): FieldsValue<F>;
}

/** The value of a structure: `Value<typeof WvIoId>`. */
export type Value<S> = S extends FieldType<infer V, infer _> ? V : never;

/** What a structure's encoder takes. */
export type Input<S> = S extends FieldType<infer _, infer I> ? I : never;

/** Any structure, where only its size and name count. */
export type AnyStruct = Struct<Fields>;

function refuse(path: string, value: unknown, takes: string): never {
  throw new StatusError(Status.INVALID_PARAMETER, `${path} is ${String(value)}; it takes ${takes}`);
}

/** An unsigned integer of at most 32 bits. */
export interface UintType extends FieldType<number> {}

/** An unsigned integer of 64 bits. */
export interface Uint64Type extends FieldType<bigint> {}

/** Uninterpreted bytes. */
export interface BytesType extends FieldType<Uint8Array> {}

function integer(name: string, size: 1 | 2 | 4, littleEndian: boolean): UintType {
  const max = 2 ** (size * 8) - 1;
  const reader = { 1: 'getUint8', 2: 'getUint16', 4: 'getUint32' } as const;
  const writer = { 1: 'setUint8', 2: 'setUint16', 4: 'setUint32' } as const;
  return {
    name,
    size,
    align: size,
    read: (view, at) => view[reader[size]](at, littleEndian),
    write: (view, at, value, path) => {
      if (!Number.isInteger(value) || value < 0 || value > max)
        refuse(path, value, `an integer from 0 to ${max}`);
      view[writer[size]](at, value, littleEndian);
    },
    zero: () => 0,
    code: integerCode(size, littleEndian),
  };
}

function integer64(name: string, littleEndian: boolean): Uint64Type {
  return {
    name,
    size: 8,
    align: 8,
    read: (view, at) => view.getBigUint64(at, littleEndian),
    write: (view, at, value, path) => {
      if (typeof value !== 'bigint' || value < 0n || value >> 64n !== 0n) {
        refuse(path, value, 'a bigint from 0 to 2^64 - 1');
      }
      view.setBigUint64(at, value, littleEndian);
    },
    zero: () => 0n,
    code: integer64Code(littleEndian),
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
/** Unsigned, 32 bits, network order. */
export const u32be = integer('u32be', 4, false);
/** Unsigned, 64 bits, network order; a bigint. */
export const u64be = integer64('u64be', false);

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function part(view: DataView, at: number, size: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + at, size);
}

/** `size` uninterpreted bytes. `align` is for those that stand for a C structure with larger members. */
export function bytes(size: number, align = 1): BytesType {
  return {
    name: `bytes[${size}]`,
    size,
    align,
    // A new array and set(), because slice() of a Buffer is a view.
    read: (view, at) => {
      const copy = new Uint8Array(size);
      copy.set(part(view, at, size));
      return copy;
    },
    write: (view, at, value, path) => {
      if (!(value instanceof Uint8Array)) refuse(path, value, `a Uint8Array of at most ${size} bytes`);
      if (value.length > size) refuse(path, `${value.length} bytes long`, `at most ${size} bytes`);
      const field = part(view, at, size);
      field.set(value);
      field.fill(0, value.length);
    },
    zero: () => new Uint8Array(size),
    code: bytesCode(size),
  };
}

/** `size` bytes of pad. */
export function reserved(size: number): ReservedType {
  return {
    reserved: true,
    name: `reserved[${size}]`,
    size,
    align: 1,
    read: () => undefined,
    write: (view, at) => {
      part(view, at, size).fill(0);
    },
    zero: () => undefined,
  };
}

function keyOf(name: string): string {
  const camel = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return camel.charAt(0).toLowerCase() + camel.slice(1);
}

function checkRoom(what: string, name: string, size: number, length: number, offset: number): void {
  if (!Number.isInteger(offset) || offset < 0)
    refuse(`the offset of ${name}`, offset, 'an integer not below 0');
  const room = Math.max(0, length - offset);
  if (room >= size) return;
  throw new StatusError(Status.BUFFER_TOO_SMALL, `${name} takes ${size} bytes; the ${what} has ${room}`);
}

/** The members of a value by key. `never` stands for types that only the fields know; they check what they get. */
function membersOf(value: unknown, path: string): Readonly<Record<string, never>> {
  if (typeof value !== 'object' || value === null) refuse(path, value, 'an object of its fields');
  return value as Readonly<Record<string, never>>;
}

/**
 * Structures up to this size are written and read in memory that is used again: a view of the bytes of each would move them out
 * of the engine's own heap, which costs more than to copy them.
 */
const SHORT = 1024;
const short = new Uint8Array(SHORT);
const shortView = viewOf(short);

function complete<F extends Fields>(
  type: FieldType<FieldsValue<F>, FieldsInput<F>>,
  fields: readonly FieldInfo[],
): Struct<F> {
  const { name, size } = type;
  const isShort = size <= SHORT;
  let once: { readonly bytes: Uint8Array; readonly view: DataView } | undefined;
  return {
    ...type,
    fields,
    encode(value, out, offset = 0) {
      if (!isShort || (out !== undefined && out.length > SHORT)) {
        const whole = out ?? new Uint8Array(size);
        checkRoom('output', name, size, whole.length, offset);
        type.write(viewOf(whole), offset, value, name);
        return whole;
      }
      if (out !== undefined) checkRoom('output', name, size, out.length, offset);
      type.write(shortView, 0, value, name);
      if (out === undefined) return short.slice(0, size);
      for (let i = 0; i < size; i++) out[offset + i] = short[i]!;
      return out;
    },
    encodeOnce(value) {
      if (once === undefined) {
        const bytes = new Uint8Array(new ArrayBuffer(size));
        once = { bytes, view: viewOf(bytes) };
      }
      type.write(once.view, 0, value, name);
      return once.bytes;
    },
    decode(input, offset = 0) {
      checkRoom('input', name, size, input.length, offset);
      if (!isShort || offset !== 0 || input.length > SHORT) return type.read(viewOf(input), offset);
      short.set(input);
      return type.read(shortView, 0);
    },
  };
}

/**
 * Makes a structure of a table of fields, in order.
 *
 * @example
 * const WvIoId = struct('WV_IO_ID', { Id: u64, VerbInfo: u32, Data: u32 });
 * WvIoId.decode(WvIoId.encode({ id: 7n })); // { id: 7n, verbInfo: 0, data: 0 }
 */
export function struct<const F extends Fields>(name: string, table: F): Struct<F> {
  const members: { info: FieldInfo; type: AnyField }[] = [];
  let size = 0;
  let align = 1;
  for (const [field, type] of Object.entries(table)) {
    if (size % type.align !== 0)
      throw new Error(`${name}.${field} at ${size} is not aligned to ${type.align}`);
    const isReserved = 'reserved' in type;
    const info = {
      name: field,
      key: keyOf(field),
      offset: size,
      size: type.size,
      type: type.name,
      reserved: isReserved,
    };
    members.push({ info, type });
    size += type.size;
    align = Math.max(align, type.align);
  }
  if (size % align !== 0) throw new Error(`${name} of ${size} bytes lacks a pad to a multiple of ${align}`);
  const visible = members.filter((member) => !member.info.reserved);

  type V = FieldsValue<F>;
  const collect = (get: (member: (typeof members)[number]) => unknown): V =>
    // Only the table knows the fields' types: this is the one place that vouches for them.
    Object.fromEntries(visible.map((member) => [member.info.key, get(member)])) as V;

  const walk = {
    name,
    size,
    align,
    read: (view: DataView, at: number) => collect(({ info, type }) => type.read(view, at + info.offset)),
    write: (view: DataView, at: number, value: FieldsInput<F>, path: string) => {
      const given = membersOf(value, path);
      for (const { info, type } of members) {
        const one = given[info.key];
        type.write(
          view,
          at + info.offset,
          one === undefined ? (type.zero() as never) : one,
          `${path}.${info.name}`,
        );
      }
    },
    zero: () => collect(({ type }) => type.zero()),
    code: structCode(
      members.map(({ info, type }) => ({ ...info, code: type.code })),
      size,
    ),
  };
  return complete<F>(
    compiled(walk),
    members.map((member) => member.info),
  );
}

/** Structures that are seldom used are not worth the making of code. */
const usesBeforeCode = 16;

/** The same type, by code of its own once it is used often. */
function compiled<V, I>(walk: FieldType<V, I>): FieldType<V, I> {
  const { code } = walk;
  if (code === undefined) return walk;
  let uses = 0;
  let read: ReadStruct | undefined;
  let write: WriteStruct | undefined;
  const count = (): void => {
    if (++uses === usesBeforeCode) ({ read, write } = compile(code) ?? {});
  };
  return {
    ...walk,
    read: (view, at) => {
      // Made of the same table, so of the same type.
      if (read !== undefined) return read(view, at) as V;
      count();
      return walk.read(view, at);
    },
    write: (view, at, value, path) => {
      // What the code refuses is written, or refused in words, by the walk.
      if (write?.(view, at, value) === true) return;
      if (write === undefined) count();
      walk.write(view, at, value, path);
    },
  };
}

/**
 * Members that lie over each other. A decoded value has them all; an encoder takes one. Members that are zero count as
 * not given, so that a decoded value can be encoded again; members that contradict each other are refused.
 */
export function union<const F extends Fields>(name: string, table: F): Struct<F> {
  const members = Object.entries(table).map(([field, type]) => ({
    info: { name: field, key: keyOf(field), offset: 0, size: type.size, type: type.name, reserved: false },
    type,
  }));
  const align = Math.max(...members.map(({ type }) => type.align));
  const size = Math.max(...members.map(({ type }) => type.size));
  if (size % align !== 0) throw new Error(`${name} of ${size} bytes lacks a pad to a multiple of ${align}`);

  type V = FieldsValue<F>;
  const collect = (get: (member: (typeof members)[number]) => unknown): V =>
    Object.fromEntries(members.map((member) => [member.info.key, get(member)])) as V;

  return complete<F>(
    compiled<V, FieldsInput<F>>({
      name,
      size,
      align,
      read: (view, at) => collect(({ type }) => type.read(view, at)),
      write: (view, at, value, path) => {
        const given = membersOf(value, path);
        const written: { name: string; bytes: Uint8Array }[] = [];
        for (const { info, type } of members) {
          const one = given[info.key];
          if (one === undefined) continue;
          const scratch = new Uint8Array(type.size);
          type.write(viewOf(scratch), 0, one, `${path}.${info.name}`);
          if (scratch.some((byte) => byte !== 0)) written.push({ name: info.name, bytes: scratch });
        }
        written.sort((a, b) => b.bytes.length - a.bytes.length);
        const [longest, ...others] = written;
        for (const other of others) {
          if (other.bytes.some((byte, i) => byte !== longest!.bytes[i])) {
            refuse(path, `both ${longest!.name} and ${other.name}`, 'only one of them');
          }
        }
        const target = part(view, at, size);
        target.fill(0);
        if (longest) target.set(longest.bytes);
      },
      zero: () => collect(({ type }) => type.zero()),
      code: unionCode(
        members.map(({ info, type }) => ({ ...info, code: type.code })),
        size,
      ),
    }),
    members.map((member) => member.info),
  );
}

/** Elements behind each other, as many as there are: GID and P_Key tables. */
export interface List<V, I> {
  readonly name: string;
  /** Bytes of one element. */
  readonly elementSize: number;
  /** The elements, or as many of the first ones as `maxBytes` holds whole. */
  encode(values: readonly I[], maxBytes?: number): Uint8Array;
  /** All whole elements; an incomplete one at the end is ignored. */
  decode(bytes: Uint8Array): V[];
}

/** Makes the {@link List} of an element type. */
export function list<V, I>(type: FieldType<V, I>): List<V, I> {
  return {
    name: `${type.name}[]`,
    elementSize: type.size,
    encode(values, maxBytes = Number.POSITIVE_INFINITY) {
      const count = Math.min(values.length, Math.floor(Math.max(0, maxBytes) / type.size));
      const out = new Uint8Array(count * type.size);
      const view = viewOf(out);
      for (const [i, value] of values.slice(0, count).entries()) {
        type.write(view, i * type.size, value, `${type.name}[${i}]`);
      }
      return out;
    },
    decode(input) {
      const view = viewOf(input);
      return Array.from({ length: Math.floor(input.length / type.size) }, (_, i) =>
        type.read(view, i * type.size),
      );
    },
  };
}
