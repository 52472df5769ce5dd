// Selection of the provider for an address: the option `hca`, `auto`, and providers that cannot be loaded. These tests run with the stand-in
// for the WinVerbs driver and without it.
import { closeSync, openSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { providersVariable } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { HostV2 } from '../../../nd/cli/sides/v2-side.js';
import {
  ndProviderOf,
  openNetworkDirect,
  openNetworkDirect2,
  readNdProviders,
  Status,
} from '../../../nd/index.js';
import { openRouted } from '../../../nd/providers.js';
import { openProvider } from '../../../winverbs/index.js';
import { GUID as DRIVER_GUID, statusOf } from '../standin.js';
import { ADAPTER_ID, clean, Nd2Standin, PROVIDER } from './nd2-standin.js';
import { disconnect, openPair } from './vendor-host.js';

const standin = new Nd2Standin();
process.env[providersVariable] = PROVIDER;

/** Returns the id of the adapter with an address, for a value of `hca`. */
function adapterOf(hca: string | undefined, address = '127.0.0.1'): bigint {
  const provider = openNetworkDirect2(hca === undefined ? {} : { hca });
  const adapter = provider.openAdapter(address);
  const { adapterId } = adapter.query();
  adapter.release();
  provider.release();
  return adapterId;
}

for (const hca of [undefined, 'auto', 'rdma', 'standin-nd2.dll', 'STANDIN-ND2', 'standin-nd2']) {
  clean(test, standin, `hca ${hca} selects the provider that lists the address`, () => {
    assert.is(adapterOf(hca), ADAPTER_ID);
    assert.is(adapterOf(hca, '::1'), ADAPTER_ID);
  });
}

clean(test, standin, 'hca rdma: an address that no provider lists is INVALID_ADDRESS', async () => {
  assert.is(await statusOf(() => adapterOf('rdma', '192.0.2.1')), Status.INVALID_ADDRESS);
  standin.set({ ipv6: 0 });
  assert.is(await statusOf(() => adapterOf('rdma', '::1')), Status.INVALID_ADDRESS);
});

function isInstalled(device: string): boolean {
  try {
    closeSync(openSync(device, 'r'));
    return true;
  } catch (error) {
    // The driver refuses an open of the device without the name of a file.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

const hasDriver = isInstalled('\\\\.\\WinVerbs');
const kernel = hasDriver ? 'the WinVerbs driver' : 'the software HCA';

clean(test, standin, `hca auto: an address that no provider lists belongs to ${kernel}`, () => {
  standin.set({ ipv6: 0 });
  const provider = openNetworkDirect2();
  const ids = ['127.0.0.1', '::1'].map((address) => {
    const adapter = provider.openAdapter(address);
    const library = ndProviderOf(adapter)?.library;
    const { adapterId } = adapter.query();
    adapter.release();
    return [library, adapterId === DRIVER_GUID ? 'driver' : adapterId === ADAPTER_ID ? 'provider' : 'soft'];
  });
  assert.equal(ids, [
    ['standin-nd2.dll', 'provider'],
    [undefined, hasDriver ? 'driver' : 'soft'],
  ]);
  const addresses = provider.queryAddressList().map(({ address }) => address);
  assert.is(addresses[0], '127.0.0.1', 'addresses of providers are first');
  assert.ok(addresses.includes('::1'), addresses.join());
  assert.is(new Set(addresses).size, addresses.length, addresses.join());
  provider.release();
});

clean(test, standin, `hca auto: ${kernel} transfers messages while a provider is open`, async () => {
  standin.set({ ipv6: 0 });
  const host = new HostV2('::1', { hca: 'auto' });
  const { a, b } = await openPair(host);
  const notified = b.notify('inbound');
  b.receive('r', b.sge(0, 10));
  a.send('s', a.sge(0, 7));
  await notified;
  assert.ok(b.take('inbound'));
  assert.equal([b.done.context, b.done.status, b.done.bytes], ['r', Status.SUCCESS, 7]);
  await disconnect(a, b);
  for (const side of [a, b]) side.release();
  host.release();
});

clean(test, standin, 'hca auto: the local address for a remote one is that of the same device', () => {
  const provider = openRouted({ hca: 'auto' });
  const localFor = (address: string): string => provider.localAddressFor(address, 'Connect').address;
  // The stand-in for the driver knows no route of IPv6.
  assert.equal(['127.0.0.1', '::1'].map(localFor), ['127.0.0.1', '::1']);
  standin.set({ listed: 0 });
  assert.is(localFor('127.0.0.1'), '127.0.0.1');
  provider.release();
});

clean(test, standin, 'hca with the name of an unknown DLL fails with the names of the known ones', () => {
  assert.throws(
    () => openNetworkDirect2({ hca: 'mlx5nd.dll' }),
    /`hca` must be .*standin-nd2\.dll.*got 'mlx5nd\.dll'/,
  );
});

clean(test, standin, 'v1 and WinVerbs do not support the name of a provider', () => {
  for (const open of [openNetworkDirect, openProvider]) {
    assert.throws(() => (open as (options: object) => unknown)({ hca: 'standin-nd2.dll' }), /hca/, open.name);
  }
});

clean(test, standin, 'readNdProviders lists the providers', () => {
  assert.equal(
    readNdProviders().map(({ library, path, refused }) => ({ library, path, refused })),
    [{ library: 'standin-nd2.dll', path: PROVIDER, refused: undefined }],
  );
});

clean(test, standin, 'a provider that cannot be loaded fails by name and is skipped by auto', async () => {
  process.env[providersVariable] = `C:\\none\\no-nd.dll;${PROVIDER}`;
  try {
    assert.throws(() => openNetworkDirect2({ hca: 'no-nd.dll' }), /no-nd\.dll/);
    assert.is(adapterOf('auto'), ADAPTER_ID);
  } finally {
    process.env[providersVariable] = PROVIDER;
  }
});

test.run();
