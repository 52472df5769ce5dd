/** IOCTLs of connect endpoints: EP_CONNECT, EP_ACCEPT, the two of EP_DISCONNECT. Source: WinVerbs IOCTL interface. */
import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity } from '../../ioctl/constants.js';
import type { Value } from '../../ioctl/layout.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import type { Call, Handler } from './call.js';
import { DatagramEndpoint } from './datagram-endpoint.js';
import { acceptDatagram } from './datagram-endpoint-requests.js';
import { Endpoint } from './endpoint.js';
import { addressOf, findEndpoint } from './endpoint-requests.js';
import { type EndpointParam, noParam } from './endpoint-types.js';
import type { WvQp } from './objects.js';
import { checkStateOutput } from './queue-pair-requests.js';

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
  // Depths above the device's limits are reduced later; here they only have to fit a byte.
  const depth = (value: bigint): number => Number(value > 255n ? 255n : value);
  return {
    responderResources: depth(responderResources),
    initiatorDepth: depth(initiatorDepth),
    retryCount,
    rnrRetryCount,
    privateData: dataLength === 0 ? noParam.privateData : data.slice(0, dataLength),
  };
}

/** The queue pair of an id; 0 is none. */
function queuePair(call: Call, id: bigint): WvQp | undefined {
  return id === 0n ? undefined : call.find(call.file.qps, id);
}

/** The endpoint of an id, if it is a connect endpoint. */
function findConnect(call: Call, id: bigint): Endpoint {
  const endpoint = findEndpoint(call, id);
  if (endpoint instanceof Endpoint) return endpoint;
  throw new StatusError(Status.NOT_SUPPORTED, `${call.row.name}: the endpoint has no connections`);
}

/** The handlers for connecting and disconnecting; datagram endpoints use EP_ACCEPT, too. */
export const connectRequests = {
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
    const endpoint = findEndpoint(call, input.id);
    if (endpoint instanceof DatagramEndpoint) return acceptDatagram(call, endpoint);
    const param = checkParam(call, input.param);
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
} satisfies Partial<Record<IoctlName, Handler>>;
