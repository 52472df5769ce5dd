/** What endpoints pass around: addresses, parameters, arguments of requests, contents of happenings. */
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

/** An address an endpoint knows: GID form and text form say the same. */
export interface EndpointAddress {
  gid: Uint8Array;
  port: number;
  scopeId: number;
}

/** What Connect and Accept give; checked already. */
export interface EndpointParam {
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  privateData: Uint8Array;
}

/** A route: a path record, checked already. */
export interface EndpointRoute {
  path: PathParameters;
  /** Bytes. */
  pathMtu: number;
  /** An entry of the table of the port where it starts. */
  pkey: number;
}

/** The arguments of one request; which are there depends on the request. */
export interface RequestArguments {
  address?: EndpointAddress;
  /** With the wildcard address: the device whose addresses are meant. */
  onlyDevice?: bigint | undefined;
  route?: EndpointRoute;
  backlog?: number;
  endpoint?: AnyEndpoint;
  qp?: WvQp | undefined;
  param?: EndpointParam;
  privateData?: Uint8Array;
  /** What a datagram endpoint's Accept tells the peer. */
  datagram?: { qpn: number; qkey: number };
  /** Completes the IRP of EP_BIND, EP_QUERY, or of a datagram endpoint's request that tells of a peer. */
  answer?: () => number;
  /** The same, of what came later. */
  answerPeer?: (irp: Irp, peer: DatagramPeer) => void;
}

/** A peer that was looked up or has asked, or a group that was joined. */
export interface DatagramPeer {
  local: EndpointAddress;
  peer: EndpointAddress;
  path: PathParameters;
  /** 0: not known. */
  qpn: number;
  qkey: number;
  sidrStatus: number;
  privateData: Uint8Array;
}

/** What a happening carries. */
export type SignalData =
  | { reply: CmReply }
  | { reject: CmReject }
  | { connection: CmConnection; request: CmRequest; local: EndpointAddress }
  | { inquiry: SidrInquiry; asked: SidrRequest; local: EndpointAddress }
  /** What requests that wait end in. */
  | { lost: number }
  | undefined;

/** Before anybody said anything. */
export const noParam: EndpointParam = {
  responderResources: 0,
  initiatorDepth: 0,
  retryCount: 0,
  rnrRetryCount: 0,
  privateData: new Uint8Array(0),
};

/** An address of an IOCTL as endpoints know it. */
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
