/** Requests in RESP 2, the protocol of Redis and Valkey: arrays of strings with their lengths, or lines of words. */

/** Bytes of the longest line: the count of an array, a length, or a whole request of words. */
const LINE_BYTES = 4096;
/** Strings of the longest request. */
const STRINGS = 16_384;
const [STAR, DOLLAR, CR, LF] = Buffer.from('*$\r\n');
const NOTHING = Buffer.alloc(0);

/** What has come is no request. The connection must end, because nobody can find the next one. */
export class RequestError extends Error {}

export class RequestParser {
  /** What has come and is not parsed: #bytes from #at on, then #more. Together #size bytes. */
  #bytes = NOTHING;
  #at = 0;
  #more: Buffer[] = [];
  #size = 0;
  /** Nothing can be parsed before there are so many bytes. */
  #needed = 1;
  // The request that has begun: its strings so far, how many are missing, and the length of the next one, or -1.
  #strings: Buffer[] = [];
  #missing = 0;
  #length = -1;
  #total = 0;

  /** @param mostBytes - of the strings of one request */
  constructor(private readonly mostBytes: number) {}

  push(chunk: Buffer): void {
    this.#more.push(chunk);
    this.#size += chunk.length;
  }

  /** The next request, whose strings share memory with what was pushed; undefined: it is not whole yet. @throws RequestError */
  next(): Buffer[] | undefined {
    while (this.#size >= this.#needed) {
      if (this.#more.length > 0) {
        this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), ...this.#more]);
        this.#at = 0;
        this.#more = [];
      }
      if (this.#missing > 0) {
        if (this.#string() && this.#missing === 0) return this.#strings;
        continue;
      }
      const line = this.#line();
      if (line === undefined) continue;
      if (line[0] === STAR) {
        this.#missing = numberOf(line, STRINGS, 'multibulk');
        this.#strings = [];
        this.#total = 0;
      } else {
        const words = String(line).split(/\s+/).filter(Boolean);
        if (words.length > 0) return words.map((word) => Buffer.from(word));
      }
    }
    return undefined;
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
