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

/** `most`: bytes of private data. What the structure has no room for follows it. */
function checkParam(call: Call, param: Value<typeof s.WvIoConnectParam>, most: number): EndpointParam {
  const { responderResources, initiatorDepth, retryCount, rnrRetryCount, dataLength, data } = param;
  const { tail } = call;
  const room = Math.min(most, data.length + tail.length);
  if (dataLength > room) {
    throw new StatusError(
      Status.INVALID_BUFFER_SIZE,
      `${call.row.name}: ${dataLength} bytes of private data; ${most} are the maximum, and the input has room for ${data.length + tail.length}`,
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
} satisfies Partial<Record<IoctlName, Handler>>;
