/** Builds outgoing messages from their owners' parameters, and reads incoming ones; the values are those of IBA 1 §12.6 and annex A11. */
import { ALL_PEER_EXTENSIONS, PacketBytes, PeerExtensions } from '../../hca/soft-hca-binding.js';
import { DEFAULT_PKEY } from '../../ioctl/constants.js';
import { isIpCmService } from '../../ioctl/port-space.js';
import { gidEquals, headerAddressOf, isIpv4Gid, isUnicastGid, rdmaCmFlowLabel } from './gids.js';
import {
  type CmBody,
  emitMad,
  IP_CM_HEADER_SIZE,
  ipCmHeader,
  OwnVendorId,
  PrivateDataSize,
  RejReason,
  TransportType,
} from './mad-layouts.js';
import type { CmConnectParameters, CmPath, CmQpParameters, CmReply, CmRequest, Gid } from './service.js';

/** RoCE has no LIDs, which this value indicates if the hop limit is above one. */
const PERMISSIVE_LID = 0xffff;
const HOP_LIMIT = 64;
/** Code 15, 0.13 s: ample for a software HCA. */
const TARGET_ACK_DELAY = 15;
const MAX_PATH_MTU = 5;

/** A REQ's fields for a QP without acknowledgements. */
const unreliable = { responderResources: 0, initiatorDepth: 0, retryCount: 0, rnrRetryCount: 0 };

/** Extensions supported by every peer of the same dialect. The attribute modifier of its messages has the length of its packets. */
const SAME_DIALECT = ALL_PEER_EXTENSIONS & ~PeerExtensions.longPackets;

/** The packet length announced by a peer of the same dialect; 0: none, or an invalid one. */
function packetBytesIn(attributeModifier: number): number {
  const bytes = attributeModifier >>> PacketBytes.shift;
  return bytes % PacketBytes.step === 0 ? bytes : 0;
}

/** The extensions with packets of this length, which applies if it exceeds that of the path MTU (IB's code). */
function withPackets(extensions: number, bytes: number, pathMtu: number): number {
  if (bytes <= 128 << pathMtu) return extensions;
  return (extensions | PeerExtensions.longPackets | (bytes << PacketBytes.shift)) >>> 0;
}

/** The attribute modifier for these extensions; the other extensions follow from the dialect. */
function modifierOf(extensions: number): number {
  return ((extensions >>> PacketBytes.shift) << PacketBytes.shift) >>> 0;
}

const most = (value: number, limit: number) => Math.min(Math.max(0, Math.trunc(value)), limit);

/** Throws RangeError for private data that the message cannot carry. */
export function checkPrivateData(name: keyof typeof PrivateDataSize, data: Uint8Array): void {
  const room = PrivateDataSize[name];
  if (data.length > room) {
    throw new RangeError(`The private data of a ${name} must be at most ${room} bytes; got ${data.length}.`);
  }
}

export interface RequestIdentity {
  localCommId: number;
  caGuid: bigint;
  startingPsn: number;
  transactionId: bigint;
  responseTimeoutCode: number;
  maxRetries: number;
}

/** Routers drop packets with a hop limit below 2; some senders omit the field. */
function hopLimitOf(wanted: number): number {
  return wanted > 1 ? wanted : HOP_LIMIT;
}

/** The REQ of an active connection. Throws RangeError if the private data is too long. */
export function makeReq(
  parameters: CmConnectParameters,
  identity: RequestIdentity,
  standardOnly = false,
  hostLink = 0,
): Uint8Array {
  const { path } = parameters;
  const transportType = parameters.qp.type ?? TransportType.RC;
  // An unreliable connection has no RDMA Reads and no retries (IBA 1 §12.6.5).
  const qp = transportType === TransportType.RC ? parameters.qp : { ...parameters.qp, ...unreliable };
  checkPrivateData('REQ', parameters.privateData);
  const { source, destination } = path;
  const from = { source, destination, port: parameters.localPort };
  const privateData = withIpCmHeader(92, parameters.serviceId, from, parameters.privateData);
  const own = transportType === TransportType.RC && !standardOnly;
  const all = withPackets(SAME_DIALECT, parameters.packetBytes ?? 0, most(parameters.pathMtu, MAX_PATH_MTU));
  return emitMad(
    'REQ',
    identity.transactionId,
    {
      localCommId: identity.localCommId,
      vendorId: own ? OwnVendorId.request : 0,
      serviceId: parameters.serviceId,
      localCaGuid: identity.caGuid,
      localQpn: qp.qpn,
      responderResources: most(qp.responderResources, 255),
      initiatorDepth: most(qp.initiatorDepth, 255),
      remoteResponseTimeout: identity.responseTimeoutCode,
      transportType,
      startingPsn: identity.startingPsn,
      localResponseTimeout: identity.responseTimeoutCode,
      retryCount: most(qp.retryCount, 7),
      pkey: path.pkey ?? DEFAULT_PKEY,
      pathMtu: most(parameters.pathMtu, MAX_PATH_MTU),
      rnrRetryCount: most(qp.rnrRetryCount, 7),
      maxCmRetries: identity.maxRetries,
      srq: qp.srq ? 1 : 0,
      primaryLocalLid: PERMISSIVE_LID,
      primaryRemoteLid: PERMISSIVE_LID,
      primaryLocalGid: path.source,
      primaryRemoteGid: path.destination,
      primaryFlowLabel: path.flowLabel || rdmaCmFlowLabel(parameters.localPort, parameters.peerPort),
      primaryTrafficClass: path.trafficClass,
      primaryHopLimit: hopLimitOf(path.hopLimit),
      primaryAckTimeout: most(parameters.ackTimeoutCode, 31),
      privateData,
    },
    undefined,
    (own ? modifierOf(all) : 0) + hostLink,
  );
}

/** The REP of a passive connection. Depths never exceed the REQ's offer (IBA 1 §12.7.29–30). */
export function makeRep(
  parameters: CmQpParameters,
  privateData: Uint8Array,
  request: CmRequest,
  identity: Omit<RequestIdentity, 'responseTimeoutCode' | 'maxRetries'> & { remoteCommId: number },
  hostLink = 0,
): Uint8Array {
  const agreed = request.peerExtensions ?? 0;
  const vendorId = agreed === 0 ? 0 : OwnVendorId.reply;
  return emitMad(
    'REP',
    identity.transactionId,
    {
      localCommId: identity.localCommId,
      remoteCommId: identity.remoteCommId,
      localQpn: parameters.qpn,
      vendorIdHigh: vendorId >> 16,
      vendorIdMiddle: (vendorId >> 8) & 0xff,
      vendorIdLow: vendorId & 0xff,
      startingPsn: identity.startingPsn,
      responderResources: most(parameters.responderResources, request.responderResources),
      initiatorDepth: most(parameters.initiatorDepth, request.initiatorDepth),
      targetAckDelay: TARGET_ACK_DELAY,
      rnrRetryCount: most(parameters.rnrRetryCount, 7),
      srq: parameters.srq ? 1 : 0,
      localCaGuid: identity.caGuid,
      privateData,
    },
    undefined,
    modifierOf(agreed) + hostLink,
  );
}

/** The fields of a REP for the active side, whose depths never exceed its offer. */
export function replyOf(
  body: CmBody<'REP'>,
  { qp: own, pathMtu, packetBytes: offered = 0 }: Pick<CmConnectParameters, 'qp' | 'pathMtu' | 'packetBytes'>,
  attributeModifier: number,
): CmReply {
  const vendorId = (body.vendorIdHigh << 16) | (body.vendorIdMiddle << 8) | body.vendorIdLow;
  const named = packetBytesIn(attributeModifier);
  const agreed = named <= offered ? named : 0;
  return {
    peerQpn: body.localQpn,
    sendPsn: body.startingPsn,
    responderResources: Math.min(body.initiatorDepth, own.responderResources),
    initiatorDepth: Math.min(body.responderResources, own.initiatorDepth),
    rnrRetryCount: body.rnrRetryCount,
    targetAckDelay: body.targetAckDelay,
    peerUsesSrq: body.srq === 1,
    peerExtensions: vendorId === OwnVendorId.reply ? withPackets(SAME_DIALECT, agreed, pathMtu) : 0,
    privateData: body.privateData,
  };
}

/** The path for replies to a MAD: back to its source. */
export function answerPath(source: Gid, destination: Gid, scopeId: number): CmPath {
  return {
    source: destination,
    destination: source,
    flowLabel: 0,
    trafficClass: 0,
    hopLimit: HOP_LIMIT,
    scopeId,
  };
}

/** Whether a connected QP can have this number: 0 and 1 are the management QPs, all ones is multicast. */
export function isConnectableQpn(qpn: number): boolean {
  return qpn > 1 && qpn < 0xff_ffff;
}

/** A REQ as its listener sees it, or the reason and additional information of its rejection. */
export type RequestVerdict = CmRequest | { reason: number; ari: Uint8Array };

const refuse = (reason: number, ari: Uint8Array = new Uint8Array(0)): RequestVerdict => ({ reason, ari });

/**
 * Checks a REQ from `source` to `destination`. Its GIDs for data must be those of the message itself. Otherwise a peer
 * could direct our traffic at another host, or impersonate one.
 */
export function readReq(
  body: CmBody<'REQ'>,
  { source, destination, scopeId }: { source: Gid; destination: Gid; scopeId: number },
  {
    maxPathMtu,
    maxPacketBytes = 0,
    standardOnly = false,
  }: { maxPathMtu: number; maxPacketBytes?: number | undefined; standardOnly?: boolean | undefined },
  attributeModifier: number,
): RequestVerdict {
  const { transportType } = body;
  const connected = transportType === TransportType.RC || transportType === TransportType.UC;
  if (!connected || body.extendedTransport !== 0 || body.rdcExists !== 0) {
    return refuse(RejReason.invalidTransportType);
  }
  if (!isConnectableQpn(body.localQpn)) return refuse(RejReason.unsupportedRequest);
  if (!gidEquals(body.primaryRemoteGid, destination)) {
    return refuse(RejReason.invalidGid, Uint8Array.from(destination));
  }
  if (!gidEquals(body.primaryLocalGid, source) || !isUnicastGid(source)) {
    return refuse(RejReason.invalidGid, Uint8Array.from(source));
  }
  const header = readIpCmHeader(body.serviceId, body.privateData, source, destination);
  if (typeof header === 'string') return refuse(RejReason.consumerReject);
  const usableMtu = most(maxPathMtu, MAX_PATH_MTU);
  if (body.pathMtu < 1 || body.pathMtu > usableMtu) {
    return refuse(RejReason.invalidPathMtu, Uint8Array.of(usableMtu));
  }
  return {
    serviceId: body.serviceId,
    localAddress: destination,
    localPort: header.localPort,
    peerAddress: source,
    peerPort: header.peerPort,
    path: {
      source: destination,
      destination: source,
      flowLabel: body.primaryFlowLabel,
      trafficClass: body.primaryTrafficClass,
      hopLimit: hopLimitOf(body.primaryHopLimit),
      scopeId,
      pkey: body.pkey,
    },
    peerQpn: body.localQpn,
    type: transportType,
    sendPsn: body.startingPsn,
    responderResources: body.initiatorDepth,
    initiatorDepth: body.responderResources,
    retryCount: body.retryCount,
    rnrRetryCount: body.rnrRetryCount,
    pathMtu: body.pathMtu,
    localAckTimeout: body.primaryAckTimeout,
    pkey: body.pkey,
    peerUsesSrq: body.srq === 1,
    peerExtensions:
      transportType === TransportType.RC && body.vendorId === OwnVendorId.request && !standardOnly
        ? withPackets(SAME_DIALECT, Math.min(packetBytesIn(attributeModifier), maxPacketBytes), body.pathMtu)
        : 0,
    privateData: header.privateData,
  };
}

// ── The RDMA IP CM header (IBA 1 annex A11) ──

/** Whether a service id belongs to the RDMA IP CM service, whose requests begin with the address header. */
export function hasIpCmHeader(serviceId: bigint): boolean {
  return isIpCmService(Number(serviceId >> 16n));
}

/** Private data of `size` bytes for a request, after the header if the service has one. The caller has checked that it fits. */
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
  // The bytes are copied one by one, because V8 moves the bytes of a small array out of the heap when a view of it is created.
  for (let index = 12; index < 16; index++) if (headerAddress[index] !== gid[index]) return false;
  return true;
}
