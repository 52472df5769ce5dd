/** Which parameter was wrong, found out after a request was refused: a status does not name it. Nothing is asked before that. */
import { QpAttr, QpState, QpType, WvAccess } from '../kernel-bridge/ioctl/constants.js';
import type { IWVDevice, WvQpAttributes } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Attributes of QP_MODIFY and their greatest values (IBA 1 §11.2.5.2). */
const MOST: readonly (readonly [name: keyof WvQpAttributes, most: number])[] = [
  ['destinationQpn', 0xff_ffff],
  ['sendPsn', 0xff_ffff],
  ['receivePsn', 0xff_ffff],
  ['rnrNakTimeout', 31],
  ['localAckTimeout', 31],
  ['retryCount', 7],
  ['rnrRetryCount', 7],
];

const MTUS: readonly number[] = [256, 512, 1024, 2048, 4096];

/** The states that follow a state, besides RESET and ERROR, which follow each (IBA 1 §10.3.1). */
const NEXT: Readonly<Record<number, readonly number[]>> = {
  [QpState.RESET]: [QpState.INIT],
  [QpState.INIT]: [QpState.INIT, QpState.RTR],
  [QpState.RTR]: [QpState.RTS],
  [QpState.RTS]: [QpState.RTS, QpState.SQD],
  [QpState.SQD]: [QpState.SQD, QpState.RTS],
  [QpState.SQERROR]: [QpState.RTS],
  [QpState.ERROR]: [],
};

const { ACCESS_FLAGS, PKEY_INDEX, PORT_NUMBER, QKEY, RNR_NAK_TIMEOUT, RESPONDER_RESOURCES, AV } = QpAttr;
const { ACK_TIMEOUT, ERROR_RETRY_COUNT, RNR_RETRY_COUNT, INITIATOR_DEPTH, SEND_PSN } = QpAttr;
const { STATE, CURRENT_STATE, CAPABILITIES, FLAGS, PATH_MIG_STATE, ALTERNATE_AV } = QpAttr;
const toRtr = QpAttr.DESTINATION_QPN | QpAttr.RECEIVE_PSN | RESPONDER_RESOURCES | AV;
const retries = ACK_TIMEOUT | ERROR_RETRY_COUNT | RNR_RETRY_COUNT | INITIATOR_DEPTH;
/** The options that a step to a state takes, whatever the type of queue pair. */
const TAKEN: Readonly<Record<number, number>> = {
  [QpState.RESET]: 0,
  [QpState.INIT]: PKEY_INDEX | PORT_NUMBER | ACCESS_FLAGS | QKEY,
  [QpState.RTR]: toRtr | RNR_NAK_TIMEOUT | ACCESS_FLAGS | PKEY_INDEX | QKEY,
  [QpState.RTS]: retries | SEND_PSN | ACCESS_FLAGS | RNR_NAK_TIMEOUT | QKEY,
  [QpState.SQD]:
    retries | RESPONDER_RESOURCES | AV | PORT_NUMBER | ACCESS_FLAGS | PKEY_INDEX | RNR_NAK_TIMEOUT | QKEY,
  [QpState.ERROR]: 0,
};

/** Options that no device here has: depths cannot change, and there is no alternate path. */
const NOWHERE = CAPABILITIES | FLAGS | PATH_MIG_STATE | ALTERNATE_AV;

function nameOf(table: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(table).find((name) => table[name] === value) ?? String(value);
}

function namesOf(options: number): string {
  const names = Object.entries(QpAttr).flatMap(([name, bit]) => ((options & bit) !== 0 ? [name] : []));
  const known = Object.values(QpAttr).reduce((all: number, bit) => all | bit, 0);
  const rest = (options & ~known) >>> 0;
  if (rest !== 0) names.push(`0x${rest.toString(16)}`);
  return names.join(', ');
}

function outOfRange(name: string, value: unknown, most: number, least = 0): string | undefined {
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return undefined;
  return `${name} is ${String(value)}; it takes a whole number from ${least} to ${most}`;
}

/** The error with a sentence that names the parameter, if one is known to be wrong. `find` may ask the device. */
function withReason(error: unknown, what: string, find: () => string | undefined): unknown {
  if (!(error instanceof WvError)) return error;
  let reason: string | undefined;
  try {
    reason = find();
  } catch {
    // The device is gone; the first error is the better one.
  }
  return reason === undefined ? error : new WvError(error.status, `${what}: ${reason}.`, { cause: error });
}

/** What peers may do to memory, this side must be able to do. @throws WvError INVALID_PARAMETER */
export function checkRights(access: number): void {
  if ((access & WvAccess.REMOTE_VIEW) !== 0 && (access & WvAccess.REMOTE_READ) === 0) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `The access rights 0x${(access >>> 0).toString(16)} let peers map the memory without REMOTE_READ (0x1).`,
    );
  }
  const writes = (WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE) | WvAccess.REMOTE_ATOMIC;
  if ((access & writes) === 0 || (access & WvAccess.LOCAL_WRITE) !== 0) return;
  const wanted = `0x${((access | WvAccess.LOCAL_WRITE) >>> 0).toString(16)}`;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `The access rights 0x${(access >>> 0).toString(16)} let peers change the memory without LOCAL_WRITE (0x8); ${wanted} has both.`,
  );
}

/** Why memory of this length was not registered. */
export function explainLength(error: unknown, what: string, device: IWVDevice, length: number): unknown {
  return withReason(error, what, () => outOfRange('The length', length, Number(device.query().maxMrSize), 1));
}

/** Why a queue pair was not made; what its rings are made from, the UVP has checked. */
export function explainQp(
  error: unknown,
  device: IWVDevice,
  depths: { readonly initiatorDepth: number; readonly responderResources: number },
): unknown {
  return withReason(error, 'QP_CREATE', () => {
    const { maxQpInitiatorDepth, maxQpResponderResources } = device.query();
    return (
      outOfRange('initiatorDepth', depths.initiatorDepth, maxQpInitiatorDepth) ??
      outOfRange('responderResources', depths.responderResources, maxQpResponderResources)
    );
  });
}

/** Why a queue pair in this state was not modified. */
export function explainModify(
  error: unknown,
  device: IWVDevice,
  from: number,
  attributes: Partial<WvQpAttributes>,
  options: number,
): unknown {
  const to = (options & STATE) !== 0 ? (attributes.qpState ?? from) : from;
  return withReason(
    error,
    'QP_MODIFY',
    () =>
      wrongStep(attributes, options, from, to) ??
      wrongValue(device, attributes) ??
      wrongPath(error, attributes),
  );
}

function wrongStep(
  { currentQpState }: Partial<WvQpAttributes>,
  options: number,
  from: number,
  to: number,
): string | undefined {
  if ((options & NOWHERE) !== 0) return `The options have ${namesOf(options & NOWHERE)}, which cannot change`;
  const unknown = options & ~Object.values(QpAttr).reduce((all: number, bit) => all | bit, 0);
  if (unknown !== 0) return `The options have ${namesOf(unknown)}; they are an OR of QpAttr values`;
  const state = (value: number): string => nameOf(QpState, value);
  if (TAKEN[to] === undefined) {
    return to === QpState.SQERROR
      ? 'qpState is SQERROR, which only a failed request leads to'
      : `qpState is ${to}; it takes a value of QpState`;
  }
  if ((options & CURRENT_STATE) !== 0 && currentQpState !== from)
    return `currentQpState is ${String(currentQpState)}, but the queue pair is in ${state(from)}`;
  const always = (options & STATE) !== 0 ? [QpState.RESET, QpState.ERROR] : [];
  const next: readonly number[] = [...(NEXT[from] ?? []), ...always];
  if (!next.includes(to)) {
    if ((options & STATE) === 0)
      return `The options have no STATE, and attributes alone cannot be changed in ${state(from)}`;
    return `The queue pair is in ${state(from)}, from where there is no step to ${state(to)}; there are those to ${next.map(state).join(', ')}`;
  }
  const surplus = options & ~TAKEN[to] & ~(STATE | CURRENT_STATE);
  if (surplus === 0) return undefined;
  return `The options have ${namesOf(surplus)}, which the step from ${state(from)} to ${state(to)} does not take`;
}

function wrongValue(device: IWVDevice, attributes: Partial<WvQpAttributes>): string | undefined {
  for (const [name, most] of MOST) {
    const reason = outOfRange(name, attributes[name], most);
    if (reason !== undefined) return reason;
  }
  const { maxQpInitiatorDepth, maxQpResponderResources, physPortCount } = device.query();
  const { pathMtu, pkeyIndex, portNumber = 1, initiatorDepth, responderResources } = attributes;
  const limits =
    outOfRange('initiatorDepth', initiatorDepth, maxQpInitiatorDepth) ??
    outOfRange('responderResources', responderResources, maxQpResponderResources) ??
    outOfRange('portNumber', portNumber, physPortCount, 1);
  if (limits !== undefined) return limits;
  const { activeMtu, pkeyTableLength } = device.queryPort(portNumber);
  if (pathMtu !== undefined && !MTUS.includes(pathMtu))
    return `pathMtu is ${String(pathMtu)} bytes; it takes one of ${MTUS.join(', ')}`;
  if (pathMtu !== undefined && pathMtu > activeMtu)
    return `The path MTU is ${pathMtu} bytes; the port carries at most ${activeMtu}, as its interface's MTU allows`;
  return outOfRange('pkeyIndex', pkeyIndex, pkeyTableLength - 1);
}

function wrongPath(
  error: unknown,
  { sourceGid, destinationGid }: Partial<WvQpAttributes>,
): string | undefined {
  if (!(error instanceof WvError) || error.status !== Status.INVALID_ADDRESS) return undefined;
  const text = (gid?: Uint8Array): string =>
    gid === undefined ? 'missing' : Buffer.from(gid).toString('hex');
  return `There is no path with the sourceGid ${text(sourceGid)} and the destinationGid ${text(destinationGid)}; the source is one of the port's GIDs, see queryGid()`;
}

/** Why a queue pair of a type was not accepted. `other`: it is not the one of Connect. */
export function explainAccept(error: WvError, type: number, other: boolean): unknown {
  if (error.status !== Status.INVALID_PARAMETER) return error;
  return withReason(error, 'EP_ACCEPT', () =>
    other
      ? 'The queue pair is not the one of connect(); pass that one, or null'
      : `The queue pair is of type ${nameOf(QpType, type)}, and the peer's is of another; both are RC, or both UC`,
  );
}
