/** Types of endpoints: addresses, parameters, arguments of requests, data of events. */
import type { PathParameters } from '../../hca/binding.js';
import type { SocketAddress } from '../../ioctl/sockaddr.js';
import { gidOfAddress, SOCKADDR_BYTES, scopeIdOfAddress, sockaddrOfGid } from '../../ioctl/sockaddr.js';
import type { CmConnection, CmReject, CmReply, CmRequest, SidrInquiry, SidrRequest } from '../cm/service.js';
import type { Irp } from '../io-manager/irp.js';
import type { DatagramEndpoint } from './datagram-endpoint.js';
import type { Endpoint } from './endpoint.js';
import type { WvQp } from './objects.js';

const NO_SOCKADDR = new Uint8Array(SOCKADDR_BYTES);

/** An endpoint of any type. */
export type AnyEndpoint = Endpoint | DatagramEndpoint;

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
  /** Bytes. */
  pathMtu: number;
  /** An entry of the P_Key table of its local port. */
  pkey: number;
  /** Code, 4.096 µs × 2^n. */
  ackTimeoutCode: number;
}

/** The arguments of a request; their presence depends on the request. */
export interface RequestArguments {
  address?: EndpointAddress;
  /** With the wildcard address: the device whose addresses it means. */
  onlyDevice?: bigint | undefined;
  route?: EndpointRoute;
  backlog?: number;
  endpoint?: AnyEndpoint;
  qp?: WvQp | undefined;
  param?: EndpointParam;
  privateData?: Uint8Array;
  /** The answer of a datagram endpoint's Accept. */
  datagram?: { qpn: number; qkey: number };
  /** Completes the IRP of EP_BIND, EP_QUERY, or of a datagram endpoint's request that returns a peer. */
  answer?: () => number;
  /** The same, for a later answer. */
  answerPeer?: (irp: Irp, peer: DatagramPeer) => void;
}

/** A peer that was looked up or has sent a look-up, or a joined group. */
export interface DatagramPeer {
  local: EndpointAddress;
  peer: EndpointAddress;
  path: PathParameters;
  /** 0: unknown. */
  qpn: number;
  qkey: number;
  sidrStatus: number;
  privateData: Uint8Array;
}

/** The data of an event. */
export type SignalData =
  | { reply: CmReply }
  | { reject: CmReject }
  | { connection: CmConnection; request: CmRequest; local: EndpointAddress }
  | { inquiry: SidrInquiry; asked: SidrRequest; local: EndpointAddress }
  /** The status of the waiting requests. */
  | { lost: number }
  | undefined;

/** Before any message of the peer. */
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
