/**
 * Code made of a bit-field layout: what reads and writes all its fields by whole bytes in one function of its own. The walk
 * through the table stays what defines the layout: generated code leaves every value that it does not like to it.
 */
import { madeCode } from '../../ioctl/made-code.js';
import type { FieldPlace } from './bit-layout.js';

/** Reads a message part. The caller has checked that the bytes are there. */
export type ReadBits = (from: Uint8Array, at: number) => unknown;
/** Writes a message part. False, with nothing written: a value does not fit its field, or is of another kind. */
export type WriteBits = (to: Uint8Array, at: number, value: unknown) => boolean;

/** Numbers of 64 bits on their way from and to bytes. */
const long = new DataView(new ArrayBuffer(8));

const helpers = {
  readLong(high: number, low: number): bigint {
    long.setUint32(0, high);
    long.setUint32(4, low);
    return long.getBigUint64(0);
  },
  writeLong(to: Uint8Array, at: number, value: bigint): void {
    long.setBigUint64(0, value);
    for (let i = 0; i < 8; i++) to[at + i] = long.getUint8(i);
  },
  // A new array and set(), because slice() of a Buffer is a view.
  copyBytes(from: Uint8Array, at: number, size: number): Uint8Array {
    const copy = new Uint8Array(size);
    if (size <= shortRun) for (let i = 0; i < size; i++) copy[i] = from[at + i]!;
    else copy.set(from.subarray(at, at + size));
    return copy;
  },
  putBytes(to: Uint8Array, at: number, size: number, value: Uint8Array): void {
    const { length } = value;
    if (length <= shortRun) for (let i = 0; i < length; i++) to[at + i] = value[i]!;
    else to.set(value, at);
    if (length < size) to.fill(0, at + length, at + size);
  },
} as const;

/** Byte runs up to this length are copied in a loop: a view of them costs more. */
const shortRun = 40;

const byteAt = (from: string, offset: number): string => `${from}[at + ${offset}]`;

/** The bits of a field that are in the byte at `index`: how far their value is above the byte's own bits, and how many. */
function partIn({ bit, width }: FieldPlace, index: number): { up: number; take: number; value: number } {
  const first = Math.max(bit, index * 8);
  const end = Math.min(bit + width, index * 8 + 8);
  return { up: index * 8 + 8 - end, take: end - first, value: bit + width - end };
}

function bytesOf({ bit, width }: FieldPlace): number[] {
  const first = bit >> 3;
  const last = (bit + width - 1) >> 3;
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function readNumber(place: FieldPlace): string {
  const parts = bytesOf(place).map((index) => {
    const { up, take, value } = partIn(place, index);
    const byte = `((${byteAt('from', index)} >> ${up}) & ${(1 << take) - 1})`;
    return value === 0 ? byte : `(${byte} << ${value})`;
  });
  return `((${parts.join(' | ')}) >>> 0)`;
}

function read(place: FieldPlace): string {
  const { kind, bit, width } = place;
  if (kind === 'bits') return readNumber(place);
  if (kind === 'bytes') return `copyBytes(from, at + ${bit / 8}, ${width / 8})`;
  const half = { ...place, kind: 'bits', width: 32 } as const;
  return `readLong(${readNumber(half)}, ${readNumber({ ...half, bit: bit + 32 })})`;
}

const none = { bits: '0', long: '0n', bytes: 'nothing' } as const;

/** Statements that give the variable `v<i>` the field's value, which fits, or `return false`. */
function take({ name, kind, width }: FieldPlace, i: number): string {
  const fits = {
    bits: `typeof v${i} === 'number' && ${width === 32 ? `(v${i} >>> 0)` : `(v${i} & ${2 ** width - 1})`} === v${i}`,
    long: `typeof v${i} === 'bigint' && BigInt.asUintN(64, v${i}) === v${i}`,
    bytes: `v${i} instanceof Uint8Array && v${i}.length <= ${width / 8}`,
  }[kind];
  return (
    `let v${i} = value[${JSON.stringify(name)}];\n` +
    `if (v${i} === undefined) v${i} = ${none[kind]};\nelse if (!(${fits})) return false;`
  );
}

function write(fields: readonly FieldPlace[], size: number): string {
  const lines: string[] = [];
  const numbers: string[][] = Array.from({ length: size }, () => []);
  for (const [i, place] of fields.entries()) {
    const { kind, bit, width } = place;
    if (kind === 'long') lines.push(`writeLong(to, at + ${bit / 8}, v${i});`);
    if (kind === 'bytes') lines.push(`putBytes(to, at + ${bit / 8}, ${width / 8}, v${i});`);
    if (kind !== 'bits') continue;
    for (const index of bytesOf(place)) {
      const { up, take, value } = partIn(place, index);
      numbers[index]!.push(`(((v${i} >>> ${value}) & ${(1 << take) - 1}) << ${up})`);
    }
  }
  for (const [index, parts] of numbers.entries()) {
    if (parts.length > 0) lines.push(`${byteAt('to', index)} = ${parts.join(' | ')};`);
  }
  return lines.join('\n');
}

/** Makes the two functions of a layout. Undefined where the process may not make code of strings. */
export function compileBits(
  fields: readonly FieldPlace[],
  size: number,
): { read: ReadBits; write: WriteBits } | undefined {
  return madeCode(
    helpers,
    `const nothing = new Uint8Array(0);\nreturn {\n` +
      `read(from, at) { return { ${fields.map((one) => `${JSON.stringify(one.name)}: ${read(one)}`).join(',\n')} }; },\n` +
      `write(to, at, value) {\n${fields.map(take).join('\n')}\n${write(fields, size)}\nreturn true; },\n};`,
  );
}
