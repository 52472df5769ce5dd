/** `networkdirect/net`: `Sync` methods and the results of a queue pair. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Nd2Direct, Nd2DirectResult, Nd2RemoteMemory, NdError, Status } from '../../nd/index.js';
import type { Link } from '../../nd/net/connection/link.js';
import { DirectMemory } from '../../nd/net/memory/direct-memory.js';
import { rejection } from '../helpers/net-pair.js';

const { DONE, NOT_MAPPED, REFUSED, UNKNOWN } = Nd2DirectResult;
const remote = new Nd2RemoteMemory(4096n, 1);

/** A link whose queue pair returns these results and repeats the last one. The query for direct access returns `DONE` or `REFUSED`. */
function answering(answers: Nd2DirectResult[], reachable = true) {
  const asked: number[] = [];
  const queuePair = {
    direct(_: Nd2Direct, bytes: Uint8Array) {
      if (bytes.length === 0) return reachable ? DONE : REFUSED;
      asked.push(bytes.length);
      return answers.length > 1 ? answers.shift()! : answers[0]!;
    },
  };
  const link = { queuePair, offersNothing: false } as unknown as Link;
  const memory = new DirectMemory(link, remote);
  const bytes = new Uint8Array(8);
  const read = (): void => memory.execute(Nd2Direct.READ, bytes, 0, 'readSync', 'read');
  const mapped = (): Promise<void> => memory.mapped(Nd2Direct.FETCH_ADD, bytes);
  return { asked, read, mapped, link };
}

test('the first access waits for the mapping', () => {
  const { asked, read } = answering([NOT_MAPPED, NOT_MAPPED, DONE]);
  read();
  assert.is(asked.length, 3);
});

test('the mapping is awaited without blocking, until the connection ends', async () => {
  const soon = answering([NOT_MAPPED, NOT_MAPPED, DONE]);
  let turns = 0;
  const counting = setInterval(() => (turns += 1)).unref();
  await soon.mapped();
  clearInterval(counting);
  assert.is(soon.asked.length, 3);
  assert.ok(turns > 0);
  await answering([REFUSED]).mapped();
  const never = answering([NOT_MAPPED]);
  const waiting = never.mapped();
  Object.assign(never.link, { over: true });
  await waiting;
  assert.is(never.asked.length, 1);
});

test('the wait for a peer that never offers its memory occurs once, regardless of its handles', () => {
  const answers: Nd2DirectResult[] = [NOT_MAPPED];
  const { asked, read } = answering(answers);
  const error = /readSync: .* the peer did not offer its memory\. Use read\(\)\./;
  assert.throws(read, error);
  assert.ok(asked.length > 1);
  asked.length = 0;
  assert.throws(read, error);
  assert.is(asked.length, 1, 'not waited for again');
  answers[0] = DONE;
  read();
});

test('rejections state the reason', () => {
  assert.throws(answering([REFUSED]).read, /the peer has released it/);
  assert.throws(answering([REFUSED], false).read, /the peer is on another host/);
  assert.throws(answering([UNKNOWN]).read, /may have been executed/);
});

/** A link whose queue pair returns these results to `view`. Errors among them are thrown. */
function viewing(answers: (Uint8Array<ArrayBuffer> | 1 | 2 | Error)[]) {
  let asked = 0;
  const queuePair = {
    direct: () => DONE,
    view() {
      asked += 1;
      const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const link = { queuePair, offersNothing: false, over: false };
  const memory = new DirectMemory(link as unknown as Link, remote);
  return { link, map: (allowed = true) => memory.map(8, allowed), count: () => asked };
}

test('a view is awaited without blocking', async () => {
  const view = new Uint8Array(8);
  const { map, count } = viewing([NOT_MAPPED, NOT_MAPPED, view]);
  const mapped = map();
  let turns = 0;
  const counting = setInterval(() => (turns += 1)).unref();
  assert.is(await mapped, view);
  clearInterval(counting);
  assert.is(count(), 3);
  assert.ok(turns > 0);
});

test('an impossible view is reported with the reason and the alternative', async () => {
  const never = viewing([NOT_MAPPED]);
  const error = await rejection(never.map());
  assert.is(error.code, 'ENOTSUP');
  assert.match(
    error.message,
    /^map: the memory cannot be mapped: the peer did not offer its memory\. Use read\(\)\.$/,
  );
  assert.match((await rejection(viewing([REFUSED]).map())).message, /the peer has released it/);
  const forbidden = viewing([new Uint8Array(8)]);
  assert.match(
    (await rejection(forbidden.map(false))).message,
    /the peer did not expose it with views: true/,
  );
  assert.is(forbidden.count(), 0);
  const elsewhere = new DirectMemory({ queuePair: {} } as unknown as Link, remote);
  assert.match(
    (await rejection(elsewhere.map(8, true))).message,
    /its adapter does not support direct access\. Use read/,
  );
  const full = viewing([new NdError(Status.INSUFFICIENT_RESOURCES, 'view: too many')]);
  assert.is((await rejection(full.map())).code, 'ENOBUFS');
  const ended = viewing([NOT_MAPPED]);
  const waiting = ended.map();
  ended.link.over = true;
  assert.is((await rejection(waiting)).code, 'ECONNRESET');
});

test.run();
