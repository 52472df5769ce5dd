/**
 * The guest is shut off, as by a power cut, while requests of all kinds are pending. Prints `ready`, and continues on SIGUSR2, which means
 * that the guest is off. Every request ends in the status that its method documents, and none takes longer than its retries.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type KernelOptionsInput,
  QpState,
  Status,
  statusName,
} from '../../../winverbs/index.js';
import { outcome } from '../../helpers/outcome.js';
import { type CmHosts, connectFrom, connectTo, ours } from './cm-guest.js';
import { SIGNALED, socketAddress, wcName } from './interop-side.js';

/** CM messages are sent three times, with a timeout of 2.1 s. Idle connections are probed every second. */
export const goneOptions: KernelOptionsInput = {
  cm: { responseTimeoutCode: 19, maxRetries: 2 },
  keepAliveMs: 1000,
};
/**
 * Time limit of the longest case: a probe, and eight tries of 2.1 s, which is the ACK timeout of the guest's request (ours is 0.54 s), plus
 * some time for a busy machine.
 */
const IN_TIME_MS = 30_000;
/** A REP is sent 16 times, each with a timeout of 4.3 s, as the guest's REQ requires. */
const REPLY_MS = { least: 16 * 4290, most: 16 * 4295 + 15_000 } as const;

export async function peerGone(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  using ourListener = hosts.listener();
  const idle = await connectTo(hosts, listener);
  const theirs = await connectFrom(hosts, ourListener);
  const ending = await connectTo(hosts, listener);
  // The guest has posted no receive, so this one stays outstanding.
  const busy = await connectTo(hosts, listener);
  const piece = hosts.side.memory(8, 0).sge();
  busy.qp.send('under way', piece, SIGNALED);
  busy.qp.send('behind it', piece, SIGNALED);
  const lost = {
    idle: outcome(idle.endpoint.notifyDisconnect()),
    'idle, of theirs': outcome(theirs.endpoint.notifyDisconnect()),
    busy: outcome(busy.endpoint.notifyDisconnect()),
  };
  const asking = hosts.endpoint();
  const asked = outcome(asking.connect(hosts.queuePair(), hosts.there, {}));
  await hosts.request(listener);
  await hosts.connect({});
  const unanswered = await ourListener.next();
  const accepted = hosts.queuePair();
  console.log('ready');
  await once(process, 'SIGUSR2');
  const accepting = acceptDead(unanswered, accepted);
  const begin = performance.now();
  const later = hosts.endpoint();
  const questioner = hosts.side.provider.createDatagramEndpoint();
  questioner.bindAddress(socketAddress(hosts.own, 0));
  const ends = {
    ...lost,
    'disconnect()': outcome(ending.endpoint.disconnect()),
    'connect() called before': asked,
    'connect() called after': outcome(later.connect(hosts.queuePair(), hosts.there, {})),
    'lookup()': outcome(questioner.lookup(hosts.there)),
  };
  const expected: Record<keyof typeof ends, readonly number[]> = {
    idle: [Status.CONNECTION_ABORTED],
    'idle, of theirs': [Status.CONNECTION_ABORTED],
    busy: [Status.CONNECTION_ABORTED],
    'disconnect()': [Status.TIMEOUT],
    'connect() called before': [Status.TIMEOUT],
    // By now, the OS may have detected that no host has the address.
    'connect() called after': [Status.TIMEOUT, Status.HOST_UNREACHABLE],
    'lookup()': [Status.TIMEOUT, Status.HOST_UNREACHABLE],
  };
  for (const name of Object.keys(ends) as (keyof typeof ends)[]) {
    const status = await ends[name];
    const ms = Math.round(performance.now() - begin);
    console.log(`${name}: ${statusName(status)} by ${ms} ms`);
    assert.ok(expected[name].includes(status), `${name} ended in ${statusName(status)}`);
    assert.ok(ms < IN_TIME_MS, `${name} took ${ms} ms`);
  }
  assert.equal(wcName((await busy.queue.any()).status), 'TIMEOUT_RETRY_ERROR');
  assert.equal(wcName((await busy.queue.any()).status), 'FLUSHED');
  for (const { qp } of [idle, theirs, ending, busy]) assert.equal(qp.state, QpState.ERROR);
  await accepting;
  // No message is sent for a connection that has already ended.
  assert.equal(await outcome(idle.endpoint.disconnect()), Status.SUCCESS);
}

/** The reply to a guest that is off is retransmitted as its request requires, and accept() reports that it was not confirmed. */
async function acceptDead(endpoint: IWVConnectEndpoint, qp: IWVConnectQueuePair): Promise<void> {
  await unconfirmed(endpoint.accept(qp, {}), qp);
  endpoint.release();
  qp.release();
}

/** The guest rejects our reply, and its REJ is lost and not retransmitted. The guest does not respond to retransmitted replies. */
export async function rejectionLost(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  // Without a queue pair, the guest's application decides about the reply.
  const theirs = await hosts.connect({ qp: false });
  const endpoint = await listener.next();
  const qp = hosts.queuePair();
  await hosts.drop('REJ', 1);
  const ending = unconfirmed(endpoint.accept(qp, {}), qp);
  await hosts.happened(theirs, 'CONNECT_RESPONSE');
  await hosts.reject(theirs, new Uint8Array(0));
  await hosts.lost('REJ', 1);
  await ending;
  await hosts.destroy(theirs);
  endpoint.release();
  qp.release();
}

/**
 * A reply without confirmation: accept() fails with IO_TIMEOUT after all retransmissions and not before, and the queue pair ends in the
 * state ERROR.
 */
async function unconfirmed(accepting: PromiseLike<unknown>, qp: IWVConnectQueuePair): Promise<void> {
  const begin = performance.now();
  const retried = ours('retransmitted.REP');
  const status = await outcome(accepting);
  const ms = Math.round(performance.now() - begin);
  console.log(`accept(): ${statusName(status)} by ${ms} ms`);
  assert.equal(status, Status.IO_TIMEOUT, `accept() ended in ${statusName(status)}`);
  assert.ok(ms >= REPLY_MS.least && ms < REPLY_MS.most, `accept() took ${ms} ms`);
  assert.equal(ours('retransmitted.REP') - retried, 15);
  assert.equal(qp.state, QpState.ERROR);
}
