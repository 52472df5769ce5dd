/** The devices of the software HCA: one for each network interface, with one RoCE port. */
import { PortState, PortTransport, WvCapability } from '../../ioctl/constants.js';
import type { HcaPort, LinkAttributes } from '../hca-driver/backend.js';
import { activeMtuOf, isLinkLocal } from '../hca-driver/hca-ports.js';
import type { HostInterface, HostNetwork } from '../hca-driver/network-interfaces.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { guidOfMac, localGuid } from './guids.js';

const link: LinkAttributes = {
  portCabilityFlags:
    WvCapability.QP_STATE_MODIFIER | WvCapability.RC_RNR_NAK_GENERATION | WvCapability.SYSTEM_IMAGE_GUID,
  maxMtu: 4096,
  // Maximum size of a message in bytes (IBA 1 §9.7.7: 2^31).
  maxMessageSize: 0x8000_0000,
  maxVls: 1,
  activeWidth: 2,
  activeSpeed: 4,
  transport: PortTransport.RDMAOE,
};

/** Reads the devices from the host's interfaces. */
export class SoftPorts {
  /** GUIDs of the interfaces in the last scan, by index and name. */
  private known = new Map<string, bigint>();
  /** P_Key tables that were set while the kernel was running. */
  private readonly pkeys = new Map<bigint, readonly number[]>();

  constructor(
    private readonly network: HostNetwork,
    /** The P_Key table of an interface's port. */
    private pkeysOf: (interfaceName: string) => readonly number[] = () => [DEFAULT_PKEY],
  ) {}

  read(): HcaPort[] {
    const identity = this.network.identity();
    const interfaces = this.network.interfaces();
    // An interface keeps its GUID as long as it exists, even if its MAC changes.
    const { known } = this;
    this.known = new Map();
    const kept = new Set(interfaces.map((one) => known.get(nameOf(one))));
    const taken = new Set<bigint>();
    return interfaces.map((one) => {
      // VLANs and bridges repeat the MAC of their base interface. The first interface keeps it, because a GUID
      // identifies one device.
      const fromMac = one.mac ? guidOfMac(one.mac) : undefined;
      const free = fromMac !== undefined && !taken.has(fromMac) && !kept.has(fromMac) ? fromMac : undefined;
      const guid = known.get(nameOf(one)) ?? free ?? localGuid(identity, one.name);
      taken.add(guid);
      this.known.set(nameOf(one), guid);
      return this.portOf(guid, one);
    });
  }

  /** Replaces the P_Key table of a port, for the lifetime of this kernel. */
  setPkeys(guid: bigint, pkeys: readonly number[]): void {
    this.pkeys.set(guid, [...pkeys]);
  }

  /** Replaces all P_Key tables. */
  setAllPkeys(pkeysOf: (interfaceName: string) => readonly number[]): void {
    this.pkeysOf = pkeysOf;
    this.pkeys.clear();
  }

  private portOf(guid: bigint, one: HostInterface): HcaPort {
    const linkLocal = one.addresses.filter(({ gid }) => isLinkLocal(gid));
    const others = one.addresses.filter(({ gid }) => !isLinkLocal(gid));
    const addresses = [...linkLocal, ...others];
    return {
      guid,
      portGuid: guid,
      interfaceName: one.name,
      interfaceIndex: one.index,
      mac: one.mac,
      state: one.up ? PortState.ACTIVE : PortState.DOWN,
      activeMtu: activeMtuOf(one.mtu),
      ipMtu: one.mtu,
      link,
      gids: addresses.map(({ gid }) => gid),
      addresses,
      pkeys: this.pkeys.get(guid) ?? this.pkeysOf(one.name),
    };
  }
}

function nameOf({ index, name }: HostInterface): string {
  return `${index} ${name}`;
}
