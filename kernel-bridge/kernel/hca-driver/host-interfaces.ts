/** This host's network interfaces, as far as RDMA devices need them: from the system, or simulated by tests. */
import { readFileSync, readlinkSync } from 'node:fs';
import type { AddonBinding } from '../../hca/binding.js';

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

/** A route to other subnets: only default routes are used. */
export interface DefaultRoute {
  family: 4 | 6;
  interfaceName: string;
  metric: number;
}

/** The source of interfaces and default routes. */
export interface HostNetwork {
  interfaces(): HostInterface[];
  /** Reports changes, until the returned function is called. Undefined: changes are not reported. */
  watch(changed: () => void): (() => void) | undefined;
  defaultRoutes(): DefaultRoute[];
  /** A text that is constant until the host restarts and differs between hosts and network namespaces. */
  identity(): string;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** A MAC of Ethernet, or undefined: loopback has all zeros, tunnels another length. */
export function ethernetMac(mac: Uint8Array): Uint8Array | undefined {
  return mac.length === 6 && mac.some((byte) => byte !== 0) ? mac : undefined;
}

/** Parses `/proc/net/route` (IPv4) for default routes. */
export function defaultRoutes4(text: string): DefaultRoute[] {
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, destination, , flags, , , , mask]) => {
      return (
        destination === '00000000' && mask === '00000000' && (Number.parseInt(flags ?? '0', 16) & 1) !== 0
      );
    })
    .map((columns) => ({ family: 4, interfaceName: columns[0]!, metric: Number(columns[6]) }));
}

/** Parses `/proc/net/ipv6_route` for default routes; the kernel's own reject route on lo does not count. */
export function defaultRoutes6(text: string): DefaultRoute[] {
  const rejectFlag = 0x200;
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => {
      const flags = Number.parseInt(columns[8] ?? '0', 16);
      return columns.length >= 10 && columns[1] === '00' && (flags & 1) !== 0 && (flags & rejectFlag) === 0;
    })
    .map((columns) => ({
      family: 6,
      interfaceName: columns[9]!,
      metric: Number.parseInt(columns[5]!, 16),
    }));
}

/** The real network of this host: the process's network namespace. */
export class SystemNetwork implements HostNetwork {
  constructor(private readonly system: Pick<AddonBinding, 'interfaces' | 'watchInterfaces'>) {}

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

  defaultRoutes(): DefaultRoute[] {
    return [
      ...defaultRoutes4(readText('/proc/net/route')),
      ...defaultRoutes6(readText('/proc/net/ipv6_route')),
    ];
  }

  identity(): string {
    let namespace = '';
    try {
      namespace = readlinkSync('/proc/self/ns/net');
    } catch {
      // Without procfs, boot id and name must do.
    }
    return `${readText('/proc/sys/kernel/random/boot_id')} ${namespace}`;
  }
}
