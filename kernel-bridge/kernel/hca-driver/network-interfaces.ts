/** This host's network interfaces and routes, as far as RDMA devices need them: from the system, or simulated by tests. */
import type { AddonBinding } from '../../hca/soft-hca-binding.js';
import { Status, StatusError } from '../../ioctl/status.js';

/** An address of an interface. */
export interface InterfaceAddress {
  /** 16 bytes; IPv4 is `::ffff:a.b.c.d`. */
  gid: Uint8Array;
  family: 4 | 6;
  /** Bits of the subnet, counted in the address's own family. */
  prefixLength: number;
}

/** A network interface. */
export interface HostInterface {
  name: string;
  /** As in IPv6 scope ids; unique on the host. */
  index: number;
  /** 6 bytes; undefined for interfaces without a MAC. */
  mac: Uint8Array | undefined;
  /** Bytes of an IP packet. */
  mtu: number;
  /** Switched on, and with a carrier if it is of a kind that has one. */
  up: boolean;
  addresses: InterfaceAddress[];
}

/** How packets leave for a destination. */
export interface HostRoute {
  /** The source address that the system chooses, or the given one. */
  source: Uint8Array;
  /** The interface by which they leave. */
  interfaceIndex: number;
  /** Bytes of an IP packet, if the route has an MTU of its own; 0: the interface's. */
  mtu: number;
}

/** The source of interfaces and routes. */
export interface HostNetwork {
  interfaces(): HostInterface[];
  /** Reports changes, until the returned function is called. Undefined: changes are not reported. */
  watch(changed: () => void): (() => void) | undefined;
  /**
   * The system's route to a destination. `source`: of packets that leave from this address; undefined: the system chooses one.
   * `interfaceIndex`: of packets that leave by this interface; 0: by any. Undefined: there is none.
   *
   * @throws StatusError INSUFFICIENT_RESOURCES, TOO_MANY_OPENED_FILES: the system could not be asked.
   */
  route(
    destination: Uint8Array,
    source: Uint8Array | undefined,
    interfaceIndex: number,
  ): HostRoute | undefined;
  /** As {@link watch}, for routes. */
  watchRoutes(changed: () => void): (() => void) | undefined;
  /** A text that differs between hosts and network namespaces, and outlives a restart where it can. */
  identity(): string;
}

/** A MAC of Ethernet, or undefined: loopback has all zeros, tunnels another length. */
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
      throw new StatusError(status, 'The system has no socket left to ask for a route.');
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
