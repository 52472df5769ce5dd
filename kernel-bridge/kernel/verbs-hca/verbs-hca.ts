/** The kernel side of a real HCA: one device of libibverbs, with one or more ports. */
import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import type { ConnectAttributes, HcaEvent, NativeHca } from '../../hca/soft-hca-binding.js';
import { VERBS_USER_LIBRARY, type VerbsDevice } from '../../hca/verbs-binding.js';
import { DeviceType, PortState, WvCapability } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import type {
  BackendDevice,
  DeviceAttributes,
  HcaBackend,
  HcaIdentity,
  HcaMaker,
  HcaPort,
} from '../hca-driver/backend.js';
import { isV4 } from '../hca-driver/hca-ports.js';
import type { HostNetwork } from '../hca-driver/network-interfaces.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import type { CmCore } from './cm-core.js';
import type { CmOwner } from './cm-ids.js';
import { VerbsConnections } from './verbs-connections.js';
import { type GuidTable, SYSTEM_DEVICES, systemDeviceId, VerbsPorts } from './verbs-hca-ports.js';
import { verbsNative } from './verbs-native.js';
import type { DeviceSink } from './verbs-pool.js';

/** The parts of a real HCA. */
export interface VerbsHcaParts {
  readonly core: CmCore;
  readonly network: Pick<HostNetwork, 'interfaces' | 'watch'>;
  readonly guids: GuidTable;
  /** The opened device. */
  readonly device: VerbsDevice;
  readonly name: string;
  warn(text: string): void;
}

const noOwner: CmOwner = { on: () => {} };

/** Converts `1.2.3` to WinVerbs' form of versions: 16 bits each. */
function firmwareVersion(text: string): bigint {
  const parts = text.split('.').map((part) => Number.parseInt(part, 10) || 0);
  return parts.slice(0, 3).reduce((value, part) => (value << 16n) | BigInt(part & 0xffff), 0n);
}

function attributesOf(device: VerbsDevice): DeviceAttributes {
  const { MEM_MGT_EXTENSIONS, BATCH_NOTIFY_CQ, FIXED_CQ, IN_ORDER_DMA, LOOPBACK } = WvCapability;
  const own = MEM_MGT_EXTENSIONS | BATCH_NOTIFY_CQ | FIXED_CQ | IN_ORDER_DMA | LOOPBACK;
  const known = Object.values(WvCapability).reduce((bits, bit) => bits | bit, 0) & ~own;
  return {
    fwVersion: firmwareVersion(device.firmware),
    vendorId: device.vendorId,
    vendorPartId: device.vendorPartId,
    hwVersion: device.hardwareVersion,
    // Batches of completions are counted here. Fast registration is for kernel clients only: libibverbs has no request
    // for it.
    capabilityFlags:
      (device.capabilities & known) |
      BATCH_NOTIFY_CQ |
      // Packets to the device's own port are looped back (IBA 1 §17.2.1.2), except on iWARP. No device reports that it
      // writes in order.
      (device.iwarp ? 0 : LOOPBACK) |
      (device.resizesCqs ? 0 : FIXED_CQ),
    atomicCapability: device.atomics,
    pageSizeCapabilityFlags: 0x1000,
    deviceType: device.iwarp ? DeviceType.IWARP : DeviceType.INFINIBAND,
    localAckDelay: device.ackDelay,
  };
}

/** The driver of a device; software devices have a network interface instead. */
function driverOf(name: string): string {
  try {
    return basename(readlinkSync(`${SYSTEM_DEVICES}/${name}/device/driver`));
  } catch {
    return '';
  }
}

/** The limit of memory that this process may lock, as text from the OS. */
function lockedMemoryLimit(): string {
  try {
    const line = readFileSync('/proc/self/limits', 'latin1')
      .split('\n')
      .find((one) => one.startsWith('Max locked memory'));
    return line?.slice(26).trim().split(/\s+/)[0] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}

class VerbsHca implements HcaBackend, DeviceSink {
  readonly userLibrary = VERBS_USER_LIBRARY;
  readonly identity: HcaIdentity;
  readonly attributes: DeviceAttributes;
  readonly native: NativeHca;
  readonly connections: VerbsConnections;
  readonly events: HcaEvent[] = [];
  private device: VerbsDevice | undefined;
  /** The OS's identification of the device that is open, or was last. */
  private openedId: bigint | undefined;
  private readonly ports: VerbsPorts;
  private known: readonly HcaPort[] = [];
  private watcher: (() => void) | undefined = undefined;
  /** An id at the device, through which the OS announces its removal. */
  private sentinel = 0;
  private memoryReported = false;

  constructor(
    private readonly parts: VerbsHcaParts,
    portOf: (gid: Uint8Array) => HcaPort | undefined,
  ) {
    const { core, network, guids, device, name } = parts;
    this.device = device;
    this.openedId = systemDeviceId(name);
    this.attributes = attributesOf(device);
    this.identity = { device: name, driver: driverOf(name), firmware: device.firmware };
    this.ports = new VerbsPorts(core.pool.host, network, name, guids);
    const self = this;
    this.connections = new VerbsConnections(
      core,
      {
        get number() {
          return self.number;
        },
        iwarp: device.iwarp,
        pkeyOf: (index) => this.known[0]?.pkeys[index] ?? DEFAULT_PKEY,
      },
      portOf,
    );
    this.native = verbsNative(core.pool.host, {
      get number() {
        return self.number;
      },
      limits: device.limits,
      nextEvent: () => this.nextEvent(),
      connectionFor: (attributes: ConnectAttributes) => this.connections.idFor(attributes),
      join: (group, index) => this.join(group, index),
      memoryRefused: () => this.memoryRefused(),
    });
    core.pool.acquire();
    core.pool.devices.add(this);
    const { onRemoval } = core;
    core.onRemoval = (id) => {
      if (id === this.sentinel && id !== 0) this.gone();
      else onRemoval(id);
    };
  }

  get number(): number {
    return this.device?.number ?? 0;
  }

  private nextEvent(): HcaEvent | undefined {
    this.parts.core.pool.pump();
    return this.events.shift();
  }

  readPorts(): HcaPort[] {
    const device = this.device ?? this.openAgain();
    if (!device) return [];
    const ports = this.ports.read(device);
    this.known = ports;
    this.standSentinel(ports);
    return ports;
  }

  private openAgain(): VerbsDevice | undefined {
    const { core, name } = this.parts;
    const id = systemDeviceId(name);
    // A device that is being removed is still listed; the OS would wait for it to be closed again.
    if (id === undefined || id === this.openedId) return undefined;
    const opened = core.pool.host.openDevice(name);
    if (typeof opened === 'string') return undefined;
    this.device = opened;
    this.openedId = id;
    return opened;
  }

  private standSentinel(ports: readonly HcaPort[]): void {
    const { ids } = this.parts.core;
    const at = ports.flatMap(({ gids, interfaceIndex }) => gids.map((gid) => ({ gid, interfaceIndex })))[0];
    if (this.sentinel !== 0 || !at) return;
    const id = ids.create(false, noOwner);
    if (ids.bind(id, at.gid, 0, at.interfaceIndex, false).status === Status.SUCCESS) this.sentinel = id;
    else ids.destroy(id);
  }

  private dropSentinel(): void {
    if (this.sentinel !== 0) this.parts.core.ids.destroy(this.sentinel);
    this.sentinel = 0;
  }

  changed(): void {
    this.watcher?.();
  }

  /** The kernel destroys the device's objects; then the device is released, for which its removal waits. */
  gone(): void {
    const { device } = this;
    if (!device) return;
    this.device = undefined;
    this.known = [];
    this.dropSentinel();
    this.watcher?.();
    setImmediate(() => this.parts.core.pool.host.closeDevice(device.number));
  }

  watch(changed: () => void): (() => void) | undefined {
    this.watcher = changed;
    const stop = this.parts.network.watch(changed);
    if (!stop) return undefined;
    return () => {
      this.watcher = undefined;
      stop();
    };
  }

  addDevice({ guid }: HcaPort): BackendDevice {
    // A port that returns while the old one still has owners keeps its index in the order of the ports.
    const index = Math.max(
      0,
      this.known.findIndex((port) => port.guid === guid),
    );
    const { host } = this.parts.core.pool;
    return {
      // This is not a table but the physical port that queue pairs use.
      pkeyTable: index + 1,
      portChanged: () => {},
      violations: () => {
        const port = this.number === 0 ? undefined : host.queryPort(this.number, index + 1);
        return { badPkeys: port?.badPkeys ?? 0, badQkeys: port?.badQkeys ?? 0 };
      },
      end: () => {},
    };
  }

  /** Joins like datagram programs of librdmacm: the OS notifies the network (IGMP, MLD). */
  private join(group: Uint8Array, interfaceIndex: number): { status: number; leave(): void } {
    const { ids } = this.parts.core;
    const port = this.known.find((one) => one.interfaceIndex === interfaceIndex);
    const local = port?.gids.find((gid) => isV4(gid) === isV4(group));
    const leave = (): void => {};
    if (!local || port?.state !== PortState.ACTIVE) return { status: Status.NETWORK_UNREACHABLE, leave };
    const id = ids.create(true, noOwner);
    const { status } = ids.bind(id, local, 0, interfaceIndex, true);
    const joined = status === Status.SUCCESS ? ids.join(id, group, interfaceIndex) : status;
    if (joined !== Status.SUCCESS) ids.destroy(id);
    return { status: joined, leave: () => joined === Status.SUCCESS && ids.destroy(id) };
  }

  private memoryRefused(): void {
    if (this.memoryReported) return;
    this.memoryReported = true;
    this.parts.warn(
      `${this.parts.name} could not lock memory for a registration; this process may lock ${lockedMemoryLimit()} bytes. ` +
        'Raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK= of systemd, docker run --ulimit memlock=-1).',
    );
  }

  close(): void {
    this.connections.close();
    this.native.close();
    this.dropSentinel();
    const { pool } = this.parts.core;
    pool.devices.delete(this);
    pool.release();
  }
}

/** Creates a real HCA of a kernel. */
export function verbsHca(parts: VerbsHcaParts): HcaMaker {
  return (portOf) => new VerbsHca(parts, portOf);
}
