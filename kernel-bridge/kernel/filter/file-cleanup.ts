/** The cleanup of a file: when the program closes its last handle, or ends, all objects of the file are destroyed. */
import { Status } from '../../ioctl/status.js';
import { ciCloseCa } from '../hca-driver/ci-ca.js';
import { ciDestroyAv } from '../hca-driver/ci-datagram.js';
import { ciDeallocateMw, ciDeallocatePd, ciDeregisterMr } from '../hca-driver/ci-memory.js';
import { ciDestroyCq, ciDestroyQp } from '../hca-driver/ci-queues.js';
import { ciDestroySrq } from '../hca-driver/ci-srq.js';
import type { FileObject } from '../io-manager/device-object.js';
import type { Irp } from '../io-manager/irp.js';
import { DriverFault } from '../io-manager/irql.js';
import { callVerb } from './call.js';
import { type WvFile, WvPd } from './file-objects.js';

/** Cancels pending registrations, because they reference their protection domain. */
export function cancelRegistrations(file: FileObject): void {
  for (const irp of [...file.outstanding]) if (irp.driverContext instanceof WvPd) irp.cancel();
}

/** Destroys all objects of a file, users before the objects that they use, without blocking. Returns the number of verbs that failed. */
export function freeObjects(file: WvFile): number {
  file.closing = true;
  let failures = 0;
  const free = (verb: (irp: Irp) => number): void => {
    const ended = (status: number): void => {
      if (status !== Status.SUCCESS) failures++;
    };
    if (!callVerb(verb, ended, 'kernel').completed) throw new DriverFault('a verb pended that must not');
  };
  for (const [id, endpoint] of file.endpoints.entries()) {
    file.endpoints.delete(id);
    endpoint.destroy();
  }
  // Queue pairs before windows and regions, so that no memory is accessed after these are freed.
  for (const [id, { qp }] of file.qps.entries()) {
    file.qps.delete(id);
    free((irp) => ciDestroyQp(qp, irp));
  }
  for (const [id, srq] of file.srqs.entries()) {
    file.srqs.delete(id);
    free((irp) => ciDestroySrq(srq, irp));
  }
  for (const [id, av] of file.ahs.entries()) {
    file.ahs.delete(id);
    free((irp) => ciDestroyAv(av, irp));
  }
  for (const [id, mw] of file.mws.entries()) {
    file.mws.delete(id);
    free((irp) => ciDeallocateMw(mw, irp));
  }
  for (const [id, { pd, regions }] of file.pds.entries()) {
    file.pds.delete(id);
    for (const mr of regions.values()) free((irp) => ciDeregisterMr(mr, irp));
    free((irp) => ciDeallocatePd(pd, irp));
  }
  for (const [id, cq] of file.cqs.entries()) {
    file.cqs.delete(id);
    free((irp) => ciDestroyCq(cq, irp));
  }
  for (const [id, device] of file.devices.entries()) {
    file.devices.delete(id);
    device.portWaits.cancelAll();
    const { ca } = device;
    if (ca) free((irp) => ciCloseCa(ca, irp));
    device.closed();
  }
  return failures;
}
