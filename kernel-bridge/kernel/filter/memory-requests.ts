/** IOCTLs of memory regions and memory windows. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import { Status } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import {
  ciAllocateFastRegMr,
  ciAllocateMw,
  ciDeallocateMw,
  ciDeregisterMr,
  ciRegisterMr,
} from '../hca-driver/ci.js';
import type { IbMr, IbMw } from '../hca-driver/objects.js';
import { callVerbFor, type Handler } from './call.js';
import { idOf } from './object-table.js';

/** The handlers of memory and window requests. */
export const memoryRequests = {
  MEMORY_REGISTER: (call) => {
    const { id, address, bufferLength, accessFlags } = s.WvIoMemoryRegister.decode(call.input);
    const pd = call.find(call.file.pds, id);
    call.irp.driverContext = pd;
    return callVerbFor<IbMr>(
      call.irp,
      (irp) => ciRegisterMr(pd.pd, address, bufferLength, accessFlags, irp),
      (mr) => {
        pd.regions.set(mr.lkey, mr);
        return call.made(s.WvIoMemoryKeys, { lkey: mr.lkey, rkey: mr.rkey }, mr.lkey);
      },
    );
  },

  MEMORY_ALLOCATE: (call) => {
    const { id, bufferLength } = s.WvIoMemoryRegister.decode(call.input);
    const pd = call.find(call.file.pds, id);
    return callVerbFor<IbMr>(
      call.irp,
      (irp) => ciAllocateFastRegMr(pd.pd, bufferLength, irp),
      (mr) => {
        pd.regions.set(mr.lkey, mr);
        return call.made(s.WvIoMemoryKeys, { lkey: mr.lkey, rkey: mr.rkey }, mr.lkey);
      },
    );
  },

  MEMORY_DEREGISTER: (call) => {
    const { id, data: lkey } = s.WvIoId.decode(call.input);
    const pd = call.find(call.file.pds, id);
    const mr = pd.regions.get(lkey);
    if (!mr) return call.fail(Status.NOT_FOUND);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDeregisterMr(mr, irp),
      () => {
        pd.regions.delete(lkey);
        return call.done();
      },
    );
  },

  MW_ALLOCATE: (call) => {
    const { pd } = call.find(call.file.pds, s.WvIoId.decode(call.input).id);
    call.room(call.file.mws);
    const udata = call.udata();
    return callVerbFor<IbMw>(
      call.irp,
      (irp) => ciAllocateMw(pd, udata, irp),
      (mw) => {
        const made = call.file.mws.add(mw);
        return call.made(s.WvIoMwKey, { id: BigInt(made), rkey: mw.rkey }, made, udata);
      },
    );
  },

  MW_DEALLOCATE: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const mw = call.find(call.file.mws, id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDeallocateMw(mw, irp),
      () => {
        call.file.mws.delete(idOf(id));
        return call.done();
      },
    );
  },
} satisfies Partial<Record<IoctlName, Handler>>;
