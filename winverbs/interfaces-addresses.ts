/** Addresses of devices and peers, and those in datagrams. */

/** An IP address and port. `family` is 4 or 6; `address` is text, with `%scope` for IPv6 link-local ones. */
export interface SocketAddress {
  /** 4 for IPv4, 6 for IPv6. */
  readonly family: 4 | 6;
  /** The IP address as text, with `%scope` for IPv6 link-local ones; no name of a host. */
  readonly address: string;
  /** 0 to 65535; 0 lets the kernel choose, where an address is bound. */
  readonly port: number;
}

/** The device, port and partition of an IP address (IBAT). */
export interface WvDeviceAddress {
  /** CA GUID. */
  readonly deviceGuid: bigint;
  /** The P_Key of the partition, 16 bits; 0xFFFF is the default one. */
  readonly pkey: number;
  /** The port of the device, from 1. */
  readonly portNumber: number;
}

/** The destination of datagrams (WV_ADDRESS_VECTOR). GIDs are 16 bytes, or IP addresses as text. */
export interface WvAddressVector {
  /** An address of the sending device. */
  readonly sourceGid: Uint8Array | string;
  /** A host's address, or a multicast group's. */
  readonly destinationGid: Uint8Array | string;
  /** 20 bits. */
  readonly flowLabel?: number;
  /** 8 bits: IPv4's TOS, IPv6's traffic class; default 0. */
  readonly trafficClass?: number;
  /** 0 (default): 64. */
  readonly hopLimit?: number;
  /** From 1, the default. */
  readonly portNumber?: number;
}

/**
 * How packets reach a peer (ib_path_rec_t). Members that are left out, or 0, are chosen as without a path record: by the port and the
 * options of the kernel.
 */
export interface WvPathRecord extends Omit<WvAddressVector, 'portNumber'> {
  /** The partition: an entry of the P_Key table of the port where the path begins. */
  readonly pkey?: number;
  /** Largest payload of a packet in bytes, 256 to 4096; the port's limit holds in any case. */
  readonly mtu?: number;
  /**
   * How long a packet may be under way, 4.096 µs × 2^n, n up to 63. Twice that is the ACK timeout of a reliable connection, of both
   * sides.
   */
  readonly packetLifeTime?: number;
}

/** The path to an address: the device to open, and the address vector to use on it. */
export interface WvPath {
  /** The device of this side, its port and partition. */
  readonly device: WvDeviceAddress;
  /** For {@link IWVProtectionDomain.createAddressHandle} on that device. */
  readonly addressVector: WvAddressVector;
  /** The whole path, for {@link IWVEndpoint.modify}; of a multicast group addresses alone. */
  readonly record: WvPathRecord;
}

/** The IP header of a received datagram, as far as the first 40 bytes of its buffer have it (IBA 1 Annex A17). */
export interface WvGrh {
  /** 4 or 6, the version of the IP header. */
  readonly ipVersion: 4 | 6;
  /** The sender's GID, 16 bytes; IPv4 behind ::ffff:0:0/96. */
  readonly sourceGid: Uint8Array;
  /** The GID that the datagram was sent to: a host's, or a group's. */
  readonly destinationGid: Uint8Array;
  /** 8 bits: IPv4's TOS, IPv6's traffic class, with the ECN bits of the packet. */
  readonly trafficClass: number;
  /** 0 with IPv4. */
  readonly flowLabel: number;
  /** What was left of IPv4's TTL or IPv6's hop limit, 8 bits. */
  readonly hopLimit: number;
}
