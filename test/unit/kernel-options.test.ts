import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { throwsStatus } from '../helpers/outcome.js';

function message(run: () => unknown): string {
  return throwsStatus(run, Status.INVALID_PARAMETER).message;
}

test('without options the defaults apply', () => {
  const options = resolveKernelOptions(undefined, {});
  assert.is(options.keepAliveMs, 10_000);
  assert.is(options.cm.maxRetries, 15);
  assert.is(options.rc.ackTimeoutCode, 17);
  assert.equal(resolveKernelOptions({}, {}), options);
  assert.equal(resolveKernelOptions(undefined, { ND_OPTIONS: ' ' }), options);
  // Changing the returned options does not change the defaults.
  options.cm.maxRetries = 3;
  assert.is(resolveKernelOptions(undefined, {}).cm.maxRetries, 15);
});

test('ND_OPTIONS only applies to programs that pass no options', () => {
  const environment = { ND_OPTIONS: '{"keepAliveMs":5,"cm":{"maxRetries":2}}' };
  assert.is(resolveKernelOptions(undefined, environment).keepAliveMs, 5);
  assert.is(resolveKernelOptions(undefined, environment).cm.maxRetries, 2);
  assert.is(resolveKernelOptions({ window: 3 }, environment).keepAliveMs, 10_000);
});

test('messages to drop must be known CM attributes, with a count that the HCA supports', () => {
  const dropMads = (value: Record<string, number>) =>
    resolveKernelOptions({ faults: { dropMads: value } }, {});
  assert.equal(dropMads({ 16: 1, 26: 0xffff_ffff }).faults.dropMads, { 16: 1, 26: 0xffff_ffff });
  for (const key of ['15', '27', '016', '99999999999', '0x10', '']) {
    assert.match(
      message(() => dropMads({ [key]: 1 })),
      /faults\.dropMads.*16 \(REQ\) to 26 \(APR\)/,
      key,
    );
  }
  assert.match(
    message(() => dropMads({ 16: 2 ** 32 })),
    '`faults.dropMads.16` must be an integer from 0 to 4294967295; got 4294967296.',
  );
});

test('packet marks are checked: a DSCP followed by two zero bits, and ECN as a boolean', () => {
  const trafficClass = (value: number) => ({ rc: { trafficClass: value } });
  for (const good of [0, 4, 0xa0, 0xfc]) {
    assert.is(resolveKernelOptions(trafficClass(good), {}).rc.trafficClass, good);
  }
  for (const bad of [-4, 1, 2, 0xa1, 0x100, 0xa0 + 0.5]) {
    const reported = message(() => resolveKernelOptions(trafficClass(bad), {}));
    assert.match(reported, 'rc.trafficClass');
    assert.match(reported, String(bad));
  }
  assert.match(
    message(() => resolveKernelOptions(trafficClass(2), {})),
    'multiple of 4',
  );
  assert.is(resolveKernelOptions({ ecn: true }, {}).ecn, true);
});

test('icrc is solved or exact', () => {
  assert.is(resolveKernelOptions(undefined, {}).icrc, 'solved');
  assert.is(resolveKernelOptions({ icrc: 'exact' }, {}).icrc, 'exact');
});

test('the kernel is selected from those available on this host', () => {
  assert.is(resolveKernelOptions(undefined, {}).kernel, 'auto');
  assert.is(resolveKernelOptions({ kernel: 'soft' }, {}).kernel, 'soft');
  assert.match(
    message(() => resolveKernelOptions({ kernel: 'driver' }, {})),
    /`kernel` must be 'auto' or 'soft', because WinVerbs drivers exist on Windows only; got 'driver'/,
  );
});

test.run();
