/** The kernel side of the software HCA. */
import { type SoftHca as NativeSoftHca, SOFT_USER_LIBRARY } from '../../hca/soft-hca-binding.js';
import { AtomicCapability, DeviceType, WvCapability } from '../../ioctl/constants.js';
import { isPkeyTable, type PkeyTables } from '../../ioctl/pkey-tables.js';
import { Status } from '../../ioctl/status.js';
import type { KernelOptions } from '../../option-checks/option-schemas.js';
import type { CmPlatform, ConnectionManager } from '../cm/service.js';
import type {
  BackendDevice,
  DeviceAttributes,
  HcaBackend,
  HcaMaker,
  HcaPort,
} from '../hca-driver/backend.js';
import type { HostNetwork } from '../hca-driver/network-interfaces.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { type Refusals, SoftConnections } from './soft-connections.js';
import { SoftPorts } from './soft-hca-ports.js';

/** The parts of the software HCA; tests supply their own. */
export interface SoftHcaParts {
  native: NativeSoftHca;
  network: HostNetwork;
  options: Pick<KernelOptions, 'cm' | 'pkeys'>;
  createConnectionManager(platform: CmPlatform, options: KernelOptions['cm']): ConnectionManager;
  /** The process of another version of this package that listens at a port of this host; undefined: none. */
  otherVersionAt?(service: number, port: number, address: Uint8Array): number | undefined;
  warn?(text: string): void;
}

/** The P_Key table of an interface, from the option `pkeys`. */
function pkeysBy(pkeys: PkeyTables): (interfaceName: string) => readonly number[] {
  if (isPkeyTable(pkeys)) return () => pkeys;
  const byName = new Map(Object.entries(pkeys));
  return (name) => byName.get(name) ?? [DEFAULT_PKEY];
}

const attributes: DeviceAttributes = {
  fwVersion: 1n,
  capabilityFlags:
    WvCapability.RC_RNR_NAK_GENERATION |
    WvCapability.BAD_PKEY_COUNTER |
    WvCapability.BAD_QKEY_COUNTER |
    WvCapability.SRQ_RESIZE |
    WvCapability.PORT_ACTIVE_EVENT |
    WvCapability.SYSTEM_IMAGE_GUID |
    WvCapability.INIT_TYPE |
    WvCapability.BATCH_NOTIFY_CQ |
    WvCapability.MEM_MGT_EXTENSIONS |
    WvCapability.IN_ORDER_DMA |
    WvCapability.LOOPBACK,
  atomicCapability: AtomicCapability.DEVICE,
  pageSizeCapabilityFlags: 0x1000,
  deviceType: DeviceType.INFINIBAND,
  localAckDelay: 15,
};

/** A device as the engine sees it: the P_Key table of its port. */
class SoftDevice implements BackendDevice {
  readonly pkeyTable: number;

  constructor(
    private readonly native: NativeSoftHca,
    port: HcaPort,
  ) {
    const { status, table } = native.createPkeyTable();
    // A port without a table of its own uses that of the default partition.
    this.pkeyTable = status === Status.SUCCESS ? table : 0;
    this.portChanged(port);
  }

  /** Passes the port's P_Keys and addresses to the engine. */
  portChanged({ pkeys, gids }: Pick<HcaPort, 'pkeys' | 'gids'>): void {
    if (this.pkeyTable !== 0) this.native.setPkeyTable(this.pkeyTable, Uint16Array.from(pkeys), gids);
  }

  violations(): { badPkeys: number; badQkeys: number } {
    return this.native.queryPkeyTable(this.pkeyTable);
  }

  end(): void {
    if (this.pkeyTable !== 0) this.native.destroyPkeyTable(this.pkeyTable);
  }
}

/** Maximum number of warnings about connections to processes of other versions; a client may retry many times. */
const maxReported = 16;

/** Warns once for each process and port that cannot be reached. */
function otherVersions({
  otherVersionAt,
  warn,
}: SoftHcaParts): (service: number, port: number, to: Uint8Array) => void {
  const reported = new Set<string>();
  return (service, port, address) => {
    if (reported.size >= maxReported) return;
    const pid = otherVersionAt?.(service, port, address);
    if (pid === undefined) return;
    const who = pid === 0 ? 'a process' : `process ${pid}`;
    const text = `A connection to port ${port} of this host was refused: ${who} listens there with another version of networkdirect. Processes on one host must have the same version; start all of them with the same one.`;
    if (reported.has(text)) return;
    reported.add(text);
    warn?.(text);
  };
}

/** Warns once that this process and another have no link in common. */
function reportNoCommonLink({ warn }: SoftHcaParts): Refusals['links'] {
  let reported = false;
  return (own) => {
    if (reported) return;
    reported = true;
    const other = own === 'local' ? 'wire' : 'local';
    warn?.(
      `A connection between processes on this host was refused: this process has the option link: '${own}' and the other has '${other}', so they have no link in common. Give both the same value, or leave one at 'auto'.`,
    );
  };
}

/** Creates the software HCA of a kernel. */
export function softHca(parts: SoftHcaParts): HcaMaker {
  const { native, network, options, createConnectionManager } = parts;
  return (portOf): HcaBackend => {
    const ports = new SoftPorts(network, pkeysBy(options.pkeys));
    const connections = new SoftConnections(native, portOf, createConnectionManager, options.cm, {
      noListener: otherVersions(parts),
      links: reportNoCommonLink(parts),
    });
    return {
      userLibrary: SOFT_USER_LIBRARY,
      attributes,
      native,
      connections,
      readPorts: () => ports.read(),
      watch: (changed) => network.watch(changed),
      setPkeys: (guid, pkeys) => ports.setPkeys(guid, pkeys),
      setAllPkeys: (tables) => ports.setAllPkeys(pkeysBy(tables)),
      addDevice: (port) => new SoftDevice(native, port),
      replyToObserver: (number, text) => native.replyToObserver(number, text),
      close: () => {
        connections.close();
        native.close();
      },
    };
  };
}
