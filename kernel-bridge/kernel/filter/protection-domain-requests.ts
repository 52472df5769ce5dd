/**
 * IOCTLs of protection domains and of objects that belong to one: memory regions, memory windows, address handles.
 * Source: WinVerbs IOCTL interface.
 */
import type { IoctlName } from '../../ioctl/codes.js';
import { Status } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { ciCreateAv, ciDestroyAv } from '../hca-driver/ci-datagram.js';
import {
  ciAllocateFastRegMr,
  ciAllocateMw,
  ciAllocatePd,
  ciDeallocateMw,
  ciDeallocatePd,
  ciDeregisterMr,
  ciRegisterMr,
} from '../hca-driver/ci-memory.js';
import type { IbAv, IbMr, IbMw, IbPd } from '../hca-driver/ib-objects.js';
import { callVerbFor, type Handler } from './call.js';
import { instance } from './device-requests.js';
import { idOf, WvPd } from './file-objects.js';

/** The handlers of requests for protection domains, memory and address handles. */
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
