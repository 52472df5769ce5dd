/**
 * The HCAs of this host: one per network interface, with one RoCE port each. GUIDs, GID tables, MTUs and the choice
 * of a local address for a remote one.
 */
import { PortState, WvEvent } from '../../ioctl/constants.js';
import { assertPassive } from '../io-manager/irql.js';
import type { HostInterface, HostNetwork, InterfaceAddress } from './host-interfaces.js';
import { DEFAULT_PKEY } from './pkeys.js';

/** Bytes of Ethernet payload that RoCEv2 headers and ICRC take at most, as Linux counts them for a port. */
const headerRoom = 80;

/** The largest path MTU (bytes) that packets on an interface of this MTU can carry; 256 at least. */
export function activeMtuOf(interfaceMtu: number): number {
  for (const mtu of [4096, 2048, 1024, 512]) if (mtu <= interfaceMtu - headerRoom) return mtu;
  return 256;
}

/** IB's code of a path MTU in bytes: 256 is 1 … 4096 is 5. */
export function mtuCode(bytes: number): number {
  return Math.log2(bytes) - 7;
}

/** Path MTU in bytes of an IB code, or 0 for codes that are none. */
export function mtuBytes(code: number): number {
  return code >= 1 && code <= 5 ? 128 << code : 0;
}

/** EUI-64 of a MAC with the universal/local bit flipped, as IPv6 and RoCE node GUIDs have it. */
export function guidOfMac(mac: Uint8Array): bigint {
  const b = (index: number): number => mac[index] ?? 0;
  const eui = [b(0) ^ 2, b(1), b(2), 0xff, 0xfe, b(3), b(4), b(5)];
  return eui.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/**
 * A GUID for an interface that has no MAC of its own: the same until the host restarts, marked as local. By FNV-1a, as
 * what goes into it is no secret: Node's hashes take longer to load than all else that a kernel needs to start.
 */
export function localGuid(identity: string, name: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(`${identity}\n${name}`)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  // In the flipped form a cleared bit says "locally administered"; a group bit has no place in a GUID.
  return hash & ~(3n << 56n);
}

/** What an HCA's only port is now. */
export interface HcaPort {
  readonly guid: bigint;
  readonly interfaceName: string;
  readonly interfaceIndex: number;
  /** 6 bytes; undefined for interfaces without a MAC. */
  readonly mac: Uint8Array | undefined;
  readonly state: number;
  /** Bytes. */
  readonly activeMtu: number;
  readonly gids: readonly Uint8Array[];
  readonly addresses: readonly InterfaceAddress[];
  /** The P_Key table; at least one entry. */
  readonly pkeys: readonly number[];
}

/** What changed between two looks at an HCA. */
export interface PortChange {
  readonly guid: bigint;
  /** Undefined: the interface is gone. */
  readonly port: HcaPort | undefined;
  /** Undefined: the interface is new. */
  readonly previous: HcaPort | undefined;
}

/** How long a look at the interfaces is good for, in milliseconds. */
export const freshMs = 1000;

function sameGid(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== 16 || b.length !== 16) return false;
  // Addresses differ at their ends.
  for (let index = 15; index >= 0; index--) if (a[index] !== b[index]) return false;
  return true;
}

function zeroUpTo(gid: Uint8Array, end: number): boolean {
  for (let index = 0; index < end; index++) if (gid[index] !== 0) return false;
  return true;
}

/** `::` or `::ffff:0.0.0.0`. */
export function isUnspecified(gid: Uint8Array): boolean {
  for (let index = 12; index < 16; index++) if (gid[index] !== 0) return false;
  return zeroUpTo(gid, 12) || isV4(gid);
}

/** An IPv4 address in GID form. */
export function isV4(gid: Uint8Array): boolean {
  return gid[10] === 0xff && gid[11] === 0xff && zeroUpTo(gid, 10);
}

/** 127.0.0.0/8 or ::1. */
export function isLoopback(gid: Uint8Array): boolean {
  if (isV4(gid)) return gid[12] === 127;
  return gid[15] === 1 && zeroUpTo(gid, 15);
}

/** 224.0.0.0/4 or ff00::/8. */
export function isMulticast(gid: Uint8Array): boolean {
  return isV4(gid) ? ((gid[12] ?? 0) & 0xf0) === 0xe0 : gid[0] === 0xff;
}

/** fe80::/10. */
export function isLinkLocal(gid: Uint8Array): boolean {
  return gid[0] === 0xfe && ((gid[1] ?? 0) & 0xc0) === 0x80;
}

function commonBits(a: Uint8Array, b: Uint8Array): number {
  for (let index = 0; index < 16; index++) {
    const difference = (a[index] ?? 0) ^ (b[index] ?? 0);
    if (difference !== 0) return index * 8 + Math.clz32(difference) - 24;
  }
  return 128;
}

function inSubnet(address: InterfaceAddress, gid: Uint8Array): boolean {
  const bits = address.family === 4 ? 96 + address.prefixLength : address.prefixLength;
  return (address.family === 4) === isV4(gid) && commonBits(address.gid, gid) >= bits;
}

function samePort(a: HcaPort, b: HcaPort): boolean {
  return a.activeMtu === b.activeMtu && portEvents(a, b) === 0;
}

/** WV_EVENT_* flags of what is different. */
export function portEvents(before: HcaPort, now: HcaPort): number {
  const state = before.state === now.state ? 0 : WvEvent.STATE;
  const address = sameGids(before.gids, now.gids) ? 0 : WvEvent.ADDRESS;
  const linkAddress = `${before.mac}` === `${now.mac}` ? 0 : WvEvent.LINK_ADDRESS;
  return state | address | linkAddress;
}

/** Whether two GID tables are equal, order included. */
export function sameGids(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((gid, index) => sameGid(gid, b[index]!));
}

function nameOf({ interfaceIndex, interfaceName }: HcaPort): string {
  return `${interfaceIndex} ${interfaceName}`;
}

/** The table of HCAs, looked at again when it is older than a second or misses something. */
export class PortTable {
  /** What was asked for last, mostly again: good for that look at the interfaces. */
  private lastFound:
    | { ports: Map<bigint, HcaPort>; gid: Uint8Array; scopeId: number; port: HcaPort }
    | undefined = undefined;
  private ports = new Map<bigint, HcaPort>();
  private readAt = Number.NEGATIVE_INFINITY;
  /** Told of every difference that a look finds. */
  onChange: (change: PortChange) => void = () => {};

  /** CA GUIDs of interfaces that are taken for gone. */
  private readonly hidden = new Set<bigint>();

  constructor(
    private readonly network: HostNetwork,
    private readonly now: () => number = () => performance.now(),
    /** The P_Key table of an interface's port. */
    private readonly pkeysOf: (interfaceName: string) => readonly number[] = () => [DEFAULT_PKEY],
  ) {}

  /** Looks at the interfaces if the last look is old; with `force` always. */
  refresh(force = false): void {
    assertPassive("looking at the host's interfaces");
    if (!force && this.now() - this.readAt < freshMs) return;
    const previous = this.ports;
    this.ports = this.read();
    this.readAt = this.now();
    for (const [guid, port] of this.ports) {
      const before = previous.get(guid);
      if (!before || !samePort(before, port)) this.onChange({ guid, port, previous: before });
    }
    for (const [guid, before] of previous) {
      if (!this.ports.has(guid)) this.onChange({ guid, port: undefined, previous: before });
    }
  }

  /** Takes an interface for gone (true) or no longer (false), and looks at once: pulling a device without a wrench. */
  hide(guid: bigint, gone: boolean): void {
    if (gone) this.hidden.add(guid);
    else this.hidden.delete(guid);
    this.refresh(true);
  }

  private read(): Map<bigint, HcaPort> {
    const identity = this.network.identity();
    const ports = new Map<bigint, HcaPort>();
    const interfaces = this.network.interfaces();
    // An interface keeps its GUID as long as it is there, whatever becomes of its MAC.
    const known = new Map([...this.ports.values()].map((port) => [nameOf(port), port.guid]));
    const kept = new Set(interfaces.map((one) => known.get(`${one.index} ${one.name}`)));
    for (const one of interfaces) {
      // VLANs and bridges repeat the MAC of what they stand on: the first keeps it, a GUID names one device.
      const fromMac = one.mac ? guidOfMac(one.mac) : undefined;
      const free = fromMac !== undefined && !ports.has(fromMac) && !kept.has(fromMac) ? fromMac : undefined;
      const guid = known.get(`${one.index} ${one.name}`) ?? free ?? localGuid(identity, one.name);
      ports.set(guid, this.portOf(guid, one));
    }
    for (const guid of this.hidden) ports.delete(guid);
    return ports;
  }

  private portOf(guid: bigint, one: HostInterface): HcaPort {
    const linkLocal = one.addresses.filter(({ gid }) => isLinkLocal(gid));
    const others = one.addresses.filter(({ gid }) => !isLinkLocal(gid));
    const addresses = [...linkLocal, ...others];
    return {
      guid,
      interfaceName: one.name,
      interfaceIndex: one.index,
      mac: one.mac,
      state: one.up ? PortState.ACTIVE : PortState.DOWN,
      activeMtu: activeMtuOf(one.mtu),
      gids: addresses.map(({ gid }) => gid),
      addresses,
      pkeys: this.pkeysOf(one.name),
    };
  }

  /** All HCAs, in the order of their interfaces' indexes. */
  all(): HcaPort[] {
    this.refresh();
    return [...this.ports.values()];
  }

  /** As {@link get}, by the last look: does not wait. */
  peek(guid: bigint): HcaPort | undefined {
    return this.ports.get(guid);
  }

  get(guid: bigint): HcaPort | undefined {
    this.refresh();
    return this.ports.get(guid);
  }

  /** The HCA that has this address now; looks again before it says no. `scopeId` chooses among link-local ones. */
  ofGid(gid: Uint8Array, scopeId = 0): HcaPort | undefined {
    this.refresh();
    const last = this.lastFound;
    if (
      last !== undefined &&
      last.ports === this.ports &&
      last.scopeId === scopeId &&
      sameGid(last.gid, gid)
    ) {
      return last.port;
    }
    const found = this.find(gid, scopeId);
    if (found) return found;
    this.refresh(true);
    return this.find(gid, scopeId);
  }

  private find(gid: Uint8Array, scopeId: number): HcaPort | undefined {
    for (const port of this.ports.values()) {
      if (scopeId !== 0 && port.interfaceIndex !== scopeId && isLinkLocal(gid)) continue;
      const own = port.gids.find((one) => sameGid(one, gid));
      if (own === undefined) continue;
      this.lastFound = { ports: this.ports, gid: own, scopeId, port };
      return port;
    }
    return undefined;
  }

  /**
   * The local address to reach `remote` from: the address itself if it is ours, else the one in the longest
   * matching subnet, else one of the interface with the best default route. Undefined: no route.
   */
  sourceFor(remote: Uint8Array, scopeId = 0): Uint8Array | undefined {
    if (this.ofGid(remote, scopeId)) return remote;
    let best: { gid: Uint8Array; bits: number } | undefined;
    for (const port of this.ports.values()) {
      if (isLinkLocal(remote) && scopeId !== 0 && port.interfaceIndex !== scopeId) continue;
      for (const address of port.addresses) {
        if (!inSubnet(address, remote)) continue;
        if (!best || address.prefixLength > best.bits)
          best = { gid: address.gid, bits: address.prefixLength };
      }
    }
    if (best) return best.gid;
    if (isLinkLocal(remote)) return undefined;
    const family = isV4(remote) ? 4 : 6;
    const routes = this.network
      .defaultRoutes()
      .filter((route) => route.family === family)
      .sort((a, b) => a.metric - b.metric);
    for (const { interfaceName } of routes) {
      const port = [...this.ports.values()].find((one) => one.interfaceName === interfaceName);
      const usable =
        port?.addresses.filter(({ gid }) => (family === 4) === isV4(gid) && !isLinkLocal(gid)) ?? [];
      // Among several addresses the one most like the destination (RFC 6724 rule 8).
      usable.sort((a, b) => commonBits(b.gid, remote) - commonBits(a.gid, remote));
      if (usable[0]) return usable[0].gid;
    }
    return undefined;
  }
}

export { sameGid };
