/** The devices of the software HCA: one for each network interface, with one RoCE port. */
import { PortState, PortTransport, WvCapability } from '../../ioctl/constants.js';
import type { HcaPort, LinkAttributes } from '../hca-driver/backend.js';
import type { HostInterface, HostNetwork } from '../hca-driver/host-interfaces.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { isLinkLocal } from '../hca-driver/ports.js';
import { guidOfMac, localGuid } from './guids.js';

/** Bytes of Ethernet payload that RoCEv2 headers and ICRC take at most, as Linux counts them for a port. */
const headerRoom = 80;

const link: LinkAttributes = {
  portCabilityFlags:
    WvCapability.QP_STATE_MODIFIER | WvCapability.RC_RNR_NAK_GENERATION | WvCapability.SYSTEM_IMAGE_GUID,
  maxMtu: 4096,
  // Bytes of one message (IBA 1 §9.7.7: 2^31).
  maxMessageSize: 0x8000_0000,
  maxVls: 1,
  activeWidth: 2,
  activeSpeed: 4,
  transport: PortTransport.RDMAOE,
};

/** The largest path MTU (bytes) that packets on an interface of this MTU can carry; 256 at least. */
export function activeMtuOf(interfaceMtu: number): number {
  for (const mtu of [4096, 2048, 1024, 512]) if (mtu <= interfaceMtu - headerRoom) return mtu;
  return 256;
}

/** Reads the devices from the host's interfaces. */
export class SoftPorts {
  /** GUIDs of the interfaces of the last look, by index and name. */
  private known = new Map<string, bigint>();

  constructor(
    private readonly network: HostNetwork,
    /** The P_Key table of an interface's port. */
    private readonly pkeysOf: (interfaceName: string) => readonly number[] = () => [DEFAULT_PKEY],
  ) {}

  read(): HcaPort[] {
    const identity = this.network.identity();
    const interfaces = this.network.interfaces();
    // An interface keeps its GUID as long as it is there, whatever becomes of its MAC.
    const { known } = this;
    this.known = new Map();
    const kept = new Set(interfaces.map((one) => known.get(nameOf(one))));
    const taken = new Set<bigint>();
    return interfaces.map((one) => {
      // VLANs and bridges repeat the MAC of what they stand on: the first keeps it, a GUID names one device.
      const fromMac = one.mac ? guidOfMac(one.mac) : undefined;
      const free = fromMac !== undefined && !taken.has(fromMac) && !kept.has(fromMac) ? fromMac : undefined;
      const guid = known.get(nameOf(one)) ?? free ?? localGuid(identity, one.name);
      taken.add(guid);
      this.known.set(nameOf(one), guid);
      return this.portOf(guid, one);
    });
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
      link,
      gids: addresses.map(({ gid }) => gid),
      addresses,
      pkeys: this.pkeysOf(one.name),
    };
  }
}

function nameOf({ index, name }: HostInterface): string {
  return `${index} ${name}`;
}
