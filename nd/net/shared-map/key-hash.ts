/** Hashes of keys. The hash has a secret key, so that untrusted clients cannot choose keys that share a bucket. */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { outOfRange, wrongType, wrongValue } from '../base/checks.js';
import { MOST_KEY_BYTES } from './map-layout.js';

const encoder = new TextEncoder();
const HALF_PAIR = /\p{Surrogate}/u;

/**
 * HalfSipHash-1-3 with a 64-bit output, which Linux uses for its hash tables on 32-bit CPUs. The results are stored in fields so that
 * nothing is allocated.
 */
export class KeyHash {
  /** The key in UTF-8, in the first {@link length} bytes. */
  readonly bytes = new Uint8Array(MOST_KEY_BYTES + 4);
  /** The same bytes as 32-bit words. */
  readonly words = new Int32Array(this.bytes.buffer);
  /** Length of the key in bytes. */
  length = 0;
  /** The 32 bits stored in the key's slot; not 0. */
  tag = 0;
  /** Another 32 bits, unsigned, which select its bucket. */
  high = 0;

  constructor(
    private readonly key0: number,
    private readonly key1: number,
  ) {}

  /**
   * Hashes a key.
   *
   * @param what - name of the parameter in error messages
   * @throws TypeError (not a string, or with a lone surrogate, which has no form in UTF-8), RangeError (longer than 1024 bytes in UTF-8)
   */
  of(key: string, what = 'key'): void {
    if (typeof key !== 'string') throw wrongType(`\`${what}\` must be a string; got ${shown(key)}.`);
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
        throw wrongValue(`\`${what}\` must be a well-formed string; got a lone surrogate.`);
      this.length = written;
    }
    this.#hash();
  }

  #hash(): void {
    const { bytes, words, length, key0, key1 } = this;
    // The last word has the remaining bytes of the key and, in its top byte, the length.
    const whole = length >>> 2;
    const rest = length & 3;
    let last = (length & 0xff) << 24;
    for (let i = 0; i < rest; i += 1) last |= bytes[4 * whole + i]! << (8 * i);
    let v0 = key0;
    let v1 = key1 ^ 0xee;
    let v2 = 0x6c796765 ^ key0;
    let v3 = 0x74656462 ^ key1;
    // One round for each word, then three for each half of the output. A single loop for both is slower by a fifth.
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
