/** Port spaces of RDMA CM: a service id consists of a service prefix, an IP protocol and a port (IBA 1 Annex A11.2.1). */
import { EpType } from './constants.js';

/** The high byte; the low byte is the protocol. */
const servicePrefix = EpType.CONNECT & 0xff00;

/** Whether service ids of this port space belong to the RDMA IP CM service. */
export function isIpCmService(portSpace: number): boolean {
  return portSpace >= servicePrefix && portSpace <= servicePrefix + 0xff;
}

/** The type of connect endpoints in an IP protocol's port space. Those of UDP are datagram endpoints. */
export function connectEpType(protocol: number): number {
  return servicePrefix | protocol;
}
