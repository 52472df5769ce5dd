/**
 * The queue pair of a connection: which one Connect and Accept may use, its attributes from REQ and REP, and the state
 * changes by connection management: INIT → RTR → RTS (IBA 1 §12.9.7, RDMA IP CM service), and ERROR at the end.
 */
import { type ConnectSteps, type PathParameters, QpMask, RnrTimeout } from '../../hca/soft-hca-binding.js';
import { QpState, QpType, RnrRetry, WvAccess } from '../../ioctl/constants.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { RcOptions } from '../../option-checks/option-schemas.js';
import type { CmConnection, CmQpParameters, CmReply, CmRequest } from '../cm/service.js';
import { modifyQp, connectQp as moveToRts, queryQpState, setQpDreqOnExit } from '../hca-driver/ci-queues.js';
import { mtuBytes, sameGid } from '../hca-driver/hca-ports.js';
import type { IbQp } from '../hca-driver/ib-objects.js';
import { pkeyIndexFor, pkeysFit } from '../hca-driver/pkeys.js';
import type { EndpointAddress, EndpointParam, EndpointRoute, EndpointServices } from './endpoint-types.js';

/** A queue pair and the endpoint that uses it for a connection. */
export class WvQp {
  endpoint: { queuePairEvent(event: number, reason: number): void } | undefined = undefined;

  constructor(readonly qp: IbQp) {}
}

/** The attributes of a connection, from the point of view of this side. */
export interface ConnectionAttributes {
  pkeyIndex: number;
  path: PathParameters;
  /** Path MTU in bytes. */
  pathMtu: number;
  peerQpn: number;
  receivePsn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  /** The RNR timer in RNR NAKs of this side, as a code. */
  minRnrTimer: number;
  /** ACK timeout, as a code: 4.096 µs × 2^n. */
  ackTimeout: number;
  retryCount: number;
  /** RNR retry counts: as requested by the peer, and as requested of the peer. */
  rnrRetry: number;
  peerRnrRetry: number;
  peerUsesSrq: boolean;
  /** Extensions beyond the standard that both peers support: bits of `PeerExtensions`, and `PacketBytes`. */
  peerExtensions?: number;
}

/** The attributes set in each step of connecting, by QpType (IBA 1 §11.2.5.2): an unreliable connection has no acknowledgements. */
const carriedBy: Readonly<Record<number, ConnectSteps>> = {
  [QpType.RC]: {
    init: QpMask.access | QpMask.pkeyIndex | QpMask.port,
    rtr:
      QpMask.path |
      QpMask.pathMtu |
      QpMask.destinationQpn |
      QpMask.receivePsn |
      QpMask.responderResources |
      QpMask.minRnrTimer |
      QpMask.rnrTimeout |
      QpMask.extensions,
    rts: QpMask.ackTimeout | QpMask.retryCount | QpMask.rnrRetry | QpMask.sendPsn | QpMask.initiatorDepth,
  },
  [QpType.UC]: {
    init: QpMask.access | QpMask.pkeyIndex | QpMask.port,
    rtr: QpMask.path | QpMask.pathMtu | QpMask.destinationQpn | QpMask.receivePsn,
    rts: QpMask.sendPsn,
  },
};

/** The queue pair's WV_QP_STATE; ERROR if it cannot be queried. */
export function stateOfQp(qp: IbQp): number {
  const state = queryQpState(qp);
  return state < 0 ? QpState.ERROR : state;
}

/** Remote reads and atomics are allowed only if there are resources for them. */
export function accessFor(responderResources: number): number {
  const write = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_WRITE;
  return responderResources === 0 ? write : write | WvAccess.REMOTE_READ | WvAccess.REMOTE_ATOMIC;
}

/** RNR retries for a receiver: finite without an SRQ, so that a send without a receive completes. */
export function rnrRetryFor(requested: number, receiverUsesSrq: boolean): number {
  return receiverUsesSrq ? requested : Math.min(requested, RnrRetry.MOST);
}

/** The largest count stands for a time limit; an application that sets a smaller count gets that number of retries. */
function rnrTimeoutOf({ rnrRetry, peerRnrRetry }: ConnectionAttributes): number {
  const { requester, responder } = RnrTimeout;
  return (rnrRetry >= RnrRetry.MOST ? requester : 0) | (peerRnrRetry >= RnrRetry.MOST ? responder : 0);
}

/**
 * Makes a queue pair in RESET or INIT ready to receive and to send. On failure it is in ERROR: its requests are
 * flushed, so that none remains pending.
 */
export function connectQp(qp: IbQp, a: ConnectionAttributes): number {
  const status = moveToRts(qp, carriedBy[qp.create.type]!, {
    access: accessFor(a.responderResources),
    pkeyIndex: a.pkeyIndex,
    port: 1,
    path: a.path,
    pathMtu: a.pathMtu,
    destinationQpn: a.peerQpn,
    receivePsn: a.receivePsn,
    sendPsn: a.sendPsn,
    responderResources: a.responderResources,
    initiatorDepth: a.initiatorDepth,
    minRnrTimer: a.minRnrTimer,
    ackTimeout: a.ackTimeout,
    retryCount: a.retryCount,
    rnrRetry: rnrRetryFor(a.rnrRetry, a.peerUsesSrq),
    rnrTimeout: rnrTimeoutOf(a),
    extensions: a.peerExtensions ?? 0,
  });
  if (status !== Status.SUCCESS) failQp(qp);
  return status;
}

/** Moves a queue pair to ERROR: all its requests are flushed before this returns. */
export function failQp(qp: IbQp): number {
  return modifyQp(qp, QpMask.state, { state: QpState.ERROR });
}

/** Passes the connection's DREQ to the HCA, to be sent if this kernel dies. */
export function setDreqOnExit(qp: IbQp, dreq: ReturnType<CmConnection['dreqOnExit']>): void {
  if (dreq) setQpDreqOnExit(qp, dreq.path, dreq.mad);
}

/**
 * The queue pair that Connect or Accept may use for a connection from this local address. `type` is that of the peer's
 * queue pair, if known.
 *
 * @throws StatusError NOT_FOUND, CONNECTION_ACTIVE, INVALID_PARAMETER, INVALID_DEVICE_STATE, INVALID_ADDRESS.
 */
export function usableQp(qp: WvQp | undefined, local: Uint8Array, type?: number): WvQp {
  if (!qp) throw new StatusError(Status.NOT_FOUND, 'no queue pair has this id');
  if (qp.endpoint)
    throw new StatusError(Status.CONNECTION_ACTIVE, 'the queue pair is already in use by a connection');
  const own = qp.qp.create.type;
  if (own !== QpType.RC && own !== QpType.UC) {
    throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair must be of type RC or UC');
  }
  if (type !== undefined && own !== type) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `the queue pair must be of the peer's type ${type} (RC 0, UC 1); got ${own}`,
    );
  }
  const state = stateOfQp(qp.qp);
  if (state === QpState.RTR || state === QpState.RTS || state === QpState.SQD) {
    throw new StatusError(Status.CONNECTION_ACTIVE, 'the queue pair is already connected');
  }
  if (state !== QpState.RESET && state !== QpState.INIT) {
    throw new StatusError(
      Status.INVALID_DEVICE_STATE,
      'the queue pair is in the error state; reset it or create a new one',
    );
  }
  if (!qp.qp.pd.ca.hca.port.gids.some((gid) => sameGid(gid, local))) {
    throw new StatusError(
      Status.INVALID_ADDRESS,
      `the queue pair's device must have the local address ${addressOfGid(local)}`,
    );
  }
  return qp;
}

/**
 * The P_Key index for a queue pair that connects: that of the route if it is not the port's first P_Key, which is the
 * default of every route; otherwise the index set in INIT.
 */
export function activePkeyIndex({ qp }: WvQp, { pkey }: EndpointRoute): number {
  const ofRoute = qp.pd.ca.hca.port.pkeys.indexOf(pkey);
  if (ofRoute > 0) return ofRoute;
  return stateOfQp(qp) === QpState.INIT ? qp.pkeyIndex : 0;
}

/**
 * The P_Key index for a queue pair that accepts: the one set in INIT if it matches the request, otherwise one that
 * does.
 *
 * @throws StatusError INVALID_ADDRESS if its port is not, or no longer, in the requester's partition.
 */
export function passivePkeyIndex({ qp }: WvQp, { pkey }: CmRequest): number {
  const { pkeys } = qp.pd.ca.hca.port;
  if (stateOfQp(qp) === QpState.INIT && pkeysFit(pkeys[qp.pkeyIndex] ?? 0, pkey)) return qp.pkeyIndex;
  const index = pkeyIndexFor(pkeys, pkey);
  if (index < 0) {
    const text = `no P_Key of the queue pair's port matches that of the request, 0x${pkey.toString(16)}`;
    throw new StatusError(Status.INVALID_ADDRESS, text);
  }
  return index;
}

/** The P_Key of a request's connection, from the table of the port that received the request. */
export function entryFor(
  { gid, scopeId }: EndpointAddress,
  { pkey }: CmRequest,
  services: EndpointServices,
): number | undefined {
  const table = services.portOf(gid, scopeId)?.pkeys ?? [];
  return table[pkeyIndexFor(table, pkey)];
}

/** Depths are silently limited to those of queue pair and HCA (ND SPI: read limits). UC has no RDMA Reads. */
export function limited(param: EndpointParam, { qp }: WvQp): EndpointParam {
  if (qp.create.type === QpType.UC) return { ...param, responderResources: 0, initiatorDepth: 0 };
  const most = qp.pd.ca.hca.limits.maxReadDepth;
  return {
    ...param,
    responderResources: Math.min(param.responderResources, qp.create.responderResources || most),
    initiatorDepth: Math.min(param.initiatorDepth, qp.create.initiatorDepth || most),
  };
}

/** The queue pair's attributes to send to the peer. N8: only a receiver with an SRQ may request infinite retries. */
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
    // With 0, the sender of a lost packet would wait forever.
    ackTimeout: request.localAckTimeout || rc.ackTimeoutCode,
    retryCount,
    rnrRetry: rnrRetryCount,
    peerRnrRetry,
    peerUsesSrq,
    ...(peerExtensions === undefined ? {} : { peerExtensions }),
  };
}
