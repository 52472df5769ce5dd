/** Requests in RESP 2, the protocol of Redis and Valkey: arrays of strings with their lengths, or lines of words. */

/** Bytes of the longest line: the count of an array, a length, or a whole request of words. */
const LINE_BYTES = 4096;
/** Strings of the longest request. */
const STRINGS = 16_384;
/** Memory of a string beside its bytes, roughly. */
export const STRING_BYTES = 200;
const [STAR, DOLLAR, CR, LF] = Buffer.from('*$\r\n');
const NOTHING = Buffer.alloc(0);

/** The received bytes are not a request. The connection must end, because the next request cannot be found. */
export class RequestError extends Error {}

export class RequestParser {
  /** Bytes that are not parsed yet: #bytes from #at on, then #more. Together #size bytes. */
  #bytes: Buffer = NOTHING;
  #at = 0;
  #more: Uint8Array[] = [];
  #size = 0;
  /** Nothing can be parsed before there are so many bytes. */
  #needed = 1;
  // The request that has begun: its strings so far, how many are missing, and the length of the next one, or -1.
  #strings: Buffer[] = [];
  #missing = 0;
  #length = -1;
  #total = 0;
  /** Bytes of earlier #bytes, whose memory these strings share. */
  #kept = 0;

  /** @param mostBytes - of the strings of one request */
  constructor(private readonly mostBytes: number) {}

  /** The memory that it holds, in bytes. */
  get heldBytes(): number {
    return this.#kept + this.#at + this.#size + this.#strings.length * STRING_BYTES;
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length;
    // Each is longer than the next, so that they are few, even if a request comes byte by byte.
    let last: Uint8Array = chunk;
    while (this.#more.length > 0 && this.#more.at(-1)!.length <= last.length)
      last = Buffer.concat([this.#more.pop()!, last]);
    this.#more.push(last);
  }

  /** The next request, whose strings share memory with what was pushed, or undefined if it is not whole yet. @throws RequestError */
  next(): Buffer[] | undefined {
    while (this.#size >= this.#needed) {
      if (this.#more.length > 0) {
        this.#replace(Buffer.concat([this.#bytes.subarray(this.#at), ...this.#more]));
        this.#more = [];
      }
      if (this.#missing > 0) {
        if (this.#string() && this.#missing === 0) return this.#whole();
        continue;
      }
      const line = this.#line();
      if (line === undefined) continue;
      if (line[0] === STAR) {
        this.#missing = numberOf(line, STRINGS, 'multibulk');
        this.#total = 0;
      } else {
        const words = String(line).split(/\s+/).filter(Boolean);
        if (words.length > 0) return words.map((word) => Buffer.from(word));
      }
    }
    if (this.#size === 0) this.#replace(NOTHING);
    return undefined;
  }

  #replace(bytes: Buffer): void {
    if (this.#strings.length > 0) this.#kept += this.#bytes.length;
    this.#bytes = bytes;
    this.#at = 0;
  }

  #whole(): Buffer[] {
    const strings = this.#strings;
    this.#strings = [];
    this.#kept = 0;
    return strings;
  }

  /** The next line without its end. Otherwise it cannot be parsed before there are more bytes. */
  #line(): Buffer | undefined {
    const end = this.#bytes.indexOf(LF!, this.#at);
    const length = (end < 0 ? this.#bytes.length : end) - this.#at;
    if (length > LINE_BYTES) throw new RequestError('too big inline request');
    if (end < 0) {
      this.#needed = this.#size + 1;
      return undefined;
    }
    const line = this.#bytes.subarray(this.#at, this.#bytes[end - 1] === CR && length > 0 ? end - 1 : end);
    this.#skip(length + 1);
    return line;
  }

  /** Takes the next string, or its length. */
  #string(): boolean {
    if (this.#length < 0) {
      const line = this.#line();
      if (line === undefined) return false;
      if (line[0] !== DOLLAR) throw new RequestError(`expected '$', got '${String(line.subarray(0, 1))}'`);
      this.#length = numberOf(line, this.mostBytes, 'bulk');
      this.#total += this.#length;
      if (this.#total > this.mostBytes) throw new RequestError('too big request');
    }
    const needed = this.#length + 2;
    if (this.#size < needed) {
      this.#needed = needed;
      return false;
    }
    this.#strings.push(this.#bytes.subarray(this.#at, this.#at + this.#length));
    this.#skip(needed);
    this.#length = -1;
    this.#missing -= 1;
    return true;
  }

  #skip(bytes: number): void {
    this.#at += bytes;
    this.#size -= bytes;
    this.#needed = 1;
  }
}

/** The number behind the first byte of a line. */
function numberOf(line: Buffer, most: number, what: string): number {
  const text = line.toString('latin1', 1);
  if (!/^\d{1,10}$/.test(text) || Number(text) > most) throw new RequestError(`invalid ${what} length`);
  return Number(text);
}
