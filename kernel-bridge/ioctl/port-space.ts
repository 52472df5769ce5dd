/** Port spaces of RDMA CM: a service id is a service prefix, an IP protocol and a port (IBA 1 Annex A11.2.1). */
import { EpType } from './constants.js';

/** In the high byte; the low one is the protocol. */
const servicePrefix = EpType.CONNECT & 0xff00;

/** Whether service ids of this port space belong to the RDMA IP CM service. */
export function isIpCmService(portSpace: number): boolean {
  return portSpace >= servicePrefix && portSpace <= servicePrefix + 0xff;
}

/** The type of connect endpoints in an IP protocol's port space. UDP's are datagram endpoints. */
export function connectEpType(protocol: number): number {
  return servicePrefix | protocol;
}
