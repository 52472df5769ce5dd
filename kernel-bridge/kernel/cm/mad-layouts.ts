/**
 * Communication management messages on the wire (IBA 1 §12.6, §13.4.3; RDMA IP CM Service, IBA 1 annex A11):
 * 256-byte MADs, a 24-byte header and a 232-byte message. Offsets in the comments are within the message.
 */
import { DIALECT } from '../../hca/soft-hca-binding.js';
import { Capacity } from '../../ioctl/constants.js';
import {
  bits,
  bytes,
  layouts,
  type Refusals,
  u8,
  u16be,
  u24be,
  u32be,
  u64be,
  type Value,
} from '../../ioctl/layout.js';
import { madeCode } from './made-code.js';

/** Invalid values in messages throw a RangeError with the name of the field. */
export const cmRefusals: Refusals = {
  value(path, value, _, size) {
    throw new RangeError(
      value instanceof Uint8Array
        ? `${path} must be at most ${size} bytes; got ${value.length}.`
        : `${path} must fit in ${size * 8} bits; got ${String(value)}.`,
    );
  },
  room(_, name, size, length, offset) {
    throw new RangeError(`${name} must have ${size} bytes; got ${length - offset}.`);
  },
};

const { packed } = layouts(madeCode, cmRefusals);

/** Size of a MAD in bytes. */
export const MAD_SIZE = 256;
/** Size of a MAD's header in bytes; the CM message follows. */
export const MAD_HEADER_SIZE = 24;
/** Size in bytes of the RDMA IP CM header that opens a REQ's private data. */
export const IP_CM_HEADER_SIZE = 36;

/** Values in the MAD header of every CM message. */
export const CmMad = { baseVersion: 1, managementClass: 0x07, classVersion: 2, methodSend: 0x03 } as const;

/** Sizes of the consumer's private data in bytes (REQ, SIDR_REQ: after the RDMA IP CM header). IOCTLs define some of them. */
export const PrivateDataSize = {
  REQ: Capacity.CONNECT_DATA,
  REP: Capacity.REP_DATA,
  RTU: 224,
  REJ: Capacity.REJ_DATA,
  DREQ: 220,
  DREP: 224,
  SIDR_REQ: Capacity.LOOKUP_DATA,
  SIDR_REP: Capacity.LOOKUP_REPLY_DATA,
} as const;

/** REJ reasons, IBA 1 §12.6.7.2. */
export const RejReason = {
  noQp: 1,
  noEec: 2,
  noResources: 3,
  timeout: 4,
  unsupportedRequest: 5,
  invalidCommId: 6,
  invalidCommInstance: 7,
  invalidServiceId: 8,
  invalidTransportType: 9,
  staleConnection: 10,
  rdcNotExistent: 11,
  invalidGid: 12,
  invalidLid: 13,
  invalidSl: 14,
  invalidTrafficClass: 15,
  invalidHopLimit: 16,
  invalidPacketRate: 17,
  invalidAlternateGid: 18,
  invalidAlternateLid: 19,
  invalidAlternateSl: 20,
  invalidAlternateTrafficClass: 21,
  invalidAlternateHopLimit: 22,
  invalidAlternatePacketRate: 23,
  portCmRedirection: 24,
  portRedirection: 25,
  invalidPathMtu: 26,
  insufficientResponderResources: 27,
  consumerReject: 28,
  rnrRetryCountReject: 29,
  duplicateLocalCommId: 30,
  invalidClassVersion: 31,
  invalidFlowLabel: 32,
  invalidAlternateFlowLabel: 33,
  vendorOptionNotSupported: 35,
} as const;

/** The message that a REJ or an MRA refers to. `other` exists in a REJ only (there 2 means none), LAP in an MRA only. */
export const AnsweredMessage = { REQ: 0, REP: 1, other: 2, LAP: 2 } as const;

/**
 * The vendor ids of a REQ and of its REP, which identify two peers of the same dialect to each other (IBA 1 §12.6.5:
 * Enhanced Connection Establishment); with any other peer only the standard is used. They are locally administered, so
 * they belong to no vendor. Linux's `rdma_accept` returns the REQ's id unchanged, which is why the ids of request and
 * reply differ. With these ids, the upper half of the MAD's attribute modifier, where ECE has its options, is the
 * length of the sender's packets (`PacketBytes`).
 */
export const OwnVendorId = { request: 0x4e_51_00 | DIALECT, reply: 0x4e_50_00 | DIALECT } as const;

/** REQ's transport service types. */
export const TransportType = { RC: 0, UC: 1, RD: 2, XRC: 3 } as const;

/** SIDR_REP statuses, IBA 1 §12.11.2. */
export const SidrStatus = {
  ok: 0,
  unsupportedServiceId: 1,
  rejected: 2,
  noQp: 3,
  redirect: 4,
  unsupportedVersion: 5,
} as const;

/** The common MAD header, 24 bytes. */
export const madHeader = packed('MAD header', {
  baseVersion: u8,
  managementClass: u8,
  classVersion: u8,
  method: u8,
  status: u16be,
  classSpecific: u16be,
  transactionId: u64be,
  attributeId: u16be,
  reserved: u16be,
  attributeModifier: u32be,
});
export type MadHeader = Value<typeof madHeader>;

/** The RDMA IP CM header, 36 bytes. */
export const ipCmHeader = packed('RDMA IP CM header', {
  majorVersion: bits(4),
  minorVersion: bits(4),
  ipVersion: bits(4),
  reserved: bits(4),
  sourcePort: u16be,
  /** For IPv4, in the last four bytes. */
  sourceAddress: bytes(16),
  destinationAddress: bytes(16),
});

/** The message layouts by name. Each is 232 bytes and defines every bit. */
export const cmLayouts = {
  REQ: packed('REQ', {
    localCommId: u32be, // 0
    reserved4: u8,
    vendorId: u24be,
    serviceId: u64be, // 8
    localCaGuid: u64be, // 16
    reserved24: u32be,
    localQkey: u32be, // 28
    localQpn: u24be, // 32
    responderResources: u8,
    localEecn: u24be, // 36
    initiatorDepth: u8,
    remoteEecn: u24be, // 40
    remoteResponseTimeout: bits(5),
    transportType: bits(2),
    flowControl: bits(1),
    startingPsn: u24be, // 44
    localResponseTimeout: bits(5),
    retryCount: bits(3),
    pkey: u16be, // 48
    pathMtu: bits(4), // 50
    rdcExists: bits(1),
    rnrRetryCount: bits(3),
    maxCmRetries: bits(4), // 51
    srq: bits(1),
    extendedTransport: bits(3),
    primaryLocalLid: u16be, // 52
    primaryRemoteLid: u16be,
    primaryLocalGid: bytes(16), // 56
    primaryRemoteGid: bytes(16), // 72
    primaryFlowLabel: bits(20), // 88
    reserved90: bits(6),
    primaryPacketRate: bits(6),
    primaryTrafficClass: u8, // 92
    primaryHopLimit: u8,
    primarySl: bits(4), // 94
    primarySubnetLocal: bits(1),
    reserved94: bits(3),
    primaryAckTimeout: bits(5), // 95
    reserved95: bits(3),
    alternateLocalLid: u16be, // 96
    alternateRemoteLid: u16be,
    alternateLocalGid: bytes(16), // 100
    alternateRemoteGid: bytes(16), // 116
    alternateFlowLabel: bits(20), // 132
    reserved134: bits(6),
    alternatePacketRate: bits(6),
    alternateTrafficClass: u8, // 136
    alternateHopLimit: u8,
    alternateSl: bits(4), // 138
    alternateSubnetLocal: bits(1),
    reserved138: bits(3),
    alternateAckTimeout: bits(5), // 139
    reserved139: bits(3),
    privateData: bytes(92), // 140
  }),
  MRA: packed('MRA', {
    localCommId: u32be,
    remoteCommId: u32be,
    message: bits(2), // 8
    reserved8: bits(6),
    serviceTimeout: bits(5), // 9
    reserved9: bits(3),
    privateData: bytes(222), // 10
  }),
  REJ: packed('REJ', {
    localCommId: u32be,
    remoteCommId: u32be,
    message: bits(2), // 8
    reserved8: bits(6),
    ariLength: bits(7), // 9
    reserved9: bits(1),
    reason: u16be, // 10
    ari: bytes(72), // 12
    privateData: bytes(148), // 84
  }),
  REP: packed('REP', {
    localCommId: u32be,
    remoteCommId: u32be,
    localQkey: u32be, // 8
    localQpn: u24be, // 12
    vendorIdHigh: u8,
    localEecn: u24be, // 16
    vendorIdMiddle: u8,
    startingPsn: u24be, // 20
    vendorIdLow: u8,
    responderResources: u8, // 24
    initiatorDepth: u8,
    targetAckDelay: bits(5), // 26
    failoverAccepted: bits(2),
    flowControl: bits(1),
    rnrRetryCount: bits(3), // 27
    srq: bits(1),
    reserved27: bits(4),
    localCaGuid: u64be, // 28
    privateData: bytes(196), // 36
  }),
  RTU: packed('RTU', { localCommId: u32be, remoteCommId: u32be, privateData: bytes(224) }),
  DREQ: packed('DREQ', {
    localCommId: u32be,
    remoteCommId: u32be,
    remoteQpn: u24be, // 8
    reserved11: u8,
    privateData: bytes(220), // 12
  }),
  DREP: packed('DREP', { localCommId: u32be, remoteCommId: u32be, privateData: bytes(224) }),
  SIDR_REQ: packed('SIDR_REQ', {
    requestId: u32be,
    pkey: u16be, // 4
    reserved6: u16be,
    serviceId: u64be, // 8
    privateData: bytes(216), // 16
  }),
  SIDR_REP: packed('SIDR_REP', {
    requestId: u32be,
    status: u8, // 4
    infoLength: u8,
    vendorIdHigh: u16be, // 6
    qpn: u24be, // 8
    vendorIdLow: u8,
    serviceId: u64be, // 12
    qkey: u32be, // 20
    info: bytes(72), // 24
    privateData: bytes(136), // 96
  }),
  LAP: packed('LAP', {
    localCommId: u32be,
    remoteCommId: u32be,
    reserved8: u32be,
    remoteQpn: u24be, // 12
    remoteResponseTimeout: bits(5),
    reserved15: bits(3),
    reserved16: u32be,
    alternateLocalLid: u16be, // 20
    alternateRemoteLid: u16be,
    alternateLocalGid: bytes(16), // 24
    alternateRemoteGid: bytes(16), // 40
    alternateFlowLabel: bits(20), // 56
    reserved58: bits(4),
    alternateTrafficClass: u8, // 59
    alternateHopLimit: u8,
    reserved61: bits(2),
    alternatePacketRate: bits(6),
    alternateSl: bits(4), // 62
    alternateSubnetLocal: bits(1),
    reserved62: bits(3),
    alternateAckTimeout: bits(5), // 63
    reserved63: bits(3),
    privateData: bytes(168), // 64
  }),
  APR: packed('APR', {
    localCommId: u32be,
    remoteCommId: u32be,
    infoLength: u8, // 8
    status: u8,
    reserved10: u16be,
    info: bytes(72), // 12
    privateData: bytes(148), // 84
  }),
} as const;

export type CmMessageName = keyof typeof cmLayouts;
/** The value of a message. */
export type CmBody<N extends CmMessageName> = Value<(typeof cmLayouts)[N]>;

/** Attribute ids of the messages, IBA 1 §16.7.3. */
export const CmAttribute = {
  REQ: 0x10,
  MRA: 0x11,
  REJ: 0x12,
  REP: 0x13,
  RTU: 0x14,
  DREQ: 0x15,
  DREP: 0x16,
  SIDR_REQ: 0x17,
  SIDR_REP: 0x18,
  LAP: 0x19,
  APR: 0x1a,
} as const satisfies Record<CmMessageName, number>;

const nameOfAttribute = new Map<number, CmMessageName>(
  Object.entries(CmAttribute).map(([name, id]) => [id, name as CmMessageName]),
);

/** Counter names, one for each message: `sent.REQ`. */
export function counterNames(what: string): Readonly<Record<CmMessageName, string>> {
  const names = Object.keys(CmAttribute).map((name) => [name, `${what}.${name}`]);
  return Object.fromEntries(names) as Record<CmMessageName, string>;
}

/** A parsed CM MAD, discriminated by `name`. */
export type CmMessage = {
  [N in CmMessageName]: { readonly name: N; readonly header: MadHeader; readonly body: CmBody<N> };
}[CmMessageName];

/** Why bytes are not a CM message; also the counter name of such drops. */
export type MadProblem =
  | 'badLength'
  | 'badBaseVersion'
  | 'badClass'
  | 'badClassVersion'
  | 'badMethod'
  | 'badAttribute';

/** Parses a MAD; returns the problem if it is not a CM message. Never throws, reads at most 256 bytes. */
export function parseMad(mad: Uint8Array): CmMessage | MadProblem {
  if (mad.length !== MAD_SIZE) return 'badLength';
  const header = madHeader.decode(mad);
  if (header.baseVersion !== CmMad.baseVersion) return 'badBaseVersion';
  if (header.managementClass !== CmMad.managementClass) return 'badClass';
  if (header.classVersion !== CmMad.classVersion) return 'badClassVersion';
  if (header.method !== CmMad.methodSend) return 'badMethod';
  const name = nameOfAttribute.get(header.attributeId);
  if (name === undefined) return 'badAttribute';
  return { name, header, body: cmLayouts[name].decode(mad, MAD_HEADER_SIZE) } as CmMessage;
}

/** The 256 bytes of a parsed message: the exact inverse of {@link parseMad}. */
export function encodeMessage(message: CmMessage): Uint8Array {
  const mad = madHeader.encode(message.header, new Uint8Array(MAD_SIZE));
  const layout = cmLayouts[message.name] as { encode(value: object, to: Uint8Array, at: number): Uint8Array };
  return layout.encode(message.body, mad, MAD_HEADER_SIZE);
}

/** A 256-byte MAD, new or in `mad`; omitted fields are zero. Throws RangeError for a value that its field cannot hold. */
export function emitMad<N extends CmMessageName>(
  name: N,
  transactionId: bigint,
  body: Partial<CmBody<N>>,
  mad = new Uint8Array(MAD_SIZE),
  attributeModifier = 0,
): Uint8Array {
  const header: Partial<MadHeader> = {
    baseVersion: CmMad.baseVersion,
    managementClass: CmMad.managementClass,
    classVersion: CmMad.classVersion,
    method: CmMad.methodSend,
    transactionId,
    attributeId: CmAttribute[name],
    attributeModifier,
  };
  madHeader.encode(header, mad);
  const layout = cmLayouts[name] as { encode(value: object, to: Uint8Array, at: number): Uint8Array };
  return layout.encode(body, mad, MAD_HEADER_SIZE);
}

const once = new Uint8Array(MAD_SIZE);

/** The same as {@link emitMad}, but into memory that the next call reuses, for messages that are not kept. */
export function emitMadOnce<N extends CmMessageName>(
  name: N,
  transactionId: bigint,
  body: Partial<CmBody<N>>,
): Uint8Array {
  return emitMad(name, transactionId, body, once);
}

/** Milliseconds by timeout code. */
const TIMEOUTS = Array.from({ length: 32 }, (_, code) => Math.max(1, Math.ceil(0.004096 * 2 ** code)));

/** Milliseconds of a CM or ACK timeout code: 4.096 µs × 2^code, at least 1. */
export function timeoutCodeToMs(code: number): number {
  return TIMEOUTS[code]!;
}
