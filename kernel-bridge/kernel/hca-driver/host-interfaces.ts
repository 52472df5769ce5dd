/** This host's network interfaces, as far as RDMA devices need them: read from the system, or made up by tests. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { gidOfAddress } from '../../ioctl/sockaddr.js';

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

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** The bytes of a MAC, or undefined where there is none (other lengths, all zero). */
export function parseMac(text: string): Uint8Array | undefined {
  if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text)) return undefined;
  const mac = Uint8Array.from(text.split(':'), (byte) => Number.parseInt(byte, 16));
  return mac.some((byte) => byte !== 0) ? mac : undefined;
}

function prefixOf(cidr: string | null): number {
  const length = Number(cidr?.split('/')[1]);
  return Number.isInteger(length) ? length : 0;
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

/** Names of the interfaces of this network namespace, up or down, from the text of `/proc/net/dev`. */
export function interfaceNames(text: string): string[] {
  return text
    .split('\n')
    .slice(2)
    .map((line) => line.slice(0, line.lastIndexOf(':')).trim())
    .filter((name) => name !== '');
}

/** The real network of this host, by procfs and sysfs. */
export class SystemNetwork implements HostNetwork {
  /** Indexes given to interfaces whose real one cannot be read; an interface keeps its own. */
  readonly #indexes = new Map<string, number>();

  interfaces(): HostInterface[] {
    const configured = networkInterfaces();
    // procfs follows the caller's network namespace; Node's list leaves out interfaces that are down.
    const names = new Set([...interfaceNames(readText('/proc/net/dev')), ...Object.keys(configured)]);
    // sysfs shows the namespace it was mounted in, which may be another one: then it says nothing about ours.
    const own = list('/sys/class/net').filter((name) => readText(`/sys/class/net/${name}/ifindex`) !== '');
    const sysfs = own.length === names.size && own.every((name) => names.has(name));
    const found: HostInterface[] = [];
    for (const name of names) {
      const entries = configured[name] ?? [];
      const read = (file: string) => (sysfs ? readText(`/sys/class/net/${name}/${file}`) : '');
      const state = read('operstate');
      found.push({
        name,
        index: Number(read('ifindex')) || this.#indexOf(name),
        mac: parseMac(read('address') || (entries[0]?.mac ?? '')),
        mtu: Number(read('mtu')) || 1500,
        // Loopback and tunnels say "unknown".
        up: state === 'up' || state === 'unknown' || (state === '' && entries.length > 0),
        addresses: entries.map((entry) => ({
          gid: gidOfAddress(entry.address),
          family: entry.family === 'IPv4' ? 4 : 6,
          prefixLength: prefixOf(entry.cidr),
        })),
      });
    }
    return found.sort((a, b) => a.index - b.index);
  }

  #indexOf(name: string): number {
    let index = this.#indexes.get(name);
    if (index === undefined) {
      index = 1_000_000 + this.#indexes.size;
      this.#indexes.set(name, index);
    }
    return index;
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
