/**
 * A model of connections between processes. It runs random concurrent sessions, each between two threads (the main thread of a process or
 * one of its Workers). The status and order of each request and all received data must match the model.
 */
import fc from 'fast-check';
import { connectTo, type Peer, PeerError, type PeerLink } from './peer/peer.js';
import type { Completions, Layer, RequestResult } from './peer/protocol.js';

/** A thread of a process. */
export interface Place {
  readonly peer: Peer;
  readonly worker: string | undefined;
}

const SIDES = [0, 1] as const;
type SideIndex = (typeof SIDES)[number];

const step = fc.record({
  op: fc.constantFrom('receive', 'receive', 'send', 'send', 'settle', 'poll'),
  side: fc.constantFrom(...SIDES),
  count: fc.integer({ min: 1, max: 4 }),
});

const session = fc.record({
  layer: fc.constantFrom<Layer>('nd', 'wv'),
  /** An index, modulo the number of threads. */
  active: fc.nat(99),
  passive: fc.nat(99),
  steps: fc.array(step, { maxLength: 14 }),
  /** How the session ends: by one side, by both at the same time, by releasing everything, or without an established connection. */
  end: fc.constantFrom('one', 'one', 'both', 'release', 'refused'),
  ender: fc.constantFrom(...SIDES),
});

/** Sessions that run at the same time. */
export const rounds = fc.array(session, { minLength: 2, maxLength: 6 });
export type Session = typeof session extends fc.Arbitrary<infer T> ? T : never;

const MOST_OUTSTANDING = 8;
const flushed: Record<Layer, string> = { nd: 'CANCELED', nd2: 'CANCELED', wv: 'FLUSHED' };
/** The status of NotifyDisconnect when the peer has ended the connection. */
const endByPeer: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_DISCONNECTED' };
const endByBoth: Record<Layer, readonly string[]> = {
  nd: ['SUCCESS', 'CANCELED'],
  nd2: ['SUCCESS', 'CONNECTION_DISCONNECTED'],
  wv: ['CONNECTION_DISCONNECTED'],
};

/** The stack violated the model. */
export class ProcessModelError extends Error {}

function fail(text: string): never {
  throw new ProcessModelError(text);
}

/** One side of a connection: its posted and completed requests. */
class Side {
  /** Labels of outstanding requests, in order. */
  readonly sends: string[] = [];
  readonly receives: string[] = [];
  readonly incoming: string[] = [];
  sent = 0;
  sendsDone = 0;
  received = 0;
  private receivesPosted = 0;
  private sendsPosted = 0;
  private readonly failed = { sends: false, receives: false };
  over = false;

  constructor(
    readonly link: PeerLink,
    private readonly layer: Layer,
  ) {}

  async receive(count: number): Promise<void> {
    const n = Math.min(count, MOST_OUTSTANDING - this.receives.length);
    if (n === 0) return;
    for (let i = 0; i < n; i++) this.receives.push(`receive ${this.receivesPosted++}`);
    await this.link.receive(n);
  }

  /** Sends at most as many messages as the peer has Receives. */
  async send(count: number, to: Side): Promise<void> {
    const room = Math.min(MOST_OUTSTANDING - this.sends.length, to.receivesPosted - this.sent);
    const texts = Array.from({ length: Math.min(count, room) }, (_, i) => `message ${this.sent + i}`);
    if (texts.length === 0) return;
    for (const text of texts) {
      this.sends.push(`send ${this.sendsPosted++}`);
      to.incoming.push(text);
    }
    this.sent += texts.length;
    await this.link.send(...texts);
  }

  /** Checks completions: in order, each once, and all SUCCESS while the connection exists. */
  take({ sends, receives }: Completions): void {
    for (const result of sends) if (this.took('sends', result)) this.sendsDone++;
    for (const result of receives) {
      if (!this.took('receives', result)) continue;
      const expected = this.incoming[this.received++];
      if (result.text !== expected) fail(`Expected '${expected}'; got '${result.text}'.`);
    }
  }

  private took(which: 'sends' | 'receives', result: RequestResult): boolean {
    const expected = this[which].shift();
    if (result.label !== expected) fail(`'${result.label}' completed instead of '${expected}'.`);
    if (result.status === 'SUCCESS') {
      if (this.failed[which]) fail(`${result.label} succeeded after an earlier one was flushed.`);
      return true;
    }
    if (!this.over) fail(`${result.label} ended in ${result.status} during the connection.`);
    if (result.status !== flushed[this.layer]) fail(`${result.label} ended in ${result.status}.`);
    this.failed[which] = true;
    return false;
  }

  /** Waits for all completions that must arrive while the connection exists. */
  async settle(): Promise<void> {
    this.take(await this.link.results(this.sends.length, this.incoming.length - this.received));
  }

  /** Waits for all completions. Afterwards, no request is outstanding. */
  async flush(): Promise<void> {
    this.take(await this.link.results(this.sends.length, this.receives.length));
  }
}

/** Runs one session from its connection to the release of its objects. */
async function runSession(places: readonly Place[], plan: Session): Promise<void> {
  const { layer, ender } = plan;
  const from = places[plan.active % places.length]!;
  const at = places[plan.passive % places.length]!;
  const listener = await at.peer.listen(
    layer,
    '127.0.0.1',
    at.worker === undefined ? {} : { worker: at.worker },
  );
  if (plan.end === 'refused') {
    await listener.release();
    const refused = await connectTo(
      listener,
      from.peer,
      from.worker === undefined ? {} : { worker: from.worker },
    ).then(
      () => 'SUCCESS',
      (error: unknown) => (error instanceof PeerError ? (error.status ?? error.message) : String(error)),
    );
    // Either side may be the first to report the failure, as a missing listener or an unused port.
    if (!/CONNECTION_REFUSED|does not have 'listener/.test(refused))
      fail(`A connect without a listener ended in ${refused}.`);
    return;
  }
  const links = await connectTo(
    listener,
    from.peer,
    from.worker === undefined ? {} : { worker: from.worker },
  );
  await listener.release();
  const [active, passive] = links.map((link) => new Side(link, layer)) as [Side, Side];
  const sides = [active, passive] as const;
  const ends = sides.map(({ link }) => link.notifyDisconnect());
  for (const end of ends) end.catch(() => {});
  for (const { op, side, count } of plan.steps) {
    const own = sides[side];
    if (op === 'receive') await own.receive(count);
    else if (op === 'send') await own.send(count, sides[other(side)]);
    else if (op === 'poll') own.take(await own.link.poll());
    else await own.settle();
  }
  await finish(plan, sides, ends);
  for (const side of SIDES) {
    const [own, peer] = [sides[side], sides[other(side)]];
    // Acknowledged messages have arrived, no matter which side ended the connection.
    if (!(plan.end === 'release' && other(side) === ender) && own.sendsDone > peer.received) {
      fail(`${own.sendsDone} sends succeeded, and ${peer.received} messages were received.`);
    }
  }
}

const other = (side: SideIndex): SideIndex => (side === 0 ? 1 : 0);

async function finish(plan: Session, sides: readonly [Side, Side], ends: Promise<string>[]): Promise<void> {
  const { layer, ender, end } = plan;
  const [own, peer] = [sides[ender], sides[other(ender)]];
  for (const side of sides) side.over = true;
  if (end === 'release') {
    await own.link.release();
    await endedIn(ends[other(ender)]!, [endByPeer[layer]]);
    await peer.flush();
    await peer.link.release();
    return;
  }
  const disconnect = async (side: Side): Promise<void> => {
    // All requests of the disconnecting side have completed when the call returns.
    side.take(await side.link.startDisconnect());
    if (side.sends.length + side.receives.length > 0) fail('Disconnect did not flush all requests.');
    const status = await side.link.disconnected();
    if (status !== 'SUCCESS') fail(`Disconnect ended in ${status}.`);
  };
  if (end === 'both') {
    await Promise.all(sides.map((side) => disconnect(side)));
    for (const one of ends) await endedIn(one, endByBoth[layer]);
  } else {
    await disconnect(own);
    await endedIn(ends[other(ender)]!, [endByPeer[layer]]);
    await peer.flush();
    await disconnect(peer);
    await endedIn(ends[ender]!, endByBoth[layer]);
  }
  for (const { link } of sides) await link.release();
}

async function endedIn(end: Promise<string>, allowed: readonly string[]): Promise<void> {
  const status = await end;
  if (!allowed.includes(status)) fail(`NotifyDisconnect must end in ${allowed.join(' or ')}; got ${status}.`);
}

/** Runs rounds until the time has elapsed. Returns the number of sessions. Throws with the seed if one fails. */
export async function runRounds(
  places: readonly Place[],
  seed: number,
  milliseconds: number,
): Promise<number> {
  const began = performance.now();
  let done = 0;
  for (let next = seed; performance.now() - began < milliseconds; next++) {
    await fc.assert(
      fc.asyncProperty(rounds, async (sessions) => {
        const outcomes = await Promise.allSettled(sessions.map((one) => runSession(places, one)));
        for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
        done += sessions.length;
      }),
      { seed: next, numRuns: 4, endOnFailure: true },
    );
  }
  return done;
}
