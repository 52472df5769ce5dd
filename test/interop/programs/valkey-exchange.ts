/**
 * Requests over a stream whose replies are known to the byte. The bytes of both directions are counted, which determines the position of
 * the next byte in either peer's buffer. So a message can be placed at any distance from the buffer's end.
 */
import type { Duplex } from 'node:stream';
import { requestOf } from '../../helpers/resp-client.js';

const CRLF = Buffer.from('\r\n');

/** Encodes bytes as a RESP bulk string. */
export const bulk = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF]);

export const OK = Buffer.from('+OK\r\n');

/**
 * The length of a value whose bulk string has this many bytes. Undefined if no such value exists, because its length would need another
 * digit.
 */
export function lengthOfBulk(total: number): number | undefined {
  for (let digits = 1; digits <= 8; digits += 1) {
    const length = total - digits - 5;
    if (length >= 0 && String(length).length === digits) return length;
  }
  return undefined;
}

/** One direction of a stream. Its bytes are written to buffers of this size, one after another. */
export class Direction {
  private count = 0;

  constructor(readonly size: number) {}

  /** Bytes left in the current buffer, from 1 to its size. */
  get room(): number {
    return this.size - (this.count % this.size);
  }

  get total(): number {
    return this.count;
  }

  /** @returns Whether these bytes were written to more than one buffer */
  add(bytes: number): boolean {
    const crosses = bytes > this.room;
    this.count += bytes;
    return crosses;
  }
}

export class Exchange {
  private readonly chunks: AsyncIterator<Buffer>;
  readonly sent: Direction;
  readonly received: Direction;

  /**
   * @param theirs - Size of the peer's receive buffer in bytes
   * @param ours - Size of our receive buffer in bytes
   */
  constructor(
    private readonly stream: Duplex,
    theirs: number,
    ours: number,
  ) {
    this.chunks = stream[Symbol.asyncIterator]();
    this.sent = new Direction(theirs);
    this.received = new Direction(ours);
  }

  /** Sends a request, and compares the reply. @returns Which of the two crossed the end of a buffer */
  async ask(request: Buffer, reply: Buffer): Promise<{ sent: boolean; received: boolean }> {
    const sent = this.sent.add(request.length);
    this.stream.write(request);
    for (let at = 0; at < reply.length; ) {
      const { done, value } = await this.chunks.next();
      if (done) throw new Error(`The stream has ended at byte ${at} of a reply of ${reply.length}.`);
      const expected = reply.subarray(at, at + value.length);
      if (!expected.equals(value))
        throw new Error(`Byte ${this.received.total + at + firstDifference(expected, value)} is wrong.`);
      at += value.length;
    }
    return { sent, received: this.received.add(reply.length) };
  }

  /** Sends data that leaves this many bytes in the peer's buffer. */
  async leaveRoomThere(room: number): Promise<void> {
    const overhead = requestOf('SET', 'filler', '').length - bulk(Buffer.alloc(0)).length;
    const length = lengthFor(this.sent, room, overhead);
    if (length !== undefined) await this.ask(requestOf('SET', 'filler', Buffer.alloc(length, 'f')), OK);
  }

  /** Requests a reply that leaves this many bytes in our own buffer; `filling` is on the server under the key of its name, and is longer than two buffers. */
  async leaveRoomHere(room: number, filling: Buffer): Promise<void> {
    const length = lengthFor(this.received, room, 0);
    if (length !== undefined)
      await this.ask(
        requestOf('GETRANGE', 'filling', '0', String(length - 1)),
        bulk(filling.subarray(0, length)),
      );
  }
}

const firstDifference = (one: Uint8Array, other: Uint8Array): number => {
  const at = other.findIndex((byte, n) => byte !== one[n]);
  return at < 0 ? one.length : at;
};

/**
 * The length of the value in a bulk string that leaves this room after the given number of other bytes. Undefined if that room is already
 * left.
 */
function lengthFor(direction: Direction, room: number, overhead: number): number | undefined {
  const missing = direction.room - room;
  if (missing === 0) return undefined;
  for (let total = missing - overhead; ; total += direction.size) {
    const length = lengthOfBulk(total);
    if (length !== undefined && length > 0) return length;
  }
}
