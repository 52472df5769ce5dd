/** IOCTLs of queue pairs, including their multicast groups. Sources: WinVerbs IOCTL interface, and IBA 1 §11.2.5.2 for attributes. */
import { type QpAttributeValues, QpMask } from '../../hca/soft-hca-binding.js';
import type { IoctlName } from '../../ioctl/codes.js';
import { QpAttr, QpFlag, QpState, QpType } from '../../ioctl/constants.js';
import type { Input, Value } from '../../ioctl/layout.js';
import { QpStateOut } from '../../ioctl/provider-data.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { ciAttachMcast, ciDetachMcast } from '../hca-driver/ci-datagram.js';
import { ciCreateQp, ciDestroyQp, ciModifyQp, ciQueryQp } from '../hca-driver/ci-queues.js';
import { pathOfAv } from '../hca-driver/hca-ports.js';
import type { IbQp, IbQpDispatch } from '../hca-driver/ib-objects.js';
import { type Call, callVerbFor, type Handler } from './call.js';
import { stateOfQp, WvQp } from './endpoint-qp.js';
import { idOf } from './file-objects.js';

type QpAttributesIn = Value<typeof s.WvIoQpAttributes>;

/** WV_QP_ATTR_* → the HCA's attribute. */
const optionMask: readonly (readonly [option: number, mask: number])[] = [
  [QpAttr.STATE, QpMask.state],
  [QpAttr.CURRENT_STATE, QpMask.currentState],
  [QpAttr.INITIATOR_DEPTH, QpMask.initiatorDepth],
  [QpAttr.RESPONDER_RESOURCES, QpMask.responderResources],
  [QpAttr.DESTINATION_QPN, QpMask.destinationQpn],
  [QpAttr.QKEY, QpMask.qkey],
  [QpAttr.SEND_PSN, QpMask.sendPsn],
  [QpAttr.RECEIVE_PSN, QpMask.receivePsn],
  [QpAttr.ACCESS_FLAGS, QpMask.access],
  [QpAttr.AV, QpMask.path],
  [QpAttr.PORT_NUMBER, QpMask.port],
  [QpAttr.PKEY_INDEX, QpMask.pkeyIndex],
  [QpAttr.ACK_TIMEOUT, QpMask.ackTimeout],
  [QpAttr.RNR_NAK_TIMEOUT, QpMask.minRnrTimer],
  [QpAttr.ERROR_RETRY_COUNT, QpMask.retryCount],
  [QpAttr.RNR_RETRY_COUNT, QpMask.rnrRetry],
];

const start = QpMask.pkeyIndex | QpMask.port;
const unreliablePath = QpMask.path | QpMask.pathMtu | QpMask.destinationQpn | QpMask.receivePsn;

/** A transition, and the attributes that it always sets, whatever the options are (WinVerbs driver). */
interface Transition {
  readonly from: number;
  readonly to: number;
  /** The attributes by QpType. */
  readonly carried: Readonly<Record<number, number>>;
}

const { RC, UC, UD } = QpType;
const toInit = { [RC]: start | QpMask.access, [UC]: start | QpMask.access, [UD]: start | QpMask.qkey };
const transitions: readonly Transition[] = [
  { from: QpState.RESET, to: QpState.INIT, carried: toInit },
  { from: QpState.INIT, to: QpState.INIT, carried: toInit },
  {
    from: QpState.INIT,
    to: QpState.RTR,
    carried: {
      [RC]: unreliablePath | QpMask.responderResources | QpMask.minRnrTimer,
      [UC]: unreliablePath,
      [UD]: 0,
    },
  },
  {
    from: QpState.RTR,
    to: QpState.RTS,
    carried: {
      [RC]: QpMask.ackTimeout | QpMask.retryCount | QpMask.rnrRetry | QpMask.sendPsn | QpMask.initiatorDepth,
      [UC]: QpMask.sendPsn,
      [UD]: QpMask.sendPsn,
    },
  },
  {
    from: QpState.RTS,
    to: QpState.SQD,
    carried: { [RC]: QpMask.drainNotify, [UC]: QpMask.drainNotify, [UD]: QpMask.drainNotify },
  },
];

const knownOptions = optionMask.reduce((all, [option]) => all | option, 0);
/** Known options that this HCA does not support: changing depths, and an alternate path. */
const refusedOptions = QpAttr.CAPABILITIES | QpAttr.PATH_MIG_STATE | QpAttr.FLAGS | QpAttr.ALTERNATE_AV;

/** The mask for a modify of a queue pair in state `from`, or a status for invalid options. */
export function modifyMask(
  options: number,
  type: number,
  from: number,
  to: number,
): { mask: number } | { status: number } {
  if ((options & refusedOptions) !== 0) return { status: Status.NOT_SUPPORTED };
  if ((options & ~knownOptions) !== 0) return { status: Status.INVALID_PARAMETER };
  let mask = 0;
  for (const [option, bits] of optionMask) if ((options & option) !== 0) mask |= bits;
  // Without WV_QP_ATTR_STATE the state is unchanged: a 0 in QpState does not mean RESET.
  if ((options & QpAttr.STATE) === 0) return { mask };
  const transition = transitions.find((one) => one.from === from && one.to === to);
  return { mask: mask | (transition?.carried[type] ?? 0) };
}

function attributesOf(qp: IbQp, input: QpAttributesIn, mask: number): Partial<QpAttributeValues> {
  const av = input.addressVector;
  const { port } = qp.pd.ca.hca;
  const attributes: Partial<QpAttributeValues> = {
    state: input.qpState,
    currentState: input.currentQpState,
    access: input.accessFlags,
    pkeyIndex: input.pkeyIndex,
    // An HCA has one port; it is the default without the option PORT_NUMBER.
    port: (input.options & QpAttr.PORT_NUMBER) !== 0 ? av.portNumber : av.portNumber || 1,
    qkey: input.qkey,
    pathMtu: input.pathMtu,
    destinationQpn: input.destinationQpn,
    receivePsn: input.receivePsn,
    sendPsn: input.sendPsn,
    responderResources: input.responderResources,
    initiatorDepth: input.initiatorDepth,
    minRnrTimer: input.rnrNakTimeout,
    ackTimeout: input.localAckTimeout,
    retryCount: input.sequenceErrorRetryCount,
    rnrRetry: input.rnrRetryCount,
  };
  if ((mask & QpMask.path) !== 0) {
    const found = pathOfAv(port, av);
    if ('status' in found)
      throw new StatusError(found.status, 'the address vector must have a path from this port');
    attributes.path = found.path;
  }
  return attributes;
}

/** The attributes of a queue pair as the output of the IOCTL. */
export function queryAnswer(wvQp: WvQp, a: QpAttributeValues): Input<typeof s.WvIoQpAttributes> {
  const { create, qpn, given } = wvQp.qp;
  const connected = a.path.destination.some((byte) => byte !== 0);
  return {
    sendDepth: create.sendDepth,
    sendSge: create.sendSge,
    receiveDepth: create.receiveDepth,
    receiveSge: create.receiveSge,
    maxInlineSend: create.maxInline,
    // The depth is that of the creation until a modify sets it; 0 is a valid depth.
    initiatorDepth: (given & QpMask.initiatorDepth) !== 0 ? a.initiatorDepth : create.initiatorDepth,
    responderResources:
      (given & QpMask.responderResources) !== 0 ? a.responderResources : create.responderResources,
    qpType: create.type,
    currentQpState: a.state,
    qpState: a.state,
    qpn,
    destinationQpn: a.destinationQpn,
    qkey: a.qkey,
    sendPsn: a.sendPsn,
    receivePsn: a.receivePsn,
    addressVector: {
      networkRouteValid: connected ? 1 : 0,
      hopLimit: connected ? a.path.hopLimit : 0,
      trafficClass: a.path.trafficClass,
      flowLabel: a.path.flowLabel,
      sGid: a.path.source,
      dGid: a.path.destination,
      portNumber: a.port,
    },
    pathMtu: a.pathMtu,
    pkeyIndex: a.pkeyIndex,
    localAckTimeout: a.ackTimeout,
    rnrNakTimeout: a.minRnrTimer,
    sequenceErrorRetryCount: a.retryCount,
    rnrRetryCount: a.rnrRetry,
    accessFlags: a.access & 0xff,
    qpFlags:
      (create.signalAll ? QpFlag.SIGNAL_SENDS : 0) | (create.memoryManagement ? QpFlag.MEMORY_MANAGEMENT : 0),
  };
}

/** Checks the output for a queue pair's state, which may be absent or complete, but not shorter. */
export function checkStateOutput(call: Call): void {
  const { outputLength } = call.irp.stack;
  if (outputLength !== 0 && outputLength < QpStateOut.size) {
    throw new StatusError(
      Status.BUFFER_TOO_SMALL,
      `${call.row.name}: the output must be at least ${QpStateOut.size} bytes for a QP state; got ${outputLength}`,
    );
  }
}

/** The context of a queue pair's callbacks. */
interface QpOwner {
  made: WvQp | undefined;
}

/** The filter's callbacks, which pass events of a queue pair to its endpoint. */
const queuePairEvents: IbQpDispatch<QpOwner> = {
  asyncEvent: (_qp, { made }, event, reason) => made?.endpoint?.queuePairEvent(event, reason),
};

/** The handlers of queue pair requests. */
export const queuePairRequests = {
  QP_CREATE: (call) => {
    const input = s.WvIoQpCreate.decode(call.input);
    const { file } = call;
    const { pd } = call.find(file.pds, input.id.id);
    const sendCq = call.find(file.cqs, input.sendCqId);
    const receiveCq = call.find(file.cqs, input.receiveCqId);
    const srq = input.srqId === 0n ? undefined : call.find(file.srqs, input.srqId);
    call.room(file.qps);
    const udata = call.udata();
    const owner: QpOwner = { made: undefined };
    return callVerbFor<IbQp>(
      call.irp,
      (irp) => ciCreateQp(pd, sendCq, receiveCq, srq, input, owner, queuePairEvents, udata, irp),
      (qp) => {
        const made = new WvQp(qp);
        owner.made = made;
        const number = file.qps.add(made);
        const id = { id: BigInt(number), verbInfo: 0, data: 0 };
        const { receiveDepth, receiveSge } = qp.create;
        // Becomes the output; the decoded structure is used nowhere else.
        input.id = id;
        input.receiveDepth = receiveDepth;
        input.receiveSge = receiveSge;
        return call.made(s.WvIoQpCreate, input, number, udata);
      },
    );
  },

  QP_DESTROY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const { qp, endpoint } = call.find(call.file.qps, id);
    if (endpoint) return call.fail(Status.DEVICE_BUSY);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDestroyQp(qp, irp),
      () => {
        call.file.qps.delete(idOf(id));
        return call.done();
      },
    );
  },

  QP_QUERY: (call) => {
    const { id } = s.WvIoObject.decode(call.input);
    const wvQp = call.find(call.file.qps, id);
    return callVerbFor<QpAttributeValues>(
      call.irp,
      (irp) => ciQueryQp(wvQp.qp, irp),
      (attributes) =>
        call.struct(s.WvIoQpAttributes, {
          ...queryAnswer(wvQp, attributes),
          id: { id, verbInfo: 0, data: 0 },
        }),
    );
  },

  QP_MODIFY: (call) => {
    const input = s.WvIoQpAttributes.decode(call.input);
    const { qp } = call.find(call.file.qps, input.id.id);
    checkStateOutput(call);
    const wanted = modifyMask(input.options, qp.create.type, stateOfQp(qp), input.qpState);
    if ('status' in wanted) return call.fail(wanted.status);
    const attributes = attributesOf(qp, input, wanted.mask);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciModifyQp(qp, wanted.mask, attributes, irp),
      (state) => (call.irp.outputCapacity === 0 ? call.done() : call.struct(QpStateOut, { state })),
    );
  },

  QP_CANCEL: (call) => {
    call.cancelPending(call.find(call.file.qps, s.WvIoObject.decode(call.input).id));
    return call.done();
  },

  QP_ATTACH: (call) => {
    const { id, gid } = s.WvIoQpMulticast.decode(call.input);
    const wvQp = call.find(call.file.qps, id.id);
    call.irp.driverContext = wvQp;
    return callVerbFor<number>(
      call.irp,
      (irp) => ciAttachMcast(wvQp.qp, gid.raw, id.data & 0xffff, irp),
      () => call.done(),
    );
  },

  QP_DETACH: (call) => {
    const { id, gid } = s.WvIoQpMulticast.decode(call.input);
    const { qp } = call.find(call.file.qps, id.id);
    return callVerbFor<number>(
      call.irp,
      (irp) => ciDetachMcast(qp, gid.raw, id.data & 0xffff, irp),
      () => call.done(),
    );
  },
} satisfies Partial<Record<IoctlName, Handler>>;
