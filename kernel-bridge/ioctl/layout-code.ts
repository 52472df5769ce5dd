/**
 * Code made of a structure's table: what reads and writes all its fields in one function of its own, which the engine
 * compiles to straight loads and stores. The walk through the table stays what defines the structure: generated code
 * leaves every value that it does not like to it.
 */
import { madeCode } from './made-code.js';

/** Reads a structure. The caller has checked that the bytes are there. */
export type ReadStruct = (view: DataView, at: number) => unknown;
/** Writes a structure. False, with some bytes written: a value does not fit its field, or is of another kind. */
export type WriteStruct = (view: DataView, at: number, value: unknown) => boolean;

/** How a field is read and written by generated code. `offset` counts from the start of the outermost structure. */
export interface FieldCode {
  /** An expression: the field's value. */
  read(offset: number): string;
  /** Statements that write the variable `name`; `return false` for what does not fit. */
  write(offset: number, name: string): string;
}

/** A field of a structure that code is made for. Fields without code of their own are called by their number. */
export interface CodedField {
  readonly key: string;
  readonly offset: number;
  readonly size: number;
  readonly reserved: boolean;
  readonly code: FieldCode | undefined;
}

/** Byte runs up to this length are copied in a loop: a view of them costs more. */
const shortRun = 40;

function copyBytes(view: DataView, at: number, size: number): Uint8Array {
  const copy = new Uint8Array(size);
  if (size <= shortRun) for (let i = 0; i < size; i++) copy[i] = view.getUint8(at + i);
  else copy.set(new Uint8Array(view.buffer, view.byteOffset + at, size));
  return copy;
}

function putBytes(view: DataView, at: number, size: number, value: Uint8Array): void {
  const { length } = value;
  if (size <= shortRun) {
    for (let i = 0; i < length; i++) view.setUint8(at + i, value[i]!);
  } else {
    new Uint8Array(view.buffer, view.byteOffset + at, size).set(value);
  }
  clearBytes(view, at + length, size - length);
}

function clearBytes(view: DataView, at: number, size: number): void {
  if (size > shortRun) new Uint8Array(view.buffer, view.byteOffset + at, size).fill(0);
  else for (let i = 0; i < size; i++) view.setUint8(at + i, 0);
}

const helpers = { copyBytes, putBytes, clearBytes } as const;

/** Code of an unsigned integer of 8, 16 or 32 bits. */
export function integerCode(size: 1 | 2 | 4, littleEndian: boolean): FieldCode {
  const method = `Uint${size * 8}`;
  const order = size === 1 ? '' : `, ${littleEndian}`;
  const fits = (name: string): string =>
    size === 4 ? `(${name} >>> 0) === ${name}` : `(${name} & ${2 ** (size * 8) - 1}) === ${name}`;
  return {
    read: (offset) => `view.get${method}(at + ${offset}${order})`,
    write: (offset, name) =>
      `if (${name} === undefined) view.set${method}(at + ${offset}, 0);\n` +
      `else if (typeof ${name} === 'number' && ${fits(name)}) view.set${method}(at + ${offset}, ${name}${order});\nelse return false;`,
  };
}

/** Code of an unsigned integer of 64 bits. */
export function integer64Code(littleEndian: boolean): FieldCode {
  return {
    read: (offset) => `view.getBigUint64(at + ${offset}, ${littleEndian})`,
    write: (offset, name) =>
      `if (${name} === undefined) view.setBigUint64(at + ${offset}, 0n);\n` +
      `else if (typeof ${name} === 'bigint' && BigInt.asUintN(64, ${name}) === ${name})\n` +
      `  view.setBigUint64(at + ${offset}, ${name}, ${littleEndian});\nelse return false;`,
  };
}

/** Code of a run of bytes. */
export function bytesCode(size: number): FieldCode {
  return {
    read: (offset) => `copyBytes(view, at + ${offset}, ${size})`,
    write: (offset, name) =>
      `if (${name} === undefined) clearBytes(view, at + ${offset}, ${size});\n` +
      `else if (${name} instanceof Uint8Array && ${name}.length <= ${size}) putBytes(view, at + ${offset}, ${size}, ${name});\n` +
      'else return false;',
  };
}

/** Code of a structure within another one. */
export function structCode(fields: readonly CodedField[], size: number): FieldCode | undefined {
  if (fields.some(({ code, reserved }) => code === undefined && !reserved)) return undefined;
  const visible = fields.filter(({ reserved }) => !reserved);
  return {
    read: (offset) =>
      `{ ${visible.map(({ key, code, offset: within }) => `${JSON.stringify(key)}: ${code!.read(offset + within)}`).join(', ')} }`,
    write: (offset, name) =>
      `if (${name} === undefined) clearBytes(view, at + ${offset}, ${size});\n` +
      `else if (typeof ${name} === 'object' && ${name} !== null) {\n${fields
        .map(({ key, code, reserved, offset: within, size: length }, i) =>
          reserved
            ? `clearBytes(view, at + ${offset + within}, ${length});`
            : `const ${name}_${i} = ${name}[${JSON.stringify(key)}];\n${code!.write(offset + within, `${name}_${i}`)}`,
        )
        .join('\n')}\n} else return false;`,
  };
}

/** Code of members that lie over each other: for values that have one of them. */
export function unionCode(members: readonly CodedField[], size: number): FieldCode | undefined {
  if (members.some(({ code }) => code === undefined)) return undefined;
  return {
    read: (offset) =>
      `{ ${members.map(({ key, code }) => `${JSON.stringify(key)}: ${code!.read(offset)}`).join(', ')} }`,
    write: (offset, name) => {
      const names = members.map((_, i) => `${name}_${i}`);
      const values = members.map(({ key }, i) => `${names[i]} = ${name}[${JSON.stringify(key)}]`);
      const absent = names.map((one) => `(${one} === undefined)`);
      const writes = members.map(
        ({ code }, i) => `if (${names[i]} !== undefined) {\n${code!.write(offset, names[i]!)}\n}`,
      );
      return (
        `clearBytes(view, at + ${offset}, ${size});\n` +
        `if (${name} !== undefined) {\nif (typeof ${name} !== 'object' || ${name} === null) return false;\n` +
        `const ${values.join(', ')};\nif (${absent.join(' + ')} < ${members.length - 1}) return false;\n` +
        `${writes.join('\n')}\n}`
      );
    },
  };
}

/** Makes the two functions of a structure. Undefined where the process may not make code of strings. */
export function compile(code: FieldCode): { read: ReadStruct; write: WriteStruct } | undefined {
  return madeCode(
    helpers,
    `return {\nread(view, at) { return (${code.read(0)}); },\n` +
      `write(view, at, value) { if (value === undefined) return false;\n${code.write(0, 'value')}\nreturn true; },\n};`,
  );
}
