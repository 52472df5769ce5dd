/** `networkdirect/net`: what methods in `Sync` make of the answers of a queue pair. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Nd2Direct, Nd2DirectResult, Nd2RemoteMemory } from '../../nd/index.js';
import type { Link } from '../../nd/net/connection/link.js';
import { DirectMemory } from '../../nd/net/memory/direct-memory.js';

const { DONE, NOT_MAPPED, REFUSED, UNKNOWN } = Nd2DirectResult;
const remote = new Nd2RemoteMemory(4096n, 1);

/** A link whose queue pair gives these answers, the last of them for ever; to the question whether there is a way, `DONE` or `REFUSED`. */
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
  const read = (): void =>
    new DirectMemory(link, remote).execute(Nd2Direct.READ, new Uint8Array(8), 0, 'readSync', 'read');
  return { asked, read };
}

test('the first use waits for the mapping', () => {
  const { asked, read } = answering([NOT_MAPPED, NOT_MAPPED, DONE]);
  read();
  assert.is(asked.length, 3);
});

test('a peer that never offers its memory is waited for once, whatever its handles', () => {
  const answers: Nd2DirectResult[] = [NOT_MAPPED];
  const { asked, read } = answering(answers);
  const error = /readSync: .* the peer has not offered its memory\. Use read\(\)\./;
  assert.throws(read, error);
  assert.ok(asked.length > 1);
  asked.length = 0;
  assert.throws(read, error);
  assert.is(asked.length, 1, 'not waited for again');
  answers[0] = DONE;
  read();
});

test('what is refused says why', () => {
  assert.throws(answering([REFUSED]).read, /the peer has released it/);
  assert.throws(answering([REFUSED], false).read, /the peer is on another host/);
  assert.throws(answering([UNKNOWN]).read, /it may have been executed/);
});

test.run();
