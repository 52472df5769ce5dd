/** The soft kernel: I/O manager, HCA driver, filter driver and IBAT, connected to a list of HCAs and one channel. */
import type { NativeChannelServer } from '../hca/request-channel-binding.js';
import { controlNames } from '../ioctl/control.js';
import { guidText } from '../ioctl/hca-file.js';
import type { PkeyTables } from '../ioctl/pkey-tables.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { KernelOptions } from '../option-checks/option-schemas.js';
import { kernelStatistics } from './collect-statistics.js';
import { ControlDriver, type CounterGroups, type InterfaceRecord } from './control-driver.js';
import type { ThreadHooks } from './drivers/driver-host.js';
import { EndpointRouting } from './endpoint-routing.js';
import { FilterDriver } from './filter/filter-driver.js';
import { IbatDriver } from './filter/ibat-driver.js';
import type { HcaBackend, HcaMaker } from './hca-driver/backend.js';
import { HcaDriver } from './hca-driver/hca-driver.js';
import { freshMs, PortTable } from './hca-driver/hca-ports.js';
import type { HostNetwork } from './hca-driver/network-interfaces.js';
import { IoManager } from './io-manager/io-manager.js';

/** Maximum number of HCA events handled per turn of the event loop. */
const eventsPerTurn = 256;
/**
 * Maximum number of MADs from unknown peers among them: each takes some 100 µs, while requests of this process wait for the turn to end.
 */
const strangersPerTurn = 16;

/** The parts of a kernel; tests supply their own. */
export interface KernelParts {
  server: NativeChannelServer;
  /** At least one HCA. The first with a GUID or an address owns it. */
  hcas: readonly HcaMaker[];
  network: Pick<HostNetwork, 'route' | 'watchRoutes'>;
  options: Pick<KernelOptions, 'rc'> & Partial<Pick<KernelOptions, 'statistics'>>;
  /** Invalidates the user-side caches. Called before a change is reported. */
  newCacheEpoch?(): void;
  /** Hooks for loading drivers; without them none can be loaded. */
  hooks?: ThreadHooks;
}

/** Sums of numbers by name. */
function summed(groups: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const group of groups) {
    for (const [name, count] of Object.entries(group)) sums[name] = (sums[name] ?? 0) + count;
  }
  return sums;
}

export class Kernel {
  readonly io: IoManager;
  readonly ports: PortTable;
  readonly hcaDriver: HcaDriver;
  readonly filter: FilterDriver;
  private readonly control: ControlDriver;
  private readonly hcas: readonly HcaBackend[];
  private readonly network: KernelParts['network'];
  private readonly newCacheEpoch: () => void;
  /** Stops watching devices and routes. */
  private stopWatch: (() => void) | undefined = undefined;

  constructor(parts: KernelParts) {
    const { server, network, options } = parts;
    this.network = network;
    this.newCacheEpoch = () => parts.newCacheEpoch?.();
    this.io = new IoManager(server);
    this.hcas = parts.hcas.map((make) => make((gid) => this.ports.ofGid(gid)));
    this.ports = new PortTable(this.hcas, network, this.io.work);
    const { namespace } = this.io;
    this.hcaDriver = new HcaDriver({
      ports: this.ports,
      namespace,
      server,
      work: this.io.work,
      findIrp: (slot, serial) => this.io.find(slot, serial),
    });
    const { onChange } = this.ports;
    this.ports.onChange = (change) => {
      this.newCacheEpoch();
      onChange(change);
      this.control.changed();
    };
    this.hcaDriver.onMad = (event, { connections }) => connections.receive?.(event);
    this.hcaDriver.onObserved = (number, hca) =>
      hca.replyToObserver?.(number, options.statistics === false ? null : this.statistics());

    const endpoints = new EndpointRouting(this.hcas, this.ports, options.rc, this.newCacheEpoch);
    this.filter = new FilterDriver({
      devices: {
        guids: () => this.hcaDriver.guids(),
        userLibrary: (guid) => this.ports.get(guid)?.hca.userLibrary,
        refresh: () => this.ports.refresh(),
        openFile: (name) => this.io.openFile(name),
        closeFile: (file) => this.io.closeFile(file),
      },
      endpoints,
      work: this.io.work,
      contain: (code) => this.io.contain(code),
    });
    this.hcaDriver.attach(this.filter.aboveHca);
    this.hcaDriver.onPartitions = (hca, before) => this.filter.partitionsChanged(hca, before);
    this.hcaDriver.onLost = (lost, status) => this.filter.deviceLost(lost, status);
    // An acknowledgement takes a round trip: twice the packet life time, by default 4.096 µs × 2^16, which Linux
    // assumes for RoCE.
    const ibat = new IbatDriver(this.ports, this.io.work, Math.max(options.rc.ackTimeoutCode - 1, 0));
    this.control = new ControlDriver({
      counters: () => this.counters(),
      interfaces: () => this.interfaces(),
      hcaDriver: this.hcaDriver,
      loadDriverHost: () => this.loadDriverHost(endpoints, parts.hooks),
      setPkeys: (tables) => this.setPkeys(tables),
      work: this.io.work,
    });
    const { control, filter } = this;
    for (const { device } of [filter, ibat, control]) namespace.add(device);
    namespace.link('\\DosDevices\\WinVerbs', filter.device.name);
    namespace.link('\\DosDevices\\ibat', ibat.device.name);
    for (const name of controlNames)
      namespace.link(name.replace('\\\\.', '\\DosDevices'), control.device.name);
    namespace.link('\\DosDevices\\ibal', '\\Device\\ibal');
  }

  /** Loads the driver host and the provider of verbs for drivers, code that no other program needs. */
  private async loadDriverHost(endpoints: EndpointRouting, hooks: ThreadHooks | undefined) {
    if (!hooks) throw new StatusError(Status.NOT_SUPPORTED, 'this kernel cannot load drivers');
    const { DriverHost, kernelPlatform } = await import('./drivers/index.js');
    const { io, filter } = this;
    return new DriverHost(
      kernelPlatform({ io, filter, endpoints, guids: () => this.hcaDriver.guids() }),
      hooks,
    );
  }

  /** Replaces the P_Key tables of all HCAs that have tables of their own. */
  private setPkeys(tables: PkeyTables): number {
    const able = this.hcas.filter(({ setAllPkeys }) => setAllPkeys !== undefined);
    if (able.length === 0) return Status.NOT_SUPPORTED;
    for (const hca of able) hca.setAllPkeys?.(tables);
    this.ports.refresh(true);
    return Status.SUCCESS;
  }

  private counters(): CounterGroups {
    // P_Key tables belong to devices, not to their users.
    const { pkeyTable: pkeyTables = 0, ...objects } = summed(
      this.hcas.map(({ native }) => native.objectCounts()),
    );
    return {
      objects,
      hca: summed(this.hcas.map(({ native }) => native.counters())),
      cm: summed(this.hcas.map(({ connections }) => connections.counters())),
      io: { ...this.io.counters, openFiles: this.io.openFiles, pendingRequests: this.io.pendingRequests },
      filter: { ...this.filter.counters },
      devices: { ...this.hcaDriver.counters, pkeyTables },
    };
  }

  /** The statistics for other processes of the user, as JSON. */
  private statistics(): Uint8Array {
    const record = kernelStatistics({
      hcas: this.hcas,
      ports: this.ports.all(),
      endpoints: this.filter.endpoints(),
      counters: this.counters(),
    });
    return new TextEncoder().encode(JSON.stringify(record));
  }

  private interfaces(): InterfaceRecord[] {
    return this.ports.all().map(({ guid, interfaceName, interfaceIndex, hca }) => ({
      guid: guidText(guid),
      name: interfaceName,
      index: interfaceIndex,
      ...(hca.identity && { hca: hca.identity }),
    }));
  }

  /** Serves requests that have arrived. Returns true if there are more. */
  serveRequests(): boolean {
    const more = this.io.serve();
    if (this.stopWatch === undefined && this.watching) this.startWatch();
    return more;
  }

  private get watching(): boolean {
    return this.hcaDriver.watching || this.filter.watching || this.control.watching;
  }

  private lookEachSecond(look: () => void): () => void {
    const timer = setInterval(() => {
      if (this.watching) return look();
      this.stopWatch?.();
      this.stopWatch = undefined;
    }, freshMs).unref();
    return () => clearInterval(timer);
  }

  /**
   * Scans the devices when they have changed and an open instance or endpoint is affected, or every second if an HCA does not report
   * changes.
   */
  private startWatch(): void {
    const look = (): void => {
      if (this.watching) this.ports.refresh(true);
    };
    const watches = this.hcas.map((hca) => hca.watch(look));
    if (watches.includes(undefined)) watches.push(this.lookEachSecond(look));
    // Cached paths are valid for a second if the OS does not report changes of routes.
    watches.push(this.network.watchRoutes(this.newCacheEpoch));
    this.stopWatch = () => {
      for (const stop of watches) stop?.();
    };
    // Earlier changes were not reported.
    this.newCacheEpoch();
    look();
  }

  /** Handles events of the HCAs that have arrived. Returns true if there are more. */
  serveEvents(): boolean {
    let more = false;
    for (const hca of this.hcas) if (this.serveEventsOf(hca)) more = true;
    this.io.work.run();
    return more;
  }

  private serveEventsOf(hca: HcaBackend): boolean {
    let strangers = strangersPerTurn;
    for (let n = 0; n < eventsPerTurn; n++) {
      const event = hca.native.takeEvent(strangers > 0);
      if (!event) return strangers === 0;
      if (event.type === 'mad' && event.stranger) strangers--;
      this.hcaDriver.handle(event, hca);
    }
    return true;
  }

  /** Closes every file, notifies every peer, and releases the HCAs. */
  close(): void {
    this.stopWatch?.();
    this.io.closeAll();
    for (const hca of this.hcas) hca.close();
  }
}
