/**
 * The beginning of a control connection. Its commands run in the serving process, so only clients that know the token
 * may send them. The first line must contain the token, arrive in time, and be short. For any other line, the server
 * replies with the reason and closes the connection.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

/** Maximum length of the first line in bytes, and its time limit. */
export const HANDSHAKE_BYTES = 1024;
export const HANDSHAKE_MS = 5_000;

/** Time for a refused client to read the reason, in milliseconds. */
const FAREWELL_MS = 1_000;

/** Returns an unpredictable token of 128 bits, as hexadecimal digits. */
export function makeToken(): string {
  return randomBytes(16).toString('hex');
}

/** Compares two tokens in a time that does not depend on them. */
export function sameToken(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/**
 * Returns the first line of a connection. The following bytes stay in the socket, which is paused.
 *
 * @throws Error if the line is too long or too late, or the connection ends before it
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
        fail(`The first line must have at most ${HANDSHAKE_BYTES} bytes.`);
        return;
      }
      got = Buffer.concat([got, end === -1 ? chunk : chunk.subarray(0, end)]);
      if (end === -1) return;
      stop();
      if (end + 1 < chunk.length) socket.unshift(chunk.subarray(end + 1));
      resolve(got.toString('utf8'));
    };
    const onClose = (): void => fail('The client closed the connection before the first line.');
    const timer = setTimeout(() => fail(`The first line did not arrive within ${limitMs} ms.`), limitMs);
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
