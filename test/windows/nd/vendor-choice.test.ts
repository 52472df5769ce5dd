// Which provider an address is of: the option `hca`, under 'auto' the provider that lists it, and what cannot be loaded.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { providersVariable } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { openNetworkDirect, openNetworkDirect2, readNdProviders, Status } from '../../../nd/index.js';
import { openProvider } from '../../../winverbs/index.js';
import { statusOf } from '../standin.js';
import { ADAPTER_ID, clean, Nd2Standin, PROVIDER } from './nd2-standin.js';

const standin = new Nd2Standin();
process.env[providersVariable] = PROVIDER;

/** The adapter that has an address, by an option of `hca`. */
function adapterOf(hca: string | undefined, address = '127.0.0.1'): bigint {
  const provider = openNetworkDirect2(hca === undefined ? {} : { hca });
  const adapter = provider.openAdapter(address);
  const { adapterId } = adapter.query();
  adapter.release();
  provider.release();
  return adapterId;
}

for (const hca of [undefined, 'auto', 'rdma', 'standin-nd2.dll', 'STANDIN-ND2', 'standin-nd2']) {
  clean(test, standin, `hca ${hca}: the provider, which lists the address`, () => {
    assert.is(adapterOf(hca), ADAPTER_ID);
    assert.is(adapterOf(hca, '::1'), ADAPTER_ID);
  });
}

clean(test, standin, 'hca rdma: an address that no provider lists is of none', async () => {
  assert.is(await statusOf(() => adapterOf('rdma', '192.0.2.1')), Status.INVALID_ADDRESS);
  standin.set({ ipv6: 0 });
  assert.is(await statusOf(() => adapterOf('rdma', '::1')), Status.INVALID_ADDRESS);
});

clean(test, standin, 'hca with the name of another DLL: refused with those that there are', () => {
  assert.throws(
    () => openNetworkDirect2({ hca: 'mlx5nd.dll' }),
    /`hca` must be .*standin-nd2\.dll.*got 'mlx5nd\.dll'/,
  );
});

clean(test, standin, 'v1 and WinVerbs refuse a provider by its name, with a sentence', () => {
  for (const open of [openNetworkDirect, openProvider]) {
    assert.throws(() => (open as (options: object) => unknown)({ hca: 'standin-nd2.dll' }), /hca/, open.name);
  }
});

clean(test, standin, 'the providers that there are', () => {
  assert.equal(
    readNdProviders().map(({ library, path, refused }) => ({ library, path, refused })),
    [{ library: 'standin-nd2.dll', path: PROVIDER, refused: undefined }],
  );
});

clean(
  test,
  standin,
  'providers that cannot be loaded: refused by name, and passed over under auto',
  async () => {
    process.env[providersVariable] = `C:\\none\\no-nd.dll;${PROVIDER}`;
    try {
      assert.throws(() => openNetworkDirect2({ hca: 'no-nd.dll' }), /no-nd\.dll/);
      assert.is(adapterOf('auto'), ADAPTER_ID);
    } finally {
      process.env[providersVariable] = PROVIDER;
    }
  },
);

test.run();
