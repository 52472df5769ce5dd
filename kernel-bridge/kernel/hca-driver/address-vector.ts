/** Address vectors: destinations of a queue pair's packets or of a datagram (IBA 1 §11.2.2.1). */
import type { PathParameters } from '../../hca/binding.js';
import type { Value } from '../../ioctl/layout.js';
import { Status } from '../../ioctl/status.js';
import type { WvIoAv } from '../../ioctl/structs.js';
import type { HcaPort } from './backend.js';
import { isLinkLocal, isMulticast, isUnspecified, isV4, sameGid } from './ports.js';

/** An address vector as in IOCTLs. */
export type IbAddressVector = Value<typeof WvIoAv>;

/** Hop limit if the address vector has none. */
const defaultHopLimit = 64;

/**
 * The path of an address vector from this port, or a status: INVALID_PARAMETER without a network route (RoCE routes
 * every packet by GIDs), INVALID_ADDRESS for a source GID that the port does not have, no destination at all, or two
 * address families.
 */
export function pathOfAv(port: HcaPort, av: IbAddressVector): { path: PathParameters } | { status: number } {
  const { sGid: source, dGid: destination, trafficClass } = av;
  if (av.networkRouteValid === 0) return { status: Status.INVALID_PARAMETER };
  const known = port.gids.some((gid) => sameGid(gid, source));
  if (!known || isUnspecified(destination) || isV4(source) !== isV4(destination)) {
    return { status: Status.INVALID_ADDRESS };
  }
  // IPv6's link-local addresses and groups are valid only with their interface.
  const scoped = !isV4(destination) && (isLinkLocal(destination) || isMulticast(destination));
  return {
    path: {
      source,
      destination,
      flowLabel: av.flowLabel & 0xfffff,
      trafficClass,
      hopLimit: av.hopLimit || defaultHopLimit,
      scopeId: scoped ? port.interfaceIndex : 0,
    },
  };
}
