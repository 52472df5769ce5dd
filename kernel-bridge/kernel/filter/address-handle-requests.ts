/** IOCTLs of address handles. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import * as s from '../../ioctl/structs.js';
import { ciCreateAv, ciDestroyAv } from '../hca-driver/ci-datagram.js';
import type { IbAv } from '../hca-driver/objects.js';
import { callVerbFor, type Handler } from './call.js';
import { idOf } from './object-table.js';

/** The handlers of address handle requests. */
export const addressHandleRequests = {
  AH_CREATE: (call) => {
    const { id, addressVector } = s.WvIoAhCreate.decode(call.input);
    const { pd } = call.find(call.file.pds, id.id);
    call.room(call.file.ahs);
    const udata = call.udata();
    return callVerbFor<IbAv>(
      call.irp,
      (irp) => ciCreateAv(pd, addressVector, udata, irp),
      (av) => {
        const made = call.file.ahs.add(av);
        const answer = { id: { id: BigInt(made), verbInfo: 0, data: 0 }, addressVector };
        return call.made(s.WvIoAhCreate, answer, made, udata);
      },
    );
  },

  AH_DESTROY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const av = call.find(call.file.ahs, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDestroyAv(av, irp),
      () => {
        call.file.ahs.delete(idOf(id));
        return call.done();
      },
    );
  },
} satisfies Partial<Record<IoctlName, Handler>>;
