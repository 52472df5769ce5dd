/** Posting, polling and their native calls leave nothing on the heap, with the real HCA. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { HostV1, newResult } from '../../nd/cli/sides/v1-side.js';
import { HostV2 } from '../../nd/cli/sides/v2-side.js';
import { Nd2OpFlag, type Nd2Result, type NdResult } from '../../nd/index.js';
import { type WvCompletion, WvSend } from '../../winverbs/index.js';
import { bytesPerRound } from '../helpers/allocates.js';
import { connectedPair } from '../helpers/loopback.js';

/** Returns the bytes that one of `operations` in a round leaves on the heap. */
function bytesPerOperation(round: () => void, operations: number): number {
  return bytesPerRound(round, operations, 2500) / operations;
}

/** Polls until `n` completions have arrived. `poll` returns the number of each call. */
function until(n: number, poll: () => number): void {
  for (let had = 0; had < n; ) had += poll();
}

function nothing(perOperation: number): void {
  assert.ok(perOperation < 1, `${perOperation.toFixed(2)} bytes are left by an operation`);
}

test('WinVerbs: a batch of every kind of request', async () => {
  const { a, b, release } = await connectedPair();
  const context = {};
  const small = [{ region: a.region, offset: 0, length: 8 }];
  const room = [{ region: b.region, offset: 4096, length: 64 }];
  const atA: WvCompletion[] = [];
  const atB: WvCompletion[] = [];
  const pollA = () => a.cq.poll(atA, 16);
  const pollB = () => b.cq.poll(atB, 16);
  const round = () => {
    b.qp.postReceive(context, room);
    b.qp.postReceive(context, room);
    a.qp.startBatch();
    a.qp.write(context, small, 0, b.remote, 256);
    a.qp.read(context, small, 0, b.remote, 512);
    a.qp.send(context, small, WvSend.INLINE);
    a.qp.send(context, small, WvSend.SIGNALED);
    a.qp.submitBatch();
    until(1, pollA);
    until(2, pollB);
    if (atA[0]!.status + atB[0]!.status + atB[1]!.status !== 0) throw new Error('a request failed');
  };
  nothing(bytesPerOperation(round, 6));
  release();
});

test('ND v1: a ping-pong', async () => {
  const host = new HostV1();
  const { active, passive } = await host.pair();
  const ping = newResult();
  const pong = newResult();
  const message = active.sge(0, 8);
  const answer = passive.sge(0, 8);
  const results: NdResult[] = [];
  let queue = active.inbound;
  const poll = () => queue.getResults(results, 1);
  const take = (from: typeof queue) => {
    queue = from;
    until(1, poll);
    if (results[0]!.status !== 0) throw new Error('a request failed');
  };
  const round = () => {
    passive.endpoint.receive(pong, answer);
    active.endpoint.receive(ping, message);
    active.endpoint.send(ping, message);
    take(passive.inbound);
    passive.endpoint.send(pong, answer);
    take(active.inbound);
    take(active.outbound);
    take(passive.outbound);
  };
  nothing(bytesPerOperation(round, 4));
  active.release();
  passive.release();
  host.release();
});

test('ND v2: a ping-pong, and one-sided requests', async () => {
  const host = new HostV2();
  const { active, passive } = await host.pair();
  const context = {};
  const message = active.sge(0, 8);
  const answer = passive.sge(0, 8);
  const { remote } = passive;
  const results: Nd2Result[] = [];
  let queue = active.inbound;
  const poll = () => queue.getResults(results, 4);
  const take = (from: typeof queue) => {
    queue = from;
    until(1, poll);
    if (results[0]!.status !== 0) throw new Error('a request failed');
  };
  const round = () => {
    passive.queuePair.receive(context, answer);
    active.queuePair.receive(context, message);
    active.queuePair.write(context, message, remote, 64, Nd2OpFlag.SILENT_SUCCESS);
    active.queuePair.read(context, message, remote, 64, Nd2OpFlag.SILENT_SUCCESS);
    active.queuePair.send(context, message, Nd2OpFlag.INLINE);
    take(passive.inbound);
    passive.queuePair.send(context, answer);
    take(active.inbound);
    take(active.outbound);
    take(passive.outbound);
  };
  nothing(bytesPerOperation(round, 6));
  active.release();
  passive.release();
  host.release();
});

test.run();
