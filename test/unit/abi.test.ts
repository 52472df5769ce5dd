import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { abi, loadAddon } from '../../kernel-bridge/hca/index.js';

const addon = loadAddon();

test('abi.ts and engine/abi.h describe the same memory', () => {
  assert.equal(addon.abi(), { ...abi });
});

test('the memory of JavaScript is little-endian, as the table says', () => {
  assert.is(new Uint8Array(new Uint32Array([1]).buffer)[0], 1);
});

test.run();
