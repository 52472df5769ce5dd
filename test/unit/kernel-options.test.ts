import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import type { KernelOptionsInput } from '../../kernel-bridge/option-checks/option-schemas.js';
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

test('an invalid option is reported with its value and limit', () => {
  const nested = message(() => resolveKernelOptions({ cm: { maxRetries: 99 } }, {}));
  assert.match(nested, 'cm.maxRetries');
  assert.match(nested, '99');
  assert.match(nested, '15');
  const kind = message(() =>
    resolveKernelOptions({ keepAliveMs: 'soon' } as unknown as KernelOptionsInput, {}),
  );
  assert.match(kind, 'keepAliveMs');
  assert.match(kind, '"soon"');
  assert.match(
    message(() => resolveKernelOptions(7 as unknown as KernelOptionsInput, {})),
    'object',
  );
});

test('a path with a NUL character is rejected', () => {
  const text = message(() =>
    resolveKernelOptions(undefined, { ND_OPTIONS: '{"capture":"a.pcapng\\u0000b"}' }),
  );
  assert.match(text, /capture.*must be a path without NUL characters/);
});

test('the error for an unknown option lists the valid ones', () => {
  const misspelt = (value: unknown): string =>
    message(() => resolveKernelOptions(value as KernelOptionsInput, {}));
  const top = misspelt({ keepaliveMs: 5 });
  assert.match(top, "'keepaliveMs' is not known");
  assert.match(top, 'keepAliveMs');
  const nested = misspelt({ cm: { retries: 3 } });
  assert.match(nested, "'cm.retries' is not known");
  assert.match(nested, 'maxRetries');
  assert.match(misspelt({ rc: { timeout: 3 } }), "'rc.timeout'");
  assert.match(misspelt({ faults: { drops: 1 } }), "'faults.drops'");
  const mad = misspelt({ faults: { dropMads: { DREQ: 1 } } });
  assert.match(mad, "'faults.dropMads.DREQ'");
  assert.match(mad, 'number of a CM attribute');
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
    "'faults.dropMads.16' cannot be 4294967296",
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
  const reported = message(() => resolveKernelOptions({ ecn: 1 } as unknown as KernelOptionsInput, {}));
  assert.match(reported, "'ecn'");
  assert.match(reported, 'boolean');
});

test('icrc is solved or exact', () => {
  assert.is(resolveKernelOptions(undefined, {}).icrc, 'solved');
  assert.is(resolveKernelOptions({ icrc: 'exact' }, {}).icrc, 'exact');
  for (const bad of ['guessed', true, 1]) {
    const reported = message(() => resolveKernelOptions({ icrc: bad } as unknown as KernelOptionsInput, {}));
    assert.match(reported, "'icrc'");
    assert.match(reported, 'solved');
    assert.match(reported, 'exact');
  }
});

test('the kernel is selected from those available on this host', () => {
  assert.is(resolveKernelOptions(undefined, {}).kernel, 'auto');
  assert.is(resolveKernelOptions({ kernel: 'soft' }, {}).kernel, 'soft');
  assert.match(
    message(() => resolveKernelOptions({ kernel: 'driver' }, {})),
    /'kernel' cannot be "driver": WinVerbs drivers exist on Windows only/,
  );
});

test('the error for an invalid ND_OPTIONS names it', () => {
  assert.match(
    message(() => resolveKernelOptions(undefined, { ND_OPTIONS: '{' })),
    'ND_OPTIONS must be JSON',
  );
  assert.match(
    message(() => resolveKernelOptions(undefined, { ND_OPTIONS: '{"window":0}' })),
    "ND_OPTIONS: option 'window'",
  );
});

test.run();
