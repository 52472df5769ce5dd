/** NotifyAddressListChange is told by the system, not asked for: in a network namespace whose addresses the test changes. */
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  ndCleanup,
  ndFlushProviders,
  ndNotifyAddressListChange,
  ndQueryAddressList,
  ndStartup,
  Status,
} from '../../nd/index.js';
import { openProvider } from '../../winverbs/index.js';
import { apart, runApart } from '../helpers/apart.js';
import { throwsWv } from '../helpers/fake-pair.js';
import { outcome } from '../helpers/outcome.js';

/** Half the interval at which a list would be read that nobody tells of. */
const SOON_MS = 500;

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  assert.is(status, 0, stderr);
}

const listed = (): string[] => ndQueryAddressList().map(({ address }) => address);
const namespaced = apart ? test : test.skip;

test.before.each(() => ndStartup());
test.after.each(() => ndCleanup());

namespaced('a new address, and one that goes, end what waits within milliseconds', async () => {
  const known = listed();
  const steps = [
    ['add', true],
    ['del', false],
  ] as const;
  for (const [verb, there] of steps) {
    const waiting = [ndNotifyAddressListChange(), ndNotifyAddressListChange()];
    // What was there before is no change.
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(
      waiting.map(({ completed }) => completed),
      [false, false],
    );
    ip('addr', verb, '127.9.8.7/8', 'dev', 'lo');
    const begin = performance.now();
    for (const one of waiting) assert.is(await outcome(one), Status.SUCCESS);
    const took = performance.now() - begin;
    assert.ok(took < SOON_MS, `${took} ms`);
    assert.is(listed().includes('127.9.8.7'), there);
  }
  assert.equal(listed(), known);
});

namespaced('a thread that blocks hears of it, too; so does one that has flushed the providers', async () => {
  listed();
  const blocked = ndNotifyAddressListChange();
  spawnSync('sh', ['-c', '(sleep 0.2; ip addr add 127.9.8.6/8 dev lo) >/dev/null 2>&1 &']);
  blocked.getResult({ wait: true });
  assert.ok(listed().includes('127.9.8.6'));
  const flushed = ndNotifyAddressListChange();
  ndFlushProviders();
  ip('addr', 'del', '127.9.8.6/8', 'dev', 'lo');
  const begin = performance.now();
  assert.is(await outcome(flushed), Status.SUCCESS);
  assert.ok(performance.now() - begin < SOON_MS);
});

test('cancelled, or ended by the last NdCleanup', async () => {
  const [one, two] = [ndNotifyAddressListChange(), ndNotifyAddressListChange()];
  one.cancel();
  assert.is(await outcome(one), Status.CANCELED);
  assert.is(two.completed, false);
  ndStartup();
  ndCleanup();
  assert.is(two.completed, false);
  ndCleanup();
  assert.is(await outcome(two), Status.CANCELED);
  ndStartup();
});

test('WinVerbs: changes are counted, and a provider that ends tells of no more', async () => {
  const provider = openProvider();
  const count = await provider.notifyDeviceChange(0);
  assert.ok(count > 0);
  const next = provider.notifyDeviceChange(count);
  assert.is(next.completed, false);
  assert.is(await provider.notifyDeviceChange(count + 1), count, 'another count is answered at once');
  for (const wrong of [-1, 1.5, 2 ** 32])
    throwsWv(() => provider.notifyDeviceChange(wrong), Status.INVALID_PARAMETER);
  provider.release();
  assert.is(await outcome(next), Status.CANCELED);
});

runApart(import.meta.url, () => test.run());
