/** Address vectors, GRHs and GIDs: the source and destination of datagrams (IBA 1 §8.3, §11.2.2.1, Annex A17). */

import { WvDatagram } from '../kernel-bridge/ioctl/constants.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { addressOfGid, gidOfAddress, parseSocketAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import type { WvAddressVector, WvGrh } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Bytes before the payload in the receive buffer of a datagram. */
export const GRH_BYTES = 40;
/** The destination QPN of datagrams to a multicast group. */
export const MULTICAST_QPN = WvDatagram.MULTICAST_QPN;

const IPV4_BYTES = 20;
const IPV4_AT = GRH_BYTES - IPV4_BYTES;

/**
 * Returns the GID of an IP address, or the given GID itself. An IPv4 address maps to `::ffff:a.b.c.d`.
 *
 * @throws WvError INVALID_ADDRESS (not a valid IP address), INVALID_PARAMETER (not 16 bytes)
 */
export function gidOf(address: string | Uint8Array): Uint8Array {
  return checkedGid('address', address);
}

/** @internal As {@link gidOf}; `what` names the argument in errors. */
export function checkedGid(what: string, address: string | Uint8Array): Uint8Array {
  if (typeof address === 'string') {
    try {
      return gidOfAddress(parseSocketAddress(address).address);
    } catch (error) {
      throw new WvError(
        Status.INVALID_ADDRESS,
        `\`${what}\` must be an IP address, such as '192.0.2.1', '239.1.2.3' or '2001:db8::1'; got ${shown(address)}.`,
        { cause: error },
      );
    }
  }
  if (address instanceof Uint8Array && address.length === 16) return address;
  const given = address instanceof Uint8Array ? `${address.length} bytes` : shown(address);
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`${what}\` must be a GID of 16 bytes or an IP address as text; got ${given}.`,
  );
}

/** Returns the IP address of a GID as text. @throws WvError INVALID_PARAMETER (not 16 bytes) */
export function addressOf(gid: Uint8Array): string {
  return addressOfGid(checkedGid('gid', gid));
}

/** Whether the GID is a multicast address: 224.0.0.0/4, ff00::/8. */
export function isMulticastGid(gid: Uint8Array): boolean {
  checkBytes('gid', gid);
  const v4 = gid.subarray(0, 12).every((byte, index) => byte === (index < 10 ? 0 : 0xff));
  return v4 ? ((gid[12] ?? 0) & 0xf0) === 0xe0 : gid[0] === 0xff;
}

function checkBytes(what: string, bytes: Uint8Array): void {
  if (bytes instanceof Uint8Array) return;
  throw new WvError(Status.INVALID_PARAMETER, `\`${what}\` must be a Uint8Array; got ${shown(bytes)}.`);
}

function holdsIpv4(bytes: Uint8Array): boolean {
  if (bytes[IPV4_AT] !== 0x45) return false;
  let sum = 0;
  for (let at = IPV4_AT; at < GRH_BYTES; at += 2) sum += (bytes[at]! << 8) | bytes[at + 1]!;
  sum = (sum & 0xffff) + (sum >>> 16);
  return (sum & 0xffff) + (sum >>> 16) === 0xffff;
}

/**
 * Parses the first 40 bytes of a received datagram's buffer (completion flag GRH_VALID). They hold an IPv6 header, or
 * an IPv4 header in the last 20 bytes.
 *
 * @throws WvError INVALID_PARAMETER (fewer than 40 bytes, or neither header)
 */
export function parseGrh(bytes: Uint8Array): WvGrh {
  checkBytes('bytes', bytes);
  if (bytes.length >= GRH_BYTES) {
    if (holdsIpv4(bytes)) {
      const at = (offset: number): Uint8Array => bytes.subarray(IPV4_AT + offset, IPV4_AT + offset + 4);
      return {
        ipVersion: 4,
        sourceGid: gidOfAddress(at(12).join('.')),
        destinationGid: gidOfAddress(at(16).join('.')),
        trafficClass: bytes[IPV4_AT + 1]!,
        flowLabel: 0,
        hopLimit: bytes[IPV4_AT + 8]!,
      };
    }
    if (bytes[0]! >>> 4 === 6) {
      return {
        ipVersion: 6,
        sourceGid: bytes.slice(8, 24),
        destinationGid: bytes.slice(24, 40),
        trafficClass: ((bytes[0]! & 0xf) << 4) | (bytes[1]! >>> 4),
        flowLabel: ((bytes[1]! & 0xf) << 16) | (bytes[2]! << 8) | bytes[3]!,
        hopLimit: bytes[7]!,
      };
    }
  }
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`bytes\` must start with the ${GRH_BYTES} bytes of a GRH; got ${bytes.length} bytes without an IP header.`,
  );
}

/**
 * Returns the address vector for a reply to a datagram, built from the datagram's GRH. The source of the reply is the
 * address that the datagram was sent to. For a datagram to a multicast group, `source` must name the address to reply
 * from.
 *
 * @throws WvError INVALID_PARAMETER (not a GRH, or the datagram was sent to a group and `source` is missing)
 */
export function replyAddressVector(grh: Uint8Array, source?: string | Uint8Array): WvAddressVector {
  checkBytes('grh', grh);
  const { sourceGid, destinationGid, trafficClass, flowLabel } = parseGrh(grh);
  if (source === undefined && isMulticastGid(destinationGid)) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`source\` must be an address of this host, because the datagram was sent to the group ${addressOf(destinationGid)}.`,
    );
  }
  return {
    sourceGid: source === undefined ? destinationGid : checkedGid('source', source),
    destinationGid: sourceGid,
    trafficClass,
    flowLabel,
  };
}
