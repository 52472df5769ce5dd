import { createRequire } from 'node:module';
import { expect, test } from '@jest/globals';
import byte from './byte.cjs';
import one from './one.cjs';

const require = createRequire(import.meta.url);
const ways = [(name) => import(name), require];
if (import.meta.url.includes('require-first')) ways.reverse();

test('one instance', async () => {
  expect(await one(...ways)).toBe('one instance');
});
test('import', async () => {
  expect(await byte(await import('networkdirect/net'))).toBe('received 42');
});
