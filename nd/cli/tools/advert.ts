/** The description of memory that a side gives its peer access to: 16 bytes, little-endian. */
import { MAX_BYTES } from './measure-options.js';
import type { Link, Memory, Remote } from './tool-side.js';

export const ADVERT_BYTES = 16;

/** Gives the peer access to `memory` and writes its description: token (4), maximum Reads in flight (4), address (8). */
export function advertise(link: Link, memory: Memory, reads: number, into: Uint8Array): void {
  const { address, token } = link.side.open(memory.registered);
  const view = new DataView(into.buffer, into.byteOffset, ADVERT_BYTES);
  view.setUint32(0, token, true);
  view.setUint32(4, reads, true);
  view.setBigUint64(8, address, true);
}

/** Parses the peer's description. */
export function peersMemory(link: Link, bytes: Uint8Array): { remote: Remote; reads: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, ADVERT_BYTES);
  const remote = link.side.remoteAt(view.getBigUint64(8, true), MAX_BYTES, view.getUint32(0, true));
  return { remote, reads: view.getUint32(4, true) };
}
