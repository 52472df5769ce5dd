/** Types shared by all endpoints: addresses, parameters, routes, and the kernel's services for them. */
import type { PathParameters } from '../../hca/soft-hca-binding.js';
import type { Input } from '../../ioctl/layout.js';
import {
  gidOfAddress,
  SOCKADDR_BYTES,
  type SocketAddress,
  scopeIdOfAddress,
  sockaddrOfGid,
} from '../../ioctl/sockaddr.js';
import type { WvIoDeviceAddress } from '../../ioctl/structs.js';
import type { RcOptions } from '../../option-checks/option-schemas.js';
import type { HcaConnections, HcaPort } from '../hca-driver/backend.js';
import { isUnspecified } from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';

const NO_SOCKADDR = new Uint8Array(SOCKADDR_BYTES);

/** An address of an endpoint, in GID form and in text form. */
export interface EndpointAddress {
  gid: Uint8Array;
  port: number;
  scopeId: number;
}

/** Parameters of Connect and Accept, already checked. */
export interface EndpointParam {
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  privateData: Uint8Array;
}

/** A route: a path record, already checked. */
export interface EndpointRoute {
  path: PathParameters;
  /** Path MTU in bytes. */
  pathMtu: number;
  /** An entry of the P_Key table of its local port. */
  pkey: number;
  /** ACK timeout, as a code: 4.096 µs × 2^n. */
  ackTimeoutCode: number;
}

/** A peer that was looked up or has sent a lookup, or a joined group. */
export interface DatagramPeer {
  local: EndpointAddress;
  peer: EndpointAddress;
  path: PathParameters;
  /** The peer's queue pair number; 0: unknown. */
  qpn: number;
  qkey: number;
  sidrStatus: number;
  privateData: Uint8Array;
}

/** Parameters before any message of the peer. */
export const noParam: EndpointParam = {
  responderResources: 0,
  initiatorDepth: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  privateData: new Uint8Array(0),
};

/** The address of an IOCTL in the endpoints' form. */
export function endpointAddress(address: SocketAddress): EndpointAddress {
  return {
    gid: gidOfAddress(address.address),
    port: address.port,
    scopeId: scopeIdOfAddress(address.address),
  };
}

/** The value of WV_IO_SOCKADDR_DATA for an address; all zero for none. */
export function addressData(address: EndpointAddress | undefined): { sockAddr: Uint8Array } {
  return {
    sockAddr: address ? sockaddrOfGid(address.gid, address.port, address.scopeId) : NO_SOCKADDR,
  };
}

/** The device of an address, with a connection's partition or otherwise the port's first. All zero: no device has it. */
export function deviceAddress(
  local: EndpointAddress | undefined,
  services: EndpointServices,
  partition?: number,
): Input<typeof WvIoDeviceAddress> {
  const port = local && !isUnspecified(local.gid) ? services.portOf(local.gid, local.scopeId) : undefined;
  return port
    ? { deviceGuid: port.guid, pkey: partition ?? port.pkeys[0] ?? DEFAULT_PKEY, portNumber: 1 }
    : {};
}

/** An RDMA port, claimed on one or several HCAs. */
export interface PortClaim {
  readonly at: HcaConnections;
  /** The HCA's number of the claim. */
  readonly claim: number;
  readonly next: PortClaim | undefined;
}

/** Services for endpoints. The address selects the HCA; no address selects all. */
export interface EndpointServices
  extends Pick<HcaConnections, 'connect' | 'lookup' | 'listen' | 'listenForLookups'> {
  readonly rc: RcOptions;
  /** Claims an RDMA port on this host. `gid` null claims it on all addresses; `port` 0 selects a free one. */
  claimPort(
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: PortClaim | undefined; port: number };
  /** Called when a claimed port has a listener; returns a status. */
  openPort(claim: PortClaim): number;
  releasePort(claim: PortClaim): void;
  /** The port with this address. */
  portOf(gid: Uint8Array, scopeId?: number): HcaPort | undefined;
  /** Invalidates the user-side caches. */
  newCacheEpoch(): void;
  isOwn(gid: Uint8Array): boolean;
  /** Payload of the longest packet on a path with this MTU, in bytes; 0: that of the MTU. Never blocks. */
  packetBytes(path: PathParameters, pathMtu: number): number;
  /** The local address for packets to this one. */
  sourceFor(gid: Uint8Array, scopeId: number): Uint8Array | undefined;
}
