/**
 * The connection state machine of IBA 1 §12.9 as data: for every state and event, the actions and the next state.
 * `connection.ts` runs it; nothing else changes a state.
 */
import type { CmState } from './service.js';

/** Calls of the owner. */
const localEvents = [
  'connect',
  'admit',
  'accept',
  'ready',
  'reject',
  'disconnect',
  'packetSeen',
  'abandon',
] as const;
/** Messages of the peer for this connection. */
const messageEvents = [
  /** A repetition of this connection's REQ. */
  'req',
  'mraReq',
  'mraRep',
  'rej',
  'rep',
  'rtu',
  'dreq',
  'drep',
  /** The peer uses this connection's QP in another request: it has lost this connection. */
  'stale',
  /** The QP of the REP already belongs to the peer of another connection of ours. */
  'staleReply',
] as const;
/** Expirations of the connection's timer: retransmit, give up, wait over. */
const timerEvents = ['timeout', 'exhausted', 'expired'] as const;
/** Events of the manager: another source needs the slot of a waiting request. */
const managerEvents = ['displaced'] as const;

/** All events, grouped as above. */
export const cmEvents = [...localEvents, ...messageEvents, ...timerEvents, ...managerEvents] as const;
export type CmEvent = (typeof cmEvents)[number];

export const cmStates = [
  'idle',
  'reqSent',
  'mraReqReceived',
  'repReceived',
  'reqReceived',
  'repSent',
  'mraRepReceived',
  'established',
  'dreqSent',
  'timewait',
] as const satisfies readonly CmState[];

/** The actions of a transition, in order; the functions are in `connection.ts`. */
export type CmAction =
  | 'sendReq'
  | 'sendRep'
  | 'sendRtu'
  | 'sendDreq'
  | 'sendDrep'
  | 'sendMraReq'
  | 'sendMraRep'
  /** A REJ with the given reason, by default consumer reject. */
  | 'sendReject'
  /** A REJ with reason timeout, with our CA GUID. */
  | 'sendTimeoutReject'
  /** The message that awaits a reply, counted as a retry. */
  | 'resend'
  /** The same message, without restarting its timer. */
  | 'repeat'
  | 'repeatRtu'
  /** The REJ that ended this connection, if there was one. */
  | 'repeatReject'
  | 'extendWait'
  | 'awaitOwner'
  | 'reportReply'
  | 'reportEstablished'
  | 'reportEstablishedLater'
  | 'reportRejected'
  | 'reportTimedOut'
  | 'reportDisconnected'
  | 'reportDisconnectCompleted'
  | 'reportDisconnectTimedOut'
  | 'reportDisconnectCompletedLater'
  /** No more events are reported to the owner. */
  | 'detach';

/** A cell of the table. */
export type CmTransition =
  | { readonly kind: 'go'; readonly next: CmState; readonly actions: readonly CmAction[] }
  /** A message without effect here: only counted. */
  | { readonly kind: 'ignored' }
  /** A call that this state does not allow: only counted. */
  | { readonly kind: 'misused' }
  /** An event that cannot occur in this state: counted, so that a mistake is noticed. */
  | { readonly kind: 'impossible' };

export type CmTransitions = Readonly<Record<CmState, Readonly<Record<CmEvent, CmTransition>>>>;

const go = (next: CmState, ...actions: CmAction[]): CmTransition => ({ kind: 'go', next, actions });
const impossible: CmTransition = { kind: 'impossible' };

/** The row of a state: the given cells, and defaults for the other events of each group. */
function row(cells: Partial<Record<CmEvent, CmTransition>>): Readonly<Record<CmEvent, CmTransition>> {
  const all = [
    ...localEvents.map((event) => [event, { kind: 'misused' }]),
    ...messageEvents.map((event) => [event, { kind: 'ignored' }]),
    ['staleReply', impossible],
    ...timerEvents.map((event) => [event, impossible]),
    ...managerEvents.map((event) => [event, impossible]),
    ...Object.entries(cells),
  ] as [CmEvent, CmTransition][];
  return Object.fromEntries(all) as Record<CmEvent, CmTransition>;
}

/** Before its first and after its last message a connection is in no table, so that no message can find it. */
const unreachable = Object.fromEntries(messageEvents.map((event) => [event, impossible]));

/** While the REQ awaits its reply; an MRA only extends the wait. */
const requesting = (state: 'reqSent' | 'mraReqReceived') =>
  ({
    rep: go('repReceived', 'reportReply'),
    rej: go('timewait', 'reportRejected'),
    staleReply: go('timewait', 'sendReject', 'reportRejected'),
    timeout: go(state, 'resend'),
    exhausted: go('timewait', 'sendTimeoutReject', 'reportTimedOut'),
    reject: go('timewait', 'sendTimeoutReject'),
    abandon: go('timewait', 'detach', 'sendTimeoutReject'),
    disconnect: go('timewait', 'sendTimeoutReject', 'reportDisconnectCompletedLater'),
  }) as const;

/** While the REP awaits its reply. */
const replying = (state: 'repSent' | 'mraRepReceived') =>
  ({
    req: go(state, 'repeat'),
    rtu: go('established', 'reportEstablished'),
    packetSeen: go('established', 'reportEstablishedLater'),
    rej: go('timewait', 'reportRejected'),
    dreq: go('timewait', 'sendDrep', 'reportDisconnected'),
    stale: go('timewait', 'reportRejected'),
    timeout: go(state, 'resend'),
    exhausted: go('timewait', 'sendTimeoutReject', 'reportTimedOut'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'reportDisconnectCompletedLater'),
  }) as const;

export const transitions: CmTransitions = {
  idle: row({
    ...unreachable,
    connect: go('reqSent', 'sendReq'),
    admit: go('reqReceived', 'awaitOwner'),
    disconnect: go('idle', 'reportDisconnectCompletedLater'),
    abandon: go('idle', 'detach'),
  }),
  reqSent: row({
    ...requesting('reqSent'),
    mraReq: go('mraReqReceived', 'extendWait'),
    stale: impossible,
  }),
  mraReqReceived: row({
    ...requesting('mraReqReceived'),
    stale: impossible,
  }),
  repReceived: row({
    ready: go('established', 'sendRtu'),
    // The owner has not decided about the reply yet.
    rep: go('repReceived', 'sendMraRep'),
    rej: go('timewait', 'reportRejected'),
    dreq: go('timewait', 'sendDrep', 'reportDisconnected'),
    stale: go('timewait', 'sendReject', 'reportRejected'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'reportDisconnectCompletedLater'),
  }),
  reqReceived: row({
    accept: go('repSent', 'sendRep'),
    req: go('reqReceived', 'sendMraReq', 'awaitOwner'),
    rej: go('timewait', 'reportRejected'),
    stale: go('timewait', 'reportRejected'),
    // The peer's retries are exhausted by now, and its REJ has been lost.
    expired: go('timewait', 'sendTimeoutReject', 'reportTimedOut'),
    // Without a reply the peer repeats its REQ, which is then a new one.
    displaced: go('idle'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'reportDisconnectCompletedLater'),
  }),
  repSent: row({
    ...replying('repSent'),
    mraRep: go('mraRepReceived', 'extendWait'),
  }),
  mraRepReceived: row({
    ...replying('mraRepReceived'),
  }),
  established: row({
    // The peer has not received our RTU.
    rep: go('established', 'repeatRtu'),
    rej: go('timewait', 'reportDisconnected'),
    dreq: go('timewait', 'sendDrep', 'reportDisconnected'),
    stale: go('dreqSent', 'sendDreq', 'reportDisconnected', 'detach'),
    disconnect: go('dreqSent', 'sendDreq'),
    abandon: go('dreqSent', 'detach', 'sendDreq'),
    packetSeen: go('established'),
  }),
  dreqSent: row({
    drep: go('timewait', 'reportDisconnectCompleted'),
    // Both sides disconnect at the same time, and both succeed.
    dreq: go('timewait', 'sendDrep', 'reportDisconnectCompleted'),
    rej: go('timewait', 'reportDisconnectCompleted'),
    // The peer has lost the connection and may never send a DREP; its next request must not wait for our retries.
    stale: go('timewait', 'reportDisconnectCompleted'),
    timeout: go('dreqSent', 'resend'),
    exhausted: go('timewait', 'reportDisconnectTimedOut'),
    abandon: go('dreqSent', 'detach'),
    packetSeen: go('dreqSent'),
  }),
  timewait: row({
    dreq: go('timewait', 'sendDrep'),
    req: go('timewait', 'repeatReject'),
    rep: go('timewait', 'repeatReject'),
    rtu: go('timewait', 'repeatReject'),
    // An ended connection cannot become stale.
    stale: impossible,
    expired: go('idle'),
    disconnect: go('timewait', 'reportDisconnectCompletedLater'),
    abandon: go('timewait', 'detach'),
    packetSeen: go('timewait'),
  }),
};
