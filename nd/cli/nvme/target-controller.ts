/** A controller of the target: the state for one host, from Connect on its admin queue until that queue ends. */
import { createHash } from 'node:crypto';
import {
  ANY_CONTROLLER,
  CAP_NVM,
  Cap,
  Cc,
  Command,
  CommandError,
  Completion,
  Csts,
  NvmeStatus,
  Property,
} from './capsules.js';
import {
  AddressFamily,
  BlockFormat,
  ControllerType,
  DiscoveryEntry,
  DiscoveryHead,
  FIXED_FIRMWARE,
  FORMATS_AT,
  GUID_DESCRIPTOR,
  HAS_WRITE_CACHE,
  HAS_WRITE_ZEROES,
  IDENTIFY_BYTES,
  IdentifyController,
  IdentifyNamespace,
  LOG_OFFSETS,
  MULTIPLE_CONTROLLERS,
  NamespaceDescriptor,
  RdmaPart,
  SGL_FEATURES,
  SubsystemType,
  TRAFFIC_KEEPS_ALIVE,
  Transport,
} from './identify.js';
import type { Store } from './store.js';
import { IN_CAPSULE_BYTES, type TargetQueue, TRANSFER_BITS } from './target-queue.js';

/** Maximum entries of a queue. */
export const QUEUE_ENTRIES = 128;
/** Maximum I/O queues of a controller. */
export const IO_QUEUES = 16;
/** NVMe 1.3: the version whose features this target implements. */
const VERSION = 0x1_0300;
const UNIT = 16;
/** The longest timeout of a timer, in ms. */
const LONGEST_TIMER = 0x7fff_ffff;

/** A namespace: a store divided into blocks. */
export interface Namespace {
  readonly store: Store;
  readonly blockSize: number;
}

/** A subsystem of a target. */
export interface Subsystem {
  readonly nqn: string;
  readonly discovery: boolean;
  readonly serial: string;
  /** Namespaces by identifier, starting at 1. */
  readonly namespaces: ReadonlyMap<number, Namespace>;
  /** Names of permitted hosts; undefined: all. */
  readonly hosts: ReadonlySet<string> | undefined;
}

/** The identity of a host in its Connect. */
export interface HostIdentity {
  readonly name: string;
  readonly id: Uint8Array;
}

export class TargetController {
  readonly queues = new Map<number, TargetQueue>();
  asyncEvents = 0;
  #configuration = 0;
  #status = 0;
  #keepAliveMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly id: number,
    readonly subsystem: Subsystem,
    readonly host: HostIdentity,
    /** Called when the keep-alive timer expires. */
    private readonly expired: () => void,
  ) {}

  /** Whether the controller accepts commands other than fabrics commands. */
  get ready(): boolean {
    return (this.#status & Csts.READY) !== 0;
  }

  get keepAliveMs(): number {
    return this.#keepAliveMs;
  }

  set keepAliveMs(ms: number) {
    this.#keepAliveMs = ms;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (ms > 0) this.#timer = setTimeout(this.expired, Math.min(ms, LONGEST_TIMER)).unref();
  }

  /** Restarts the keep-alive timer; called for each command. */
  alive(): void {
    this.#timer?.refresh();
  }

  /** Ends the controller. */
  end(): void {
    clearTimeout(this.#timer);
  }

  /** Reads a property. @throws CommandError */
  property(offset: number): bigint {
    switch (offset) {
      case Property.CAP:
        return Cap.make({
          maxQueueEntries: QUEUE_ENTRIES - 1,
          flags: 1,
          timeout: 15,
          commandSets: CAP_NVM,
        }).readBigUInt64LE();
      case Property.VS:
        return BigInt(VERSION);
      case Property.CC:
        return BigInt(this.#configuration);
      case Property.CSTS:
        return BigInt(this.#status);
      default:
        throw new CommandError(NvmeStatus.INVALID_FIELD);
    }
  }

  /** Sets the configuration, the only writable property. @throws CommandError */
  setProperty(offset: number, value: number): void {
    if (offset !== Property.CC) throw new CommandError(NvmeStatus.INVALID_FIELD);
    const enable = (value & Cc.ENABLE) !== 0;
    if (enable && (value & Cc.ENTRY_SIZES) !== Cc.ENTRY_SIZES)
      throw new CommandError(NvmeStatus.INVALID_FIELD);
    this.#configuration = value;
    this.#status = enable ? Csts.READY : 0;
    if ((value & Cc.SHUTDOWN) !== 0) this.#status |= Csts.SHUTDOWN_COMPLETE;
  }

  identifyController(): Buffer {
    const { nqn, discovery, serial, namespaces } = this.subsystem;
    return IdentifyController.make({
      serial,
      model: 'networkdirect NVMe target',
      firmware: '1',
      multipath: MULTIPLE_CONTROLLERS,
      maxTransfer: TRANSFER_BITS,
      controllerId: this.id,
      version: VERSION,
      attributes: TRAFFIC_KEEPS_ALIVE,
      controllerType: discovery ? ControllerType.DISCOVERY : ControllerType.IO,
      asyncEventLimit: 3,
      abortLimit: 3,
      firmwareUpdates: FIXED_FIRMWARE,
      logAttributes: LOG_OFFSETS,
      warningTemperature: 353,
      criticalTemperature: 363,
      keepAliveUnit: 1,
      submissionEntrySize: 0x66,
      completionEntrySize: 0x44,
      maxCommands: QUEUE_ENTRIES,
      namespaces: namespaces.size,
      optionalCommands: HAS_WRITE_ZEROES,
      writeCache: HAS_WRITE_CACHE,
      sglSupport: SGL_FEATURES,
      subsystem: nqn,
      ioCommandCapsule: (Command.bytes + IN_CAPSULE_BYTES) / UNIT,
      ioResponseCapsule: Completion.bytes / UNIT,
      sglDescriptors: 1,
    });
  }

  /** Finds a namespace by its identifier. @throws CommandError */
  namespace(id: number): Namespace {
    const namespace = this.subsystem.namespaces.get(id);
    if (namespace === undefined) throw new CommandError(NvmeStatus.INVALID_NAMESPACE);
    return namespace;
  }

  identifyNamespace(id: number): Buffer {
    const { store, blockSize } = this.namespace(id);
    const blocks = Math.floor(store.size / blockSize);
    const sizes = { size: blocks, capacity: blocks, utilization: blocks };
    const bytes = IdentifyNamespace.make({ ...sizes, sharing: 1, guid: this.#guid(id) });
    BlockFormat.emit({ blockBits: Math.log2(blockSize) }, bytes, FORMATS_AT);
    return bytes;
  }

  /** The identifiers above `after`. */
  activeNamespaces(after: number): Buffer {
    const bytes = Buffer.alloc(IDENTIFY_BYTES);
    const ids = [...this.subsystem.namespaces.keys()].filter((id) => id > after).sort((a, b) => a - b);
    for (const [n, id] of ids.slice(0, IDENTIFY_BYTES / 4).entries()) bytes.writeUInt32LE(id, 4 * n);
    return bytes;
  }

  namespaceDescriptors(id: number): Buffer {
    this.namespace(id);
    const bytes = Buffer.alloc(IDENTIFY_BYTES);
    const guid = this.#guid(id);
    NamespaceDescriptor.emit({ type: GUID_DESCRIPTOR, length: guid.length, guid }, bytes);
    return bytes;
  }

  /** A stable identifier, so that hosts recognize the namespace after the target was restarted. */
  #guid(id: number): Uint8Array {
    return createHash('sha256').update(`${this.subsystem.nqn} ${id}`).digest().subarray(0, 16);
  }
}

/** Creates the discovery log for a host that connected to the given address. */
export function discoveryLog(
  subsystems: readonly Subsystem[],
  host: string,
  { address, family, port }: { address: string; family: number; port: number },
): Buffer {
  const visible = subsystems.filter(({ discovery, hosts }) => !discovery && (hosts?.has(host) ?? true));
  const entries = visible.map(({ nqn }) =>
    DiscoveryEntry.make({
      transport: Transport.RDMA,
      addressFamily: family === 6 ? AddressFamily.IPV6 : AddressFamily.IPV4,
      subsystemType: SubsystemType.NVM,
      controllerId: ANY_CONTROLLER,
      adminQueueSize: 32,
      service: String(port),
      subsystem: nqn,
      address: address.replace(/%.*$/, ''),
      queuePairType: RdmaPart.CONNECTED,
      providerType: RdmaPart.ROCE_V2,
      connectionManagement: RdmaPart.RDMA_CM,
    }),
  );
  return Buffer.concat([DiscoveryHead.make({ generation: 1, entries: entries.length }), ...entries]);
}
