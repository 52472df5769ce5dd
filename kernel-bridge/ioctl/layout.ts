/**
 * Binary structures as tables of fields, of bytes and of bits. From one table come the encoder, the decoder, the offsets
 * and sizes, the names for people and the TypeScript type of the value.
 *
 * Integers are little-endian, those with the suffix `be` big-endian (network order); fields of bits follow each other from
 * a byte's most significant bit on. Layouts are those of a C compiler on x64: every pad is a `reserved` field of its own,
 * and a table that would need a hidden pad is refused. {@link packed} is for messages, whose fields lie as they come.
 *
 * The build makes functions of the package's own tables (scripts/make-layout-code.mjs). The walk through the table defines
 * the structure: it reads and writes tables that have no such code, and says what is wrong with a value.
 */
import type {
  AnyField,
  FieldInfo,
  Fields,
  FieldsInput,
  FieldsValue,
  FieldType,
  Refuse,
  Struct,
} from './layout-types.js';
import { Status, StatusError } from './status.js';

export * from './layout-fields.js';
export type * from './layout-types.js';

function keyOf(name: string): string {
  const camel = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return camel.charAt(0).toLowerCase() + camel.slice(1);
}

/**
 * Reads and writes a structure: what the build has made of a table.
 *
 * @internal
 */
export interface StructCode {
  /** {@link tableText} of the table that it was made of. */
  readonly table: string;
  /** The caller has checked that the bytes are there. */
  read(from: Uint8Array, at: number): unknown;
  /** False, with nothing written: a value does not fit its field, is of another kind, or gives several members of a union. */
  write(to: Uint8Array, at: number, value: unknown): boolean;
}

/**
 * Code by the structure's name.
 *
 * @internal
 */
export type MadeCode = Readonly<Record<string, StructCode>>;

/**
 * Says what a table is. Code belongs to one such text.
 *
 * @internal
 */
export function tableText(table: Fields): string {
  const texts = Object.entries(table).map(([field, { kind, name, ...type }]) =>
    'table' in type ? `${field} ${kind} {${tableText(type.table as Fields)}}` : `${field} ${name}`,
  );
  return texts.join(', ');
}

/**
 * The errors of structures.
 *
 * @internal
 */
export interface Refusals {
  /** For a value that its field cannot hold. */
  readonly value: Refuse;
  /** For an offset that is none, or too few bytes from it on. */
  room(what: 'input' | 'output', name: string, size: number, length: number, offset: number): never;
}

const statusRefusals: Refusals = {
  value(path, value, takes) {
    const given = value instanceof Uint8Array ? `${value.length} bytes long` : String(value);
    throw new StatusError(Status.INVALID_PARAMETER, `${path} is ${given}; it takes ${takes}`);
  },
  room(what, name, size, length, offset) {
    if (!Number.isInteger(offset) || offset < 0)
      return this.value(`the offset of ${name}`, offset, 'an integer not below 0', 0);
    const room = Math.max(0, length - offset);
    throw new StatusError(Status.BUFFER_TOO_SMALL, `${name} takes ${size} bytes; the ${what} has ${room}`);
  },
};

/** The members of a value by key. `never` stands for types that only the fields know; they check what they get. */
function membersOf(value: unknown, path: string, refuse: Refuse): Readonly<Record<string, never>> {
  if (typeof value !== 'object' || value === null) refuse(path, value, 'an object of its fields', 0);
  return value as Readonly<Record<string, never>>;
}

function infoOf(field: string, type: AnyField, offset: number): FieldInfo {
  const { name, size, kind } = type;
  return { name: field, key: keyOf(field), offset, size, type: name, reserved: kind === 'reserved' };
}

/** A field of a table, and where it lies. */
interface Member {
  readonly info: FieldInfo;
  readonly type: AnyField;
}

/** Where the fields of a table lie, and how a value is written into them. */
interface Plan<F extends Fields> {
  readonly kind: 'struct' | 'union';
  readonly name: string;
  readonly table: F;
  readonly align: number;
  readonly members: readonly Member[];
  readonly write: FieldType<unknown, FieldsInput<F>>['write'];
}

/** The plan of fields behind each other, aligned to `maxAlign` at most. */
function sequence<F extends Fields>(name: string, table: F, maxAlign: number): Plan<F> {
  const members: Member[] = [];
  let size = 0;
  let align = Math.min(1, maxAlign);
  for (const [field, type] of Object.entries(table)) {
    const own = Math.min(type.align, maxAlign);
    if (size % own !== 0) throw new Error(`${name}.${field} at ${size} is not aligned to ${own}`);
    members.push({ info: infoOf(field, type, size), type });
    size += type.size;
    align = Math.max(align, own);
  }
  return {
    kind: 'struct',
    name,
    table,
    align,
    members,
    write(to, at, value, path, refuse) {
      const given = membersOf(value, path, refuse);
      for (const { info, type } of members) {
        const one = given[info.key];
        if (one !== undefined) type.write(to, at + info.offset, one, `${path}.${info.name}`, refuse);
      }
    },
  };
}

/** The plan of fields over each other. */
function overlay<F extends Fields>(name: string, table: F): Plan<F> {
  const members = Object.entries(table).map(([field, type]) => ({ info: infoOf(field, type, 0), type }));
  return {
    kind: 'union',
    name,
    table,
    align: Math.max(...members.map(({ type }) => type.align)),
    members,
    write(to, at, value, path, refuse) {
      const given = membersOf(value, path, refuse);
      const written: { name: string; bytes: Uint8Array }[] = [];
      for (const { info, type } of members) {
        const one = given[info.key];
        if (one === undefined) continue;
        const scratch = new Uint8Array(type.size);
        type.write(scratch, 0, one, `${path}.${info.name}`, refuse);
        if (scratch.some((byte) => byte !== 0)) written.push({ name: info.name, bytes: scratch });
      }
      written.sort((a, b) => b.bytes.length - a.bytes.length);
      const [longest, ...others] = written;
      for (const other of others) {
        if (other.bytes.some((byte, i) => byte !== longest!.bytes[i]))
          refuse(path, `both ${longest!.name} and ${other.name}`, 'only one of them', 0);
      }
      if (longest) to.set(longest.bytes, at);
    },
  };
}

/** Makes the structure of a plan, with the code that goes by its name, if there is any. */
function structureOf<F extends Fields>(plan: Plan<F>, code: MadeCode, refusals: Refusals): Struct<F> {
  const { kind, name, table, align, members, write } = plan;
  const size = Math.max(...members.map(({ info }) => info.offset + info.size));
  if (size % align !== 0) throw new Error(`${name} of ${size} bytes lacks a pad to a multiple of ${align}`);
  const visible = members.filter(({ info }) => !info.reserved);
  const collect = (get: (member: Member) => unknown): FieldsValue<F> =>
    // Only the table knows the fields' types: this is the one place that vouches for them.
    Object.fromEntries(visible.map((member) => [member.info.key, get(member)])) as FieldsValue<F>;
  const read = (from: Uint8Array, at: number): FieldsValue<F> =>
    collect(({ info, type }) => type.read(from, at + info.offset));
  // Code of another table may have this name: a program's own, or one that has changed since the build.
  let made = code[name];
  let isChecked = made === undefined;
  const codeOf = (): StructCode | undefined => {
    if (isChecked) return made;
    isChecked = true;
    if (made?.table !== tableText(table)) made = undefined;
    return made;
  };
  const put = (to: Uint8Array, at: number, value: FieldsInput<F>): void => {
    if (codeOf()?.write(to, at, value) === true) return;
    // Apart, so that nothing is written when a field refuses its value.
    const whole = new Uint8Array(size);
    write(whole, 0, value, name, refusals.value);
    to.set(whole, at);
  };
  const check = (what: 'input' | 'output', { length }: Uint8Array, offset: number): void => {
    if (!Number.isInteger(offset) || offset < 0 || length - offset < size)
      refusals.room(what, name, size, length, offset);
  };
  let once: Uint8Array | undefined;
  return {
    name,
    kind,
    size,
    align,
    table,
    fields: members.map(({ info }) => info),
    read,
    write,
    zero: () => collect(({ type }) => type.zero()),
    encode(value, out, offset = 0) {
      if (out !== undefined) check('output', out, offset);
      const whole = out ?? new Uint8Array(size);
      put(whole, offset, value);
      return whole;
    },
    encodeOnce(value) {
      once ??= new Uint8Array(new ArrayBuffer(size));
      put(once, 0, value);
      return once;
    },
    decode(input, offset = 0) {
      check('input', input, offset);
      // Made of the same table, so of the same type.
      return (codeOf()?.read(input, offset) as FieldsValue<F> | undefined) ?? read(input, offset);
    },
  };
}

/**
 * What makes structures of tables.
 *
 * @internal
 */
export interface Layouts {
  struct<const F extends Fields>(name: string, table: F): Struct<F>;
  packed<const F extends Fields>(name: string, table: F): Struct<F>;
  union<const F extends Fields>(name: string, table: F): Struct<F>;
}

/**
 * Makes structures that are read and written by the code made of their tables, and refuse with errors of their own.
 *
 * @internal
 */
export function layouts(code: MadeCode, refusals = statusRefusals): Layouts {
  return {
    struct: (name, table) => structureOf(sequence(name, table, Number.POSITIVE_INFINITY), code, refusals),
    packed: (name, table) => structureOf(sequence(name, table, 1), code, refusals),
    union: (name, table) => structureOf(overlay(name, table), code, refusals),
  };
}

const plain = layouts({});

/**
 * Makes a structure of a table of fields, in order.
 *
 * @example
 * const WvIoId = struct('WV_IO_ID', { Id: u64, VerbInfo: u32, Data: u32 });
 * WvIoId.decode(WvIoId.encode({ id: 7n })); // { id: 7n, verbInfo: 0, data: 0 }
 */
export function struct<const F extends Fields>(name: string, table: F): Struct<F> {
  return plain.struct(name, table);
}

/** Makes a structure whose fields, but for those of bits, may begin at any byte: a message on the wire. */
export function packed<const F extends Fields>(name: string, table: F): Struct<F> {
  return plain.packed(name, table);
}

/**
 * Members that lie over each other. A decoded value has them all; an encoder takes one. Members that are zero count as
 * not given, so that a decoded value can be encoded again; members that contradict each other are refused.
 */
export function union<const F extends Fields>(name: string, table: F): Struct<F> {
  return plain.union(name, table);
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
      for (const [i, value] of values.slice(0, count).entries()) {
        type.write(out, i * type.size, value, `${type.name}[${i}]`, statusRefusals.value);
      }
      return out;
    },
    decode(input) {
      return Array.from({ length: Math.floor(input.length / type.size) }, (_, i) =>
        type.read(input, i * type.size),
      );
    },
  };
}
