/** Layouts of the SPI's structures. Those of requests and results are in 32-bit words. Source: ND SPI v2 (nddef.h). */
import { decodeSockaddr, SOCKADDR_BYTES, type SocketAddress } from '../../ioctl/sockaddr.js';
import { nativeBytes } from '../steady-memory.js';
import { pointerAt } from './com-object.js';

/** ND2_SGE, in words. The address is at 0. */
export const SgeWord = { length: 2, token: 3, size: 4 } as const;
/** ND2_RESULT, in words. */
export const ResultWord = { status: 0, bytes: 1, queuePair: 2, request: 4, type: 6, size: 8 } as const;
/** Size of ND2_ADAPTER_INFO, in bytes. */
export const ADAPTER_INFO_BYTES = 96;

/** Size of a SOCKADDR_IN or SOCKADDR_IN6, in bytes. */
export const sockaddrLength = (family: 4 | 6): number => (family === 4 ? 16 : SOCKADDR_BYTES);

/** ND2_ADAPTER_INFO. */
export type AdapterInfo = ReturnType<typeof decodeAdapterInfo>;

/** Decodes an ND2_ADAPTER_INFO. Sizes are limited to 2^53 - 1. */
export function decodeAdapterInfo(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const u16 = (at: number): number => view.getUint16(at, true);
  const u32 = (at: number): number => view.getUint32(at, true);
  const size = (at: number): number => Math.min(Number(view.getBigUint64(at, true)), Number.MAX_SAFE_INTEGER);
  return {
    infoVersion: u32(0),
    vendorId: u16(4),
    deviceId: u16(6),
    adapterId: view.getBigUint64(8, true),
    maxRegistrationSize: size(16),
    maxWindowSize: size(24),
    maxInitiatorSge: u32(32),
    maxReceiveSge: u32(36),
    maxReadSge: u32(40),
    maxTransferLength: u32(44),
    maxInlineDataSize: u32(48),
    maxInboundReadLimit: u32(52),
    maxOutboundReadLimit: u32(56),
    maxReceiveQueueDepth: u32(60),
    maxInitiatorQueueDepth: u32(64),
    maxSharedReceiveQueueDepth: u32(68),
    maxCompletionQueueDepth: u32(72),
    inlineRequestThreshold: u32(76),
    largeRequestThreshold: u32(80),
    maxCallerData: u32(84),
    maxCalleeData: u32(88),
    adapterFlags: u32(92),
  };
}

/** Decodes a SOCKET_ADDRESS_LIST, following its pointers. Addresses of families other than IP are omitted. */
export function decodeAddressList(bytes: Uint8Array): SocketAddress[] {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 4));
  const { memory, copy } = nativeBytes();
  const room = Math.max(0, Math.floor((words.length - 2) / 4));
  const found: SocketAddress[] = [];
  for (let i = 0; i < Math.min(words[0] ?? 0, room); i++) {
    const at = 2 + 4 * i;
    const length = words[at + 2]!;
    if (length < sockaddrLength(4)) continue;
    const sockaddr = memory(SOCKADDR_BYTES);
    copy(sockaddr.address, pointerAt(words, at), Math.min(length, SOCKADDR_BYTES));
    try {
      found.push({ ...decodeSockaddr(sockaddr.bytes.subarray(0, SOCKADDR_BYTES)), port: 0 });
    } catch {
      // The address is of another family.
    }
  }
  return found;
}
