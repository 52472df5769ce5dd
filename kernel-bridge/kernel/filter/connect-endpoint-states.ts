/**
 * The endpoint state machine as data: the effect of each request and each event in each state. Source: WinVerbs connect
 * endpoints, with IBA 1 §12 below; the actions are methods of {@link Endpoint}.
 */
import { Status } from '../../ioctl/status.js';
import type { Cell, CommonAction, Transition } from './endpoint-machine.js';

/**
 * - `queued`: assigned to a GetRequest that waits for a REQ.
 * - `activeConnect`: REQ sent. `activeReplied`: REP received, the application decides.
 * - `passiveConnect`: REQ received, the application decides. `passiveAccepting`: REP sent.
 * - `activeDisconnect`: DREQ sent. `passiveDisconnect`: the peer disconnected, or the connection was lost.
 */
export const endpointStates = [
  'idle',
  'addressBound',
  'listening',
  'queued',
  'routeResolved',
  'activeConnect',
  'activeReplied',
  'passiveConnect',
  'passiveAccepting',
  'connected',
  'activeDisconnect',
  'passiveDisconnect',
  'disconnected',
  'destroying',
] as const;
export type EndpointState = (typeof endpointStates)[number];

/** Requests: each completes with a status in every state. */
export const endpointRequests = [
  'bind',
  'modify',
  'listen',
  'getRequest',
  'assign',
  'connect',
  'accept',
  'reject',
  'disconnect',
  'notifyDisconnect',
  'query',
  'cancel',
  'destroy',
] as const;
export type EndpointRequest = (typeof endpointRequests)[number];

/** Events from connection management, the queue pair, and cancelled requests of this endpoint. */
export const endpointSignals = [
  'delivered',
  'unassigned',
  'replied',
  'established',
  'rejected',
  'timedOut',
  'peerDisconnected',
  'disconnectAnswered',
  'disconnectTimedOut',
  'lost',
  'firstPacket',
  'connectCancelled',
  'acceptCancelled',
  'disconnectCancelled',
  'deviceLost',
] as const;
export type EndpointSignal = (typeof endpointSignals)[number];

/** Names of the endpoint's methods that execute a request. */
export type RequestAction =
  | CommonAction
  | 'connect'
  | 'completeConnect'
  | 'accept'
  | 'reject'
  | 'giveUpConnect'
  | 'disconnect'
  | 'finishDisconnect'
  | 'awaitDisconnect'
  | 'reportDisconnect';

/** Names of the endpoint's methods that handle an event. */
export type SignalAction =
  | 'stay'
  | 'adopt'
  | 'onReplied'
  | 'onRefused'
  | 'onConnectTimedOut'
  | 'onConnectCancelled'
  | 'onPeerGaveUp'
  | 'onEstablished'
  | 'onAcceptRefused'
  | 'onAcceptTimedOut'
  | 'onAcceptLost'
  | 'onAcceptCancelled'
  | 'onFirstPacket'
  | 'onEstablishedAndGone'
  | 'onPeerDisconnected'
  | 'onLost'
  | 'onStaleRejected'
  | 'onDisconnectAnswered'
  | 'onDisconnectTimedOut'
  | 'onDisconnectCancelled'
  | 'onDeviceLost';

/** The names used by connect endpoints. */
export interface ConnectEndpointKind {
  readonly state: EndpointState;
  readonly request: EndpointRequest;
  readonly signal: EndpointSignal;
  readonly requestAction: RequestAction;
  readonly signalAction: SignalAction;
}

/** A request's cell: a transition, or the status of a refusal. */
export type RequestCell = Cell<RequestAction, EndpointState>;
/** An event's cell: a transition, or `ignored` if it cannot occur in this state or has no effect. */
export type SignalCell = Transition<SignalAction, EndpointState> | 'ignored';

type Row = Partial<Record<EndpointRequest, RequestCell>>;
type Signals = Partial<Record<EndpointSignal, Transition<SignalAction, EndpointState>>>;

const to = <A extends string>(
  action: A,
  next: EndpointState,
  failed?: EndpointState,
): Transition<A, EndpointState> => (failed === undefined ? { action, next } : { action, next, failed });
const busy = { status: Status.DEVICE_BUSY };
const wrong = { status: Status.INVALID_DEVICE_STATE };

/** Requests with a result other than "wrong state"; `query`, `cancel` and `destroy` are added below. */
const requestRows: Record<Exclude<EndpointState, 'destroying'>, Row> = {
  idle: { bind: to('bind', 'addressBound'), assign: to('assign', 'queued') },
  addressBound: { modify: to('setRoute', 'routeResolved'), listen: to('listen', 'listening') },
  listening: { getRequest: to('awaitRequest', 'listening') },
  queued: {},
  routeResolved: { modify: to('setRoute', 'routeResolved'), connect: to('connect', 'activeConnect') },
  activeConnect: {
    connect: busy,
    reject: to('giveUpConnect', 'disconnected'),
    notifyDisconnect: to('awaitDisconnect', 'activeConnect'),
  },
  activeReplied: {
    accept: to('completeConnect', 'connected', 'disconnected'),
    reject: to('reject', 'disconnected'),
    notifyDisconnect: to('awaitDisconnect', 'activeReplied'),
  },
  passiveConnect: {
    accept: to('accept', 'passiveAccepting', 'disconnected'),
    reject: to('reject', 'disconnected'),
    notifyDisconnect: to('awaitDisconnect', 'passiveConnect'),
  },
  passiveAccepting: { accept: busy, notifyDisconnect: to('awaitDisconnect', 'passiveAccepting') },
  connected: {
    disconnect: to('disconnect', 'activeDisconnect'),
    notifyDisconnect: to('awaitDisconnect', 'connected'),
  },
  activeDisconnect: { disconnect: busy, notifyDisconnect: to('awaitDisconnect', 'activeDisconnect') },
  passiveDisconnect: {
    disconnect: to('finishDisconnect', 'disconnected'),
    notifyDisconnect: to('reportDisconnect', 'passiveDisconnect'),
  },
  disconnected: {
    // The peer gave up before the application decided (ND SPI: CONNECTION_ABORTED).
    accept: { status: Status.CONNECTION_ABORTED },
    notifyDisconnect: to('reportDisconnect', 'disconnected'),
  },
};

const signalRows: Record<EndpointState, Signals> = {
  idle: {},
  addressBound: {},
  listening: {},
  queued: { delivered: to('adopt', 'passiveConnect'), unassigned: to('stay', 'idle') },
  routeResolved: {},
  activeConnect: {
    replied: to('onReplied', 'activeReplied'),
    rejected: to('onRefused', 'routeResolved'),
    timedOut: to('onConnectTimedOut', 'routeResolved'),
    connectCancelled: to('onConnectCancelled', 'routeResolved'),
  },
  activeReplied: {
    rejected: to('onPeerGaveUp', 'disconnected'),
    timedOut: to('onPeerGaveUp', 'disconnected'),
    peerDisconnected: to('onPeerGaveUp', 'disconnected'),
  },
  passiveConnect: {
    rejected: to('onPeerGaveUp', 'disconnected'),
    timedOut: to('onPeerGaveUp', 'disconnected'),
    peerDisconnected: to('onPeerGaveUp', 'disconnected'),
  },
  passiveAccepting: {
    established: to('onEstablished', 'connected'),
    firstPacket: to('onFirstPacket', 'passiveAccepting'),
    rejected: to('onAcceptRefused', 'disconnected'),
    timedOut: to('onAcceptTimedOut', 'disconnected'),
    peerDisconnected: to('onEstablishedAndGone', 'passiveDisconnect'),
    lost: to('onAcceptLost', 'disconnected'),
    acceptCancelled: to('onAcceptCancelled', 'disconnected'),
  },
  connected: {
    rejected: to('onStaleRejected', 'passiveDisconnect'),
    peerDisconnected: to('onPeerDisconnected', 'passiveDisconnect'),
    lost: to('onLost', 'passiveDisconnect'),
  },
  activeDisconnect: {
    // The DREQs have crossed: Disconnect succeeds on both sides.
    peerDisconnected: to('onDisconnectAnswered', 'disconnected'),
    disconnectAnswered: to('onDisconnectAnswered', 'disconnected'),
    // The peer no longer knows the connection, which is equivalent to a DREP.
    rejected: to('onDisconnectAnswered', 'disconnected'),
    disconnectTimedOut: to('onDisconnectTimedOut', 'disconnected'),
    disconnectCancelled: to('onDisconnectCancelled', 'disconnected'),
  },
  passiveDisconnect: {},
  disconnected: {},
  destroying: {},
};

function fill<K extends string, V>(keys: readonly K[], value: (key: K) => V): Record<K, V> {
  return Object.fromEntries(keys.map((key) => [key, value(key)])) as Record<K, V>;
}

function requestCell(state: EndpointState, request: EndpointRequest): RequestCell {
  if (state === 'destroying') return { status: Status.NOT_FOUND };
  if (request === 'query') return to('query', state);
  if (request === 'cancel') return to('cancelRequests', state);
  if (request === 'destroy') return to('destroy', 'destroying');
  const otherwise = request === 'assign' ? { status: Status.CONNECTION_IN_USE } : wrong;
  return requestRows[state][request] ?? otherwise;
}

/** The cell of every state and request. */
export const requestTable: Record<EndpointState, Record<EndpointRequest, RequestCell>> = fill(
  endpointStates,
  (state) => fill(endpointRequests, (request) => requestCell(state, request)),
);

/** States where an endpoint does not depend on a device. */
const withoutDevice: readonly EndpointState[] = ['idle', 'queued', 'disconnected', 'destroying'];

function signalCell(state: EndpointState, signal: EndpointSignal): SignalCell {
  if (signal !== 'deviceLost') return signalRows[state][signal] ?? 'ignored';
  return withoutDevice.includes(state) ? 'ignored' : to('onDeviceLost', 'disconnected');
}

/** The cell of every state and event. */
export const signalTable: Record<EndpointState, Record<EndpointSignal, SignalCell>> = fill(
  endpointStates,
  (state) => fill(endpointSignals, (signal) => signalCell(state, signal)),
);
