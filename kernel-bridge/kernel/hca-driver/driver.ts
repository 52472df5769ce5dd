/**
 * The HCA driver: one device per network interface, the name `\Device\ibal\<CA GUID>` that leads to it, and the HCA's
 * events on their way to whom they concern.
 */
import type { HcaEvent, NativeChannelServer, NativeHca } from '../../hca/binding.js';
import { WvEvent } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import {
  type DeviceNamespace,
  DeviceObject,
  DriverObject,
  type FileObject,
  STATUS_REPARSE,
} from '../io-manager/device.js';
import type { Irp } from '../io-manager/irp.js';
import { raisePortEvent } from './ci-events.js';
import { ciCqEventDelivered } from './ci-queues.js';
import { Hca, type IbCq, type IbQp } from './objects.js';
import { type PortChange, type PortTable, sameGids } from './ports.js';

/** A CA GUID in names: 16 hexadecimal digits. */
export function guidText(guid: bigint): string {
  return guid.toString(16).padStart(16, '0');
}

/** What the driver stands on. */
export interface HcaDriverPlatform {
  native: NativeHca;
  ports: PortTable;
  namespace: DeviceNamespace;
  server: NativeChannelServer;
  /** The IRP of a channel request that has not completed. */
  findIrp(slot: number, serial: number): Irp | undefined;
}

export class HcaDriver {
  readonly registry = { qps: new Map<number, IbQp>(), cqs: new Map<number, IbCq>() };
  private readonly driver: DriverObject;
  private readonly devices = new Map<bigint, DeviceObject<Hca>>();
  /** MADs from QP1, for connection management. */
  onMad: (event: Extract<HcaEvent, { type: 'mad' }>) => void = () => {};

  constructor(private readonly platform: HcaDriverPlatform) {
    this.driver = new DriverObject('\\Driver\\hca', {
      create: (file, irp) => this.create(file, irp),
      // Verbs of a file of one's own on the HCA come by direct call; there are no IOCTLs on it.
      deviceControl: (_file, irp) => {
        return irp.complete(Status.INVALID_DEVICE_REQUEST);
      },
      cleanup: () => {},
      close: () => {},
    });
    platform.namespace.add(new DeviceObject(this.driver, '\\Device\\ibal', undefined));
    platform.ports.onChange = (change) => this.portChanged(change);
    platform.ports.refresh(true);
  }

  /** `\Device\ibal\<GUID>` is reparsed to the HCA's own device; a file on that is just a reference. */
  private create(file: FileObject, irp: Irp): number {
    if (file.device.extension instanceof Hca) {
      return irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND);
    }
    const device = this.deviceByName(file.relativeName);
    if (!device) return irp.complete(Status.NO_SUCH_DEVICE);
    irp.reparseName = device.name;
    return irp.complete(STATUS_REPARSE);
  }

  private deviceByName(name: string): DeviceObject<Hca> | undefined {
    return /^[0-9a-f]{16}$/i.test(name) ? this.find(BigInt(`0x${name}`)) : undefined;
  }

  /** The device of a CA GUID, if there is one now. */
  find(guid: bigint): DeviceObject<Hca> | undefined {
    this.platform.ports.refresh();
    if (!this.devices.has(guid)) this.platform.ports.refresh(true);
    return this.devices.get(guid);
  }

  /** GUIDs of all HCAs, in the order of their interfaces. */
  guids(): bigint[] {
    return this.platform.ports.all().map(({ guid }) => guid);
  }

  private portChanged({ guid, port, previous }: PortChange): void {
    const { native, ports, server, namespace } = this.platform;
    const device = this.devices.get(guid);
    if (!port) {
      if (!device) return;
      this.devices.delete(guid);
      namespace.delete(device);
      this.raise(device, WvEvent.ERROR);
      device.extension.remove();
      device.remove();
      return;
    }
    if (!device) {
      const hca = new Hca(native, ports, server, port, this.registry);
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
    const stateFlag = previous.state === port.state ? 0 : WvEvent.STATE;
    const addressFlag = sameGids(previous.gids, port.gids) ? 0 : WvEvent.ADDRESS;
    if (stateFlag | addressFlag) this.raise(device, stateFlag | addressFlag);
  }

  private raise(device: DeviceObject<Hca>, flags: number): void {
    for (const ca of [...device.extension.instances]) raisePortEvent(ca, flags);
  }

  /** Passes one event of the HCA on. */
  handle(event: HcaEvent): void {
    switch (event.type) {
      case 'mad':
        this.onMad(event);
        break;
      case 'qp': {
        const qp = this.registry.qps.get(event.qp);
        qp?.dispatch.asyncEvent?.(qp, event.event, event.reason);
        break;
      }
      case 'notified': {
        const irp = this.platform.findIrp(event.slot, event.serial);
        if (irp) ciCqEventDelivered(irp);
        break;
      }
      case 'cq':
        // The HCA itself completes the waiters of a queue that overran, with BUFFER_OVERFLOW.
        break;
    }
  }
}
