/**
 * Lost or duplicated messages of connection management. The side that waits for the response retransmits each, and a retransmitted message
 * gets another response. `ours` are dropped by this side's fault layer, `theirs` by tc in the guest.
 */
import assert from 'node:assert/strict';
import { type KernelOptionsInput, Status, WvDatagram } from '../../../winverbs/index.js';
import { outcome } from '../../helpers/outcome.js';
import {
  type CmHosts,
  connectFrom,
  connectTo,
  end,
  endThere,
  Message,
  type MessageName,
  ours,
  step,
  WE_ANSWER,
} from './cm-guest.js';
import { socketAddress } from './interop-side.js';

/** Number of times that each message is lost. */
const LOST = 2;
/** Our response timeout, and the guest's if we determine it: 0.54 s. */
const RESPONSE_TIMEOUT = 17;
/** Ended connections respond as long as the guest may retransmit its request. It waits 6.1 s for the response to a REQ or DREQ. */
const TIMEWAIT_MS = 20_000;

const cm = { responseTimeoutCode: RESPONSE_TIMEOUT, timewaitMs: TIMEWAIT_MS } as const;
const dropping = (count: number, ...messages: MessageName[]): KernelOptionsInput => ({
  cm,
  faults: { dropMads: Object.fromEntries(messages.map((name) => [Message[name], count])) },
});

/** Options for the behaviours of this file. */
export const lossOptions = {
  oursAsClient: dropping(LOST, 'REQ', 'RTU', 'DREQ', 'DREP', 'REJ', 'SIDR_REQ'),
  // The guest's timeouts are seconds long, so one loss must suffice.
  oursAsServer: dropping(1, 'REP', 'DREQ', 'DREP', 'REJ', 'SIDR_REP'),
  // The guest responds to a retransmitted DREQ for 4.3 s.
  theirs: { cm, rc: { ackTimeoutCode: 20 } },
  // Here the guest's own REQ determines the timeout: 0.54 s, because it assumes a packet lifetime of 0.27 s on RoCE (Linux 6.3; 1.1 s
  // before).
  theirsAsServer: { cm: { ...cm, responseTimeoutCode: 14 } },
  twice: { cm, faults: { duplicate: 1 } },
} satisfies Record<string, KernelOptionsInput>;

const atLeast = (count: number, least: number, what: string): void =>
  assert.ok(count >= least, `${what}: ${count} instead of ${least} at least`);

/** We connect, and our messages are lost. */
export async function oursLostAsClient(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  await step('REQ, RTU and DREQ are lost', async () => {
    const retriedReps = await hosts.counter('cm_tx_retries', 'REP');
    await end(hosts, await connectTo(hosts, listener));
    for (const name of ['REQ', 'RTU', 'DREQ']) atLeast(ours(`retransmitted.${name}`), LOST, name);
    const reps = (await hosts.counter('cm_tx_retries', 'REP')) - retriedReps;
    atLeast(reps, LOST, "the guest's REP, for want of an RTU");
  });
  await step('DREP is lost', async () => {
    const before = await hosts.counter('cm_tx_retries', 'DREQ');
    await endThere(hosts, await connectTo(hosts, listener));
    atLeast((await hosts.counter('cm_tx_retries', 'DREQ')) - before, LOST, "the guest's DREQ");
    atLeast(ours('sent.DREP'), LOST + 1, 'our DREP');
  });
  await step('REJ of the reply is lost', async () => {
    const endpoint = hosts.endpoint();
    const qp = hosts.queuePair();
    const connecting = endpoint.connect(qp, hosts.there, {});
    const { id } = await hosts.request(listener);
    await hosts.accept(id);
    await connecting;
    endpoint.reject();
    await hosts.happened(id, 'REJECTED');
    atLeast(ours('retransmitted.REJ'), LOST, 'REJ');
    await hosts.destroy(id);
    endpoint.release();
    qp.release();
  });
  await step('SIDR_REQ is lost', async () => {
    await hosts.listen('udp').then((service) => lookedUp(hosts, service));
    atLeast(ours('retransmitted.SIDR_REQ'), LOST, 'SIDR_REQ');
  });
}

/** We look up a service of the guest. */
async function lookedUp(hosts: CmHosts, service: number): Promise<void> {
  const endpoint = hosts.side.provider.createDatagramEndpoint();
  endpoint.bindAddress(socketAddress(hosts.own, 0));
  const looking = endpoint.lookup(hosts.there);
  await hosts.accept((await hosts.request(service)).id, { qp: false });
  assert.equal((await looking).qpn, hosts.number);
  endpoint.release();
}

/** We connect, and the guest's replies are lost. */
export async function theirsLostAsClient(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  await step('REP is lost', async () => {
    await hosts.drop('REP', LOST);
    const making = connectTo(hosts, listener);
    await hosts.lost('REP', LOST);
    await end(hosts, await making);
  });
  await step('DREQ is lost', async () => {
    const made = await connectTo(hosts, listener);
    await hosts.drop('DREQ', LOST);
    const ending = endThere(hosts, made);
    await hosts.lost('DREQ', LOST);
    await ending;
  });
  await step('DREP is lost', async () => {
    const made = await connectTo(hosts, listener);
    const before = ours('retransmitted.DREQ');
    await hosts.drop('DREP', LOST);
    const ending = end(hosts, made);
    await hosts.lost('DREP', LOST);
    await ending;
    atLeast(ours('retransmitted.DREQ') - before, LOST, 'our DREQ');
  });
  await step('REJ of the request is lost', async () => {
    while (!(await rejectedTwice(hosts, listener)));
  });
}

/** A rejection is lost. Returns false if the guest was so slow that it requested more time, which would be over a minute. */
async function rejectedTwice(hosts: CmHosts, listener: number): Promise<boolean> {
  await hosts.drop('REJ', 1);
  const endpoint = hosts.endpoint();
  const waits = ours('received.MRA');
  const connecting = outcome(endpoint.connect(hosts.queuePair(), hosts.there, {}));
  await hosts.reject((await hosts.request(listener)).id, new Uint8Array(0));
  const inTime = ours('received.MRA') === waits;
  await hosts.lost('REJ', 1);
  if (inTime) {
    // For the guest, a retransmitted REQ after its rejection is a new request.
    await hosts.reject((await hosts.request(listener)).id, new Uint8Array(0));
    assert.equal(await connecting, Status.CONNECTION_REFUSED);
  }
  endpoint.release();
  return inTime;
}

/** A listener of ours for lookups, and the queue pair that it returns. */
class Service implements Disposable {
  private readonly listener;
  readonly qp;

  constructor(private readonly hosts: CmHosts) {
    const { provider, pd } = hosts.side;
    this.listener = provider.createDatagramEndpoint();
    this.listener.bindAddress(socketAddress(hosts.own, WE_ANSWER));
    this.listener.listen(4);
    const { cq } = hosts.side.queue(4);
    const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
    this.qp = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
    this.qp.start(WvDatagram.QKEY);
  }

  async answer(): Promise<void> {
    const endpoint = this.hosts.side.provider.createDatagramEndpoint();
    await this.listener.getRequest(endpoint);
    await endpoint.accept({ qp: this.qp });
    endpoint.release();
  }

  [Symbol.dispose](): void {
    this.qp.release();
    this.listener.release();
  }
}

/** The guest connects, and our replies are lost. The guest's timeouts are seconds long, so all replies are lost in the same run. */
export async function oursLostAsServer(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  using service = new Service(hosts);
  const made = await connectFrom(hosts, listener);
  await step('REP is lost', async () => atLeast(ours('retransmitted.REP'), 1, 'REP'));

  const rejected = await hosts.connect({});
  (await listener.next()).reject();
  const looking = await hosts.connect({ ps: 'udp', port: WE_ANSWER });
  await service.answer();
  const retriedDreqs = await hosts.counter('cm_tx_retries', 'DREQ');
  const ending = endThere(hosts, made);
  await step('SIDR_REP is lost', async () => {
    const { qpn } = await hosts.happened(looking, 'ESTABLISHED');
    assert.equal(qpn, service.qp.qpn);
    atLeast(ours('retransmitted.SIDR_REP'), 1, 'SIDR_REP');
  });
  await step('REJ of the request is lost', async () => {
    await hosts.happened(rejected, 'REJECTED');
    atLeast(ours('retransmitted.REJ'), 1, 'REJ');
  });
  await step('DREP is lost', async () => {
    await ending;
    atLeast((await hosts.counter('cm_tx_retries', 'DREQ')) - retriedDreqs, 1, "the guest's DREQ");
    atLeast(ours('sent.DREP'), 2, 'our DREP');
  });
  await step('DREQ is lost', async () => {
    await end(hosts, await connectFrom(hosts, listener));
    atLeast(ours('retransmitted.DREQ'), 1, 'DREQ');
  });
}

/** The guest connects, and its messages are lost. Its timeouts are seconds long, so all messages are lost in the same run. */
export async function theirsLostAsServer(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  using service = new Service(hosts);
  const made = await connectFrom(hosts, listener);
  await step('DREP is lost', async () => {
    const other = await connectFrom(hosts, listener);
    const before = ours('retransmitted.DREQ');
    await hosts.drop('DREP', LOST);
    const ending = end(hosts, other);
    await hosts.lost('DREP', LOST);
    await ending;
    atLeast(ours('retransmitted.DREQ') - before, LOST, 'our DREQ');
  });
  await hosts.drop('RTU', 1);
  const [theirs, endpoint, qp] = [await hosts.connect({}), await listener.next(), hosts.queuePair()];
  const accepting = endpoint.accept(qp, {});
  await hosts.happened(theirs, 'ESTABLISHED');
  await hosts.lost('RTU', 1);
  for (const name of ['REQ', 'SIDR_REQ', 'DREQ'] as const) await hosts.drop(name, 1);
  const requested = await hosts.connect({});
  const looking = await hosts.connect({ ps: 'udp', port: WE_ANSWER });
  const ending = endThere(hosts, made);
  for (const name of ['REQ', 'SIDR_REQ', 'DREQ'] as const) await hosts.lost(name, 1);
  await step('RTU is lost', async () => {
    await accepting;
    atLeast(ours('retransmitted.REP'), 1, 'our REP');
    await end(hosts, { endpoint, qp, theirs });
  });
  await step('SIDR_REQ is lost', async () => {
    await service.answer();
    assert.equal((await hosts.happened(looking, 'ESTABLISHED')).qpn, service.qp.qpn);
  });
  await step('REQ is lost', async () => {
    const late = await listener.next();
    const lateQp = hosts.queuePair();
    const accepted = late.accept(lateQp, {});
    await hosts.happened(requested, 'ESTABLISHED');
    await accepted;
    await end(hosts, { endpoint: late, qp: lateQp, theirs: requested });
  });
  await step('DREQ is lost', () => ending);
}

/** Each of our messages arrives twice. The guest recognizes each duplicate. */
export async function oursTwice(hosts: CmHosts): Promise<void> {
  const before = await Promise.all(DUPLICATES.map((name) => hosts.counter('cm_rx_duplicates', name)));
  await everyMessage(hosts);
  for (const [index, name] of DUPLICATES.entries()) {
    atLeast((await hosts.counter('cm_rx_duplicates', name)) - before[index]!, 1, `${name} twice`);
  }
}

/** Each message of the guest arrives twice. */
export async function theirsTwice(hosts: CmHosts): Promise<void> {
  await everyMessage(hosts);
  for (const name of ['REQ', 'REP', 'RTU', 'DREQ', 'DREP']) {
    atLeast(ours(`received.${name}`), 2 * EACH, `received.${name}`);
  }
}

/** Messages whose duplicates ib_cm counts. */
const DUPLICATES = ['REQ', 'REP', 'DREQ'] as const;
/** Messages of each kind that either side sends in {@link everyMessage}. */
const EACH = 2;

/** A connection in each direction, ended by either side. Each request must be reported once. */
async function everyMessage(hosts: CmHosts): Promise<void> {
  const there = await hosts.listen();
  using here = hosts.listener();
  await end(hosts, await connectTo(hosts, there));
  await endThere(hosts, await connectFrom(hosts, here));
  await end(hosts, await connectFrom(hosts, here));
  await endThere(hosts, await connectTo(hosts, there));
}
