/**
 * The devices of all HCAs of this kernel, with one port each: finds the device of an address, and selects a local
 * address for a remote one.
 */
import { PacketBytes, type PathParameters } from '../../hca/soft-hca-binding.js';
import { WvEvent } from '../../ioctl/constants.js';
import type { Value } from '../../ioctl/layout.js';
import { Status } from '../../ioctl/status.js';
import type { WvIoAv } from '../../ioctl/structs.js';
import { assertPassive, isPassive } from '../io-manager/irql.js';
import type { WorkItems } from '../io-manager/work-items.js';
import type { HcaBackend, HcaPort } from './backend.js';
import type { HostNetwork } from './network-interfaces.js';

/** IB's code of a path MTU in bytes: 256 is 1 … 4096 is 5. */
export function mtuCode(bytes: number): number {
  return Math.log2(bytes) - 7;
}

/** Path MTU in bytes of an IB code, or 0 for an invalid code. */
export function mtuBytes(code: number): number {
  return code >= 1 && code <= 5 ? 128 << code : 0;
}

/** The largest path MTU, in bytes. */
const largestMtu = 4096;
/** Maximum size of RoCEv2 headers and ICRC in bytes, as Linux assumes it for a port. */
const headerRoom = 80;

/** The largest path MTU (bytes) for packets of at most this size (including the IP header); at least 256. */
export function activeMtuOf(ipMtu: number): number {
  for (let mtu = largestMtu; mtu > 256; mtu /= 2) if (mtu <= ipMtu - headerRoom) return mtu;
  return 256;
}

/** Bytes of IP and UDP headers, BTH, RETH, immediate data and ICRC: the overhead of a packet of a long message. */
const headersOf = { v4: 20 + 8 + 12 + 16 + 4 + 4, v6: 40 + 8 + 12 + 16 + 4 + 4 };

/**
 * Maximum that this version offers and accepts. It fills the longest jumbo frames of common switches (an MTU of 9216).
 * Over the loopback interface, packets of {@link PacketBytes.longest} were slower than these
 * (docs/measurements/log.md).
 */
const mostPacketBytes = 9152;

/** Payload in bytes that fills packets of this size (including the IP header) between two peers of this package. */
export function packetBytesOf(ipMtu: number, v4: boolean): number {
  const most = Math.min(ipMtu - (v4 ? headersOf.v4 : headersOf.v6), mostPacketBytes);
  return Math.max(0, most - (most % PacketBytes.step));
}

/** A device and its HCA. */
export interface KnownPort extends HcaPort {
  /** @internal */
  readonly hca: HcaBackend;
}

/** The first step of a path. */
export interface LocalRoute {
  /** Source address of the path. */
  readonly source: Uint8Array;
  /** The device with this address. */
  readonly port: KnownPort;
  /** Maximum payload in bytes for the device and the outgoing interface. */
  readonly pathMtu: number;
}

/** A difference between two scans of a device. */
export interface PortChange {
  readonly guid: bigint;
  /** The current port, or undefined if the device is gone. */
  readonly port: KnownPort | undefined;
  /** The previous port, or undefined if the device is new. */
  readonly previous: KnownPort | undefined;
}

/** Cached result of a route lookup. */
interface SeenRoute {
  readonly pathMtu: number;
  /** Size of an IP packet in bytes; 0: unknown. */
  readonly ipMtu: number;
}

/** Maximum number of cached routes. */
const mostRoutes = 1024;

/** How long a scan of the interfaces is valid, in milliseconds. */
export const freshMs = 1000;

function sameGid(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== 16 || b.length !== 16) return false;
  // The comparison starts at the end, where addresses differ.
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

function samePort(a: HcaPort, b: HcaPort): boolean {
  return a.activeMtu === b.activeMtu && portEvents(a, b) === 0;
}

/** WV_EVENT_* flags for the differences. */
export function portEvents(before: HcaPort, now: HcaPort): number {
  const state = before.state === now.state ? 0 : WvEvent.STATE;
  const address = sameGids(before.gids, now.gids) ? 0 : WvEvent.ADDRESS;
  const linkAddress = `${before.mac}` === `${now.mac}` ? 0 : WvEvent.LINK_ADDRESS;
  const partition = `${before.pkeys}` === `${now.pkeys}` ? 0 : WvEvent.PARTITION;
  return state | address | linkAddress | partition;
}

/** Whether two GID tables are equal, order included. */
export function sameGids(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((gid, index) => sameGid(gid, b[index]!));
}

/** The addresses of a port, except those that ports of another HCA already have. */
function ownAddresses(port: HcaPort, others: readonly HcaPort[]): Pick<HcaPort, 'gids' | 'addresses'> {
  const own = (gid: Uint8Array): boolean =>
    !others.some(
      ({ gids, interfaceIndex }) =>
        (!isLinkLocal(gid) || interfaceIndex === port.interfaceIndex) &&
        gids.some((one) => sameGid(one, gid)),
    );
  const { gids, addresses } = port;
  return others.length === 0
    ? { gids, addresses }
    : { gids: gids.filter(own), addresses: addresses.filter(({ gid }) => own(gid)) };
}

/** The table of devices, scanned again when it is older than a second or an entry is missing. */
export class PortTable {
  /** The latest result, which is mostly requested again; valid for that scan of the interfaces. */
  private lastFound:
    | { ports: Map<bigint, KnownPort>; gid: Uint8Array; scopeId: number; port: KnownPort }
    | undefined = undefined;
  private ports = new Map<bigint, KnownPort>();
  private readAt = Number.NEGATIVE_INFINITY;
  /** Called for every difference found by a scan. */
  onChange: (change: PortChange) => void = () => {};

  /** By source and destination, the most recent last. */
  private readonly routes = new Map<string, SeenRoute>();
  /** CA GUIDs of devices that are treated as removed. */
  private readonly hidden = new Set<bigint>();
  /** Whether a scan is queued. */
  private queued = false;

  constructor(
    /** The first HCA with an address or GUID owns it. */
    private readonly hcas: readonly HcaBackend[],
    private readonly network: Pick<HostNetwork, 'route'>,
    private readonly work: Pick<WorkItems, 'queue'>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Scans the interfaces if the last scan is out of date; with `force` always. At DISPATCH_LEVEL the scan is queued as
   * a work item, and until then the last one applies.
   */
  refresh(force = false): void {
    if (!force && this.now() - this.readAt < freshMs) return;
    if (isPassive()) this.look();
    else if (!this.queued) {
      this.queued = true;
      this.work.queue(() => {
        this.queued = false;
        this.look();
      });
    }
  }

  private look(): void {
    assertPassive("reading the host's interfaces");
    const previous = this.ports;
    this.ports = this.read();
    this.readAt = this.now();
    for (const [guid, port] of this.ports) {
      let before = previous.get(guid);
      if (before && before.hca !== port.hca) {
        this.onChange({ guid, port: undefined, previous: before });
        before = undefined;
      }
      if (!before || !samePort(before, port)) this.onChange({ guid, port, previous: before });
    }
    for (const [guid, before] of previous) {
      if (!this.ports.has(guid)) this.onChange({ guid, port: undefined, previous: before });
    }
  }

  private read(): Map<bigint, KnownPort> {
    const ports = new Map<bigint, KnownPort>();
    for (const hca of this.hcas) {
      const others = [...ports.values()];
      for (const port of hca.readPorts()) {
        if (!ports.has(port.guid)) ports.set(port.guid, { ...port, ...ownAddresses(port, others), hca });
      }
    }
    for (const guid of this.hidden) ports.delete(guid);
    return ports;
  }

  /** Treats a device as removed (true) or present (false) and scans immediately: a simulated unplug. */
  hide(guid: bigint, gone: boolean): void {
    if (gone) this.hidden.add(guid);
    else this.hidden.delete(guid);
    this.refresh(true);
  }

  /** All devices, those of each HCA in its order. */
  all(): KnownPort[] {
    this.refresh();
    return [...this.ports.values()];
  }

  /** The same as {@link get}, but from the last scan: does not block. */
  peek(guid: bigint): KnownPort | undefined {
    return this.ports.get(guid);
  }

  get(guid: bigint): KnownPort | undefined {
    this.refresh();
    return this.ports.get(guid);
  }

  /**
   * The device that has this address now. Scans again before it returns undefined, at DISPATCH_LEVEL afterwards.
   * `scopeId` selects among link-local addresses.
   */
  ofGid(gid: Uint8Array, scopeId = 0): KnownPort | undefined {
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

  private find(gid: Uint8Array, scopeId: number): KnownPort | undefined {
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
   * The path to `remote` from `source`, an address of this host, or from the address selected by the OS. Undefined: no
   * route, or the route begins at an address that no device has. `scopeId` selects among the interfaces of link-local
   * addresses and groups.
   */
  routeTo(remote: Uint8Array, source: Uint8Array | undefined, scopeId = 0): LocalRoute | undefined {
    assertPassive("reading the host's routes");
    if (this.ofGid(remote, scopeId)) return this.startAt(source ?? remote, remote, scopeId, largestMtu);
    if (source && isLoopback(source)) return undefined;
    const scoped = isLinkLocal(remote) || isMulticast(remote);
    const route = this.network.route(remote, source, scoped ? scopeId : 0);
    if (!route) return undefined;
    // Packets from the address of one interface may leave through another.
    const leaves = [...this.ports.values()].find((one) => one.interfaceIndex === route.interfaceIndex);
    const mtu = Math.min(
      leaves?.activeMtu ?? largestMtu,
      route.mtu === 0 ? largestMtu : activeMtuOf(route.mtu),
    );
    const ipMtu = Math.min(leaves?.ipMtu ?? 0, route.mtu || Number.POSITIVE_INFINITY);
    return this.startAt(route.source, remote, scopeId || route.interfaceIndex, mtu, ipMtu);
  }

  private startAt(
    source: Uint8Array,
    remote: Uint8Array,
    scopeId: number,
    mtu: number,
    ipMtu = Number.POSITIVE_INFINITY,
  ): LocalRoute | undefined {
    const port = this.ofGid(source, scopeId);
    if (!port) return undefined;
    const pathMtu = Math.min(port.activeMtu, mtu);
    this.remember(routeKey(source, remote), { pathMtu, ipMtu: Math.min(port.ipMtu ?? 0, ipMtu) });
    return { source, port, pathMtu };
  }

  private remember(key: string, route: SeenRoute): void {
    this.routes.delete(key);
    const oldest = this.routes.size >= mostRoutes ? this.routes.keys().next().value : undefined;
    if (oldest !== undefined) this.routes.delete(oldest);
    this.routes.set(key, route);
  }

  /**
   * Payload of the longest packet from `source` to `remote` in bytes, from the last {@link routeTo}: does not block. 0:
   * no more than `pathMtu`, because this route was never looked up, or a smaller MTU is requested.
   */
  packetBytes(source: Uint8Array, remote: Uint8Array, pathMtu: number): number {
    const seen = this.routes.get(routeKey(source, remote));
    if (!seen || pathMtu < seen.pathMtu) return 0;
    const now = this.find(source, 0)?.ipMtu ?? 0;
    return packetBytesOf(Math.min(seen.ipMtu, now), isV4(source));
  }
}

function routeKey(source: Uint8Array, remote: Uint8Array): string {
  return `${source} ${remote}`;
}

export { sameGid };

/** An address vector as in IOCTLs. */
export type IbAddressVector = Value<typeof WvIoAv>;

/** Hop limit if the address vector has none. */
const defaultHopLimit = 64;

/**
 * The path of an address vector from this port, or a status: INVALID_PARAMETER without a network route (RoCE routes
 * every packet by GIDs), INVALID_ADDRESS for a source GID that the port does not have, no destination, or two address
 * families.
 */
export function pathOfAv(port: HcaPort, av: IbAddressVector): { path: PathParameters } | { status: number } {
  const { sGid: source, dGid: destination, trafficClass } = av;
  if (av.networkRouteValid === 0) return { status: Status.INVALID_PARAMETER };
  const known = port.gids.some((gid) => sameGid(gid, source));
  if (!known || isUnspecified(destination) || isV4(source) !== isV4(destination)) {
    return { status: Status.INVALID_ADDRESS };
  }
  // IPv6 link-local addresses and groups are valid only with their interface.
  const scoped = !isV4(destination) && (isLinkLocal(destination) || isMulticast(destination));
  return {
    path: {
      source,
      destination,
      flowLabel: av.flowLabel & 0xfffff,
      trafficClass,
      hopLimit: av.hopLimit || defaultHopLimit,
      scopeId: scoped ? port.interfaceIndex : 0,
    },
  };
}
