import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ListenerTable } from '../../kernel-bridge/kernel/cm/listener-table.js';

const gid = (last: number) => Uint8Array.from({ length: 16 }, (_, i) => (i === 15 ? last : 0));

test('a listener on some addresses is found by these, and a listener on the exact address takes precedence', () => {
  const table = new ListenerTable<unknown>();
  const add = (address: Uint8Array | undefined, accepts?: (address: Uint8Array) => boolean) =>
    table.add({
      serviceId: 1n,
      address,
      ...(accepts === undefined ? {} : { accepts }),
      backlog: 0,
      onRequest: () => {},
    });
  const odd = add(undefined, (address) => address[15]! % 2 === 1);
  const even = add(undefined, (address) => address[15]! % 2 === 0);
  const five = add(gid(5));
  assert.is(table.find(1n, gid(3)), odd);
  assert.is(table.find(1n, gid(4)), even);
  assert.is(table.find(1n, gid(5)), five);
  assert.is(table.find(2n, gid(3)), undefined);
  table.remove(odd);
  assert.is(table.find(1n, gid(3)), undefined, 'no listener accepts the address');
  const all = add(undefined);
  assert.is(table.find(1n, gid(3)), all);
});

test.run();
