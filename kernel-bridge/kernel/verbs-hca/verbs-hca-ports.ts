/** The ports of a real device in the form of the kernel's table: their addresses are those of its network interfaces. */
import { readdirSync, statSync } from 'node:fs';
import type { VerbsDevice, VerbsGid, VerbsHca, VerbsPort } from '../../hca/verbs-binding.js';
import { PortTransport } from '../../ioctl/constants.js';
import type { HcaPort } from '../hca-driver/backend.js';
import { isLinkLocal, mtuBytes, sameGid } from '../hca-driver/hca-ports.js';
import type { HostInterface, HostNetwork } from '../hca-driver/network-interfaces.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';

const roceV2 = 2;
const linkEthernet = 2;
/** The RDMA devices of this host. */
export const SYSTEM_DEVICES = '/sys/class/infiniband';

/** Names of the RDMA devices; reads a directory. */
export function systemDevices(): string[] {
  try {
    return readdirSync(SYSTEM_DEVICES).sort();
  } catch {
    return [];
  }
}

/** Distinguishes a device from a later one with the same name. Undefined: no device has the name. */
export function systemDeviceId(name: string): bigint | undefined {
  return statSync(`${SYSTEM_DEVICES}/${name}`, { bigint: true, throwIfNoEntry: false })?.ino;
}

/** Network interfaces of a device's PCI function; none for devices without one. */
function interfacesOf(device: string): string[] {
  try {
    return readdirSync(`${SYSTEM_DEVICES}/${device}/device/net`);
  } catch {
    return [];
  }
}

/** GUIDs in use, by port. */
export type GuidTable = Map<bigint, string>;

/** GUIDs must identify one device, but drivers derive them from a MAC that several devices may share. */
function uniqueGuid(taken: GuidTable, wanted: bigint, owner: string): bigint {
  for (let guid = wanted; ; guid++) {
    const has = taken.get(guid);
    if (has !== undefined && has !== owner) continue;
    taken.set(guid, owner);
    return guid;
  }
}

export class VerbsPorts {
  constructor(
    private readonly host: Pick<VerbsHca, 'queryPort'>,
    private readonly network: Pick<HostNetwork, 'interfaces'>,
    private readonly name: string,
    private readonly guids: GuidTable,
  ) {}

  read(device: VerbsDevice): HcaPort[] {
    const interfaces = this.network.interfaces();
    const ports: HcaPort[] = [];
    for (let number = 1; number <= device.ports; number++) {
      const port = this.host.queryPort(device.number, number);
      if (port) ports.push(this.portOf(device, number, port, interfaces));
    }
    return ports;
  }

  private portOf(
    device: VerbsDevice,
    number: number,
    port: VerbsPort,
    interfaces: readonly HostInterface[],
  ): HcaPort {
    const roce = !device.iwarp && port.linkLayer === linkEthernet;
    const own = this.own(device, port, interfaces);
    const first = own[0];
    const usable = port.gids.filter(({ type }) => type === roceV2);
    const addresses = own
      .flatMap((one) => one.addresses)
      .filter(({ gid }) => !roce || usable.some((entry) => sameGid(entry.gid, gid)))
      .sort((a, b) => Number(isLinkLocal(b.gid)) - Number(isLinkLocal(a.gid)));
    const guid = uniqueGuid(this.guids, device.nodeGuid + BigInt(number - 1), `${this.name}/${number}`);
    return {
      guid,
      portGuid: guid,
      interfaceName: first?.name ?? this.name,
      interfaceIndex: first?.index ?? 0,
      mac: first?.mac,
      state: port.state,
      activeMtu: mtuBytes(port.activeMtu) || 1024,
      link: {
        portCabilityFlags: port.capabilities,
        maxMtu: mtuBytes(port.maxMtu) || 4096,
        maxMessageSize: port.maxMessageSize,
        maxVls: port.maxVls,
        activeWidth: port.activeWidth,
        activeSpeed: port.activeSpeed,
        transport: device.iwarp ? PortTransport.IWARP : roce ? PortTransport.RDMAOE : PortTransport.IB,
      },
      gids: addresses.map(({ gid }) => gid),
      addresses,
      pkeys: port.pkeys.length > 0 ? port.pkeys : [DEFAULT_PKEY],
    };
  }

  /** The interfaces of a port: by its GID table, by its MAC (iWARP), or by its PCI function (InfiniBand). */
  private own(
    { iwarp }: VerbsDevice,
    { gids }: VerbsPort,
    interfaces: readonly HostInterface[],
  ): HostInterface[] {
    const indexes = new Set(gids.map(({ interfaceIndex }) => interfaceIndex).filter((index) => index !== 0));
    const byTable = interfaces.filter(({ index }) => indexes.has(index));
    if (byTable.length > 0) return byTable;
    const byMac = iwarp
      ? interfaces.filter(({ mac }) => mac && gids.some((entry) => beginsWith(entry, mac)))
      : [];
    if (byMac.length > 0) return byMac;
    const names = interfacesOf(this.name);
    return interfaces.filter(({ name }) => names.includes(name));
  }
}

function beginsWith({ gid }: VerbsGid, mac: Uint8Array): boolean {
  return mac.every((byte, index) => gid[index] === byte);
}
