/** The HCA driver: the devices of all HCAs of a kernel, their names `\Device\ibal\<CA GUID>`, and the delivery of the HCAs' events. */

import type { NativeChannelServer } from '../../hca/request-channel-binding.js';
import { type HcaEvent, QpEventType, QpMask } from '../../hca/soft-hca-binding.js';
import { QpState, WvEvent } from '../../ioctl/constants.js';
import { guidText } from '../../ioctl/hca-file.js';
import { Status } from '../../ioctl/status.js';
import {
  type DeviceNamespace,
  DeviceObject,
  type DriverDispatch,
  DriverObject,
  type FileObject,
  STATUS_REPARSE,
} from '../io-manager/device-object.js';
import type { Irp } from '../io-manager/irp.js';
import { atDispatchLevel } from '../io-manager/irql.js';
import type { WorkItems } from '../io-manager/work-items.js';
import type { HcaBackend, MadEvent } from './backend.js';
import { endCaEvents, raiseFatalEvent, raisePortEvents, raiseQpEvent } from './ci-events.js';
import { ciCqEventDelivered, ciEndCqEvents, raiseCqEvent } from './ci-queues.js';
import { raiseLastWqe, raiseSrqEvent } from './ci-srq.js';
import { type PortChange, type PortTable, portEvents } from './hca-ports.js';
import { Hca, type HcaRegistry, type IbCq, type IbQp, type IbSrq } from './ib-objects.js';

/** The driver's platform. */
export interface HcaDriverPlatform {
  ports: PortTable;
  namespace: DeviceNamespace;
  server: NativeChannelServer;
  work: WorkItems;
  /** The IRP of a channel request that has not completed. */
  findIrp(slot: number, serial: number): Irp | undefined;
}

export class HcaDriver {
  /** Queues by HCA: each HCA has its own handles. */
  private readonly registries = new Map<HcaBackend, HcaRegistry>();
  private readonly driver: DriverObject;
  /** The driver attached above the HCAs. */
  private upper: DriverDispatch | undefined = undefined;
  private readonly devices = new Map<bigint, DeviceObject<Hca>>();
  /** HCAs that have failed as a whole. */
  private readonly broken = new Set<HcaBackend>();
  /** Number of removed devices that still have references. */
  private removing = 0;
  /** Called for an HCA that is gone or has failed; its pending requests must complete with `status`. */
  onLost: (hca: Hca, status: number) => void = () => {};
  /** Called after an HCA's P_Key table was replaced; `before` is the old one. */
  onPartitions: (hca: Hca, before: readonly number[]) => void = () => {};
  /** Called with MADs from QP1, for connection management. */
  onMad: (event: MadEvent, from: HcaBackend) => void = () => {};
  /** Called when an HCA has failed as a whole, with the errno value. */
  onHcaFailed: (errno: number) => void = () => {};
  /** Called when a process requests statistics from this HCA's kernel. */
  onObserved: (number: number, from: HcaBackend) => void = () => {};
  /** Called when UDP port 4791 was given up to a process of another version. */
  onWireLost: () => void = () => {};
  /** Called when the capture file can no longer be written. */
  onCaptureFailed: (errno: number) => void = () => {};

  constructor(private readonly platform: HcaDriverPlatform) {
    this.driver = new DriverObject('\\Driver\\hca', {
      create: (file, irp) => this.create(file, irp),
      deviceControl: (file, irp) => {
        return this.above(file)?.deviceControl(file, irp) ?? irp.complete(Status.INVALID_DEVICE_REQUEST);
      },
      cleanup: (file) => this.above(file)?.cleanup(file),
      close: (file) => this.above(file)?.close(file),
    });
    platform.namespace.add(new DeviceObject(this.driver, '\\Device\\ibal', undefined));
    platform.ports.onChange = (change) => this.portChanged(change);
    platform.ports.refresh(true);
  }

  /** Attaches a driver above the HCAs' devices: requests on their files pass through it (IoAttachDevice). */
  attach(upper: DriverDispatch): void {
    this.upper = upper;
  }

  private above(file: FileObject): DriverDispatch | undefined {
    return file.device.extension instanceof Hca ? this.upper : undefined;
  }

  /** Reparses `\Device\ibal\<GUID>` to the HCA's own device. */
  private create(file: FileObject, irp: Irp): number {
    if (file.device.extension instanceof Hca) {
      if (file.relativeName !== '') return irp.complete(Status.OBJECT_NAME_NOT_FOUND);
      return this.upper?.create(file, irp) ?? irp.complete(Status.SUCCESS);
    }
    const device = this.deviceByName(file.relativeName);
    if (!device) return irp.complete(Status.NO_SUCH_DEVICE);
    irp.reparseName = device.name;
    return irp.complete(STATUS_REPARSE);
  }

  private deviceByName(name: string): DeviceObject<Hca> | undefined {
    return /^[0-9a-f]{16}$/i.test(name) ? this.find(BigInt(`0x${name}`)) : undefined;
  }

  /** The current device with a CA GUID, if any. */
  find(guid: bigint): DeviceObject<Hca> | undefined {
    this.platform.ports.refresh();
    if (!this.devices.has(guid)) this.platform.ports.refresh(true);
    return this.devices.get(guid);
  }

  /** The live queues of an HCA. */
  registryOf(hca: HcaBackend): HcaRegistry {
    let registry = this.registries.get(hca);
    if (!registry) {
      registry = {
        qps: new Map<number, IbQp>(),
        cqs: new Map<number, IbCq>(),
        srqs: new Map<number, IbSrq>(),
      };
      this.registries.set(hca, registry);
    }
    return registry;
  }

  /** GUIDs of all devices, in the order of their HCAs and interfaces. */
  guids(): bigint[] {
    return this.platform.ports.all().map(({ guid }) => guid);
  }

  private portChanged({ guid, port, previous }: PortChange): void {
    const { ports, server, namespace, work } = this.platform;
    const device = this.devices.get(guid);
    if (!port) {
      if (!device) return;
      this.devices.delete(guid);
      namespace.delete(device);
      device.extension.remove();
      this.end(device.extension, Status.DEVICE_REMOVED);
      this.removing++;
      const { extension } = device;
      device.remove(() => {
        this.removing--;
        extension.own.end();
      });
      return;
    }
    if (!device) {
      const hca = new Hca(ports, server, port, this.registryOf(port.hca), work);
      hca.broken = hca.failed = this.broken.has(port.hca);
      const added = new DeviceObject(
        this.driver,
        `\\Device\\hca_${guidText(guid)}_${port.interfaceIndex}`,
        hca,
      );
      this.devices.set(guid, added);
      namespace.add(added);
      return;
    }
    if (!previous) return;
    device.extension.own.portChanged(port, false);
    const flags = portEvents(previous, port);
    raisePortEvents(device.extension, flags);
    if ((flags & WvEvent.PARTITION) !== 0) this.onPartitions(device.extension, previous.pkeys);
  }

  /** Whether an open instance may need notifications of changes. */
  get watching(): boolean {
    for (const { extension } of this.devices.values()) if (extension.instances.size > 0) return true;
    return false;
  }

  /** Completes an HCA's pending requests and stops its queue pairs. Nothing is freed; the owners do that. */
  private end(hca: Hca, status: number): void {
    const { cqs, srqs, qps } = hca.registry;
    // The event requests are completed before the queue pairs are flushed, because the flush causes events.
    for (const cq of [...cqs.values()]) if (cq.ca.hca === hca) ciEndCqEvents(cq, status);
    for (const srq of [...srqs.values()]) {
      if (srq.pd.ca.hca === hca) srq.waits.completeAll(status);
    }
    this.onLost(hca, status);
    for (const qp of [...qps.values()]) {
      if (qp.pd.ca.hca !== hca) continue;
      qp.waits?.completeAll(status);
      hca.native.modifyQp(qp.handle, QpMask.state, { state: QpState.ERROR });
    }
    if (hca.unplugged) for (const ca of [...hca.instances]) endCaEvents(ca, status);
  }

  /** Removes an HCA as if its interface were gone. @returns SUCCESS, NO_SUCH_DEVICE. */
  unplug(guid: bigint): number {
    if (!this.find(guid)) return Status.NO_SUCH_DEVICE;
    this.platform.ports.hide(guid, true);
    return Status.SUCCESS;
  }

  /**
   * Removes an HCA if no file or kernel client uses it (query-remove).
   *
   * @returns SUCCESS, DEVICE_BUSY while a file or a kernel client uses the device, NO_SUCH_DEVICE.
   */
  queryRemove(guid: bigint): number {
    const device = this.find(guid);
    if (!device) return Status.NO_SUCH_DEVICE;
    return device.references.users > 0 ? Status.DEVICE_BUSY : this.unplug(guid);
  }

  /**
   * Reverses {@link unplug} and {@link queryRemove}: a new HCA with the same GUID. @returns SUCCESS, NO_SUCH_DEVICE
   * without such an interface.
   */
  plug(guid: bigint): number {
    this.platform.ports.hide(guid, false);
    return this.find(guid) ? Status.SUCCESS : Status.NO_SUCH_DEVICE;
  }

  /**
   * Simulates a fatal error: verbs of the open instances return FILE_FORCED_CLOSED from now on, and each instance is
   * notified. Once all of them are closed, the HCA works again.
   *
   * @returns SUCCESS, NO_SUCH_DEVICE.
   */
  fail(guid: bigint): number {
    const hca = this.find(guid)?.extension;
    if (!hca) return Status.NO_SUCH_DEVICE;
    if (hca.failed || hca.instances.size === 0) return Status.SUCCESS;
    hca.failed = true;
    this.end(hca, Status.FILE_FORCED_CLOSED);
    for (const ca of [...hca.instances]) ca.al.contain(() => raiseFatalEvent(ca));
    return Status.SUCCESS;
  }

  /** An HCA has failed as a whole and does not recover: calls {@link fail} for each of its devices, now and later. */
  private failAll(from: HcaBackend, errno: number): void {
    if (this.broken.has(from)) return;
    this.broken.add(from);
    for (const [guid, { extension }] of this.devices) {
      if (this.platform.ports.peek(guid)?.hca !== from) continue;
      extension.broken = true;
      this.fail(guid);
      extension.failed = true;
    }
    this.onHcaFailed(errno);
  }

  /** Numbers of present devices, and of removed ones that still have references. */
  get counters(): Record<'devices' | 'removing', number> {
    return { devices: this.devices.size, removing: this.removing };
  }

  /** Delivers one event of an HCA, at DISPATCH_LEVEL. */
  handle(event: HcaEvent, from: HcaBackend): void {
    atDispatchLevel(() => this.dispatch(event, from));
  }

  private dispatch(event: HcaEvent, from: HcaBackend): void {
    const { qps, cqs, srqs } = this.registryOf(from);
    switch (event.type) {
      case 'mad':
        this.onMad(event, from);
        break;
      case 'qp': {
        const qp = qps.get(event.qp);
        if (!qp) break;
        const { srq } = qp;
        qp.connectionEvent?.(event.event, event.reason);
        qp.pd.ca.al.contain(() => raiseQpEvent(qp, event.event, event.reason));
        if (srq && event.event === QpEventType.lastWqe) srq.pd.ca.al.contain(() => raiseLastWqe(srq, qp));
        break;
      }
      case 'srq': {
        const srq = srqs.get(event.srq);
        srq?.pd.ca.al.contain(() => raiseSrqEvent(srq, event.event));
        break;
      }
      case 'notified': {
        const irp = this.platform.findIrp(event.slot, event.serial);
        if (irp) ciCqEventDelivered(irp);
        break;
      }
      case 'cq': {
        const cq = cqs.get(event.cq);
        cq?.ca.al.contain(() => raiseCqEvent(cq, event.event));
        break;
      }
      case 'fatal':
        if (event.device === undefined) this.failAll(from, event.errno);
        else this.fail(event.device);
        break;
      case 'observed':
        this.onObserved(event.number, from);
        break;
      case 'wireLost':
        this.onWireLost();
        break;
      case 'capture':
        this.onCaptureFailed(event.errno);
        break;
    }
  }
}
