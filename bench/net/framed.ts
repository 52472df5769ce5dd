import type { Socket } from 'node:net';
import { type Client, Waiting } from './client.js';

/** Messages over a socket of `node:net`, each preceded by a length of 4 bytes. */
export class Framed implements Client {
  readonly #waiting = new Waiting();
  #rest = Buffer.alloc(0);

  constructor(private readonly socket: Socket) {
    socket.on('data', (bytes) => this.take(bytes, (message) => this.#waiting.answer(message)));
  }

  /** Calls the function for each complete message. */
  take(bytes: Buffer, each: (message: Buffer) => void): void {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    let at = 0;
    while (all.length - at >= 4) {
      const end = at + 4 + all.readUInt32LE(at);
      if (end > all.length) break;
      each(all.subarray(at + 4, end));
      at = end;
    }
    this.#rest = Buffer.from(all.subarray(at));
  }

  send(bytes: Uint8Array): void {
    const frame = Buffer.allocUnsafe(4 + bytes.length);
    frame.writeUInt32LE(bytes.length);
    frame.set(bytes, 4);
    this.socket.write(frame);
  }

  request(bytes: Uint8Array): Promise<Uint8Array> {
    this.send(bytes);
    return this.#waiting.next();
  }

  destroy(): void {
    this.socket.destroy();
  }
}
