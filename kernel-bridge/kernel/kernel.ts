/**
 * The soft kernel: I/O manager, HCA driver, filter driver, IBAT and connection management, put together over one
 * HCA and one channel.
 */
import type { HcaEvent, NativeHca } from '../hca/binding.js';
import type { NativeChannelServer } from '../hca/channel-binding.js';
import { guidText } from '../ioctl/ca.js';
import { Status } from '../ioctl/status.js';
import type { KernelOptions } from '../options.js';
import { randomBits } from '../random.js';
import type { CmPath, CmPlatform, ConnectionManager } from './cm/service.js';
import { CountersDriver } from './counters-driver.js';
import { FaultsDriver } from './faults-driver.js';
import type { EndpointServices } from './filter/endpoint-services.js';
import { FilterDriver } from './filter/filter-driver.js';
import { IbatDriver } from './filter/ibat-driver.js';
import { HcaDriver } from './hca-driver/driver.js';
import type { HostNetwork } from './hca-driver/host-interfaces.js';
import { DEFAULT_PKEY, managementPkey, pkeyIndexFor } from './hca-driver/pkeys.js';
import { freshMs, mtuCode, PortTable } from './hca-driver/ports.js';
import { IoManager } from './io-manager/io-manager.js';

/** CM ids of one kernel: base + 1 … base + 0x3FFFF. */
const commIdCount = 0x3_ffff;

/** HCA events passed on per turn of the event loop. */
const eventsPerTurn = 256;
/** Of these, MADs of strangers: each costs some 100 µs, and this process’s requests wait for the turn to end. */
const strangersPerTurn = 16;

/** Statuses of a MAD that say it can never leave; others may pass with the next retry. */
const unsendable: readonly number[] = [
  Status.HOST_UNREACHABLE,
  Status.NETWORK_UNREACHABLE,
  Status.INVALID_ADDRESS,
];

/** The P_Key table of an interface by the option `pkeys`. */
function pkeysBy(pkeys: KernelOptions['pkeys']): (interfaceName: string) => readonly number[] {
  if (Array.isArray(pkeys)) return () => pkeys;
  const byName = new Map(Object.entries(pkeys));
  return (name) => byName.get(name) ?? [DEFAULT_PKEY];
}

/** What a kernel is made of; tests bring their own. */
export interface KernelParts {
  server: NativeChannelServer;
  hca: NativeHca;
  network: HostNetwork;
  options: KernelOptions;
  /** Invalidates the caches of the user side. Called before a change is reported to anybody. */
  newCacheEpoch?(): void;
  createConnectionManager(platform: CmPlatform, options: KernelOptions['cm']): ConnectionManager;
}

export class Kernel {
  readonly io: IoManager;
  readonly ports: PortTable;
  readonly hcaDriver: HcaDriver;
  readonly filter: FilterDriver;
  readonly cm: ConnectionManager;
  private readonly hca: NativeHca;
  private readonly network: HostNetwork;
  /** Ends the watching of the interfaces. */
  private stopWatch: (() => void) | undefined = undefined;
  private readonly commIds = new Set<number>();
  /** Where it begins, the first tells. */
  private nextCommId: number | undefined = undefined;
  /** How the latest MAD left. */
  private sendStatus: number = Status.SUCCESS;

  constructor(parts: KernelParts) {
    const { server, hca, network, options } = parts;
    this.hca = hca;
    this.network = network;
    this.io = new IoManager(server);
    this.ports = new PortTable(network, undefined, pkeysBy(options.pkeys));
    const { namespace } = this.io;
    this.hcaDriver = new HcaDriver({
      native: hca,
      ports: this.ports,
      namespace,
      server,
      findIrp: (slot, serial) => this.io.find(slot, serial),
    });
    const { onChange } = this.ports;
    this.ports.onChange = (change) => {
      parts.newCacheEpoch?.();
      onChange(change);
    };
    this.cm = parts.createConnectionManager(this.cmPlatform(), options.cm);
    this.hcaDriver.onMad = ({ source, destination, scopeId, sender, mad }) =>
      this.cm.receive(source, destination, scopeId, mad, sender);

    this.filter = new FilterDriver({
      ...this.endpointServices(parts),
      guids: () => this.hcaDriver.guids(),
      refresh: () => this.ports.refresh(),
      openFile: (name) => this.io.openFile(name),
      closeFile: (file) => this.io.closeFile(file),
    });
    this.hcaDriver.attach(this.filter.aboveHca);
    this.hcaDriver.onLost = (lost, status) => this.filter.deviceLost(lost, status);
    const ibat = new IbatDriver(this.ports);
    const counters = this.countersDriver();
    const faults = new FaultsDriver(this.hcaDriver);
    for (const { device } of [this.filter, ibat, counters, faults]) namespace.add(device);
    namespace.link('\\DosDevices\\WinVerbs', this.filter.device.name);
    namespace.link('\\DosDevices\\ibat', ibat.device.name);
    namespace.link('\\DosDevices\\NetworkDirectCounters', counters.device.name);
    namespace.link('\\DosDevices\\NetworkDirectFaults', faults.device.name);
    namespace.link('\\DosDevices\\ibal', '\\Device\\ibal');
  }

  /** The services of the kernel for endpoints. */
  private endpointServices(parts: KernelParts): EndpointServices {
    return {
      cm: this.cm,
      rc: parts.options.rc,
      connect: (parameters, events) => {
        this.sendStatus = Status.SUCCESS;
        const connection = this.cm.connect(parameters, events);
        return { connection, status: this.leaveStatus() };
      },
      lookup: (parameters, events) => {
        this.sendStatus = Status.SUCCESS;
        const lookup = this.cm.lookup(parameters, events);
        return { lookup, status: this.leaveStatus() };
      },
      claimPort: (service, gid, port) => this.hca.claimPort(service, gid, port),
      openPort: (claim) => this.hca.openPort(claim),
      releasePort: (claim) => this.hca.releasePort(claim),
      portOf: (gid, scopeId) => this.ports.ofGid(gid, scopeId),
      newCacheEpoch: () => parts.newCacheEpoch?.(),
      isOwn: (gid) => this.ports.ofGid(gid) !== undefined,
      sourceFor: (gid, scopeId) => this.ports.sourceFor(gid, scopeId),
    };
  }

  /** The driver that tells the counters of all parts. */
  private countersDriver(): CountersDriver {
    return new CountersDriver(
      () => {
        // P_Key tables belong to devices, not to who uses them.
        const { pkeyTable: pkeyTables = 0, ...objects } = this.hca.objectCounts();
        return {
          objects,
          hca: this.hca.counters(),
          cm: this.cm.counters(),
          io: { ...this.io.counters, openFiles: this.io.openFiles, pendingRequests: this.io.pendingRequests },
          filter: { ...this.filter.counters },
          devices: { ...this.hcaDriver.counters, pkeyTables },
        };
      },
      () =>
        this.ports.all().map(({ guid, interfaceName, interfaceIndex }) => ({
          guid: guidText(guid),
          name: interfaceName,
          index: interfaceIndex,
        })),
    );
  }

  private cmPlatform(): CmPlatform {
    return {
      sendMad: (path: CmPath, mad: Uint8Array) => {
        const { pkeys } = this.ports.ofGid(path.source) ?? { pkeys: [] };
        this.sendStatus = this.hca.sendMad(path, mad, managementPkey(pkeys, path.pkey));
      },
      setTimer: (milliseconds, expired) => {
        const timer = setTimeout(expired, milliseconds);
        return { cancel: () => clearTimeout(timer) };
      },
      allocateCommId: () => this.allocateCommId(),
      releaseCommId: (id) => {
        this.commIds.delete(id);
      },
      randomPsn: () => randomBits(24),
      caGuid: (source) => this.ports.ofGid(source)?.guid ?? 0n,
      acceptsPkey: (local, pkey) => pkeyIndexFor(this.ports.ofGid(local)?.pkeys ?? [DEFAULT_PKEY], pkey) >= 0,
      maxPathMtu: (local) => mtuCode(this.ports.ofGid(local)?.activeMtu ?? 4096),
    };
  }

  /** The status that says that the latest MAD can never leave; SUCCESS for all that may pass with the next retry. */
  private leaveStatus(): number {
    return unsendable.includes(this.sendStatus) ? this.sendStatus : Status.SUCCESS;
  }

  private allocateCommId(): number {
    if (this.commIds.size >= commIdCount) return 0;
    let next = this.nextCommId ?? randomBits(18);
    for (let tries = 0; tries < commIdCount; tries++) {
      this.nextCommId = next = (next % commIdCount) + 1;
      const id = (this.hca.commIdBase + next) >>> 0;
      if (this.commIds.has(id)) continue;
      this.commIds.add(id);
      return id;
    }
    return 0;
  }

  /** Serves requests that have come. True: there are more. */
  serveRequests(): boolean {
    const more = this.io.serve();
    if (this.stopWatch === undefined && this.watching) this.startWatch(this.network);
    return more;
  }

  private get watching(): boolean {
    return this.hcaDriver.watching || this.filter.watching;
  }

  private lookEachSecond(look: () => void): () => void {
    const timer = setInterval(() => {
      if (this.watching) return look();
      clearInterval(timer);
      this.stopWatch = undefined;
    }, freshMs).unref();
    return () => clearInterval(timer);
  }

  /** Looks at the interfaces when they have changed and it concerns somebody; each second where nothing tells. */
  private startWatch(network: HostNetwork): void {
    const look = (): void => {
      if (this.watching) this.ports.refresh(true);
    };
    this.stopWatch = network.watch(look) ?? this.lookEachSecond(look);
    // What has changed since the last look was told to nobody.
    look();
  }

  /** Passes on events of the HCA that have come. True: there are more. */
  serveEvents(): boolean {
    let strangers = strangersPerTurn;
    for (let n = 0; n < eventsPerTurn; n++) {
      const event: HcaEvent | undefined = this.hca.takeEvent(strangers > 0);
      if (!event) return strangers === 0;
      if (event.type === 'mad' && event.stranger) strangers--;
      this.hcaDriver.handle(event);
    }
    return true;
  }

  /** Closes every file, tells every peer, and lets the HCA go. */
  close(): void {
    this.stopWatch?.();
    this.io.closeAll();
    this.cm.close();
    this.hca.close();
  }
}
