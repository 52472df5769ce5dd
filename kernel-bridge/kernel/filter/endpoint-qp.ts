/**
 * Connection management's changes of a queue pair: INIT → RTR → RTS with the negotiated attributes (IBA 1 §12.9.7, RDMA
 * IP CM service), and ERROR at the end.
 */
import { type ConnectSteps, type PathParameters, QpMask, RnrPatience } from '../../hca/binding.js';
import { QpState, QpType, RnrRetry, WvAccess } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import type { CmConnection } from '../cm/service.js';
import { modifyQp, connectQp as moveToRts, queryQpState, setQpWill } from '../hca-driver/ci-queues.js';
import type { IbQp } from '../hca-driver/objects.js';

/** The attributes of a connection, all in this side's view. */
export interface ConnectionAttributes {
  pkeyIndex: number;
  path: PathParameters;
  /** Bytes. */
  pathMtu: number;
  peerQpn: number;
  receivePsn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  /** AETH code of this side's RNR NAKs. */
  minRnrTimer: number;
  /** Code, 4.096 µs × 2^n. */
  ackTimeout: number;
  retryCount: number;
  /** As requested by the peer, and as requested of the peer. */
  rnrRetry: number;
  peerRnrRetry: number;
  peerUsesSrq: boolean;
  /** What both ends take beyond the standard: bits of `PeerExtensions`, and `PacketBytes`. */
  peerExtensions?: number;
}

/**
 * The attributes of each step of connecting, by QpType (IBA 1 §11.2.5.2): an unreliable connection has no
 * acknowledgements.
 */
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
      QpMask.patience |
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

/** RNR retries towards a receiver: finite without an SRQ, so that a send without a receive ends. */
export function rnrRetryFor(asked: number, receiverUsesSrq: boolean): number {
  return receiverUsesSrq ? asked : Math.min(asked, RnrRetry.MOST);
}

/** The largest count stands for a limit in time; an application that sets a smaller one gets that number of retries. */
function patienceOf({ rnrRetry, peerRnrRetry }: ConnectionAttributes): number {
  const { requester, responder } = RnrPatience;
  return (rnrRetry >= RnrRetry.MOST ? requester : 0) | (peerRnrRetry >= RnrRetry.MOST ? responder : 0);
}

/**
 * Makes a queue pair in RESET or INIT ready to receive and to send. On failure it is in ERROR: its requests are
 * flushed, and none hangs.
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
    patience: patienceOf(a),
    extensions: a.peerExtensions ?? 0,
  });
  if (status !== Status.SUCCESS) failQp(qp);
  return status;
}

/** Moves a queue pair to ERROR: all its requests are flushed before this returns. */
export function failQp(qp: IbQp): number {
  return modifyQp(qp, QpMask.state, { state: QpState.ERROR });
}

/** Leaves the connection's DREQ with the HCA, should this kernel die. */
export function setWill(qp: IbQp, will: ReturnType<CmConnection['will']>): void {
  if (will) setQpWill(qp, will.path, will.mad);
}
