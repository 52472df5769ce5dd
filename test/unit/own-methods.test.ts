/** Methods of the addon's objects that contain their object's address (addon/own_methods.h). */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { collect } from '../helpers/collect.js';

const addon = loadAddon();

async function isCollected(object: WeakRef<object>): Promise<boolean> {
  for (let round = 0; round < 10 && object.deref() !== undefined; round++) {
    // A dereferenced WeakRef keeps its object alive until the end of the turn.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  return object.deref() === undefined;
}

test('a reference to a method keeps its object alive; without any reference, it is collected', async () => {
  for (const name of ['submit', 'call', 'finish'] as const) {
    const kept: unknown[] = [];
    const channel = ((): WeakRef<object> => {
      const made = addon.createChannel(1, () => {});
      kept.push(made[name]);
      return new WeakRef(made);
    })();
    assert.not.ok(await isCollected(channel), name);
    kept.length = 0;
    assert.ok(await isCollected(channel), name);
  }
});

test('a method cannot be separated from its object', () => {
  const { finish } = addon.createChannel(1, () => {});
  const method = finish as { object?: unknown };
  assert.throws(() => {
    method.object = undefined;
  }, TypeError);
  assert.throws(() => {
    delete method.object;
  }, TypeError);
});

test.run();
