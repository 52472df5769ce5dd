/** This host's network interfaces, as far as RDMA devices need them: read from the system, or made up by tests. */
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

/** A route without a subnet of ours: only default routes are looked at. */
export interface DefaultRoute {
  family: 4 | 6;
  interfaceName: string;
  metric: number;
}

/** Where interfaces and default routes come from. */
export interface HostNetwork {
  interfaces(): HostInterface[];
  /** Has changes told, until the function that it answers is called. Undefined: nothing tells of them. */
  watch(changed: () => void): (() => void) | undefined;
  defaultRoutes(): DefaultRoute[];
  /** A text that stays the same until the host restarts and differs between hosts and network namespaces. */
  identity(): string;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** A MAC of Ethernet, or undefined: loopback has an all-zero one, tunnels another length. */
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

/** Parses `/proc/net/ipv6_route` for default routes; the kernel's own reject route on lo is none. */
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

/** The real network of this host: that of the network namespace that the process is in. */
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
      // Without procfs the boot id and the name have to do.
    }
    return `${readText('/proc/sys/kernel/random/boot_id')} ${namespace}`;
  }
}
