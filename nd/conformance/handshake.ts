/**
 * The beginning of a control connection. Its commands run in the serving process, so only clients that know the token
 * may send any: the first line must carry it, in time, and be short. Any other line is answered with the reason, and
 * the connection is closed.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

/** The first line: limits of its length and time. */
export const HANDSHAKE_BYTES = 1024;
export const HANDSHAKE_MS = 5_000;

/** How long a refused client may read the reason. */
const FAREWELL_MS = 1_000;

/** An unpredictable token, as hexadecimal digits: 128 bits. */
export function makeToken(): string {
  return randomBytes(16).toString('hex');
}

/** Whether two tokens are equal, in a time that does not depend on them. */
export function sameToken(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/**
 * The first line of a connection. The following bytes stay in the socket, which is paused.
 *
 * @throws Error when the line is too long or too late, or the connection ends before.
 */
export function firstLine(socket: Socket, limitMs = HANDSHAKE_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = Buffer.alloc(0);
    const stop = (): void => {
      clearTimeout(timer);
      socket.off('data', onData).off('close', onClose);
      socket.pause();
    };
    const fail = (why: string): void => {
      stop();
      reject(new Error(why));
    };
    const onData = (chunk: Buffer): void => {
      const end = chunk.indexOf(10);
      const length = got.length + (end === -1 ? chunk.length : end);
      if (length > HANDSHAKE_BYTES) {
        fail(`The first line has more than ${HANDSHAKE_BYTES} bytes.`);
        return;
      }
      got = Buffer.concat([got, end === -1 ? chunk : chunk.subarray(0, end)]);
      if (end === -1) return;
      stop();
      if (end + 1 < chunk.length) socket.unshift(chunk.subarray(end + 1));
      resolve(got.toString('utf8'));
    };
    const onClose = (): void => fail('The client has left without a word.');
    const timer = setTimeout(() => fail(`No line has come within ${limitMs} ms.`), limitMs);
    socket.on('data', onData).on('close', onClose);
  });
}

/** Sends the last line of a refused connection, and closes it even if the client does not. */
export function refuse(socket: Socket, line: string): void {
  socket.end(line);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), FAREWELL_MS);
  socket.once('close', () => clearTimeout(timer));
}
