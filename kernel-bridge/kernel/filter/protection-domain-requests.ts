/** IOCTLs of protection domains. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import * as s from '../../ioctl/structs.js';
import { ciAllocatePd, ciDeallocatePd } from '../hca-driver/ci.js';
import type { IbPd } from '../hca-driver/objects.js';
import { callVerbFor, type Handler } from './call.js';
import { instance } from './device-requests.js';
import { idOf } from './object-table.js';
import { WvPd } from './objects.js';

/** The handlers of protection domain requests. */
export const protectionDomainRequests = {
  PD_ALLOCATE: (call) => {
    const ca = instance(call, s.WvIoId.decode(call.input).id);
    call.room(call.file.pds);
    const udata = call.udata();
    return callVerbFor<IbPd>(
      call.irp,
      (irp) => ciAllocatePd(ca, udata, irp),
      (pd) => {
        const made = call.file.pds.add(new WvPd(pd));
        return call.made(s.WvIoId, { id: BigInt(made) }, made, udata);
      },
    );
  },

  PD_DEALLOCATE: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const { pd } = call.find(call.file.pds, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDeallocatePd(pd, irp),
      () => {
        call.file.pds.delete(idOf(id));
        return call.done();
      },
    );
  },

  PD_CANCEL: (call) => {
    call.cancelPending(call.find(call.file.pds, s.WvIoObject.decode(call.input).id));
    return call.done();
  },
} satisfies Partial<Record<IoctlName, Handler>>;
