/** Reads classic pcap files of Ethernet frames, to the extent required by the fixtures' RoCEv2 captures. */
import { readdirSync, readFileSync } from 'node:fs';

/** Relative to dist/test/helpers, where this file runs. */
const folder = new URL('../../../test/fixtures/captures/', import.meta.url);

export interface CapturedPacket {
  readonly file: string;
  /** Number of the packet in its file, starting at 1 as in packet analyzers. */
  readonly number: number;
  /** The whole IP packet. */
  readonly ip: Uint8Array;
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  /** From the base transport header to the byte before the ICRC. */
  readonly transport: Uint8Array;
}

const MAPPED = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

export function captureFiles(): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.pcap'));
}

/** All RoCEv2 packets of a capture (UDP port 4791). Throws if the file is not a little-endian Ethernet pcap. */
export function readCapture(file: string): CapturedPacket[] {
  const bytes = readFileSync(new URL(file, folder));
  if (bytes.readUInt32LE(0) !== 0xa1b2c3d4 || bytes.readUInt32LE(20) !== 1) {
    throw new Error(`${file} must be a little-endian pcap file of Ethernet frames.`);
  }
  const packets: CapturedPacket[] = [];
  for (let at = 24, number = 1; at < bytes.length; number++) {
    const length = bytes.readUInt32LE(at + 8);
    const packet = readFrame(file, number, bytes.subarray(at + 16, at + 16 + length));
    if (packet) packets.push(packet);
    at += 16 + length;
  }
  return packets;
}

function readFrame(file: string, number: number, frame: Buffer): CapturedPacket | undefined {
  const etherType = frame.readUInt16BE(12);
  if (etherType !== 0x0800 && etherType !== 0x86dd) return undefined;
  const isV4 = etherType === 0x0800;
  const headerSize = isV4 ? 20 : 40;
  const total = isV4 ? frame.readUInt16BE(16) : 40 + frame.readUInt16BE(18);
  const ip = Uint8Array.from(frame.subarray(14, 14 + total));
  const protocol = ip[isV4 ? 9 : 6];
  if (protocol !== 17 || ((ip[headerSize + 2] ?? 0) << 8) + (ip[headerSize + 3] ?? 0) !== 4791)
    return undefined;
  const address = (from: number) =>
    isV4 ? Uint8Array.from([...MAPPED, ...ip.subarray(from, from + 4)]) : ip.slice(from, from + 16);
  return {
    file,
    number,
    ip,
    source: address(isV4 ? 12 : 8),
    destination: address(isV4 ? 16 : 24),
    transport: ip.subarray(headerSize + 8, -4),
  };
}

/** The CM MAD of a packet: a UD SEND Only to QP1, 12 + 8 bytes of headers and 256 bytes of MAD. */
export function madOf(packet: CapturedPacket): Uint8Array | undefined {
  const { transport } = packet;
  const toQp1 = transport[5] === 0 && transport[6] === 0 && transport[7] === 1;
  return transport[0] === 0x64 && toQp1 ? transport.slice(20) : undefined;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** The correct ICRC of a packet that starts at its IP header and includes the ICRC field (IBA 1 annex A17). */
export function expectedIcrc(ip: Uint8Array): number {
  const masked = Uint8Array.from(ip.subarray(0, -4));
  const isV4 = (ip[0] ?? 0) >> 4 === 4;
  const udp = isV4 ? 20 : 40;
  for (const at of isV4 ? [1, 8, 10, 11] : [1, 2, 3, 7]) masked[at] = 0xff;
  if (!isV4) masked[0] = (masked[0] ?? 0) | 0x0f;
  for (const at of [udp + 6, udp + 7, udp + 12]) masked[at] = 0xff;
  // The CRC register after eight bytes of ones, which replace the missing local route header.
  let crc = 0xdebb20e3;
  for (const byte of masked) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** The ICRC field of a packet; it is stored least significant byte first. */
export function icrcField(ip: Uint8Array): number {
  return new DataView(ip.buffer, ip.byteOffset + ip.length - 4).getUint32(0, true);
}

/** Bytes of a hexadecimal vector in which `00*7` stands for seven zero bytes. */
export function fromHex(text: string): Uint8Array {
  const spelled = text.replaceAll(/([0-9a-f]{2})\*(\d+)/g, (_, byte: string, count: string) =>
    byte.repeat(Number(count)),
  );
  return Uint8Array.from(Buffer.from(spelled.replaceAll(/\s/g, ''), 'hex'));
}
