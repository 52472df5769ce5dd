/** Hashes of keys. Keys come from strangers, who must not be able to choose some of one bucket: so the hash has a secret key. */
import { kindOf, outOfRange, wrongType, wrongValue } from '../base/checks.js';
import { MOST_KEY_BYTES } from './map-layout.js';

const encoder = new TextEncoder();
const HALF_PAIR = /\p{Surrogate}/u;

/**
 * HalfSipHash-1-3 with an output of 64 bits, as Linux hashes keys of its tables on processors of 32 bits. The results are in fields, and
 * nothing is allocated.
 */
export class KeyHash {
  /** The key in UTF-8, in the first {@link length} bytes. */
  readonly bytes = new Uint8Array(MOST_KEY_BYTES + 4);
  /** The same in words of 4 bytes. */
  readonly words = new Int32Array(this.bytes.buffer);
  /** Bytes of the key. */
  length = 0;
  /** 32 bits that stand in the key's slot; not 0. */
  tag = 0;
  /** 32 further bits, without a sign, which choose its bucket. */
  high = 0;

  constructor(
    private readonly key0: number,
    private readonly key1: number,
  ) {}

  /**
   * Hashes a key.
   *
   * @param what - the parameter, for errors
   * @throws TypeError: not text, or with half of a surrogate pair, which has no form in UTF-8; RangeError: longer than 1024 bytes in UTF-8
   */
  of(key: string, what = 'key'): void {
    if (typeof key !== 'string') throw wrongType(`\`${what}\` must be a string; got ${kindOf(key)}.`);
    const { bytes } = this;
    const { length } = key;
    if (length > MOST_KEY_BYTES) throw tooLong(what, key);
    let ored = 0;
    for (let i = 0; i < length; i += 1) {
      const code = key.charCodeAt(i);
      ored |= code;
      bytes[i] = code;
    }
    if (ored < 0x80) this.length = length;
    else {
      const { read, written } = encoder.encodeInto(key, bytes);
      if (read < length || written > MOST_KEY_BYTES) throw tooLong(what, key);
      if (HALF_PAIR.test(key))
        throw wrongValue(`\`${what}\` must be well-formed text; got half of a surrogate pair.`);
      this.length = written;
    }
    this.#hash();
  }

  #hash(): void {
    const { bytes, words, length, key0, key1 } = this;
    // The last word has the rest of the key, and above it the length's low byte.
    const whole = length >>> 2;
    const rest = length & 3;
    let last = (length & 0xff) << 24;
    for (let i = 0; i < rest; i += 1) last |= bytes[4 * whole + i]! << (8 * i);
    let v0 = key0;
    let v1 = key1 ^ 0xee;
    let v2 = 0x6c796765 ^ key0;
    let v3 = 0x74656462 ^ key1;
    // One round for each word, then three for each half of the output. A loop of both with their differences in it is slower by a fifth.
    for (let at = 0; at <= whole; at += 1) {
      const word = at < whole ? words[at]! : last;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    v2 ^= 0xee;
    for (let round = 0; round < 6; round += 1) {
      if (round === 3) {
        this.tag = v1 ^ v3 || 1;
        v1 ^= 0xdd;
      }
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    this.high = (v1 ^ v3) >>> 0;
  }
}

function tooLong(what: string, key: string): RangeError {
  return outOfRange(
    `\`${what}\` must have at most ${MOST_KEY_BYTES} bytes in UTF-8; got ${Buffer.byteLength(key)}.`,
  );
}
