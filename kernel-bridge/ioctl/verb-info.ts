/**
 * VerbInfo of an IOCTL with provider data: the provider's command in the input, the driver's status in the output.
 * Accessed byte by byte, because V8 moves bytes out of its heap for a view.
 */
import { Status, StatusError } from './status.js';
import { VERB_INFO as at } from './structs.js';

/** @throws StatusError BUFFER_TOO_SMALL if the bytes end before it. */
export function readVerbInfo(bytes: Uint8Array): number {
  if (bytes.length < at + 4) throw new StatusError(Status.BUFFER_TOO_SMALL);
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

export function writeVerbInfo(bytes: Uint8Array, value: number): void {
  for (let n = 0; n < 4; n++) bytes[at + n] = value >>> (8 * n);
}
