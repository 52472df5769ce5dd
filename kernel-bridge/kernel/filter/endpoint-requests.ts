/** IOCTLs of endpoints: input checked and decoded, then handed to the state machine. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity, EpOption, EpType } from '../../ioctl/constants.js';
import type { Value } from '../../ioctl/layout.js';
import { gidOfSockaddr, sharedGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { isLinkLocal, isMulticast, isUnspecified, isV4, mtuBytes } from '../hca-driver/ports.js';
import type { Call, Handler } from './call.js';
import { DatagramEndpoint } from './datagram-endpoint.js';
import { acceptDatagram, queryDatagram } from './datagram-endpoint-requests.js';
import { Endpoint } from './endpoint.js';
import type { EndpointServices } from './endpoint-services.js';
import { deviceAddress, writeAttributes } from './endpoint-steps.js';
import {
  type AnyEndpoint,
  addressData,
  type EndpointAddress,
  type EndpointParam,
  type EndpointRoute,
  noParam,
} from './endpoint-types.js';
import { idOf } from './object-table.js';
import type { WvQp } from './objects.js';
import { checkStateOutput } from './queue-pair-requests.js';

/** Ids that EP_CREATE gives out at once, beside the one that was asked for. */
const PROMISED_MOST = 15;

function checkParam(call: Call, param: Value<typeof s.WvIoConnectParam>): EndpointParam {
  const { responderResources, initiatorDepth, retryCount, rnrRetryCount, dataLength, data } = param;
  if (dataLength > Capacity.CONNECT_DATA) {
    throw new StatusError(
      Status.INVALID_BUFFER_SIZE,
      `${call.row.name}: ${dataLength} bytes of private data; at most ${Capacity.CONNECT_DATA} fit`,
    );
  }
  if (retryCount > 7 || rnrRetryCount > 7) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `${call.row.name}: retry counts ${retryCount} and ${rnrRetryCount}; they go from 0 to 7`,
    );
  }
  // Depths above the device's limits are reduced later; here they only have to be numbers of a byte's size or more.
  const depth = (value: bigint): number => Number(value > 255n ? 255n : value);
  return {
    responderResources: depth(responderResources),
    initiatorDepth: depth(initiatorDepth),
    retryCount,
    rnrRetryCount,
    privateData: dataLength === 0 ? noParam.privateData : data.slice(0, dataLength),
  };
}

/** An address that an endpoint keeps. */
function addressOf({ sockAddr }: { sockAddr: Uint8Array }): EndpointAddress {
  const { gid, port, scopeId } = gidOfSockaddr(sockAddr);
  return { gid: sharedGid(gid), port, scopeId };
}

/** The queue pair of an id; 0 is none. */
function queuePair(call: Call, id: bigint): WvQp | undefined {
  return id === 0n ? undefined : call.find(call.file.qps, id);
}

/** Checks a path record and makes a route of it. */
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
  // 0 leaves the choice to the port.
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
    pathMtu: wanted === 0 ? port.activeMtu : Math.min(wanted, port.activeMtu),
  };
}

/** The handlers of endpoint requests; those that datagram endpoints have of their own are in
 * datagram-endpoint-requests.ts. */
export function endpointRequests(services: EndpointServices) {
  const find = (call: Call, id: bigint): AnyEndpoint => call.find(call.file.endpoints, id);
  const findConnect = (call: Call, id: bigint): Endpoint => {
    const endpoint = find(call, id);
    if (endpoint instanceof Endpoint) return endpoint;
    throw new StatusError(Status.NOT_SUPPORTED, `${call.row.name}: the endpoint has no connections`);
  };
  const makeConnect = (): AnyEndpoint => new Endpoint(services);
  const deviceOf = ({ local }: AnyEndpoint) => deviceAddress(local, services);

  return {
    EP_CREATE: (call) => {
      const type = Number(s.WvIoEpCreate.decode(call.input).epType & 0xffffn);
      if (type !== EpType.CONNECT && type !== EpType.DATAGRAM) return call.fail(Status.INVALID_PARAMETER);
      const { endpoints } = call.file;
      call.room(endpoints);
      const endpoint = type === EpType.CONNECT ? makeConnect() : new DatagramEndpoint(services);
      const ids = [BigInt(endpoints.add(endpoint))];
      // Who has room for more ids makes many endpoints.
      const most = type === EpType.CONNECT ? Math.min(PROMISED_MOST + 1, call.irp.outputCapacity >> 3) : 1;
      while (ids.length < most && !endpoints.full) ids.push(BigInt(endpoints.promise(makeConnect)));
      return ids.length === 1
        ? call.struct(s.WvIoObject, { id: ids[0]! })
        : call.bytes(s.WvEpIds.encode(ids));
    },

    EP_DESTROY: (call) => {
      const { id } = s.WvIoObject.decode(call.input);
      const endpoint = find(call, id);
      call.file.endpoints.delete(idOf(id));
      return endpoint.handle('destroy', call.irp);
    },

    EP_MODIFY: (call) => {
      const { id, data: option } = s.WvIoId.decode(call.input);
      const endpoint = find(call, id);
      if (option !== EpOption.ROUTE) return call.fail(Status.INVALID_PARAMETER);
      const route = routeOf(s.IbPathRecord.decode(call.tail), services);
      return endpoint.handle('modify', call.irp, { route });
    },

    EP_BIND: (call) => {
      const input = s.WvIoEpBind.decode(call.input);
      const endpoint = find(call, input.id);
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
      const endpoint = find(call, id);
      return endpoint.handle('listen', call.irp, { backlog: Number(backlog > 0xffffn ? 0xffffn : backlog) });
    },

    EP_GET_REQUEST: (call) => {
      const { id, epId } = s.WvIoEpGetRequest.decode(call.input);
      return find(call, id).handle('getRequest', call.irp, { endpoint: find(call, epId) });
    },

    EP_CONNECT: (call) => {
      const input = s.WvIoEpConnect.decode(call.input);
      const endpoint = findConnect(call, input.id);
      const param = checkParam(call, input.param);
      const qp = queuePair(call, input.qpId);
      const address = addressOf(input.peerAddress);
      return endpoint.handle('connect', call.irp, { qp, address, param });
    },

    EP_ACCEPT: (call) => {
      const input = s.WvIoEpAccept.decode(call.input);
      const endpoint = find(call, input.id);
      if (endpoint instanceof DatagramEndpoint) return acceptDatagram(call, endpoint);
      const param = checkParam(call, input.param);
      checkStateOutput(call);
      return endpoint.handle('accept', call.irp, { qp: queuePair(call, input.qpId), param });
    },

    EP_REJECT: (call) => {
      const { id } = s.WvIoId.decode(call.input);
      const endpoint = find(call, id);
      const most = endpoint instanceof Endpoint ? Capacity.REJ_DATA : Capacity.LOOKUP_ANSWER_DATA;
      if (call.tail.length > most) return call.fail(Status.INVALID_BUFFER_SIZE);
      return endpoint.handle('reject', call.irp, { privateData: call.tail.slice() });
    },

    EP_DISCONNECT: (call) => {
      const { id, qpId } = s.WvIoEpDisconnect.decode(call.input);
      const endpoint = findConnect(call, id);
      checkStateOutput(call);
      return endpoint.handle('disconnect', call.irp, { qp: queuePair(call, qpId) });
    },

    EP_DISCONNECT_NOTIFY: (call) => {
      return findConnect(call, s.WvIoObject.decode(call.input).id).handle('notifyDisconnect', call.irp);
    },

    EP_QUERY: (call) => {
      const endpoint = find(call, s.WvIoObject.decode(call.input).id);
      if (endpoint instanceof DatagramEndpoint) return queryDatagram(call, endpoint, services);
      const answer = () => call.irp.complete(Status.SUCCESS, writeAttributes(endpoint, call.irp, services));
      return endpoint.handle('query', call.irp, { answer });
    },

    EP_CANCEL: (call) => find(call, s.WvIoObject.decode(call.input).id).handle('cancel', call.irp),
  } satisfies Partial<Record<IoctlName, Handler>>;
}
