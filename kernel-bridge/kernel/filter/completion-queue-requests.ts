/** IOCTLs of completion queues. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import * as s from '../../ioctl/structs.js';
import {
  ciCancelCqEvents,
  ciCreateCq,
  ciDestroyCq,
  ciGetCqEvent,
  ciResizeCq,
} from '../hca-driver/ci-queues.js';
import type { IbCq } from '../hca-driver/ib-objects.js';
import { callVerbFor, type Handler } from './call.js';
import { instance } from './device-requests.js';
import { idOf } from './file-objects.js';

/** The handlers of completion queue requests. */
export const completionQueueRequests = {
  CQ_CREATE: (call) => {
    const { id, data: entries } = s.WvIoId.decode(call.input);
    const ca = instance(call, id);
    call.room(call.file.cqs);
    const udata = call.udata();
    return callVerbFor<IbCq>(
      call.irp,
      (irp) => ciCreateCq(ca, entries, undefined, {}, udata, irp),
      (cq) => {
        const made = call.file.cqs.add(cq);
        return call.made(s.WvIoId, { id: BigInt(made), data: cq.numCqes }, made, udata);
      },
    );
  },

  CQ_DESTROY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const cq = call.find(call.file.cqs, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDestroyCq(cq, irp),
      () => {
        call.file.cqs.delete(idOf(id));
        return call.done();
      },
    );
  },

  CQ_RESIZE: (call) => {
    const { id, data: entries } = s.WvIoId.decode(call.input);
    const cq = call.find(call.file.cqs, id);
    const udata = call.udata();
    return callVerbFor<number>(
      call.irp,
      (irp) => ciResizeCq(cq, entries, udata, irp),
      () => call.struct(s.WvIoId, { id, data: cq.numCqes }, udata),
    );
  },

  // The caller's own IRP is passed down, because the HCA completes its slot natively.
  CQ_NOTIFY: (call) => {
    const { id, data: type } = s.WvIoId.decode(call.input);
    return ciGetCqEvent(call.find(call.file.cqs, id), type, call.irp);
  },

  CQ_CANCEL: (call) => {
    ciCancelCqEvents(call.find(call.file.cqs, s.WvIoObject.decode(call.input).id));
    return call.done();
  },
} satisfies Partial<Record<IoctlName, Handler>>;
