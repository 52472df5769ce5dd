/** Conversion between the program's values and bytes. */

import { deserialize, serialize } from 'node:v8';
import { kindOf, shown } from '../../../kernel-bridge/ioctl/shown.js';
import { wrongType, wrongValue } from '../base/checks.js';

/** Converts values to bytes and back. */
export interface Codec<V> {
  /** Encodes a value. */
  encode(value: V): Uint8Array;
  /** Decodes a value. The bytes belong to the codec from then on. */
  decode(bytes: Buffer): V;
}

/** Types of the values of each named codec. */
export interface CodecValues {
  /** Bytes. Text is stored as UTF-8, and values are read as Buffers. */
  readonly bytes: Uint8Array | string;
  /** Text, as UTF-8. */
  readonly string: string;
  /** Values that JSON can represent. */
  readonly json: unknown;
  /** Values of the structured clone algorithm: maps, dates, bigints … */
  readonly v8: unknown;
}

/** The name of a codec, or a custom codec. */
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
        throw wrongType(`\`value\` must be representable as JSON; got ${kindOf(value)}.`);
      return Buffer.from(text);
    },
    decode: (bytes) => JSON.parse(bytes.toString()),
  },
  v8: { encode: (value) => serialize(value), decode: (bytes) => deserialize(bytes) },
};

/** A codec and its name, which both sides compare. The name of custom codecs is `'custom'`. */
export interface NamedCodec {
  readonly name: string;
  readonly codec: Codec<unknown>;
}

/** @throws TypeError if `option` is neither a name nor a codec */
export function codecOf(option: unknown): NamedCodec {
  const name = option ?? 'bytes';
  if (typeof name === 'string' && Object.hasOwn(codecs, name))
    return { name, codec: codecs[name as keyof CodecValues] as Codec<unknown> };
  const { encode, decode } = name as Partial<Codec<unknown>>;
  if (typeof encode === 'function' && typeof decode === 'function')
    return { name: 'custom', codec: name as Codec<unknown> };
  throw wrongValue(
    `\`codec\` must be ${Object.keys(codecs).map(shown).join(', ')} or an object with encode() and decode(); got ${shown(name)}.`,
  );
}
