import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import byte from './byte.cjs';
import one from './one.cjs';

test('import', async () => {
  expect(await byte(await import('networkdirect/net'))).toBe('received 42');
});
test('one instance', async () => {
  expect(await one((name) => import(name), createRequire(import.meta.url))).toBe('one instance');
});
