/**
 * IOCTLs of an HCA's own file, `\Device\ibal\<CA GUID>`: the verbs of the IRP-based verbs RFC (2005) as requests. Verbs
 * of the WinVerbs interface use the same IOCTLs and structures; `ioctl/hca-file.ts` has the others. Ids are those of
 * the file. Connection management and the list of devices belong to `\\.\WinVerbs`.
 *
 * Buffers contain no callbacks: the sender of an IOCTL waits with requests, in either mode.
 */

import type { HcaFileName, IoctlName } from '../../ioctl/codes.js';
import { IbIoCaModify, IbIoPortEvent, IbIoPortModify } from '../../ioctl/hca-file.js';
import { Status } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { ciModifyCa, ciModifyPort, ciQueryCa, ciQueryPort } from '../hca-driver/ci-attributes.js';
import { ciOpenCa } from '../hca-driver/ci-ca.js';
import { ciCancelCaEvents, ciGetCaFatalEvent, ciGetCaPortEvent } from '../hca-driver/ci-events.js';
import type { IbCa } from '../hca-driver/ib-objects.js';
import { callVerbFor, type Handler } from './call.js';
import { instance } from './device-requests.js';
import { WvDevice } from './file-objects.js';

/** WinVerbs IOCTLs that are not verbs of an HCA. */
const noVerb = /^(GUID_QUERY|LIBRARY_QUERY|EP_.*)$/;

/** Requests that exist only on an HCA's file, or have another form there. */
const own = {
  DEVICE_OPEN: (call) => {
    const { hcaDevice } = call.file;
    const { guid } = s.WvIoDeviceOpen.decode(call.input);
    // The file determines the HCA; a GUID may repeat it.
    if (!hcaDevice || (guid !== 0n && guid !== hcaDevice.extension.guid))
      return call.fail(Status.NO_SUCH_DEVICE);
    call.room(call.file.devices);
    const udata = call.udata();
    return callVerbFor<IbCa>(
      call.irp,
      (irp) => ciOpenCa(call.file.al, hcaDevice, undefined, {}, udata, irp),
      (ca) => {
        const device = new WvDevice();
        device.ca = ca;
        const made = call.file.devices.add(device);
        return call.made(s.WvIoId, { id: BigInt(made) }, made, udata);
      },
    );
  },

  // CiGetCaPortEvent: several may be pending, and an event completes the oldest.
  DEVICE_NOTIFY: (call) => {
    const { id, data: port } = s.WvIoId.decode(call.input);
    const ca = instance(call, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciGetCaPortEvent(ca, port, irp),
      (flags) => call.struct(s.WvIoEventFlags, { flags }),
    );
  },

  CA_PORT_EVENT: (call) => {
    const { id, portNumber } = s.WvIoDevicePortQuery.decode(call.input);
    const ca = instance(call, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciGetCaPortEvent(ca, portNumber, irp),
      (event) => call.struct(IbIoPortEvent, { portNumber, event }),
    );
  },

  CA_FATAL_EVENT: (call) => {
    const ca = instance(call, s.WvIoObject.decode(call.input).id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciGetCaFatalEvent(ca, irp),
      () => call.done(),
    );
  },

  DEVICE_CANCEL: (call) => {
    ciCancelCaEvents(instance(call, s.WvIoObject.decode(call.input).id));
    return call.done();
  },

  // The caller's own IRP is passed down: the verb writes to its buffer, and BUFFER_OVERFLOW returns a part.
  CA_QUERY: (call) => {
    const ca = instance(call, s.WvIoObject.decode(call.input).id);
    return ciQueryCa(ca, call.irp.output, call.irp);
  },

  CA_PORT_QUERY: (call) => {
    const { id, portNumber } = s.WvIoDevicePortQuery.decode(call.input);
    return ciQueryPort(instance(call, id), portNumber, call.irp.output, call.irp);
  },

  CA_MODIFY: (call) => {
    const { id, flags, ...modify } = IbIoCaModify.decode(call.input);
    const ca = instance(call, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciModifyCa(ca, flags, modify, irp),
      () => call.done(),
    );
  },

  CA_PORT_MODIFY: (call) => {
    const { id, portNumber, flags, ...modify } = IbIoPortModify.decode(call.input);
    const ca = instance(call, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciModifyPort(ca, portNumber, flags, modify, irp),
      () => call.done(),
    );
  },
} satisfies Partial<Record<IoctlName, Handler>> & Record<HcaFileName, Handler>;

/** The handlers of an HCA's own file by IOCTL name, derived from those of `\\.\WinVerbs`; missing ones are not verbs. */
export function hcaFileHandlers(
  winVerbs: Readonly<Record<string, Handler>>,
): Readonly<Record<string, Handler>> {
  const verbs = Object.entries(winVerbs).filter(([name]) => !noVerb.test(name));
  return { ...Object.fromEntries(verbs), ...own };
}
