// Objects used by every request keep their hidden class, no matter which numbers they contain. Otherwise, V8 of Node.js 20 never again
// optimizes the code that posts them.
import { setFlagsFromString } from 'node:v8';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UvpBindRequest, UvpSendRequest } from '../../kernel-bridge/door/user-verbs.js';
import { MemoryRegion } from '../../winverbs/memory-region.js';
import { RemoteMemory } from '../../winverbs/remote-memory.js';

setFlagsFromString('--allow-natives-syntax');
const haveSameMap = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (a: object, b: object) => boolean;
setFlagsFromString('--no-allow-natives-syntax');

const test = suite('hidden classes');
const WORD = 0xffff_ffff;

for (const Request of [UvpSendRequest, UvpBindRequest]) {
  test(`${Request.name}: no number changes the hidden class`, () => {
    const small = new Request() as unknown as Record<string, unknown>;
    const numbers = Object.keys(small).filter((name) => typeof small[name] === 'number');
    assert.ok(numbers.length > 0);
    // Flags, opcodes and key bytes are small.
    for (const name of numbers.filter((one) => !['opcode', 'flags', 'keyByte'].includes(one))) {
      const large = new Request() as unknown as Record<string, unknown>;
      large[name] = WORD;
      assert.ok(haveSameMap(small, large), `${name} is ${WORD}`);
    }
  });
}

test('MemoryRegion: keys, length and address do not change the hidden class', () => {
  const region = (key: number, address: number, length: number) =>
    new MemoryRegion(key, key, new Uint8Array(8), length, { pin: 0, address, detachable: false });
  const small = region(1, 0, 8);
  assert.ok(haveSameMap(small, region(WORD, 0, 8)), 'keys');
  assert.ok(haveSameMap(small, region(1, 2 ** 47, 8)), 'address');
  assert.ok(haveSameMap(small, region(1, 0, 2 ** 33)), 'length');
});

test('RemoteMemory: key and address do not change the hidden class', () => {
  const small = new RemoteMemory({ address: 0n, rkey: 1 });
  assert.ok(haveSameMap(small, new RemoteMemory({ address: 0n, rkey: WORD })), 'key');
  assert.ok(haveSameMap(small, new RemoteMemory({ address: 2n ** 64n - 1n, rkey: 1 })), 'address');
});

test.run();
