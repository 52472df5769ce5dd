import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdFramework, NdQueryFlag } from '../../nd/framework.js';
import { Status } from '../../nd/index.js';
import { Provider as V1Provider } from '../../nd/v1/provider.js';
import { Provider as V2Provider } from '../../nd/v2/provider.js';
import { FakeProvider } from '../helpers/fake-winverbs.js';
import { endsIn } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

function make() {
  const wv = new FakeProvider(['10.0.0.1', '10.0.0.2', 'fd00::1']);
  wv.references = 0;
  const addresses = ['10.0.0.1', 'fd00::1'];
  const open = () => {
    wv.references += 1;
    return wv;
  };
  const list = () =>
    addresses.map((address) => ({ family: address.includes(':') ? 6 : 4, address, port: 0 }) as const);
  const framework = new NdFramework(
    () => new V1Provider(open, list),
    () => new V2Provider(open, list),
    5,
  );
  return { wv, addresses, framework };
}

test('before NdStartup, and after the same number of NdCleanup calls, everything is DEVICE_NOT_READY', () => {
  const { framework, wv } = make();
  const all = [
    () => framework.cleanup(),
    () => framework.queryAddressList(0),
    () => framework.resolveAddress('10.0.0.9'),
    () => framework.checkAddress('10.0.0.1'),
    () => framework.openAdapter('10.0.0.1'),
    () => framework.openV1Adapter('10.0.0.1'),
    () => framework.notifyAddressListChange(),
  ];
  for (const call of all) endsIn(call, Status.DEVICE_NOT_READY);
  framework.startup();
  framework.startup();
  framework.cleanup();
  framework.checkAddress('10.0.0.1');
  const adapters = [framework.openAdapter('10.0.0.1'), framework.openV1Adapter('10.0.0.1')];
  framework.cleanup();
  for (const call of all) endsIn(call, Status.DEVICE_NOT_READY);
  for (const adapter of adapters) adapter.query();
  for (const adapter of adapters) adapter.release();
  assert.is(wv.references, 0, 'nothing stays open');
});

test('the list, its flags, and invalid addresses', () => {
  const { framework } = make();
  framework.startup();
  const {
    EXCLUDE_EMULATOR_ADDRESSES: emulator,
    EXCLUDE_NDV1_ADDRESSES: v1,
    EXCLUDE_NDV2_ADDRESSES: v2,
  } = NdQueryFlag;
  for (const flags of [0, emulator, v1, v2, emulator | v1])
    assert.is(framework.queryAddressList(flags).length, 2);
  assert.equal(framework.queryAddressList(v1 | v2), []);
  for (const flags of [8, -1, 0.5]) {
    endsIn(() => framework.queryAddressList(flags), Status.INVALID_PARAMETER);
  }
  for (const address of ['10.9.9.9', '0.0.0.0', 'nonsense']) {
    for (const call of [framework.checkAddress, framework.openAdapter, framework.openV1Adapter]) {
      endsIn(() => call.call(framework, address), Status.INVALID_ADDRESS);
    }
  }
  framework.flushProviders();
  framework.checkAddress('10.0.0.1:99');
  framework.cleanup();
});

test('a change of the list ends all waits for it, even later ones', async () => {
  const { framework, addresses } = make();
  framework.startup();
  const waiting = [framework.notifyAddressListChange(), framework.notifyAddressListChange()];
  assert.equal(
    waiting.map(({ completed }) => completed),
    [false, false],
  );
  addresses.push('10.0.0.2');
  for (const one of waiting) assert.is(await outcome(one), Status.SUCCESS);
  framework.queryAddressList(0);
  addresses.pop();
  await framework.notifyAddressListChange();
  // An address that no device has is not listed.
  addresses.push('192.168.99.99');
  const still = framework.notifyAddressListChange();
  assert.is(still.completed, false);
  still.cancel();
  assert.is(await outcome(still), Status.CANCELED);
  const blocked = framework.notifyAddressListChange();
  addresses.shift();
  blocked.getResult({ wait: true });
  const last = framework.notifyAddressListChange();
  framework.cleanup();
  assert.is(await outcome(last), Status.CANCELED);
});

test.run();
