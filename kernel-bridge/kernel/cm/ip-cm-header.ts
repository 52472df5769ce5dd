/** The RDMA IP CM header (IBA 1 annex A11): which requests begin with it, writing and checking. */
import { isIpCmService } from '../../ioctl/port-space.js';
import { gidEquals, headerAddressOf, isIpv4Gid } from './address.js';
import type { Gid } from './service.js';
import { IP_CM_HEADER_SIZE, ipCmHeader } from './wire.js';

/** Whether a service id belongs to the RDMA IP CM service, whose requests begin with the address header. */
export function hasIpCmHeader(serviceId: bigint): boolean {
  return isIpCmService(Number(serviceId >> 16n));
}

/**
 * Private data of `size` bytes for a request: behind the header, if the service has one. The caller has checked that it
 * fits.
 */
export function withIpCmHeader(
  size: number,
  serviceId: bigint,
  from: { source: Gid; destination: Gid; port: number },
  data: Uint8Array,
): Uint8Array {
  const privateData = new Uint8Array(size);
  if (!hasIpCmHeader(serviceId)) {
    privateData.set(data);
    return privateData;
  }
  ipCmHeader.encode(
    {
      ipVersion: isIpv4Gid(from.source) ? 4 : 6,
      sourcePort: from.port & 0xffff,
      sourceAddress: headerAddressOf(from.source),
      destinationAddress: headerAddressOf(from.destination),
    },
    privateData,
  );
  privateData.set(data, IP_CM_HEADER_SIZE);
  return privateData;
}

/** A request's private data, or the problem if its header does not match the addresses of the message. */
export type IpCmHeaderVerdict =
  | { readonly localPort: number; readonly peerPort: number; readonly privateData: Uint8Array }
  | 'badVersion'
  | 'badAddress';

/** Checks the header of a request from `source` to `destination`, and removes it. */
export function readIpCmHeader(
  serviceId: bigint,
  privateData: Uint8Array,
  source: Gid,
  destination: Gid,
): IpCmHeaderVerdict {
  if (!hasIpCmHeader(serviceId)) return { localPort: 0, peerPort: 0, privateData };
  const header = ipCmHeader.decode(privateData);
  if (header.majorVersion !== 0 || header.minorVersion !== 0) return 'badVersion';
  if (
    header.ipVersion !== (isIpv4Gid(source) ? 4 : 6) ||
    !sameAddress(header.sourceAddress, source) ||
    !sameAddress(header.destinationAddress, destination)
  ) {
    return 'badAddress';
  }
  return {
    localPort: Number(serviceId & 0xffffn),
    peerPort: header.sourcePort,
    privateData: privateData.slice(IP_CM_HEADER_SIZE),
  };
}

/** IPv4 uses the last four bytes of a header's address; the bytes before them are ignored. */
function sameAddress(headerAddress: Uint8Array, gid: Gid): boolean {
  if (!isIpv4Gid(gid)) return gidEquals(headerAddress, gid);
  // Byte by byte: for views of small arrays V8 moves the bytes out of its heap.
  for (let index = 12; index < 16; index++) if (headerAddress[index] !== gid[index]) return false;
  return true;
}
