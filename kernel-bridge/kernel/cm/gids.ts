/** Addresses in CM messages: GIDs, and the IP addresses of the RDMA IP CM header. */
import { sharedGid } from '../../ioctl/sockaddr.js';
import type { CmPath, Gid } from './service.js';

const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/** Whether both GIDs are the same 16 bytes. */
export function gidEquals(a: Gid, b: Gid): boolean {
  if (a.length !== b.length) return false;
  // The comparison starts at the end, where addresses differ.
  for (let index = a.length - 1; index >= 0; index--) if (a[index] !== b[index]) return false;
  return true;
}

/** Whether the GID is an IPv4 address (`::ffff:a.b.c.d`). */
export function isIpv4Gid(gid: Gid): boolean {
  for (let index = 11; index >= 0; index--) if (gid[index] !== MAPPED_PREFIX[index]) return false;
  return true;
}

/** The 16 address bytes of an RDMA IP CM header: 12 zero bytes before an IPv4 address. */
export function headerAddressOf(gid: Gid): Uint8Array {
  const address = new Uint8Array(gid);
  if (isIpv4Gid(gid)) address.fill(0, 0, 12);
  return address;
}

/** Whether a peer can have this address: neither unspecified nor multicast nor broadcast. */
export function isUnicastGid(gid: Gid): boolean {
  if (isIpv4Gid(gid)) {
    const first = gid[12] ?? 0;
    return first !== 0 && first < 224;
  }
  return gid[0] !== 0xff && gid.some((byte) => byte !== 0);
}

/** A GID as a map key. */
export function gidKey(gid: Gid): string {
  return Buffer.from(gid.buffer, gid.byteOffset, gid.length).toString('hex');
}

/** The flow label that rdma_cm derives from a connection's ports (20 bits); it determines the UDP source port. */
export function rdmaCmFlowLabel(sourcePort: number, destinationPort: number): number {
  return (sourcePort * 31 + destinationPort) & 0xfffff;
}

/** A private copy of a path. */
export function ownPath({
  source,
  destination,
  flowLabel,
  trafficClass,
  hopLimit,
  scopeId,
  pkey,
}: CmPath): CmPath {
  const from = sharedGid(source);
  const to = sharedGid(destination);
  // The object is created with all members, because V8 reserves no space for members that are added later.
  return pkey === undefined
    ? { source: from, destination: to, flowLabel, trafficClass, hopLimit, scopeId }
    : { source: from, destination: to, flowLabel, trafficClass, hopLimit, scopeId, pkey };
}
