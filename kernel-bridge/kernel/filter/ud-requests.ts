/** IOCTLs of address handles and multicast groups. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import * as s from '../../ioctl/structs.js';
import { ciAttachMcast, ciCreateAv, ciDestroyAv, ciDetachMcast } from '../hca-driver/ci-datagram.js';
import type { IbAv } from '../hca-driver/objects.js';
import type { Handler } from './call.js';
import { idOf } from './object-table.js';

/** The handlers of address handle and multicast requests. */
export const udRequests = {
  AH_CREATE: (call) => {
    const { id, addressVector } = s.WvIoAhCreate.decode(call.input);
    const { pd } = call.find(call.file.pds, id.id);
    call.room(call.file.ahs);
    const udata = call.udata();
    return call.verb<IbAv>(
      (irp) => ciCreateAv(pd, addressVector, udata, irp),
      (av) => {
        const made = { id: BigInt(call.file.ahs.add(av)), verbInfo: 0, data: 0 };
        return call.struct(s.WvIoAhCreate, { id: made, addressVector }, udata);
      },
    );
  },

  AH_DESTROY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const av = call.find(call.file.ahs, id);
    return call.verb<number>(
      (irp) => ciDestroyAv(av, irp),
      () => {
        call.file.ahs.delete(idOf(id));
        return call.done();
      },
    );
  },

  QP_ATTACH: (call) => {
    const { id, gid } = s.WvIoQpMulticast.decode(call.input);
    const { qp } = call.find(call.file.qps, id.id);
    return call.verb<number>(
      (irp) => ciAttachMcast(qp, gid.raw, id.data & 0xffff, irp),
      () => call.done(),
    );
  },

  QP_DETACH: (call) => {
    const { id, gid } = s.WvIoQpMulticast.decode(call.input);
    const { qp } = call.find(call.file.qps, id.id);
    return call.verb<number>(
      (irp) => ciDetachMcast(qp, gid.raw, id.data & 0xffff, irp),
      () => call.done(),
    );
  },
} satisfies Partial<Record<IoctlName, Handler>>;
