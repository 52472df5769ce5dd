/**
 * The state machine of datagram endpoints as data: the effect of each request and each event in each state. Lookups and
 * joins do not change the state, because an endpoint has any number of peers and groups. The actions are methods of
 * {@link DatagramEndpoint}.
 */
import { Status } from '../../ioctl/status.js';
import type { Cell, CommonAction, CommonRequest, CommonSignal, Transition } from './endpoint-machine.js';

/**
 * - `queued`: assigned to a GetRequest that waits for a lookup.
 * - `requested`: it has a peer's lookup, and the application decides. `accepted`: replied with a queue pair.
 * - `ended`: rejected, or the lookup was withdrawn, or the device is gone.
 */
export const datagramStates = [
  'idle',
  'addressBound',
  'routeResolved',
  'listening',
  'queued',
  'requested',
  'accepted',
  'ended',
  'destroying',
] as const;
export type DatagramState = (typeof datagramStates)[number];

/** Requests: each completes with a status in every state. */
export const datagramRequests = [
  'bind',
  'modify',
  'listen',
  'getRequest',
  'assign',
  'lookup',
  'accept',
  'reject',
  'join',
  'leave',
  'query',
  'cancel',
  'destroy',
] as const satisfies readonly (CommonRequest | string)[];
export type DatagramRequest = (typeof datagramRequests)[number];

/** Events. */
export const datagramSignals = [
  'delivered',
  'unassigned',
  'withdrawn',
  'deviceLost',
] as const satisfies readonly (CommonSignal | string)[];
export type DatagramSignal = (typeof datagramSignals)[number];

/** Names of the methods that execute a request. */
export type DatagramAction = CommonAction | 'lookup' | 'accept' | 'reject' | 'join' | 'leave';

/** Names of the methods that handle an event. */
export type DatagramSignalAction = 'stay' | 'adopt' | 'onWithdrawn' | 'onDeviceLost';

/** The names used by datagram endpoints. */
export interface DatagramEndpointKind {
  readonly state: DatagramState;
  readonly request: DatagramRequest;
  readonly signal: DatagramSignal;
  readonly requestAction: DatagramAction;
  readonly signalAction: DatagramSignalAction;
}

export type DatagramCell = Cell<DatagramAction, DatagramState>;
export type DatagramSignalCell = Transition<DatagramSignalAction, DatagramState> | 'ignored';

const to = <A extends string>(action: A, next: DatagramState): Transition<A, DatagramState> => ({
  action,
  next,
});
/** Joining a group requires an address. */
const groups = (state: DatagramState) => ({ join: to('join', state), leave: to('leave', state) });

/** Requests with a result other than "wrong state"; `query`, `cancel` and `destroy` are added below. */
const requestRows: Record<
  Exclude<DatagramState, 'destroying'>,
  Partial<Record<DatagramRequest, DatagramCell>>
> = {
  idle: { bind: to('bind', 'addressBound'), assign: to('assign', 'queued') },
  addressBound: {
    modify: to('setRoute', 'routeResolved'),
    listen: to('listen', 'listening'),
    ...groups('addressBound'),
  },
  routeResolved: {
    modify: to('setRoute', 'routeResolved'),
    lookup: to('lookup', 'routeResolved'),
    ...groups('routeResolved'),
  },
  listening: { getRequest: to('awaitRequest', 'listening'), ...groups('listening') },
  queued: {},
  requested: { accept: to('accept', 'accepted'), reject: to('reject', 'ended') },
  accepted: groups('accepted'),
  // The peer gave up before the application decided.
  ended: { accept: { status: Status.CONNECTION_ABORTED } },
};

const signalRows: Record<DatagramState, Partial<Record<DatagramSignal, DatagramSignalCell>>> = {
  idle: {},
  addressBound: { deviceLost: to('onDeviceLost', 'ended') },
  routeResolved: { deviceLost: to('onDeviceLost', 'ended') },
  listening: { deviceLost: to('onDeviceLost', 'ended') },
  queued: { delivered: to('adopt', 'requested'), unassigned: to('stay', 'idle') },
  requested: { withdrawn: to('onWithdrawn', 'ended'), deviceLost: to('onDeviceLost', 'ended') },
  accepted: { deviceLost: to('onDeviceLost', 'ended') },
  ended: {},
  destroying: {},
};

function requestCell(state: DatagramState, request: DatagramRequest): DatagramCell {
  if (state === 'destroying') return { status: Status.NOT_FOUND };
  if (request === 'query') return to('query', state);
  if (request === 'cancel') return to('cancelRequests', state);
  if (request === 'destroy') return to('destroy', 'destroying');
  const refusal = request === 'assign' ? Status.CONNECTION_IN_USE : Status.INVALID_DEVICE_STATE;
  return requestRows[state][request] ?? { status: refusal };
}

function fill<K extends string, V>(keys: readonly K[], value: (key: K) => V): Record<K, V> {
  return Object.fromEntries(keys.map((key) => [key, value(key)])) as Record<K, V>;
}

/** The cells of every state and request, and of every state and event. */
export const datagramTables = {
  initial: 'idle',
  destroying: 'destroying',
  requests: fill(datagramStates, (state) => fill(datagramRequests, (request) => requestCell(state, request))),
  signals: fill(datagramStates, (state) =>
    fill(datagramSignals, (signal): DatagramSignalCell => signalRows[state][signal] ?? 'ignored'),
  ),
} as const;
