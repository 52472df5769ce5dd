/**
 * `\\.\NetworkDirectControl`: counters, simulated device faults, drivers, settings and changes of the host. Any program
 * of the isolate may open it and send all of its IOCTLs.
 */
import { type ControlName, controlTable } from '../ioctl/control.js';
import { arePkeyTables, type PkeyTables } from '../ioctl/pkey-tables.js';
import { Status, StatusError } from '../ioctl/status.js';
import { ChangeCount, WvIoGuid } from '../ioctl/structs.js';
import type { DriverHost, LoadRequest } from './drivers/driver-host.js';
import type { HcaDriver } from './hca-driver/hca-driver.js';
import { DeviceObject, DriverObject } from './io-manager/device-object.js';
import { IoctlTable } from './io-manager/ioctl-table.js';
import { type Irp, IrpQueue } from './io-manager/irp.js';
import type { WorkItems } from './io-manager/work-items.js';

/** Groups of counters by name. */
export type CounterGroups = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A device's network interface, as returned by INTERFACES. */
export interface InterfaceRecord {
  /** 16 hexadecimal digits, because JSON has no 64-bit numbers. */
  readonly guid: string;
  readonly name: string;
  readonly index: number;
}

/** The output of LOAD and UNLOAD: a result, or the status and reason of a refusal. */
type DriversAnswer = { readonly result: unknown } | { readonly status: number; readonly reason: string };

/** The kernel behind the control device. */
export interface ControlPlatform {
  counters(): CounterGroups;
  interfaces(): readonly InterfaceRecord[];
  readonly hcaDriver: Pick<HcaDriver, 'unplug' | 'plug' | 'fail' | 'queryRemove'>;
  /** Called once, for the first request about drivers. */
  loadDriverHost(): Promise<DriverHost>;
  /** Replaces the P_Key tables of all ports; returns a status. */
  setPkeys(tables: PkeyTables): number;
  readonly work: WorkItems;
}

export class ControlDriver {
  readonly device: DeviceObject;
  private loadingHost: Promise<DriverHost> | undefined = undefined;
  private driverHost: DriverHost | undefined = undefined;
  /** Number of changes of devices and addresses, plus 1. */
  private changes = 1;
  private readonly changeWaits = new IrpQueue();

  constructor(private readonly platform: ControlPlatform) {
    const table = new IoctlTable(controlTable, this.handlers);
    const driver = new DriverObject('\\Driver\\NetworkDirectControl', {
      create: (file, irp) =>
        irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => {
        const served = table.find(irp);
        return typeof served === 'number' ? irp.complete(served) : served.handler(irp);
      },
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(driver, '\\Device\\NetworkDirectControl', undefined);
  }

  private readonly handlers: Record<ControlName, (irp: Irp) => number> = {
    QUERY: (irp) => answerJson(irp, this.platform.counters()),
    INTERFACES: (irp) => answerJson(irp, this.platform.interfaces()),

    UNPLUG: (irp) => irp.complete(this.platform.hcaDriver.unplug(guidOf(irp))),
    PLUG: (irp) => irp.complete(this.platform.hcaDriver.plug(guidOf(irp))),
    FATAL: (irp) => irp.complete(this.platform.hcaDriver.fail(guidOf(irp))),
    QUERY_REMOVE: (irp) => irp.complete(this.platform.hcaDriver.queryRemove(guidOf(irp))),

    LOAD: (irp) => this.callHost(irp, (host, request) => host.load(request)),
    UNLOAD: (irp) => this.callHost(irp, (host, { name }) => host.unload(name)),

    SET_PKEYS: (irp) => {
      const tables = jsonOf(irp);
      if (!arePkeyTables(tables)) return irp.complete(Status.INVALID_PARAMETER);
      // Setting the tables scans the devices, which may block.
      return this.platform.work.pend(irp, () => irp.complete(this.platform.setPkeys(tables)));
    },

    AWAIT_CHANGE: (irp) => {
      const { count } = ChangeCount.decode(irp.takeInput());
      return count === this.changes ? this.changeWaits.insert(irp, undefined) : this.answerChange(irp);
    },
  };

  // ── Changes of the host ─────────────────────────────────────────────────────────────────────────────────

  /** Whether a program is waiting for a change. */
  get watching(): boolean {
    return this.changeWaits.size > 0;
  }

  /** Called when devices or their addresses have changed. */
  changed(): void {
    this.changes = (this.changes % 0xffff_ffff) + 1;
    const waits = this.changeWaits;
    for (let next = waits.removeFirst(); next; next = waits.removeFirst()) this.answerChange(next.irp);
  }

  private answerChange(irp: Irp): number {
    ChangeCount.encode({ count: this.changes }, irp.output);
    return irp.complete(Status.SUCCESS, ChangeCount.size);
  }

  // ── Drivers ─────────────────────────────────────────────────────────────────────────────────────────────

  private callHost(irp: Irp, action: (host: DriverHost, request: LoadRequest) => Promise<unknown>): number {
    const request = loadRequest(jsonOf(irp));
    if (!request) return irp.complete(Status.INVALID_PARAMETER);
    irp.markPending();
    // A load or unload in progress continues after its request was cancelled.
    irp.setCancelRoutine((cancelled) => cancelled.complete(Status.CANCELED));
    void this.withHost((host) => action(host, request)).then((answer) => {
      if (irp.completed) return;
      irp.setCancelRoutine(undefined);
      answerJson(irp, answer);
    });
    return Status.PENDING;
  }

  private async withHost(action: (host: DriverHost) => Promise<unknown>): Promise<DriversAnswer> {
    try {
      if (!this.driverHost) {
        this.loadingHost ??= this.platform.loadDriverHost();
        this.driverHost = await this.loadingHost;
      }
      // There is no await before this, so that requests take effect in order.
      return { result: (await action(this.driverHost)) ?? null };
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status, reason: error.message };
      return { status: Status.INTERNAL_ERROR, reason: String(error) };
    }
  }
}

function guidOf(irp: Irp): bigint {
  return WvIoGuid.decode(irp.takeInput()).guid;
}

function answerJson(irp: Irp, value: unknown): number {
  const text = new TextEncoder().encode(JSON.stringify(value));
  if (text.length > irp.outputCapacity) return irp.complete(Status.BUFFER_TOO_SMALL);
  irp.output.set(text);
  return irp.complete(Status.SUCCESS, text.length);
}

/** The value of the input's JSON text; undefined if it is not JSON. */
function jsonOf(irp: Irp): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(irp.takeInput()));
  } catch {
    return undefined;
  }
}

/** The input of LOAD or UNLOAD; undefined if it does not have that form. */
function loadRequest(value: unknown): LoadRequest | undefined {
  const { name, url = '', parameters, timeoutMs = 0 } = (value ?? {}) as Partial<LoadRequest>;
  if (typeof name !== 'string' || typeof url !== 'string' || typeof timeoutMs !== 'number') return undefined;
  return { name, url, parameters, timeoutMs };
}
