/** MADs of an attacker that can only send UDP from this host: RoCEv2 packets of QP1 over IPv4 with a correct ICRC. */
import { createSocket, type Socket } from 'node:dgram';
import { type CmBody, emitMad, ipCmHeader } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { expectedIcrc } from './pcap.js';

export const ROCE_PORT = 4791;
const IP_BYTES = 20;
const UDP_BYTES = 8;
const BTH_DETH_BYTES = 20;
const MAD_BYTES = 256;
const ICRC_BYTES = 4;
const UD_SEND_ONLY = 0x64;
const DEFAULT_PKEY = 0xffff;
const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;
/** Service ID of the RDMA IP CM service for reliable connections. Its low half is the port. */
const RC_SERVICE = 0x0106_0000n;
const PATH_MTU_1024 = 3;

const quad = (address: string): number[] => address.split('.').map(Number);

export function gidOf(address: string): Uint8Array {
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...quad(address));
}

/** The RDMA IP CM header of a message between two addresses. */
export function ipCmHeaderOf(source: string, destination: string): Uint8Array {
  const bytes = (address: string) => Uint8Array.from([...new Uint8Array(12), ...quad(address)]);
  return ipCmHeader.encode({
    ipVersion: 4,
    sourcePort: 1,
    sourceAddress: bytes(source),
    destinationAddress: bytes(destination),
  });
}

/** A valid REQ to `address`, from that address or another one, with the given fields. */
export function forgedReq(
  address: string,
  port: number,
  says: Partial<CmBody<'REQ'>>,
  source = address,
  transactionId = 1n,
): Uint8Array {
  return emitMad('REQ', transactionId, {
    serviceId: RC_SERVICE | BigInt(port),
    pkey: DEFAULT_PKEY,
    pathMtu: PATH_MTU_1024,
    primaryLocalGid: gidOf(source),
    primaryRemoteGid: gidOf(address),
    primaryHopLimit: 64,
    primaryAckTimeout: 17,
    localResponseTimeout: 18,
    remoteResponseTimeout: 18,
    maxCmRetries: 3,
    privateData: ipCmHeaderOf(source, address),
    ...says,
  });
}

/** Sends MADs to an address of this host, from the same or another one, with its own socket. */
export class Forger {
  readonly #socket: Socket = createSocket('udp4');

  private constructor(
    readonly address: string,
    readonly source: string,
  ) {}

  static async open(address: string, source = address): Promise<Forger> {
    const forger = new Forger(address, source);
    await new Promise<void>((resolve) => forger.#socket.bind(0, source, resolve));
    return forger;
  }

  /** Resolves when the OS has accepted the packet. */
  send(mad: Uint8Array): Promise<void> {
    return this.sendPacket(this.packet(mad));
  }

  /** Creates the datagram of a MAD, which can be sent any number of times. */
  packet(mad: Uint8Array): Uint8Array {
    return this.#packet(mad).subarray(IP_BYTES + UDP_BYTES);
  }

  sendPacket(packet: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(packet, ROCE_PORT, this.address, (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    this.#socket.close();
  }

  /** The packet starts at the IP header, because the ICRC covers some of its fields. */
  #packet(mad: Uint8Array): Buffer {
    const length = IP_BYTES + UDP_BYTES + BTH_DETH_BYTES + MAD_BYTES + ICRC_BYTES;
    const ip = Buffer.alloc(length);
    ip[0] = 0x45;
    ip.writeUInt16BE(length, 2);
    ip[6] = 0x40;
    ip[9] = 17;
    ip.set([...quad(this.source), ...quad(this.address)], 12);
    const udp = ip.subarray(IP_BYTES);
    udp.writeUInt16BE(this.#socket.address().port, 0);
    udp.writeUInt16BE(ROCE_PORT, 2);
    udp.writeUInt16BE(length - IP_BYTES, 4);
    const bth = udp.subarray(UDP_BYTES);
    bth[0] = UD_SEND_ONLY;
    bth.writeUInt16BE(DEFAULT_PKEY, 2);
    bth[7] = GSI_QPN;
    bth.writeUInt32BE(GSI_QKEY, 12);
    bth[19] = GSI_QPN;
    bth.set(mad, BTH_DETH_BYTES);
    ip.writeUInt32LE(expectedIcrc(ip), length - ICRC_BYTES);
    return ip;
  }
}
