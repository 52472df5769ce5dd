/** Parses requests in RESP 2, the protocol of Redis and Valkey: arrays of length-prefixed strings, or lines of words. */

/** Maximum length of a line in bytes: an array's count, a string's length, or a whole request of words. */
const LINE_BYTES = 4096;
/** Maximum number of strings in a request. */
const STRINGS = 16_384;
/** Approximate memory overhead of a string, in bytes. */
export const STRING_BYTES = 200;
const [STAR, DOLLAR, CR, LF] = Buffer.from('*$\r\n');
const NOTHING = Buffer.alloc(0);

/** The received bytes are not a valid request. The connection must end, because the start of the next request is unknown. */
export class RequestError extends Error {}

export class RequestParser {
  /** Received bytes that are not parsed yet: #bytes from #at on, then #more; #size bytes in total. */
  #bytes: Buffer = NOTHING;
  #at = 0;
  #more: Uint8Array[] = [];
  #size = 0;
  /** Number of bytes required to parse further. */
  #needed = 1;
  // The current request: its strings so far, the number of missing ones, and the length of the next one, or -1.
  #strings: Buffer[] = [];
  #missing = 0;
  #length = -1;
  #total = 0;
  /** Bytes of earlier #bytes, whose memory these strings share. */
  #kept = 0;

  /** @param mostBytes - Maximum total length of the strings of a request */
  constructor(private readonly mostBytes: number) {}

  /** Memory held by the parser, in bytes. */
  get heldBytes(): number {
    return this.#kept + this.#at + this.#size + this.#strings.length * STRING_BYTES;
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length;
    // Each chunk is longer than the next, so there are only a few chunks even if a request arrives byte by byte.
    let last: Uint8Array = chunk;
    while (this.#more.length > 0 && this.#more.at(-1)!.length <= last.length)
      last = Buffer.concat([this.#more.pop()!, last]);
    this.#more.push(last);
  }

  /** Returns the next request, whose strings share memory with the pushed chunks; undefined if it is incomplete. @throws RequestError */
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

  /** Returns the next line without its line end; undefined until more bytes have arrived. */
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

  /** Parses the next string, or its length. */
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

/** Returns the number after the first byte of a line. */
function numberOf(line: Buffer, most: number, what: string): number {
  const text = line.toString('latin1', 1);
  if (!/^\d{1,10}$/.test(text) || Number(text) > most) throw new RequestError(`invalid ${what} length`);
  return Number(text);
}
