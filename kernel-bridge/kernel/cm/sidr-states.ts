/**
 * The SIDR state machines of IBA 1 §12.11 as data, active and passive in one table: for every state and event, the
 * actions and the next state. `sidr-exchange.ts` runs it.
 */
import type { SidrState } from './sidr-service.js';

export const sidrStates = [
  'idle',
  'reqSent',
  'reqReceived',
  'answered',
  'over',
] as const satisfies readonly SidrState[];

/** Calls of the owner. */
const localEvents = ['lookup', 'admit', 'accept', 'reject', 'abandon'] as const;
/** Messages of the peer that belong to the exchange. */
const messageEvents = [
  /** The same SIDR_REQ again. */
  'req',
  'rep',
  /** The peer uses its request id for another request: it has forgotten this one. */
  'stale',
] as const;
/** The exchange's own timer: send again, give up, time is over. */
const timerEvents = ['timeout', 'exhausted', 'expired'] as const;

/** All events, grouped as above. */
export const sidrEvents = [...localEvents, ...messageEvents, ...timerEvents] as const;
export type SidrEvent = (typeof sidrEvents)[number];

/** The actions of a transition, in order; the functions are in `sidr-exchange.ts`. */
export type SidrAction =
  | 'sendReq'
  | 'resend'
  | 'sendAccept'
  | 'sendReject'
  /** The answer again. */
  | 'repeat'
  /** Waits for the owner as long as the peer can wait. */
  | 'awaitOwner'
  /** Waits for the peer's last repetition. */
  | 'awaitPeer'
  | 'tellAnswered'
  | 'tellTimedOut'
  /** The owner gets no more events. */
  | 'detach';

/** A cell of the table; the kinds are those of the connection's table. */
export type SidrTransition =
  | { readonly kind: 'go'; readonly next: SidrState; readonly actions: readonly SidrAction[] }
  | { readonly kind: 'ignored' | 'misused' | 'impossible' };

type Row = Readonly<Record<SidrEvent, SidrTransition>>;

const go = (next: SidrState, ...actions: SidrAction[]): SidrTransition => ({ kind: 'go', next, actions });

/** A state's row: the given cells; otherwise a call of the owner is misused, and nothing else can happen. */
function row(cells: Partial<Record<SidrEvent, SidrTransition>>): Row {
  const all: [SidrEvent, SidrTransition][] = [
    ...localEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'misused' }]),
    ...messageEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'impossible' }]),
    ...timerEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'impossible' }]),
    ...(Object.entries(cells) as [SidrEvent, SidrTransition][]),
  ];
  return Object.fromEntries(all) as Record<SidrEvent, SidrTransition>;
}

export const sidrTransitions: Readonly<Record<SidrState, Row>> = {
  idle: row({
    lookup: go('reqSent', 'sendReq'),
    admit: go('reqReceived', 'awaitOwner'),
    abandon: go('over', 'detach'),
  }),
  reqSent: row({
    rep: go('over', 'tellAnswered'),
    timeout: go('reqSent', 'resend'),
    exhausted: go('over', 'tellTimedOut'),
    abandon: go('over', 'detach'),
  }),
  reqReceived: row({
    accept: go('answered', 'sendAccept', 'awaitPeer'),
    reject: go('answered', 'sendReject', 'awaitPeer'),
    abandon: go('answered', 'detach', 'sendReject', 'awaitPeer'),
    // SIDR has no message that asks for patience; a repetition only shows that the peer still waits.
    req: go('reqReceived', 'awaitOwner'),
    stale: go('over', 'tellTimedOut'),
    expired: go('over', 'tellTimedOut'),
  }),
  answered: row({
    req: go('answered', 'repeat'),
    stale: go('over'),
    expired: go('over'),
    abandon: go('answered', 'detach'),
  }),
  over: row({ abandon: go('over', 'detach') }),
};
