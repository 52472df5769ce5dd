/** A minimal RESP client over any stream. */
import type { Duplex } from 'node:stream';

/** Encodes a request. */
export function requestOf(...strings: readonly (string | Buffer)[]): Buffer {
  const parts = strings.map((string) => (typeof string === 'string' ? Buffer.from(string) : string));
  const pieces = parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]);
  return Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...pieces]);
}

/** A line including its type character, the bytes of a string, or null. */
export type RespReply = string | Buffer | null;

export class RespClient {
  #bytes = Buffer.alloc(0);
  #chunks: Buffer[] = [];
  #size = 0;
  #needed = 1;
  #failure: Error | undefined;
  readonly #waiting: { resolve(reply: RespReply): void; reject(error: Error): void }[] = [];

  constructor(readonly stream: Duplex) {
    stream.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      if (this.#size >= this.#needed) this.#parse();
    });
    stream.on('error', (error) => this.#fail(error));
    stream.on('close', () => this.#fail(new Error('closed')));
  }

  /** Sends a request and resolves with its reply. */
  request(...strings: readonly (string | Buffer)[]): Promise<RespReply> {
    return this.send(requestOf(...strings));
  }

  /** Sends the bytes of one request and resolves with its reply. */
  send(bytes: Buffer): Promise<RespReply> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    this.stream.write(bytes);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }

  #parse(): void {
    this.#bytes = Buffer.concat([this.#bytes, ...this.#chunks]);
    this.#chunks = [];
    let at = 0;
    this.#needed = 0;
    for (;;) {
      const end = this.#bytes.indexOf('\r\n', at);
      if (end < 0) break;
      const line = this.#bytes.toString('latin1', at, end);
      const length = line.startsWith('$') ? Number(line.slice(1)) : -1;
      const next = end + 2 + (length < 0 ? 0 : length + 2);
      if (next > this.#bytes.length) {
        this.#needed = next - at;
        break;
      }
      const bytes = Buffer.from(this.#bytes.subarray(end + 2, end + 2 + Math.max(0, length)));
      at = next;
      this.#waiting.shift()?.resolve(line === '$-1' ? null : line.startsWith('$') ? bytes : line);
    }
    this.#bytes = this.#bytes.subarray(at);
    this.#size = this.#bytes.length;
    if (this.#needed === 0) this.#needed = this.#size + 1;
  }
}
