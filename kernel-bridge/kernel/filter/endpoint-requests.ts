/**
 * IOCTLs of endpoints: checks and decodes the input, then calls the state machine. Source: WinVerbs IOCTL interface.
 */
import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity, EpOption, EpType } from '../../ioctl/constants.js';
import type { Value } from '../../ioctl/layout.js';
import { isIpCmService } from '../../ioctl/port-space.js';
import { gidOfSockaddr, sharedGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { isLinkLocal, isMulticast, isUnspecified, isV4, mtuBytes } from '../hca-driver/ports.js';
import type { Call, Handler } from './call.js';
import { DatagramEndpoint } from './datagram-endpoint.js';
import { queryDatagram } from './datagram-endpoint-requests.js';
import { Endpoint } from './endpoint.js';
import type { EndpointServices } from './endpoint-services.js';
import { deviceAddress, writeAttributes } from './endpoint-steps.js';
import { type AnyEndpoint, addressData, type EndpointAddress, type EndpointRoute } from './endpoint-types.js';
import { idOf } from './object-table.js';

/** The address of an IOCTL in the endpoints' form. */
export function addressOf({ sockAddr }: { sockAddr: Uint8Array }): EndpointAddress {
  const { gid, port, scopeId } = gidOfSockaddr(sockAddr);
  return { gid: sharedGid(gid), port, scopeId };
}

/** Checks a path record and converts it to a route. */
export function routeOf(record: Value<typeof s.IbPathRecord>, services: EndpointServices): EndpointRoute {
  const { sgid, dgid, hopFlowRaw, tclass, mtu } = record;
  const port = services.portOf(sgid);
  if (!port)
    throw new StatusError(Status.INVALID_ADDRESS, 'the path starts at an address that no device here has');
  if (isUnspecified(dgid) || isMulticast(dgid) || (isV4(dgid) && (dgid[12] ?? 0) >= 240)) {
    throw new StatusError(
      Status.INVALID_ADDRESS,
      'the path leads to no host: its destination is not a unicast address',
    );
  }
  if (isV4(sgid) !== isV4(dgid)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      'the path begins in one address family and ends in another',
    );
  }
  // With 0 the port chooses.
  const pkey = record.pkey || (port.pkeys[0] ?? DEFAULT_PKEY);
  if (!port.pkeys.includes(pkey)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `the path is in the partition of P_Key 0x${pkey.toString(16)}; its port's table has ${port.pkeys.map((one) => `0x${one.toString(16)}`).join(', ')}`,
    );
  }
  const wanted = mtuBytes(mtu & 0x3f);
  return {
    path: {
      source: sharedGid(sgid),
      destination: sharedGid(dgid),
      flowLabel: (hopFlowRaw >>> 8) & 0xfffff,
      trafficClass: tclass || services.rc.trafficClass,
      hopLimit: hopFlowRaw & 0xff || 64,
      scopeId: isLinkLocal(dgid) ? port.interfaceIndex : 0,
    },
    pkey,
    ackTimeoutCode: ackTimeoutOf(record.pktLife & 0x3f, services.rc),
    pathMtu: wanted === 0 ? port.activeMtu : Math.min(wanted, port.activeMtu),
  };
}

/**
 * The ACK timeout's code for a path: twice the packet life time, there and back (IBA 1 §9.7.6.1.3). With 0 the option
 * `rc.ackTimeoutCode` counts.
 */
function ackTimeoutOf(packetLife: number, rc: EndpointServices['rc']): number {
  return packetLife === 0 ? rc.ackTimeoutCode : Math.min(packetLife + 1, 31);
}

/** The endpoint of an id, of either type. */
export function findEndpoint(call: Call, id: bigint): AnyEndpoint {
  return call.find(call.file.endpoints, id);
}

/** The handlers of requests that both types of endpoints have. */
export function endpointRequests(services: EndpointServices) {
  const deviceOf = ({ local }: AnyEndpoint) => deviceAddress(local, services);

  return {
    EP_CREATE: (call) => {
      const type = Number(s.WvIoEpCreate.decode(call.input).epType & 0xffffn);
      if (!isIpCmService(type)) return call.fail(Status.INVALID_PARAMETER);
      const { endpoints } = call.file;
      call.room(endpoints);
      const made = type === EpType.DATAGRAM ? new DatagramEndpoint(services) : new Endpoint(services, type);
      return call.struct(s.WvIoObject, { id: BigInt(endpoints.add(made)) });
    },

    EP_DESTROY: (call) => {
      const { id } = s.WvIoObject.decode(call.input);
      const endpoint = findEndpoint(call, id);
      call.file.endpoints.delete(idOf(id));
      return endpoint.handle('destroy', call.irp);
    },

    EP_MODIFY: (call) => {
      const { id, data: option } = s.WvIoId.decode(call.input);
      const endpoint = findEndpoint(call, id);
      if (option === EpOption.KEEP_QP && endpoint instanceof Endpoint) {
        if (call.tail.length < 4) return call.fail(Status.BUFFER_TOO_SMALL);
        endpoint.keepQp = call.tail[0] !== 0;
        return call.done();
      }
      if (option === EpOption.PARTITION) {
        if (call.tail.length < 2) return call.fail(Status.BUFFER_TOO_SMALL);
        endpoint.partitionAlone = (call.tail[0]! << 8) | call.tail[1]!;
        return call.done();
      }
      if (option !== EpOption.ROUTE) return call.fail(Status.INVALID_PARAMETER);
      const route = routeOf(s.IbPathRecord.decode(call.tail), services);
      return endpoint.handle('modify', call.irp, { route });
    },

    EP_BIND: (call) => {
      const input = s.WvIoEpBind.decode(call.input);
      const endpoint = findEndpoint(call, input.id);
      const address = addressOf(input.address);
      if (!isUnspecified(address.gid) && !services.portOf(address.gid, address.scopeId)) {
        return call.fail(Status.INVALID_ADDRESS);
      }
      const answer = () => {
        const granted = addressData(endpoint.local);
        return call.struct(s.WvIoEpBind, { id: input.id, address: granted, device: deviceOf(endpoint) });
      };
      const { deviceGuid } = input.device;
      const onlyDevice = isUnspecified(address.gid) && deviceGuid !== 0n ? deviceGuid : undefined;
      return endpoint.handle('bind', call.irp, { address, onlyDevice, answer });
    },

    EP_LISTEN: (call) => {
      const { id, backlog } = s.WvIoEpListen.decode(call.input);
      const endpoint = findEndpoint(call, id);
      return endpoint.handle('listen', call.irp, { backlog: Number(backlog > 0xffffn ? 0xffffn : backlog) });
    },

    EP_GET_REQUEST: (call) => {
      const { id, epId } = s.WvIoEpGetRequest.decode(call.input);
      return findEndpoint(call, id).handle('getRequest', call.irp, { endpoint: findEndpoint(call, epId) });
    },

    EP_REJECT: (call) => {
      const { id } = s.WvIoId.decode(call.input);
      const endpoint = findEndpoint(call, id);
      const most = endpoint instanceof Endpoint ? Capacity.REJ_DATA : Capacity.LOOKUP_ANSWER_DATA;
      if (call.tail.length > most) return call.fail(Status.INVALID_BUFFER_SIZE);
      return endpoint.handle('reject', call.irp, { privateData: call.tail.slice() });
    },

    EP_QUERY: (call) => {
      const endpoint = findEndpoint(call, s.WvIoObject.decode(call.input).id);
      if (endpoint instanceof DatagramEndpoint) return queryDatagram(call, endpoint, services);
      const answer = () => call.irp.complete(Status.SUCCESS, writeAttributes(endpoint, call.irp, services));
      return endpoint.handle('query', call.irp, { answer });
    },

    EP_CANCEL: (call) => findEndpoint(call, s.WvIoObject.decode(call.input).id).handle('cancel', call.irp),
  } satisfies Partial<Record<IoctlName, Handler>>;
}
