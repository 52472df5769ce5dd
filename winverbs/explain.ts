/**
 * Finds the wrong parameter after a request was refused, because a status does not name it. The device is queried only
 * then.
 */

import { QpAttr, QpState, QpType, WvAccess } from '../kernel-bridge/ioctl/constants.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import type { IWVDevice, WvQpAttributes } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Attributes of QP_MODIFY and their maximum values (IBA 1 §11.2.5.2). */
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

/** The states that may follow a state, besides RESET and ERROR, which may follow any (IBA 1 §10.3.1). */
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
/** The options that a transition to a state accepts, whatever the type of queue pair. */
const ACCEPTED: Readonly<Record<number, number>> = {
  [QpState.RESET]: 0,
  [QpState.INIT]: PKEY_INDEX | PORT_NUMBER | ACCESS_FLAGS | QKEY,
  [QpState.RTR]: toRtr | RNR_NAK_TIMEOUT | ACCESS_FLAGS | PKEY_INDEX | QKEY,
  [QpState.RTS]: retries | SEND_PSN | ACCESS_FLAGS | RNR_NAK_TIMEOUT | QKEY,
  [QpState.SQD]:
    retries | RESPONDER_RESOURCES | AV | PORT_NUMBER | ACCESS_FLAGS | PKEY_INDEX | RNR_NAK_TIMEOUT | QKEY,
  [QpState.ERROR]: 0,
};

/** Options that no device here supports, because depths cannot change and alternate paths do not exist. */
const UNSUPPORTED = CAPABILITIES | FLAGS | PATH_MIG_STATE | ALTERNATE_AV;

/**
 * What each request of an endpoint requires; otherwise it fails with INVALID_DEVICE_STATE. The table does not depend on the actual state,
 * which only the kernel has.
 */
export const ENDPOINT_REQUIREMENTS: Readonly<Record<string, string>> = {
  EP_BIND: 'The endpoint must not be bound or hold a request. Create another.',
  EP_MODIFY:
    'The endpoint must be bound, without a connection, and must not be listening. Call bindAddress() first.',
  EP_LISTEN:
    'The endpoint must be bound, without a route or a connection, and must not be listening. Call bindAddress() first.',
  EP_GET_REQUEST: 'The endpoint must be listening. Call listen() first.',
  EP_CONNECT:
    'The endpoint must have a route and no connection, and `qp` must be in RESET or INIT. Call bindAddress() and resolveRoute() first.',
  EP_LOOKUP: 'The endpoint must have a route. Call bindAddress() and resolveRoute() first.',
  EP_ACCEPT:
    "The endpoint must hold a peer's request or reply, and a new `qp` must be in RESET or INIT. This call follows getRequest() or connect().",
  EP_REJECT: "The endpoint must hold a peer's request or reply. This call follows getRequest() or connect().",
  EP_DISCONNECT: 'The endpoint must be connected. This call follows accept().',
  EP_DISCONNECT_NOTIFY:
    'The endpoint must have a connection or be connecting. This call follows connect() or getRequest().',
  EP_MULTICAST_JOIN: 'The endpoint must be bound. Call bindAddress() first.',
  EP_MULTICAST_LEAVE: 'The endpoint must be bound. Call bindAddress() first.',
};

/** Returns the name of a value in a table of constants. */
export function nameOf(table: Readonly<Record<string, number>>, value: number): string {
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
  const range = least === most ? String(least) : `an integer from ${least} to ${most}`;
  return `\`${name}\` must be ${range}; got ${shown(value)}`;
}

/** Returns the error with a reason that names the wrong parameter, if one is known. `find` may query the device. */
function withReason(error: unknown, what: string, find: () => string | undefined): unknown {
  if (!(error instanceof WvError)) return error;
  let reason: string | undefined;
  try {
    reason = find();
  } catch {
    // The device is gone, so the original error is more useful.
  }
  return reason === undefined ? error : new WvError(error.status, `${what}: ${reason}.`, { cause: error });
}

/** Checks that this side has the rights that it grants to peers. @throws WvError INVALID_PARAMETER */
export function checkRights(access: number): void {
  if ((access & WvAccess.REMOTE_VIEW) !== 0 && (access & WvAccess.REMOTE_READ) === 0) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`access\` must include REMOTE_READ (0x1) for peers to map the memory; got 0x${(access >>> 0).toString(16)}.`,
    );
  }
  const writes = (WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE) | WvAccess.REMOTE_ATOMIC;
  if ((access & writes) === 0 || (access & WvAccess.LOCAL_WRITE) !== 0) return;
  const wanted = `0x${((access | WvAccess.LOCAL_WRITE) >>> 0).toString(16)}`;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`access\` must include LOCAL_WRITE (0x8) for peers to change the memory; got 0x${(access >>> 0).toString(16)}. Use ${wanted}.`,
  );
}

/** Explains why memory of this length was not registered. */
export function explainLength(error: unknown, what: string, device: IWVDevice, length: number): unknown {
  return withReason(error, what, () => outOfRange('length', length, Number(device.query().maxMrSize), 1));
}

/** Explains why a queue pair was not created; the UVP has already checked the sizes of its rings. */
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

/** Explains why a queue pair in this state was not modified. */
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
  if ((options & UNSUPPORTED) !== 0)
    return `\`options\` must not include ${namesOf(options & UNSUPPORTED)}, which cannot be changed`;
  const unknown = options & ~Object.values(QpAttr).reduce((all: number, bit) => all | bit, 0);
  if (unknown !== 0) return `\`options\` must be an OR of QpAttr values; got ${namesOf(unknown)}`;
  const state = (value: number): string => nameOf(QpState, value);
  if (ACCEPTED[to] === undefined) {
    return to === QpState.SQERROR
      ? '`qpState` must not be SQERROR, which only a failed request causes'
      : `\`qpState\` must be a value of QpState; got ${shown(to)}`;
  }
  if ((options & CURRENT_STATE) !== 0 && currentQpState !== from)
    return `\`currentQpState\` must be ${state(from)}, the state of the queue pair; got ${shown(currentQpState)}`;
  const always = (options & STATE) !== 0 ? [QpState.RESET, QpState.ERROR] : [];
  const next: readonly number[] = [...(NEXT[from] ?? []), ...always];
  if (!next.includes(to)) {
    if ((options & STATE) === 0)
      return `\`options\` must include STATE: in ${state(from)}, attributes cannot be changed without it`;
    return `\`qpState\` must be one of ${next.map(state).join(', ')} while the queue pair is in ${state(from)}; got ${state(to)}`;
  }
  const surplus = options & ~ACCEPTED[to] & ~(STATE | CURRENT_STATE);
  if (surplus === 0) return undefined;
  return `\`options\` must not include ${namesOf(surplus)} in a transition from ${state(from)} to ${state(to)}`;
}

function tooLarge(attributes: Partial<WvQpAttributes>): string | undefined {
  for (const [name, most] of MOST) {
    const reason = outOfRange(name, attributes[name], most);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Explains why attributes cannot be sent to the device, whose fields are wider than the attributes. */
export function explainAttributes(error: unknown, attributes: Partial<WvQpAttributes>): unknown {
  return withReason(error, 'QP_MODIFY', () => tooLarge(attributes));
}

/** Explains why a request for a port was refused. `name` is its parameter. */
export function explainPort(
  error: unknown,
  what: string,
  device: IWVDevice,
  name: string,
  port: number,
): unknown {
  if (!(error instanceof WvError) || error.status !== Status.INVALID_PORT_HANDLE) return error;
  return withReason(error, what, () => outOfRange(name, port, device.query().physPortCount, 1));
}

function wrongValue(device: IWVDevice, attributes: Partial<WvQpAttributes>): string | undefined {
  const reason = tooLarge(attributes);
  if (reason !== undefined) return reason;
  const { maxQpInitiatorDepth, maxQpResponderResources, physPortCount } = device.query();
  const { pathMtu, pkeyIndex, portNumber = 1, initiatorDepth, responderResources } = attributes;
  const limits =
    outOfRange('initiatorDepth', initiatorDepth, maxQpInitiatorDepth) ??
    outOfRange('responderResources', responderResources, maxQpResponderResources) ??
    outOfRange('portNumber', portNumber, physPortCount, 1);
  if (limits !== undefined) return limits;
  const { activeMtu, pkeyTableLength } = device.queryPort(portNumber);
  if (pathMtu !== undefined && !MTUS.includes(pathMtu))
    return `\`pathMtu\` must be one of ${MTUS.join(', ')} bytes; got ${shown(pathMtu)}`;
  if (pathMtu !== undefined && pathMtu > activeMtu)
    return `\`pathMtu\` must be at most the ${activeMtu} bytes that the MTU of the port's interface allows; got ${shown(pathMtu)}`;
  return outOfRange('pkeyIndex', pkeyIndex, pkeyTableLength - 1);
}

function wrongPath(
  error: unknown,
  { sourceGid, destinationGid }: Partial<WvQpAttributes>,
): string | undefined {
  if (!(error instanceof WvError) || error.status !== Status.INVALID_ADDRESS) return undefined;
  const text = (gid?: Uint8Array): string =>
    gid === undefined ? 'missing' : Buffer.from(gid).toString('hex');
  return `No path from \`sourceGid\` ${text(sourceGid)} to \`destinationGid\` ${text(destinationGid)}; the source must be one of the port's GIDs, see queryGid()`;
}

/** Explains why a queue pair was not accepted. `other`: it differs from the one given to connect(). */
export function explainAccept(error: WvError, type: number, other: boolean): unknown {
  if (error.status !== Status.INVALID_PARAMETER) return error;
  return withReason(error, 'EP_ACCEPT', () =>
    other
      ? '`qp` must be the queue pair given to connect(), or null'
      : `\`qp\` must be of the peer's type, both RC or both UC; got ${nameOf(QpType, type)}`,
  );
}
