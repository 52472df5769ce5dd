/** This host's network interfaces and routes that RDMA devices need: from the OS, or simulated by tests. */
import type { AddonBinding } from '../../hca/soft-hca-binding.js';
import { Status, StatusError } from '../../ioctl/status.js';

/** An address of an interface. */
export interface InterfaceAddress {
  /** The address, 16 bytes; IPv4 is `::ffff:a.b.c.d`. */
  gid: Uint8Array;
  family: 4 | 6;
  /** Length of the subnet prefix in bits, in the address's own family. */
  prefixLength: number;
}

/** A network interface. */
export interface HostInterface {
  name: string;
  /** Interface index as in IPv6 scope ids; unique on the host. */
  index: number;
  /** The MAC address, 6 bytes; undefined for interfaces without one. */
  mac: Uint8Array | undefined;
  /** Maximum size of an IP packet in bytes. */
  mtu: number;
  /** Whether the interface is enabled and, if applicable, has a carrier. */
  up: boolean;
  addresses: InterfaceAddress[];
}

/** The route of packets to a destination. */
export interface HostRoute {
  /** The source address selected by the OS, or the given one. */
  source: Uint8Array;
  /** The outgoing interface. */
  interfaceIndex: number;
  /** Maximum size of an IP packet in bytes, if the route has its own MTU; 0: the interface's. */
  mtu: number;
}

/** The source of interfaces and routes. */
export interface HostNetwork {
  interfaces(): HostInterface[];
  /** Reports changes until the returned function is called. Undefined: changes are not reported. */
  watch(changed: () => void): (() => void) | undefined;
  /**
   * The OS's route to a destination. `source`: the source address, selected by the OS if undefined. `interfaceIndex`: the
   * outgoing interface, 0 for any. Undefined: no route.
   *
   * @throws StatusError INSUFFICIENT_RESOURCES, TOO_MANY_OPENED_FILES: the OS could not be queried.
   */
  route(
    destination: Uint8Array,
    source: Uint8Array | undefined,
    interfaceIndex: number,
  ): HostRoute | undefined;
  /** The same as {@link watch}, but for routes. */
  watchRoutes(changed: () => void): (() => void) | undefined;
  /** A text that differs between hosts and network namespaces, and survives a restart if possible. */
  identity(): string;
}

/** An Ethernet MAC, or undefined: loopback has all zeros, tunnels another length. */
export function ethernetMac(mac: Uint8Array): Uint8Array | undefined {
  return mac.length === 6 && mac.some((byte) => byte !== 0) ? mac : undefined;
}

const unspecified = new Uint8Array(16);

/** The real network of this host: the process's network namespace. */
export class SystemNetwork implements HostNetwork {
  constructor(
    private readonly system: Pick<
      AddonBinding,
      'interfaces' | 'watchInterfaces' | 'findRoute' | 'watchRoutes' | 'hostIdentity'
    >,
  ) {}

  interfaces(): HostInterface[] {
    return this.system.interfaces().map(({ name, index, mac, mtu, up, running, addresses }) => ({
      name,
      index,
      mac: ethernetMac(mac),
      mtu,
      up: up && running,
      addresses: addresses.map(({ gid, family, prefixLength }) => ({ gid, family, prefixLength })),
    }));
  }

  watch(changed: () => void): (() => void) | undefined {
    return this.system.watchInterfaces(changed);
  }

  route(
    destination: Uint8Array,
    from: Uint8Array | undefined,
    interfaceIndex: number,
  ): HostRoute | undefined {
    const { status, ...route } = this.system.findRoute(destination, from ?? unspecified, interfaceIndex);
    if (status === Status.INSUFFICIENT_RESOURCES || status === Status.TOO_MANY_OPENED_FILES) {
      throw new StatusError(status, 'The OS cannot create a socket to look up a route.');
    }
    return status === Status.SUCCESS ? route : undefined;
  }

  watchRoutes(changed: () => void): (() => void) | undefined {
    return this.system.watchRoutes(changed);
  }

  identity(): string {
    return this.system.hostIdentity();
  }
}
