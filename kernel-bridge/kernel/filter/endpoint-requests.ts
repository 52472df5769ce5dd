/**
 * IOCTLs of endpoints. The handlers check and decode the input, then call the state machine. Source: WinVerbs IOCTL
 * interface. That interface does not define the layouts of datagram endpoints' requests; those in structs.ts are this
 * package's own.
 */
import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity, EpOption, EpType, QpType } from '../../ioctl/constants.js';
import type { Input, Value } from '../../ioctl/layout.js';
import { isIpCmService } from '../../ioctl/port-space.js';
import { decodeOptionalSockaddr, decodeSockaddr, gidOfSockaddr, sharedGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { isLinkLocal, isMulticast, isUnspecified, isV4, mtuBytes } from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import type { Irp } from '../io-manager/irp.js';
import type { Call, Handler } from './call.js';
import { Endpoint, writeAttributes } from './connect-endpoint.js';
import { DatagramEndpoint } from './datagram-endpoint.js';
import type { WvQp } from './endpoint-qp.js';
import {
  addressData,
  type DatagramPeer,
  deviceAddress,
  type EndpointAddress,
  type EndpointParam,
  type EndpointRoute,
  type EndpointServices,
  endpointAddress,
  noParam,
} from './endpoint-types.js';
import { type AnyEndpoint, idOf } from './file-objects.js';
import { checkStateOutput } from './queue-pair-requests.js';

/** The address of an IOCTL in the endpoints' form. */
function addressOf({ sockAddr }: { sockAddr: Uint8Array }): EndpointAddress {
  const { gid, port, scopeId } = gidOfSockaddr(sockAddr);
  return { gid: sharedGid(gid), port, scopeId };
}

/** Checks a path record and converts it to a route. */
export function routeOf(record: Value<typeof s.IbPathRecord>, services: EndpointServices): EndpointRoute {
  const { sgid, dgid, hopFlowRaw, tclass, mtu } = record;
  const port = services.portOf(sgid);
  if (!port)
    throw new StatusError(
      Status.INVALID_ADDRESS,
      'the source of the path must be an address of a device on this host',
    );
  if (isUnspecified(dgid) || isMulticast(dgid) || (isV4(dgid) && (dgid[12] ?? 0) >= 240)) {
    throw new StatusError(Status.INVALID_ADDRESS, 'the destination of the path must be a unicast address');
  }
  if (isV4(sgid) !== isV4(dgid)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      'source and destination of the path must be of the same address family',
    );
  }
  // 0 selects the first P_Key of the port.
  const pkey = record.pkey || (port.pkeys[0] ?? DEFAULT_PKEY);
  if (!port.pkeys.includes(pkey)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `the P_Key of the path must be one of its port (${port.pkeys.map((one) => `0x${one.toString(16)}`).join(', ')}); got 0x${pkey.toString(16)}`,
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
 * The ACK timeout code of a path: twice the packet life time, for the round trip (IBA 1 §9.7.6.1.3). With 0 the option
 * `rc.ackTimeoutCode` applies.
 */
function ackTimeoutOf(packetLife: number, rc: EndpointServices['rc']): number {
  return packetLife === 0 ? rc.ackTimeoutCode : Math.min(packetLife + 1, 31);
}

/** The endpoint with an id, of either type. */
function findEndpoint(call: Call, id: bigint): AnyEndpoint {
  return call.find(call.file.endpoints, id);
}

/** Checks parameters; `most` is the maximum length of private data, which continues after the structure if it does not fit. */
function checkParam(call: Call, param: Value<typeof s.WvIoConnectParam>, most: number): EndpointParam {
  const { responderResources, initiatorDepth, retryCount, rnrRetryCount, dataLength, data } = param;
  const { tail } = call;
  const room = Math.min(most, data.length + tail.length);
  if (dataLength > room) {
    throw new StatusError(
      Status.INVALID_BUFFER_SIZE,
      `${call.row.name}: private data must be at most ${most} bytes, and fit into the ${data.length + tail.length} bytes of the input; got ${dataLength}`,
    );
  }
  if (retryCount > 7 || rnrRetryCount > 7) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `${call.row.name}: retry counts must be from 0 to 7; got ${retryCount} and ${rnrRetryCount}`,
    );
  }
  // Depths above the device's limits are reduced later; at this point they only have to fit into a byte.
  const depth = (value: bigint): number => Number(value > 255n ? 255n : value);
  return {
    responderResources: depth(responderResources),
    initiatorDepth: depth(initiatorDepth),
    retryCount,
    rnrRetryCount,
    privateData: privateDataOf(dataLength, data, tail),
  };
}

function privateDataOf(length: number, data: Uint8Array, tail: Uint8Array): Uint8Array {
  if (length === 0) return noParam.privateData;
  if (length <= data.length) return data.slice(0, length);
  const whole = new Uint8Array(length);
  whole.set(data);
  whole.set(tail.subarray(0, length - data.length), data.length);
  return whole;
}

/** The queue pair with an id; 0: none. */
function queuePair(call: Call, id: bigint): WvQp | undefined {
  return id === 0n ? undefined : call.find(call.file.qps, id);
}

/** The endpoint with an id, if it is a connect endpoint. */
function findConnect(call: Call, id: bigint): Endpoint {
  const endpoint = findEndpoint(call, id);
  if (endpoint instanceof Endpoint) return endpoint;
  throw new StatusError(Status.NOT_SUPPORTED, `${call.row.name}: the endpoint must be a connect endpoint`);
}

/** The endpoint with an id, if it is a datagram endpoint. */
function findDatagram(call: Call, id: bigint): DatagramEndpoint {
  const endpoint = findEndpoint(call, id);
  if (endpoint instanceof DatagramEndpoint) return endpoint;
  throw new StatusError(Status.NOT_SUPPORTED, `${call.row.name}: the endpoint must be a datagram endpoint`);
}

function checkedData(call: Call, data: Uint8Array, length: number, most: number): Uint8Array {
  if (length <= most) return data.slice(0, length);
  throw new StatusError(
    Status.INVALID_BUFFER_SIZE,
    `${call.row.name}: private data must be at most ${most} bytes; got ${length}`,
  );
}

/** A group's address; throws StatusError INVALID_ADDRESS. */
function groupOf({ sockAddr }: { sockAddr: Uint8Array }): EndpointAddress {
  const text = decodeSockaddr(sockAddr);
  const group = endpointAddress(text);
  if (isMulticast(group.gid)) return group;
  throw new StatusError(
    Status.INVALID_ADDRESS,
    `the group must be a multicast address (224.0.0.0/4, ff00::/8); got ${text.address}`,
  );
}

function datagramAttributes(
  local: EndpointAddress | undefined,
  peer: DatagramPeer | undefined,
  backlog: number,
  services: EndpointServices,
): Input<typeof s.WvIoEpDatagramAttributes> {
  const param = peer && {
    addressVector: {
      networkRouteValid: 1,
      hopLimit: peer.path.hopLimit,
      trafficClass: peer.path.trafficClass,
      flowLabel: peer.path.flowLabel,
      sGid: peer.path.source,
      dGid: peer.path.destination,
      portNumber: 1,
    },
    qpn: peer.qpn,
    qkey: peer.qkey,
    dataLength: peer.privateData.length,
    sidrStatus: peer.sidrStatus,
    data: peer.privateData,
  };
  return {
    localAddress: addressData(local),
    peerAddress: addressData(peer?.peer),
    device: deviceAddress(local, services),
    backlog: BigInt(backlog),
    ...(param && { param }),
  };
}

/** Completes a request with a peer's attributes; the room in its output was checked. */
const answerPeer =
  (services: EndpointServices) =>
  (irp: Irp, peer: DatagramPeer): void => {
    s.WvIoEpDatagramAttributes.encode(datagramAttributes(peer.local, peer, 0, services), irp.output);
    irp.complete(Status.SUCCESS, s.WvIoEpDatagramAttributes.size);
  };

/** EP_QUERY of a datagram endpoint. */
function queryDatagram(call: Call, endpoint: DatagramEndpoint, services: EndpointServices): number {
  const { peerAddress } = s.WvIoEpDatagramQuery.decode(call.input);
  if (call.irp.outputCapacity < s.WvIoEpDatagramAttributes.size) return call.fail(Status.BUFFER_TOO_SMALL);
  const selected = decodeOptionalSockaddr(peerAddress.sockAddr);
  const answer = () => {
    const peer = endpoint.find(selected && endpointAddress(selected));
    if (selected && !peer) {
      throw new StatusError(Status.NOT_FOUND, `the endpoint has no peer or group ${selected.address}`);
    }
    const { local, backlog, state } = endpoint;
    const value = datagramAttributes(
      peer?.local ?? local,
      peer,
      state === 'listening' ? backlog : 0,
      services,
    );
    return call.struct(s.WvIoEpDatagramAttributes, value);
  };
  return endpoint.handle('query', call.irp, { answer });
}

/** EP_ACCEPT of a datagram endpoint, with the queue pair's id or number. */
function acceptDatagram(call: Call, endpoint: DatagramEndpoint): number {
  const { qpId, param } = s.WvIoEpDatagramAccept.decode(call.input);
  const privateData = checkedData(call, param.data, param.dataLength, Capacity.LOOKUP_REPLY_DATA);
  const qp = qpId === 0n ? undefined : call.find(call.file.qps, qpId).qp;
  if (qp && qp.create.type !== QpType.UD) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      'the queue pair of a datagram endpoint must be of type UD',
    );
  }
  const qpn = qp?.qpn ?? param.qpn;
  if (qpn < 2 || qpn >= 0xff_ffff) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `the queue pair number must be from 2 to 0xFFFFFE; got ${qpn}`,
    );
  }
  return endpoint.handle('accept', call.irp, { datagram: { qpn, qkey: param.qkey }, privateData });
}

/** The handlers of endpoint requests. */
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
      const most = endpoint instanceof Endpoint ? Capacity.REJ_DATA : Capacity.LOOKUP_REPLY_DATA;
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

    // ── Connect endpoints; datagram endpoints also use EP_ACCEPT ──

    EP_CONNECT: (call) => {
      const input = s.WvIoEpConnect.decode(call.input);
      const endpoint = findConnect(call, input.id);
      const param = checkParam(call, input.param, Capacity.CONNECT_DATA);
      const qp = queuePair(call, input.qpId);
      const address = addressOf(input.peerAddress);
      return endpoint.handle('connect', call.irp, { qp, address, param });
    },

    EP_ACCEPT: (call) => {
      const input = s.WvIoEpAccept.decode(call.input);
      const endpoint = findEndpoint(call, input.id);
      if (endpoint instanceof DatagramEndpoint) return acceptDatagram(call, endpoint);
      const param = checkParam(call, input.param, Capacity.REP_DATA);
      checkStateOutput(call);
      return endpoint.handle('accept', call.irp, { qp: queuePair(call, input.qpId), param });
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

    // ── Datagram endpoints ──

    EP_LOOKUP: (call) => {
      const input = s.WvIoEpLookup.decode(call.input);
      const endpoint = findDatagram(call, input.id);
      const privateData = checkedData(call, input.data, input.dataLength, Capacity.LOOKUP_DATA);
      const address = gidOfSockaddr(input.peerAddress.sockAddr);
      return endpoint.handle('lookup', call.irp, {
        address,
        privateData,
        answerPeer: answerPeer(services),
      });
    },

    EP_MULTICAST_JOIN: (call) => {
      const { id, address } = s.WvIoEpMulticast.decode(call.input);
      const endpoint = findDatagram(call, id);
      return endpoint.handle('join', call.irp, {
        address: groupOf(address),
        answerPeer: answerPeer(services),
      });
    },

    EP_MULTICAST_LEAVE: (call) => {
      const { id, address } = s.WvIoEpMulticast.decode(call.input);
      return findDatagram(call, id).handle('leave', call.irp, { address: groupOf(address) });
    },
  } satisfies Partial<Record<IoctlName, Handler>>;
}
