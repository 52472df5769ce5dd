/** What values are to the program, and their bytes. */
import { deserialize, serialize } from 'node:v8';
import { kindOf, wrongType, wrongValue } from '../base/checks.js';

/** Turns values into bytes and back. */
export interface Codec<V> {
  /** The bytes of a value. */
  encode(value: V): Uint8Array;
  /** The value of bytes, which are the callee's own. */
  decode(bytes: Buffer): V;
}

/** Values that codecs with a name have. */
export interface CodecValues {
  /** Bytes; text is stored as UTF-8. Values are read as Buffers. */
  readonly bytes: Uint8Array | string;
  /** Text, as UTF-8. */
  readonly string: string;
  /** What JSON can express. */
  readonly json: unknown;
  /** What the structured clone algorithm can: maps, dates, bigints … */
  readonly v8: unknown;
}

/** The name of a codec, or one of the program's own. */
export type CodecOption = keyof CodecValues | Codec<never> | undefined;

const codecs: { readonly [K in keyof CodecValues]: Codec<CodecValues[K]> } = {
  bytes: {
    encode: (value) => {
      if (value instanceof Uint8Array) return value;
      if (typeof value === 'string') return Buffer.from(value);
      throw wrongType(`\`value\` must be a Uint8Array or a string; got ${kindOf(value)}.`);
    },
    decode: (bytes) => bytes,
  },
  string: {
    encode: (value) => {
      if (typeof value === 'string') return Buffer.from(value);
      throw wrongType(`\`value\` must be a string; got ${kindOf(value)}.`);
    },
    decode: (bytes) => bytes.toString(),
  },
  json: {
    encode: (value) => {
      const text = JSON.stringify(value);
      if (text === undefined)
        throw wrongType(`\`value\` must be what JSON can express; got ${kindOf(value)}.`);
      return Buffer.from(text);
    },
    decode: (bytes) => JSON.parse(bytes.toString()),
  },
  v8: { encode: (value) => serialize(value), decode: (bytes) => deserialize(bytes) },
};

/** A codec, and the name by which both sides compare theirs; one of the program's own is `'custom'`. */
export interface NamedCodec {
  readonly name: string;
  readonly codec: Codec<unknown>;
}

/** @throws TypeError: neither a name nor a codec */
export function codecOf(option: unknown): NamedCodec {
  const name = option ?? 'bytes';
  if (typeof name === 'string' && Object.hasOwn(codecs, name))
    return { name, codec: codecs[name as keyof CodecValues] as Codec<unknown> };
  const { encode, decode } = name as Partial<Codec<unknown>>;
  if (typeof encode === 'function' && typeof decode === 'function')
    return { name: 'custom', codec: name as Codec<unknown> };
  throw wrongValue(
    `\`codec\` must be ${Object.keys(codecs).join(', ')} or an object with encode() and decode(); got ${typeof name === 'string' ? `'${name}'` : kindOf(name)}.`,
  );
}
