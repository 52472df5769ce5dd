/** IOCTLs of devices: list, open, attributes, events. Source: WinVerbs IOCTL interface. */

import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity, WvEvent } from '../../ioctl/constants.js';
import { hcaFileName } from '../../ioctl/hca-file.js';
import { Status } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import {
  ciGetCaAttributes,
  ciGetPortAttributes,
  ciQueryGids,
  ciQueryPkeys,
  type IbCaAttributes,
  type IbPortAttributes,
} from '../hca-driver/ci-attributes.js';
import { ciCloseCa, ciOpenCa } from '../hca-driver/ci-ca.js';
import { Hca, type IbCa, type IbCaDispatch } from '../hca-driver/ib-objects.js';
import type { DeviceObject, FileObject } from '../io-manager/device-object.js';
import { type Call, callVerbFor, type Handler } from './call.js';
import { idOf, WvDevice } from './file-objects.js';

/** Services for device requests, besides the file. */
export interface DeviceServices {
  /** Scans the host's interfaces if the last scan is out of date. */
  refresh(): void;
  guids(): bigint[];
  /** The name of the user-mode provider of a device, or undefined without such a device. */
  userLibrary(guid: bigint): string | undefined;
  /** Opens a file as a kernel client: the name is reparsed, and the file references its device. Returns a status on failure. */
  openFile(name: string): FileObject | number;
  closeFile(file: FileObject): void;
}

/** The HCA instance with an id. */
export function instance(call: Call, id: bigint, missing: number = Status.NO_SUCH_DEVICE): IbCa {
  return call.find(call.file.devices, id, missing).ca!;
}

/** Returns the elements that fit; MORE_ENTRIES if not all do. */
function listAnswer<V>(
  call: Call,
  layout: { readonly elementSize: number; encode(values: readonly V[], maxBytes: number): Uint8Array },
  values: readonly V[],
): number {
  const bytes = layout.encode(values, call.irp.outputCapacity);
  const whole = bytes.length === values.length * layout.elementSize;
  return call.bytes(bytes, whole ? Status.SUCCESS : Status.MORE_ENTRIES);
}

/** Completes one pending DEVICE_NOTIFY with the events since the last one. */
function deliverPortEvents(device: WvDevice): void {
  if (device.flags === 0) return;
  const waiting = device.portWaits.removeFirst();
  if (!waiting) return;
  s.WvIoEventFlags.encode({ flags: device.flags }, waiting.irp.output);
  device.flags = 0;
  waiting.irp.complete(Status.SUCCESS, s.WvIoEventFlags.size);
}

/** The filter's callbacks; WinVerbs reports all events of a device together. */
const deviceEvents: IbCaDispatch<WvDevice> = {
  portEvent: (_ca, device, _port, event) => {
    device.flags |= event;
    deliverPortEvents(device);
  },
  fatalEvent: (_ca, device) => {
    device.flags |= WvEvent.ERROR;
    deliverPortEvents(device);
    device.portWaits.completeAll(Status.FILE_FORCED_CLOSED);
  },
};

/** DEVICE_OPEN: the verbs of an HCA use that HCA's file, which the filter keeps open as long as the instance. */
function openDevice(call: Call, services: DeviceServices): number {
  const { guid } = s.WvIoDeviceOpen.decode(call.input);
  call.room(call.file.devices);
  const file = services.openFile(hcaFileName(guid));
  if (typeof file === 'number') return call.fail(Status.NO_SUCH_DEVICE);
  const device = new WvDevice();
  device.closed = () => services.closeFile(file);
  if (!(file.device.extension instanceof Hca)) {
    device.closed();
    return call.fail(Status.NO_SUCH_DEVICE);
  }
  const udata = call.udata();
  const status = callVerbFor<IbCa>(
    call.irp,
    (irp) => ciOpenCa(call.file.al, file.device as DeviceObject<Hca>, device, deviceEvents, udata, irp),
    (ca) => {
      device.ca = ca;
      const id = call.file.devices.add(device);
      return call.struct(s.WvIoId, { id: BigInt(id) }, udata);
    },
  );
  if (!device.ca) device.closed();
  return status;
}

/** The list of devices and their user-mode providers. */
function listRequests(services: DeviceServices) {
  return {
    GUID_QUERY: (call) => {
      const guids = services.guids();
      const entries = s.WvGuidEntries.encode(guids, call.irp.outputCapacity - 8);
      const bytes = new Uint8Array(8 + entries.length);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(guids.length), true);
      bytes.set(entries, 8);
      return call.bytes(bytes);
    },

    LIBRARY_QUERY: (call) => {
      const library = services.userLibrary(s.WvIoGuid.decode(call.input).guid);
      if (library === undefined) return call.fail(Status.NO_SUCH_DEVICE);
      const name = new TextEncoder().encode(`${library}\0`);
      if (name.length > Capacity.LIBRARY_NAME || name.length > call.irp.outputCapacity) {
        return call.fail(Status.BUFFER_TOO_SMALL);
      }
      return call.bytes(name);
    },
  } satisfies Partial<Record<IoctlName, Handler>>;
}

/** Attributes of devices and their ports. */
function queryRequests(services: DeviceServices) {
  return {
    DEVICE_QUERY: (call) => {
      const ca = instance(call, s.WvIoObject.decode(call.input).id);
      return callVerbFor<IbCaAttributes>(
        call.irp,
        (irp) => ciGetCaAttributes(ca, irp),
        (attributes) => call.struct(s.WvIoDeviceAttributes, attributes),
      );
    },

    DEVICE_PORT_QUERY: (call) => {
      const { id, portNumber } = s.WvIoDevicePortQuery.decode(call.input);
      services.refresh();
      const ca = instance(call, id);
      return callVerbFor<IbPortAttributes>(
        call.irp,
        (irp) => ciGetPortAttributes(ca, portNumber, irp),
        (attributes) => call.struct(s.WvIoPortAttributes, attributes),
      );
    },

    DEVICE_GID_QUERY: (call) => {
      const { id, portNumber } = s.WvIoDevicePortQuery.decode(call.input);
      services.refresh();
      const ca = instance(call, id);
      return callVerbFor<readonly Uint8Array[]>(
        call.irp,
        (irp) => ciQueryGids(ca, portNumber, irp),
        (gids) => listAnswer(call, s.WvGidList, gids),
      );
    },

    DEVICE_PKEY_QUERY: (call) => {
      const { id, portNumber } = s.WvIoDevicePortQuery.decode(call.input);
      services.refresh();
      const ca = instance(call, id);
      return callVerbFor<readonly number[]>(
        call.irp,
        (irp) => ciQueryPkeys(ca, portNumber, irp),
        (pkeys) => listAnswer(call, s.WvPkeyList, pkeys),
      );
    },
  } satisfies Partial<Record<IoctlName, Handler>>;
}

/** Events of an open device, and closing it. */
const eventRequests = {
  DEVICE_NOTIFY: (call) => {
    const { id, data } = s.WvIoId.decode(call.input);
    const device = call.find(call.file.devices, id);
    if (data !== 1) return call.fail(Status.INVALID_PORT_HANDLE);
    const { unplugged, failed } = device.ca!.hca;
    if (unplugged) return call.fail(Status.DEVICE_REMOVED);
    if (failed && device.flags === 0) return call.fail(Status.FILE_FORCED_CLOSED);
    const status = device.portWaits.insert(call.irp, undefined);
    deliverPortEvents(device);
    return status;
  },

  DEVICE_CANCEL: (call) => {
    call.find(call.file.devices, s.WvIoObject.decode(call.input).id).portWaits.cancelAll();
    return call.done();
  },

  DEVICE_CLOSE: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const device = call.find(call.file.devices, id, Status.NO_SUCH_DEVICE);
    let closed = false;
    const status = callVerbFor<number>(
      call.irp,
      (irp) => ciCloseCa(device.ca!, irp),
      () => {
        closed = true;
        call.file.devices.delete(idOf(id));
        device.portWaits.cancelAll();
        return call.done();
      },
    );
    // The file is not closed within the verb, which runs at DISPATCH_LEVEL.
    if (closed) device.closed();
    return status;
  },
} satisfies Partial<Record<IoctlName, Handler>>;

/** The handlers of device requests. */
export function deviceRequests(services: DeviceServices) {
  return {
    ...listRequests(services),
    ...queryRequests(services),
    ...eventRequests,
    DEVICE_OPEN: (call: Call) => openDevice(call, services),
  } satisfies Partial<Record<IoctlName, Handler>>;
}
