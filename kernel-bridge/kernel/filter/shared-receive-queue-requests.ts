/** IOCTLs of shared receive queues. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import * as s from '../../ioctl/structs.js';
import {
  ciCancelSrqEvents,
  ciCreateSrq,
  ciDestroySrq,
  ciGetSrqEvent,
  ciModifySrq,
  ciQuerySrq,
  type IbSrqAttributes,
} from '../hca-driver/ci-srq.js';
import type { IbSrq } from '../hca-driver/ib-objects.js';
import { callVerbFor, type Handler } from './call.js';
import { idOf } from './file-objects.js';

/** The handlers of shared receive queue requests. */
export const sharedReceiveQueueRequests = {
  SRQ_CREATE: (call) => {
    const input = s.WvIoSrqAttributes.decode(call.input);
    const { pd } = call.find(call.file.pds, input.id.id);
    call.room(call.file.srqs);
    const udata = call.udata();
    return callVerbFor<IbSrq>(
      call.irp,
      (irp) => ciCreateSrq(pd, input, undefined, {}, udata, irp),
      (srq) => {
        const { maxWr, maxSge } = srq;
        const made = call.file.srqs.add(srq);
        const answer = { id: { id: BigInt(made) }, maxWr, maxSge, srqLimit: input.srqLimit };
        return call.made(s.WvIoSrqAttributes, answer, made, udata);
      },
    );
  },

  SRQ_DESTROY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const srq = call.find(call.file.srqs, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDestroySrq(srq, irp),
      () => {
        call.file.srqs.delete(idOf(id));
        return call.done();
      },
    );
  },

  SRQ_QUERY: (call) => {
    const { id } = s.WvIoSrqAttributes.decode(call.input);
    const srq = call.find(call.file.srqs, id.id);
    return callVerbFor<IbSrqAttributes>(
      call.irp,
      (irp) => ciQuerySrq(srq, irp),
      (attributes) => call.struct(s.WvIoSrqAttributes, { id: { id: id.id }, ...attributes }),
    );
  },

  SRQ_MODIFY: (call) => {
    const { id, maxWr, srqLimit } = s.WvIoSrqAttributes.decode(call.input);
    const srq = call.find(call.file.srqs, id.id);
    const udata = call.udata();
    return callVerbFor<number>(
      call.irp,
      (irp) => ciModifySrq(srq, { maxWr, srqLimit }, udata, irp),
      () => {
        const granted = { maxWr: srq.maxWr, maxSge: srq.maxSge, srqLimit };
        return call.struct(s.WvIoSrqAttributes, { id: { id: id.id }, ...granted }, udata);
      },
    );
  },

  // The caller's own IRP is passed down: it waits in the queue of its kind until there is an event.
  SRQ_NOTIFY: (call) =>
    ciGetSrqEvent(call.find(call.file.srqs, s.WvIoObject.decode(call.input).id), call.irp),

  SRQ_CANCEL: (call) => {
    ciCancelSrqEvents(call.find(call.file.srqs, s.WvIoObject.decode(call.input).id));
    return call.done();
  },
} satisfies Partial<Record<IoctlName, Handler>>;
