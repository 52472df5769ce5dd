/** Behaviours in which both sides disconnect at the same time, or one side no longer responds. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Status } from '../../../winverbs/index.js';
import { outcome } from '../../helpers/outcome.js';
import { type CmHosts, type Connected, connectFrom, connectTo, end, endThere, ours } from './cm-guest.js';

/** Required number of crossing DREQs. */
const CROSSINGS = 20;
const TRIES = 300;
/** Our response timeout, code 20. */
const RESPONSE_TIMEOUT_MS = 4295;
/** The number of connections, one after another. */
const SEQUENCE = 200;
/**
 * The guest's DREQ is delayed by 20 ms. Ours is sent at varying times within that delay, because the guest needs some time to begin.
 */
const SWEEP_MS = 20;

/** Both sides disconnect, this one a little later. Returns whether the DREQs crossed. */
async function disconnectBoth(
  hosts: CmHosts,
  { endpoint, qp, theirs }: Connected,
  laterMs: number,
): Promise<boolean> {
  const before = { heard: ours('received.DREQ'), answered: ours('received.DREP') };
  const reported = outcome(endpoint.notifyDisconnect());
  const theirEnd = hosts.disconnect(theirs);
  await pause(laterMs);
  const begin = performance.now();
  const status = await outcome(endpoint.disconnect());
  const ms = performance.now() - begin;
  assert.ok(
    ms < RESPONSE_TIMEOUT_MS,
    `our disconnect() took ${ms} ms, as if its DREQ had been retransmitted`,
  );
  await theirEnd;
  assert.equal(status, Status.SUCCESS, 'our disconnect()');
  assert.equal(await reported, Status.CONNECTION_DISCONNECTED, 'our notifyDisconnect()');
  await hosts.happened(theirs, 'DISCONNECTED');
  const crossed = ours('received.DREQ') > before.heard && ours('received.DREP') === before.answered;
  await hosts.destroy(theirs);
  endpoint.release();
  qp.release();
  return crossed;
}

async function untilCrossed(make: () => Promise<Connected>, hosts: CmHosts): Promise<void> {
  let crossed = 0;
  let tries = 0;
  for (; crossed < CROSSINGS && tries < TRIES; tries += 1) {
    if (await disconnectBoth(hosts, await make(), tries % SWEEP_MS)) crossed += 1;
  }
  console.log(`${crossed} of ${tries} pairs of DREQs crossed`);
  assert.equal(crossed, CROSSINGS);
}

/** The guest connects repeatedly, and the sides alternate in ending the connections. */
export async function sequenceOfTheirs(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  for (let i = 0; i < SEQUENCE; i += 1) {
    const connected = await connectFrom(hosts, listener);
    await (i % 2 === 0 ? end : endThere)(hosts, connected);
  }
}

export async function crossingOfOurs(hosts: CmHosts): Promise<void> {
  const listener = await hosts.listen();
  await untilCrossed(() => connectTo(hosts, listener), hosts);
}

export async function crossingOfTheirs(hosts: CmHosts): Promise<void> {
  using listener = hosts.listener();
  await untilCrossed(() => connectFrom(hosts, listener), hosts);
}
