/** Reads pcapng files of raw IP packets, as the capture option writes them. */
import { readFileSync } from 'node:fs';

const SECTION_HEADER = 0x0a0d0d0a;
const INTERFACE = 1;
const ENHANCED_PACKET = 6;
const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
const LINK_TYPE_RAW = 101;

/** The IP packets of a file. Throws if the file is incomplete or has another format. */
export function readPcapng(path: string): Uint8Array[] {
  const bytes = readFileSync(path);
  const packets: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const type = bytes.readUInt32LE(at);
    const length = bytes.readUInt32LE(at + 4);
    if (length % 4 !== 0 || bytes.readUInt32LE(at + length - 4) !== length) {
      throw new Error(`The block at ${at} must end with its length, ${length}.`);
    }
    if (type === SECTION_HEADER && bytes.readUInt32LE(at + 8) !== BYTE_ORDER_MAGIC)
      throw new Error('Not little-endian.');
    if (type === INTERFACE && bytes.readUInt16LE(at + 8) !== LINK_TYPE_RAW)
      throw new Error('Not raw IP packets.');
    if (type === ENHANCED_PACKET) {
      const captured = bytes.readUInt32LE(at + 20);
      packets.push(Uint8Array.from(bytes.subarray(at + 28, at + 28 + captured)));
    }
    at += length;
  }
  return packets;
}
