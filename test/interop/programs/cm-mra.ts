/**
 * MRA (IBA 1 §12.6.8): a side with a slow application requests more time from the other. Linux sends an MRA for a retransmitted message and
 * requests 68 s, and so does this package.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { KernelOptionsInput } from '../../../winverbs/index.js';
import { type CmHosts, connectTo, end, ours, step } from './cm-guest.js';

/** Three tries with a timeout of 0.54 s, for us and for the guest's REP. Without an MRA, either side would give up after 1.6 s. */
export const mraOptions = {
  client: { cm: { responseTimeoutCode: 17, maxRetries: 2 } },
} satisfies Record<string, KernelOptionsInput>;
/** Longer than these 1.6 s. */
const BEYOND_CLIENT_MS = 2500;
/** Twice the guest's timeout for the response to a REQ (6.1 s). Ours for the response to a REP is 4.3 s. */
const BEYOND_SERVER_MS = 13_000;

/** Waits until our connection management has counted an event. */
async function counted(counter: string): Promise<void> {
  while (ours(counter) === 0) await pause(10);
}

/** We connect. */
export async function mraAsClient(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  await step('the guest takes its time for the request', async () => {
    const endpoint = hosts.endpoint();
    const qp = hosts.queuePair();
    const connecting = endpoint.connect(qp, hosts.there, {});
    const { id } = await hosts.request(listener);
    await counted('received.MRA');
    const sent = ours('retransmitted.REQ');
    // Nothing must be sent in this time.
    await pause(BEYOND_CLIENT_MS);
    assert.equal(ours('retransmitted.REQ'), sent, 'REQs after the MRA');
    await hosts.accept(id);
    await connecting;
    await endpoint.accept(null, {});
    await hosts.happened(id, 'ESTABLISHED');
    await end(hosts, { endpoint, qp, theirs: id });
  });
  await step('we take our time for the reply', async () => {
    const endpoint = hosts.endpoint();
    const qp = hosts.queuePair();
    const connecting = endpoint.connect(qp, hosts.there, {});
    const { id } = await hosts.request(listener);
    const before = { heard: await hosts.counter('cm_rx_msgs', 'MRA'), sent: ours('sent.MRA') };
    await hosts.accept(id);
    await connecting;
    await counted('sent.MRA');
    await pause(BEYOND_CLIENT_MS);
    assert.equal(ours('sent.MRA') - before.sent, 1, 'our MRAs: the REP came again once');
    assert.equal((await hosts.counter('cm_rx_msgs', 'MRA')) - before.heard, 1, 'MRAs that the guest heard');
    await endpoint.accept(null, {});
    await hosts.happened(id, 'ESTABLISHED');
    await end(hosts, { endpoint, qp, theirs: id });
  });
  // Afterwards, everything works as usual.
  await end(hosts, await connectTo(hosts, listener));
}

/** The guest connects. Our application is slow for one request, and the guest's is slow for the reply to the other. */
export async function mraAsServer(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  const heard = await hosts.counter('cm_rx_msgs', 'MRA');
  const patient = await hosts.connect({});
  const late = await listener.next();
  const slow = await hosts.connect({ qp: false });
  const accepted = await listener.next();
  const qp = hosts.queuePair();
  const accepting = accepted.accept(qp, {});
  await pause(BEYOND_SERVER_MS);
  await step('the guest takes its time for the reply', async () => {
    assert.equal(ours('retransmitted.REP'), 1, 'REPs retransmitted');
    assert.equal(ours('received.MRA'), 1, 'MRAs that we heard');
    await hosts.happened(slow, 'CONNECT_RESPONSE');
    await hosts.establish(slow);
    await accepting;
    await end(hosts, { endpoint: accepted, qp, theirs: slow });
  });
  await step('we take our time for the request', async () => {
    assert.equal(ours('sent.MRA'), 1, 'our MRAs: the REQ came again once');
    assert.equal((await hosts.counter('cm_rx_msgs', 'MRA')) - heard, 1, 'MRAs that the guest heard');
    const lateQp = hosts.queuePair();
    const lateAccepting = late.accept(lateQp, {});
    await hosts.happened(patient, 'ESTABLISHED');
    await lateAccepting;
    await end(hosts, { endpoint: late, qp: lateQp, theirs: patient });
  });
}
