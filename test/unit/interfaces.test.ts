import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';

const addon = loadAddon();

test('the addon lists at least the interfaces that Node.js lists, with the same data', () => {
  const all = addon.interfaces();
  assert.ok(all.length > 0);
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    const found = all.find((one) => one.name === name);
    assert.ok(found, `${name} is listed`);
    assert.ok(found.up && found.mtu > 0 && found.index > 0);
    for (const entry of entries ?? []) {
      const gid = gidOfAddress(entry.address);
      const address = found.addresses.find((one) => Buffer.compare(one.gid, gid) === 0);
      assert.ok(address, `${entry.address} is listed`);
      assert.is(`IPv${address.family}`, entry.family);
      assert.is(address.prefixLength, Number(entry.cidr?.split('/')[1]));
      assert.is(address.scopeId, entry.scopeid ?? 0);
      assert.is(Buffer.from(found.mac).toString('hex'), entry.mac.replaceAll(':', ''));
    }
  }
});

test('a watch does not keep a program alive, ends with its thread, and may be ended twice', async () => {
  assert.throws(() => addon.watchInterfaces(undefined as never), /`onChange` must be a function/);
  const stop = addon.watchInterfaces(() => {});
  stop?.();
  stop?.();
  const url = new URL('../../kernel-bridge/hca/index.js', import.meta.url).href;
  const script = (more: string) =>
    `import(${JSON.stringify(url)}).then(({ loadAddon }) => { loadAddon().watchInterfaces(() => {}); ${more} })`;
  const ended = (worker: Worker) => once(worker, 'exit').then(([code]) => code as number);
  assert.is(await ended(new Worker(script(''), { eval: true })), 0, 'it ends by itself');
  const busy = new Worker(
    script("require('worker_threads').parentPort.on('message', () => {}).postMessage(1)"),
    {
      eval: true,
    },
  );
  await once(busy, 'message');
  const gone = ended(busy);
  await busy.terminate();
  assert.is(await gone, 1);
});

test.run();
