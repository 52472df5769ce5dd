/** Decodes the headers of packets in a capture file. */
import { setTimeout } from 'node:timers/promises';
import { readPcapng } from './pcapng.js';
import { HANG_MS } from './within.js';

/** Opcodes of RC are below this value (IBA 1 §9.2, table 38). */
const RC_OPCODES = 0x20;
const ACKNOWLEDGE = 17;
const UDP_BYTES = 8;
const BTH_BYTES = 12;

/** Values from the headers of a packet. */
export interface CapturedPacket {
  readonly opcode: number;
  readonly pkey: number;
  readonly trafficClass: number;
  readonly hopLimit: number;
  /** 0 for IPv4. */
  readonly flowLabel: number;
  /** Bytes after the BTH, without the ICRC. */
  readonly bytes: number;
}

function packetOf(ip: Uint8Array): CapturedPacket {
  const view = new DataView(ip.buffer, ip.byteOffset, ip.byteLength);
  const v4 = ip[0]! >> 4 === 4;
  const udp = v4 ? 20 : 40;
  const bth = udp + UDP_BYTES;
  return {
    opcode: view.getUint8(bth),
    pkey: view.getUint16(bth + 2),
    trafficClass: v4 ? view.getUint8(1) : (view.getUint16(0) >> 4) & 0xff,
    hopLimit: view.getUint8(v4 ? 8 : 7),
    flowLabel: v4 ? 0 : view.getUint32(0) & 0xf_ffff,
    bytes: view.getUint16(udp + 4) - UDP_BYTES - BTH_BYTES - 4,
  };
}

/** The packets of reliable connections in a capture file. */
export function rcPackets(file: string): CapturedPacket[] {
  return readPcapng(file)
    .map(packetOf)
    .filter(({ opcode }) => opcode < RC_OPCODES);
}

/**
 * Returns the packets of reliable connections after the first `from`. Waits until the file contains their acknowledgment, both as sent and
 * as received, because it is written with a delay. Both sides must be in this process.
 */
export async function acknowledged(file: string, from: number): Promise<CapturedPacket[]> {
  for (const timeout = AbortSignal.timeout(HANG_MS); ; ) {
    const packets = rcPackets(file).slice(from);
    if (packets.filter(({ opcode }) => opcode === ACKNOWLEDGE).length >= 2) return packets;
    if (timeout.aborted) throw new Error(`No acknowledgment among ${packets.length} packets.`);
    await setTimeout(20);
  }
}

/** The distinct values of one field, in order. */
export function valuesOf(packets: readonly CapturedPacket[], field: keyof CapturedPacket): number[] {
  return [...new Set(packets.map((packet) => packet[field]))].sort((a, b) => a - b);
}
