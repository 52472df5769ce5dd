/** NotifyAddressListChange waits for events of the OS and does not poll. Runs in a network namespace whose addresses the test changes. */
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
import { outcome, throwsWv } from '../helpers/outcome.js';

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  assert.is(status, 0, stderr);
}

const listed = (): string[] => ndQueryAddressList().map(({ address }) => address);
const namespaced = apart ? test : test.skip;

test.before.each(() => ndStartup());
test.after.each(() => ndCleanup());

namespaced('a new address, and a removed one, end pending requests, without polling', async () => {
  const known = listed();
  const { setInterval } = globalThis;
  globalThis.setInterval = () => {
    throw new Error('the list is read from time to time');
  };
  try {
    await changes();
  } finally {
    globalThis.setInterval = setInterval;
  }
  assert.equal(listed(), known);
});

async function changes(): Promise<void> {
  const steps = [
    ['add', true],
    ['del', false],
  ] as const;
  for (const [verb, there] of steps) {
    const waiting = [ndNotifyAddressListChange(), ndNotifyAddressListChange()];
    // Addresses that existed before are not a change.
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(
      waiting.map(({ completed }) => completed),
      [false, false],
    );
    ip('addr', verb, '127.9.8.7/8', 'dev', 'lo');
    for (const one of waiting) assert.is(await outcome(one), Status.SUCCESS);
    assert.is(listed().includes('127.9.8.7'), there);
  }
}

namespaced('a blocking thread is notified as well; so is one that has flushed the providers', async () => {
  listed();
  const blocked = ndNotifyAddressListChange();
  spawnSync('sh', ['-c', '(sleep 0.2; ip addr add 127.9.8.6/8 dev lo) >/dev/null 2>&1 &']);
  blocked.getResult({ wait: true });
  assert.ok(listed().includes('127.9.8.6'));
  const flushed = ndNotifyAddressListChange();
  ndFlushProviders();
  ip('addr', 'del', '127.9.8.6/8', 'dev', 'lo');
  assert.is(await outcome(flushed), Status.SUCCESS);
});

test('a request is cancelled, or ended by the last NdCleanup', async () => {
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

test('WinVerbs: changes are counted, and not reported after the end of a provider', async () => {
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
