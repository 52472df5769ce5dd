// Selection of the provider for an address: the option `hca`, `auto`, and providers that cannot be loaded.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { providersVariable } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { openNetworkDirect, openNetworkDirect2, readNdProviders, Status } from '../../../nd/index.js';
import { openProvider } from '../../../winverbs/index.js';
import { statusOf } from '../standin.js';
import { ADAPTER_ID, clean, Nd2Standin, PROVIDER } from './nd2-standin.js';

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
