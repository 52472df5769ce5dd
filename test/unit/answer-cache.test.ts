/** Tests a file's cache of IOCTL outputs. The kernel is queried once, and again as soon as the output may be stale. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AnswerCache } from '../../kernel-bridge/door/soft/caches.js';
import { IbatCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { encodeSockaddr } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { IbatIpToPortIn, IbatPathIn } from '../../kernel-bridge/ioctl/structs.js';

function rig() {
  const cacheEpoch = new Int32Array(new SharedArrayBuffer(4));
  const clock = { now: 5 };
  const cache = new AnswerCache(cacheEpoch, () => clock.now);
  let queries = 0;
  /** Number of queries that reached the kernel. */
  const ask = (code: number, input: Uint8Array | null, outputLength = 4): number => {
    const before = queries;
    const answer = (): Uint8Array => new Uint8Array([...(input ?? []), ++queries]);
    cache.answer(code, input, outputLength, answer);
    return queries - before;
  };
  return { cacheEpoch, clock, cache, ask };
}

const { IP_TO_PORT, PATH } = IbatCode;
const here = new Uint8Array([1, 2, 3]);

test('the same query is sent once', () => {
  const { ask } = rig();
  assert.is(ask(PATH, here), 1);
  assert.is(ask(PATH, here.slice()), 0);
  assert.is(ask(IP_TO_PORT, here), 1);
  assert.is(ask(PATH, here, 5), 1);
  assert.is(ask(PATH, new Uint8Array([1, 2, 4])), 1);
  assert.is(ask(PATH, new Uint8Array([1, 2])), 1);
  assert.is(ask(PATH, null), 1);
  assert.is(ask(PATH, null), 1);
  assert.is(ask(PATH, here), 0);
});

test('the ports of addresses are ignored, but nothing else', () => {
  const { ask } = rig();
  const question = (code: number, at: number): number => {
    const input = code === PATH ? IbatPathIn.encode(path) : IbatIpToPortIn.encode(address);
    input[at] = input[at]! ^ 0xff;
    return ask(code, input);
  };
  const sockAddr = encodeSockaddr({ family: 4, address: '192.0.2.1', port: 5 });
  const path = { version: 6, localAddress: sockAddr, remoteAddress: sockAddr };
  const address = { version: 6, address: sockAddr };
  for (const code of [IP_TO_PORT, PATH]) {
    const { size } = code === PATH ? IbatPathIn : IbatIpToPortIn;
    const ports = [6, 7, ...(code === PATH ? [34, 35] : [])];
    assert.is(question(code, ports[0]!), 1);
    const again = Array.from({ length: size }, (_, at) => at).filter((at) => {
      question(code, ports[0]!); // uses the entry, which would otherwise be evicted
      return question(code, at) === 0;
    });
    assert.equal(again, ports);
  }
});

test('a request with side effects always goes to the kernel', () => {
  const { ask } = rig();
  for (const code of [IoctlCode.EP_CREATE, IoctlCode.EP_QUERY]) {
    for (let n = 0; n < 2; n++) assert.is(ask(code, here), 1);
  }
});

test('an output expires after a second, and when the cache epoch changes', () => {
  const { ask, cacheEpoch, clock, cache } = rig();
  ask(PATH, here);
  Atomics.add(cacheEpoch, 0, 1);
  assert.is(ask(PATH, here), 1);
  assert.is(ask(PATH, here), 0);
  clock.now += 999;
  assert.is(ask(PATH, here), 0);
  clock.now += 1;
  assert.is(ask(PATH, here), 1);
  assert.is(ask(PATH, here), 0);
  // The epoch changes between the kernel's scan and its output.
  cache.answer(IP_TO_PORT, here, 4, () => {
    Atomics.add(cacheEpoch, 0, 1);
    return new Uint8Array(4);
  });
  assert.is(ask(IP_TO_PORT, here), 1);
});

test('neither inputs nor outputs share memory with the cache', () => {
  const { cache } = rig();
  const input = here.slice();
  const first = cache.answer(PATH, input, 4, () => new Uint8Array([7]));
  first[0] = 8;
  input[0] = 9;
  const second = cache.answer(PATH, here, 4, () => new Uint8Array([6]));
  assert.equal([...second], [7]);
  second[0] = 8;
  assert.equal([...cache.answer(PATH, here, 4, () => new Uint8Array([6]))], [7]);
});

test('failures are not cached', () => {
  const { cache, ask } = rig();
  const fail = (): Uint8Array => {
    throw new StatusError(Status.NOT_FOUND, 'gone');
  };
  assert.throws(() => cache.answer(PATH, here, 4, fail), /gone/);
  assert.is(ask(PATH, here), 1);
});

test('the oldest entry is evicted', () => {
  const { ask } = rig();
  const inputs = Array.from({ length: 17 }, (_, index) => new Uint8Array([index]));
  for (const input of inputs) assert.is(ask(PATH, input), 1);
  for (const input of inputs.slice(1)) assert.is(ask(PATH, input), 0);
  assert.is(ask(PATH, inputs[0]!), 1);
  assert.is(ask(PATH, inputs[1]!), 1);
});

test.run();
