/**
 * The connector's state machine as data: the methods allowed in each state, and the transitions. Source: ND SPI
 * §INDConnector, §IND2Connector, with the statuses that NetworkDirect drivers return.
 */
import { Status } from '../../winverbs/index.js';

/** The states, in the order of the columns below. */
export const connectorStates = [
  'Idle',
  /**
   * The connector has a local address, from Bind (v2) or a failed Connect. A failed Connect keeps the local port, and the peer's reject
   * data, if any.
   */
  'Bound',
  /** The connector waits in a listener for a connection request. */
  'Queued',
  /** The connector holds a connection request. */
  'Requested',
  /** Accept has sent the reply. */
  'Accepting',
  'Connecting',
  /** The peer has accepted; the application calls completeConnect or reject. */
  'Replied',
  /** completeConnect is outstanding. */
  'Completing',
  'Connected',
  /** This side has called disconnect. */
  'ActiveDisconnect',
  /** The peer has disconnected or has been lost. */
  'PassiveDisconnect',
  'Disconnected',
] as const;

export type ConnectorState = (typeof connectorStates)[number];

const OK = Status.SUCCESS;
const INV = Status.CONNECTION_INVALID;
const ACT = Status.CONNECTION_ACTIVE;
const ABT = Status.CONNECTION_ABORTED;
const ASSOC = Status.ADDRESS_ALREADY_ASSOCIATED;
const STATE = Status.INVALID_DEVICE_STATE;
const NASSOC = Status.ADDRESS_NOT_ASSOCIATED;
const DISC = Status.CONNECTION_DISCONNECTED;

// biome-ignore format: a table
/** The status of each method, by state. SUCCESS means that it is allowed. */
const legality = {
  //                       Idle    Bound   Queued  Request Accept. Connec. Replied Compl.  Conn'd  ActDisc PasDisc Disconnected
  bind:                 [  OK,     ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC,  ASSOC ],
  getConnectionRequest: [  OK,     ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT ],
  connect:              [  NASSOC, OK,     STATE,  ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    STATE ],
  completeConnect:      [  INV,    INV,    INV,    INV,    INV,    INV,    OK,     INV,    INV,    INV,    INV,    ABT ],
  accept:               [  INV,    INV,    INV,    OK,     ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ACT,    ABT ],
  reject:               [  STATE,  STATE,  STATE,  OK,     STATE,  STATE,  OK,     STATE,  STATE,  STATE,  STATE,  INV ],
  getReadLimits:        [  STATE,  STATE,  STATE,  OK,     OK,     STATE,  OK,     OK,     OK,     STATE,  STATE,  INV ],
  // In Bound and Disconnected the method is allowed because of reject data; without such data, it also fails with CONNECTION_INVALID.
  getPrivateData:       [  INV,    OK,     STATE,  OK,     OK,     STATE,  OK,     OK,     OK,     STATE,  STATE,  OK ],
  getLocalAddress:      [  NASSOC, OK,     NASSOC, OK,     OK,     OK,     OK,     OK,     OK,     OK,     OK,     OK ],
  getPeerAddress:       [  INV,    INV,    INV,    OK,     OK,     OK,     OK,     OK,     OK,     OK,     OK,     OK ],
  notifyDisconnect:     [  INV,    INV,    INV,    INV,    INV,    INV,    INV,    OK,     OK,     DISC,   OK,     DISC ],
  disconnect:           [  INV,    INV,    INV,    INV,    INV,    INV,    INV,    INV,    OK,     STATE,  OK,     INV ],
} as const satisfies Record<string, readonly number[]>;

export type ConnectorMethod = keyof typeof legality;
export const connectorMethods = Object.keys(legality) as ConnectorMethod[];

/** Returns the status of `method` in `state`. SUCCESS means that it is allowed. */
export function legalityOf(method: ConnectorMethod, state: ConnectorState): number {
  return legality[method][connectorStates.indexOf(state)]!;
}

const afterPeer = 'This call follows getConnectionRequest() or connect().';
const afterConnecting = 'This call follows accept() or completeConnect().';

/** What each method requires of the connector, and the cure. */
const requirements: Readonly<Record<ConnectorMethod, readonly [must: string, cure: string]>> = {
  bind: ['be unbound', 'Create another.'],
  getConnectionRequest: ['be unused', 'Create another.'],
  connect: ['be bound and have no connection', 'Create another.'],
  completeConnect: ["hold the peer's reply", 'This call follows connect().'],
  accept: ['hold a connection request', 'This call follows getConnectionRequest().'],
  reject: ["hold a connection request or the peer's reply", afterPeer],
  getReadLimits: ['have a connection, a request or a reply', afterPeer],
  getPrivateData: ['have a connection, a request or a reply', afterPeer],
  getLocalAddress: ['have a local address', 'It has one as soon as it is bound or has a peer.'],
  getPeerAddress: ['have a peer', afterPeer],
  notifyDisconnect: ['be connected', afterConnecting],
  disconnect: ['be connected', afterConnecting],
};

const descriptions: Readonly<Record<ConnectorState, string>> = {
  Idle: 'is unused',
  Bound: 'is bound',
  Queued: 'is waiting for a connection request',
  Requested: 'holds a connection request',
  Accepting: 'is accepting a connection request',
  Connecting: 'is connecting',
  Replied: "holds the peer's reply",
  Completing: 'is completing its connection',
  Connected: 'is connected',
  ActiveDisconnect: 'is disconnecting',
  PassiveDisconnect: 'was disconnected by the peer',
  Disconnected: 'is disconnected',
};

/** Describes why `method` is not allowed in `state`. */
export function refusalOf(method: ConnectorMethod, state: ConnectorState): string {
  const [must, cure] = requirements[method];
  const next = method === 'connect' && state === 'Idle' ? 'Call bind() first.' : cure;
  return `The connector must ${must}; it ${descriptions[state]}. ${next}`;
}

/** Event → (state → next state). An event does not change a state that its row does not contain. */
const transitions = {
  bound: { Idle: 'Bound' },
  requestAwaited: { Idle: 'Queued' },
  requestArrived: { Queued: 'Requested' },
  requestFailed: { Queued: 'Idle' },
  connectStarted: { Idle: 'Connecting', Bound: 'Connecting' },
  connectFailed: { Connecting: 'Bound' },
  connectCanceled: { Connecting: 'Disconnected' },
  replied: { Connecting: 'Replied' },
  completeStarted: { Replied: 'Completing' },
  completed: { Completing: 'Connected' },
  // A failed completeConnect also ends the endpoint.
  completeFailed: { Completing: 'Disconnected', PassiveDisconnect: 'Disconnected' },
  acceptStarted: { Requested: 'Accepting' },
  accepted: { Accepting: 'Connected' },
  acceptFailed: { Accepting: 'Disconnected' },
  rejected: { Requested: 'Disconnected', Replied: 'Disconnected' },
  // The peer's disconnect may be observed before completeConnect has completed.
  peerDisconnected: { Completing: 'PassiveDisconnect', Connected: 'PassiveDisconnect' },
  disconnectStarted: { Connected: 'ActiveDisconnect', PassiveDisconnect: 'ActiveDisconnect' },
  disconnected: { ActiveDisconnect: 'Disconnected' },
} as const satisfies Record<string, Partial<Record<ConnectorState, ConnectorState>>>;

export type ConnectorEvent = keyof typeof transitions;
export const connectorEvents = Object.keys(transitions) as ConnectorEvent[];

/** Returns the state that `event` leads to. */
export function nextState(state: ConnectorState, event: ConnectorEvent): ConnectorState {
  const row: Partial<Record<ConnectorState, ConnectorState>> = transitions[event];
  return row[state] ?? state;
}
