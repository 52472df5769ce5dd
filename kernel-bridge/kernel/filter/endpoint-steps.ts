/** Checks and small steps of endpoints that do not depend on their state. */
import { Capacity, QpState, QpType } from '../../ioctl/constants.js';
import type { Input } from '../../ioctl/layout.js';
import { QpStateOut } from '../../ioctl/provider-data.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import type { RcOptions } from '../../options.js';
import type { CmConnection, CmEvents, CmQpParameters, CmReject, CmReply, CmRequest } from '../cm/service.js';
import { DEFAULT_PKEY, pkeyIndexFor, pkeysFit } from '../hca-driver/pkeys.js';
import { isUnspecified, mtuBytes, sameGid } from '../hca-driver/ports.js';
import type { Irp } from '../io-manager/irp.js';
import type { Endpoint } from './endpoint.js';
import { type ConnectionAttributes, rnrRetryFor, stateOfQp } from './endpoint-qp.js';
import type { EndpointServices } from './endpoint-services.js';
import {
  addressData,
  type EndpointAddress,
  type EndpointParam,
  type EndpointRoute,
  noParam,
} from './endpoint-types.js';
import type { WvQp } from './objects.js';

/**
 * The queue pair that Connect or Accept may use for a connection from this local address; `type` is that of the peer's
 * queue pair, if known.
 *
 * @throws StatusError NOT_FOUND, CONNECTION_ACTIVE, INVALID_PARAMETER, INVALID_DEVICE_STATE, INVALID_ADDRESS.
 */
export function usableQp(qp: WvQp | undefined, local: Uint8Array, type?: number): WvQp {
  if (!qp) throw new StatusError(Status.NOT_FOUND, 'there is no queue pair of this id');
  if (qp.endpoint)
    throw new StatusError(Status.CONNECTION_ACTIVE, 'the queue pair is part of a connection already');
  const own = qp.qp.create.type;
  if (own !== QpType.RC && own !== QpType.UC) {
    throw new StatusError(Status.INVALID_PARAMETER, 'connect endpoints take RC and UC queue pairs');
  }
  if (type !== undefined && own !== type) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `the peer's queue pair is of type ${type} (RC 0, UC 1), this one of type ${own}; they must be the same`,
    );
  }
  const state = stateOfQp(qp.qp);
  if (state === QpState.RTR || state === QpState.RTS || state === QpState.SQD) {
    throw new StatusError(Status.CONNECTION_ACTIVE, 'the queue pair is connected already');
  }
  if (state !== QpState.RESET && state !== QpState.INIT) {
    throw new StatusError(
      Status.INVALID_DEVICE_STATE,
      'the queue pair is in the error state; reset it or make a new one',
    );
  }
  if (!qp.qp.pd.ca.hca.port.gids.some((gid) => sameGid(gid, local))) {
    throw new StatusError(
      Status.INVALID_ADDRESS,
      `the queue pair's device does not have the local address ${addressOfGid(local)}`,
    );
  }
  return qp;
}

/**
 * The P_Key index for a queue pair that connects: that of the route if it is not the port's first, which every route has that nobody
 * has changed; else the one set in INIT.
 */
export function activePkeyIndex({ qp }: WvQp, { pkey }: EndpointRoute): number {
  const ofRoute = qp.pd.ca.hca.port.pkeys.indexOf(pkey);
  if (ofRoute > 0) return ofRoute;
  return stateOfQp(qp) === QpState.INIT ? qp.pkeyIndex : 0;
}

/**
 * The P_Key index for a queue pair that accepts: the one set in INIT if it fits the request, else one that does.
 *
 * @throws StatusError INVALID_ADDRESS if its port is not in the requester's partition (any more).
 */
export function passivePkeyIndex({ qp }: WvQp, { pkey }: CmRequest): number {
  const { pkeys } = qp.pd.ca.hca.port;
  if (stateOfQp(qp) === QpState.INIT && pkeysFit(pkeys[qp.pkeyIndex] ?? 0, pkey)) return qp.pkeyIndex;
  const index = pkeyIndexFor(pkeys, pkey);
  if (index < 0) {
    const text = `the request is for the P_Key 0x${pkey.toString(16)}, which fits none of the queue pair's port`;
    throw new StatusError(Status.INVALID_ADDRESS, text);
  }
  return index;
}

/** The P_Key of a request's connection, in the table of the port that the request has come to. */
export function entryFor(
  { gid, scopeId }: EndpointAddress,
  { pkey }: CmRequest,
  services: EndpointServices,
): number | undefined {
  const table = services.portOf(gid, scopeId)?.pkeys ?? [];
  return table[pkeyIndexFor(table, pkey)];
}

/** Depths are silently limited to those of queue pair and HCA (ND SPI: read limits). UC has no reads at all. */
export function limited(param: EndpointParam, { qp }: WvQp): EndpointParam {
  if (qp.create.type === QpType.UC) return { ...param, responderResources: 0, initiatorDepth: 0 };
  const most = qp.pd.ca.hca.limits.maxReadDepth;
  return {
    ...param,
    responderResources: Math.min(param.responderResources, qp.create.responderResources || most),
    initiatorDepth: Math.min(param.initiatorDepth, qp.create.initiatorDepth || most),
  };
}

/** The queue pair's attributes for the peer. N8: only a receiver with an SRQ may request infinite retries. */
export function cmQp(
  { qp }: WvQp,
  { responderResources, initiatorDepth, retryCount, rnrRetryCount }: EndpointParam,
): CmQpParameters {
  const srq = qp.srq !== undefined;
  return {
    qpn: qp.qpn,
    type: qp.create.type,
    responderResources,
    initiatorDepth,
    retryCount,
    rnrRetryCount: rnrRetryFor(rnrRetryCount, srq),
    srq,
  };
}

/** The attributes of the active side's queue pair, from its REQ and the REP (RDMA IP CM service). */
export function activeAttributes(
  { path, pathMtu, ackTimeoutCode }: EndpointRoute,
  { receivePsn }: CmConnection,
  { peerQpn, sendPsn, rnrRetryCount, peerUsesSrq, peerExtensions }: CmReply,
  { responderResources, initiatorDepth, retryCount }: EndpointParam,
  rc: RcOptions,
  pkeyIndex: number,
  peerRnrRetry: number,
): ConnectionAttributes {
  return {
    pkeyIndex,
    path,
    pathMtu,
    peerQpn,
    receivePsn,
    sendPsn,
    responderResources,
    initiatorDepth,
    minRnrTimer: rc.minRnrTimerCode,
    ackTimeout: ackTimeoutCode,
    retryCount,
    rnrRetry: rnrRetryCount,
    peerRnrRetry,
    peerUsesSrq,
    ...(peerExtensions === undefined ? {} : { peerExtensions }),
  };
}

/** The attributes of the passive side's queue pair, from the REQ; `param` are the depths of the REP. */
export function passiveAttributes(
  request: CmRequest,
  { receivePsn }: CmConnection,
  { responderResources, initiatorDepth, rnrRetryCount: peerRnrRetry }: EndpointParam,
  rc: RcOptions,
  pkeyIndex: number,
): ConnectionAttributes {
  const { path, peerQpn, sendPsn, retryCount, rnrRetryCount, peerUsesSrq, peerExtensions } = request;
  return {
    pkeyIndex,
    path,
    pathMtu: mtuBytes(request.pathMtu),
    peerQpn,
    receivePsn,
    sendPsn,
    responderResources,
    initiatorDepth,
    minRnrTimer: rc.minRnrTimerCode,
    // With 0 a lost packet would wait for ever.
    ackTimeout: request.localAckTimeout || rc.ackTimeoutCode,
    retryCount,
    rnrRetry: rnrRetryCount,
    peerRnrRetry,
    peerUsesSrq,
    ...(peerExtensions === undefined ? {} : { peerExtensions }),
  };
}

/** Completes with the queue pair's state for the user-mode provider, if that requested it. */
export function completeWithState(irp: Irp, state: number = QpState.RTS): void {
  if (irp.outputCapacity < QpStateOut.size) {
    irp.complete(Status.SUCCESS, 0);
    return;
  }
  QpStateOut.encode({ state }, irp.output);
  irp.complete(Status.SUCCESS, QpStateOut.size);
}

/**
 * Length of a peer's private data in bytes, without the message's padding: trailing zeros count only within the
 * structure.
 */
function toldBytes(whole: Uint8Array): number {
  let end = whole.length;
  while (end > Capacity.CONNECT_DATA && whole[end - 1] === 0) end--;
  return end;
}

/** A copy of a peer's private data, without the padding. */
export function keptData(whole: Uint8Array): Uint8Array {
  return whole.slice(0, toldBytes(whole));
}

/** Splits private data into the structure's part and the rest. */
function splitData(whole: Uint8Array, room: number): { data: Uint8Array; rest: Uint8Array } {
  const most = Capacity.CONNECT_DATA;
  // For a view of a small array V8 would move the array out of its heap.
  if (whole.length <= most) return { data: whole, rest: noParam.privateData };
  return {
    data: whole.subarray(0, most),
    rest: whole.subarray(most, Math.min(toldBytes(whole), most + room)),
  };
}

/** Writes EP_QUERY's answer; returns its length. The output has room for the structure at least. */
export function writeAttributes(
  { local, peer, param, backlog, state, partition }: Endpoint,
  irp: Irp,
  services: EndpointServices,
): number {
  const { size } = s.WvIoEpAttributes;
  const { data, rest } = splitData(param.privateData, irp.outputCapacity - size);
  const connect = {
    responderResources: BigInt(param.responderResources),
    initiatorDepth: BigInt(param.initiatorDepth),
    retryCount: param.retryCount,
    rnrRetryCount: param.rnrRetryCount,
    dataLength: data.length,
    data,
  };
  const { output } = irp;
  s.WvIoEpAttributes.encode(
    {
      localAddress: addressData(local),
      peerAddress: addressData(peer),
      device: deviceAddress(local, services, partition),
      param: state === 'listening' ? { backlog: BigInt(backlog) } : { connect },
    },
    output,
  );
  output.set(rest, size);
  return size + rest.length;
}

/**
 * Adds the attributes to the answer of EP_CONNECT or EP_GET_REQUEST, if there is room: the program queries them next.
 */
export function tellAttributes(endpoint: Endpoint, irp: Irp, services: EndpointServices): number {
  return irp.outputCapacity < s.WvIoEpAttributes.size ? 0 : writeAttributes(endpoint, irp, services);
}

/** Converts a connection's events to events of its endpoint. */
class EndpointEvents implements CmEvents {
  constructor(private readonly endpoint: Endpoint) {}

  replied(reply: CmReply): void {
    this.endpoint.signal('replied', { reply });
  }
  established(): void {
    this.endpoint.signal('established');
  }
  rejected(reject: CmReject): void {
    this.endpoint.signal('rejected', { reject });
  }
  timedOut(): void {
    this.endpoint.signal('timedOut');
  }
  disconnected(): void {
    this.endpoint.signal('peerDisconnected');
  }
  disconnectCompleted(answered: boolean): void {
    this.endpoint.signal(answered ? 'disconnectAnswered' : 'disconnectTimedOut');
  }
}

/** The receiver of a connection's events: its endpoint. */
export function signalsOf(endpoint: Endpoint): CmEvents {
  return new EndpointEvents(endpoint);
}

/** The device of an address, with a connection's partition or else the port's first; all zero if there is none. */
export function deviceAddress(
  local: EndpointAddress | undefined,
  services: EndpointServices,
  partition?: number,
): Input<typeof s.WvIoDeviceAddress> {
  const port = local && !isUnspecified(local.gid) ? services.portOf(local.gid, local.scopeId) : undefined;
  return port
    ? { deviceGuid: port.guid, pkey: partition ?? port.pkeys[0] ?? DEFAULT_PKEY, portNumber: 1 }
    : {};
}
