/**
 * The connection state machine of IBA 1 §12.9 as data: for every state and event, what is done and which state
 * follows. `connection.ts` runs it; nothing else changes a state.
 */
import type { CmState } from './service.js';

/** What the owner asks for. */
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
/** What a peer's message says, once it was found to belong to the connection. */
const messageEvents = [
  /** The REQ of this connection once more. */
  'req',
  'mraReq',
  'mraRep',
  'rej',
  'rep',
  'rtu',
  'dreq',
  'drep',
  /** The peer uses this connection's QP in another request: it has forgotten this one. */
  'stale',
  /** Our request was answered from a QP that another connection of ours still has as its peer. */
  'staleReply',
] as const;
/** What the connection's own timer says: send again, give up, time is over. */
const timerEvents = ['timeout', 'exhausted', 'expired'] as const;

/** All events, grouped as above. */
export const cmEvents = [...localEvents, ...messageEvents, ...timerEvents] as const;
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

/** What a transition does, in order; the functions are in `connection.ts`. */
export type CmAction =
  | 'sendReq'
  | 'sendRep'
  | 'sendRtu'
  | 'sendDreq'
  | 'sendDrep'
  | 'sendMraReq'
  | 'sendMraRep'
  /** A REJ with the reason given, consumer reject if none. */
  | 'sendReject'
  /** A REJ of reason timeout, which carries our CA GUID. */
  | 'sendTimeoutReject'
  /** The message whose answer is awaited, counted against its retries. */
  | 'resend'
  /** The same message out of turn; its timer is left alone. */
  | 'repeat'
  | 'repeatRtu'
  /** The REJ that ended this connection, if one did. */
  | 'repeatReject'
  | 'extendWait'
  | 'awaitOwner'
  | 'tellReplied'
  | 'tellEstablished'
  | 'tellEstablishedLater'
  | 'tellRejected'
  | 'tellTimedOut'
  | 'tellDisconnected'
  | 'tellAnswered'
  | 'tellUnanswered'
  | 'tellAnsweredLater'
  /** The owner is told nothing any more. */
  | 'detach';

/** A cell of the table. */
export type CmTransition =
  | { readonly kind: 'go'; readonly next: CmState; readonly actions: readonly CmAction[] }
  /** A message that has no meaning here: counted, nothing else. */
  | { readonly kind: 'ignored' }
  /** The owner asked for what this state does not offer: counted, nothing else. */
  | { readonly kind: 'misused' }
  /** No such event can reach this state: counted, so that a mistake shows. */
  | { readonly kind: 'impossible' };

export type CmTransitions = Readonly<Record<CmState, Readonly<Record<CmEvent, CmTransition>>>>;

const go = (next: CmState, ...actions: CmAction[]): CmTransition => ({ kind: 'go', next, actions });
const impossible: CmTransition = { kind: 'impossible' };

/** A state's row: the cells given, and for the others what their group of events means there. */
function row(cells: Partial<Record<CmEvent, CmTransition>>): Readonly<Record<CmEvent, CmTransition>> {
  const all = [
    ...localEvents.map((event) => [event, { kind: 'misused' }]),
    ...messageEvents.map((event) => [event, { kind: 'ignored' }]),
    ['staleReply', impossible],
    ...timerEvents.map((event) => [event, impossible]),
    ...Object.entries(cells),
  ] as [CmEvent, CmTransition][];
  return Object.fromEntries(all) as Record<CmEvent, CmTransition>;
}

/** Before its first message and after its last, a connection is in no table: no message can find it. */
const unreachable = Object.fromEntries(messageEvents.map((event) => [event, impossible]));

/** While the REQ waits for its answer; an MRA only lengthens the wait. */
const requesting = (state: 'reqSent' | 'mraReqReceived') =>
  ({
    rep: go('repReceived', 'tellReplied'),
    rej: go('timewait', 'tellRejected'),
    staleReply: go('timewait', 'sendReject', 'tellRejected'),
    timeout: go(state, 'resend'),
    exhausted: go('timewait', 'sendTimeoutReject', 'tellTimedOut'),
    reject: go('timewait', 'sendTimeoutReject'),
    abandon: go('timewait', 'detach', 'sendTimeoutReject'),
    disconnect: go('timewait', 'sendTimeoutReject', 'tellAnsweredLater'),
  }) as const;

/** While the REP waits for its answer. */
const replying = (state: 'repSent' | 'mraRepReceived') =>
  ({
    req: go(state, 'repeat'),
    rtu: go('established', 'tellEstablished'),
    packetSeen: go('established', 'tellEstablishedLater'),
    rej: go('timewait', 'tellRejected'),
    dreq: go('timewait', 'sendDrep', 'tellDisconnected'),
    stale: go('timewait', 'tellRejected'),
    timeout: go(state, 'resend'),
    exhausted: go('timewait', 'sendTimeoutReject', 'tellTimedOut'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'tellAnsweredLater'),
  }) as const;

export const transitions: CmTransitions = {
  idle: row({
    ...unreachable,
    connect: go('reqSent', 'sendReq'),
    admit: go('reqReceived', 'awaitOwner'),
    disconnect: go('idle', 'tellAnsweredLater'),
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
    // The owner is still looking at the reply.
    rep: go('repReceived', 'sendMraRep'),
    rej: go('timewait', 'tellRejected'),
    dreq: go('timewait', 'sendDrep', 'tellDisconnected'),
    stale: go('timewait', 'sendReject', 'tellRejected'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'tellAnsweredLater'),
  }),
  reqReceived: row({
    accept: go('repSent', 'sendRep'),
    req: go('reqReceived', 'sendMraReq', 'awaitOwner'),
    rej: go('timewait', 'tellRejected'),
    stale: go('timewait', 'tellRejected'),
    // The peer's retries are spent by now, and its REJ was lost.
    expired: go('timewait', 'sendTimeoutReject', 'tellTimedOut'),
    reject: go('timewait', 'sendReject'),
    abandon: go('timewait', 'detach', 'sendReject'),
    disconnect: go('timewait', 'sendReject', 'tellAnsweredLater'),
  }),
  repSent: row({
    ...replying('repSent'),
    mraRep: go('mraRepReceived', 'extendWait'),
  }),
  mraRepReceived: row({
    ...replying('mraRepReceived'),
  }),
  established: row({
    // The peer has not seen our RTU.
    rep: go('established', 'repeatRtu'),
    rej: go('timewait', 'tellDisconnected'),
    dreq: go('timewait', 'sendDrep', 'tellDisconnected'),
    stale: go('dreqSent', 'sendDreq', 'tellDisconnected', 'detach'),
    disconnect: go('dreqSent', 'sendDreq'),
    abandon: go('dreqSent', 'detach', 'sendDreq'),
    packetSeen: go('established'),
  }),
  dreqSent: row({
    drep: go('timewait', 'tellAnswered'),
    // Both sides disconnect at once: both succeed.
    dreq: go('timewait', 'sendDrep', 'tellAnswered'),
    rej: go('timewait', 'tellAnswered'),
    // The peer has forgotten the connection and may never send a DREP: its next request must not wait for our retries.
    stale: go('timewait', 'tellAnswered'),
    timeout: go('dreqSent', 'resend'),
    exhausted: go('timewait', 'tellUnanswered'),
    abandon: go('dreqSent', 'detach'),
    packetSeen: go('dreqSent'),
  }),
  timewait: row({
    dreq: go('timewait', 'sendDrep'),
    req: go('timewait', 'repeatReject'),
    rep: go('timewait', 'repeatReject'),
    rtu: go('timewait', 'repeatReject'),
    // No longer among the live ones, so it cannot be stale.
    stale: impossible,
    expired: go('idle'),
    disconnect: go('timewait', 'tellAnsweredLater'),
    abandon: go('timewait', 'detach'),
    packetSeen: go('timewait'),
  }),
};
