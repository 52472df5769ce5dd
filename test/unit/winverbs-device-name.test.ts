/** The name of a device, and the error that it does not support a request, on WinVerbs in memory. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CountersCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { failWith } from '../helpers/fake-door.js';
import { openPair, throwsWv } from '../helpers/fake-pair.js';

test('NOT_SUPPORTED names the device: a real HCA, the interface of a software one, or the GUID', async () => {
  const { provider, device, cq, pd, door } = openPair();
  const guid = device.guid.toString(16).padStart(16, '0');
  const name = () => {
    using again = provider.openDevice(device.guid);
    return again.name;
  };
  const listed = (at: object): void => {
    const bytes = Buffer.from(JSON.stringify([{ guid, name: 'eth0', index: 2, ...at }]));
    door.handlers.set(CountersCode.INTERFACES, () => new Uint8Array(bytes));
  };
  assert.is(name(), guid, 'a driver that does not tell');
  listed({});
  assert.is(name(), 'eth0');
  listed({ hca: { device: 'mlx5_0', driver: 'mlx5_core', firmware: '1' } });
  assert.is(name(), 'mlx5_0');
  const refuse = () => failWith(Status.NOT_SUPPORTED);
  for (const code of ['CQ_RESIZE', 'MW_ALLOCATE', 'SRQ_CREATE'] as const)
    door.handlers.set(IoctlCode[code], refuse);
  const named = (code: string) => new RegExp(`^${code}: The device mlx5_0 does not support this`);
  throwsWv(() => cq.resize(2), Status.NOT_SUPPORTED, named('CQ_RESIZE'));
  throwsWv(() => pd.allocateMemoryWindow(), Status.NOT_SUPPORTED, named('MW_ALLOCATE'));
  throwsWv(() => pd.createSharedReceiveQueue(1, 1), Status.NOT_SUPPORTED, named('SRQ_CREATE'));
  door.handlers.set(IoctlCode.EP_BIND, refuse);
  const endpoint = provider.createConnectEndpoint();
  const any = { family: 4, address: '0.0.0.0', port: 0 } as const;
  throwsWv(() => endpoint.bindAddress(any), Status.NOT_SUPPORTED, /does not support the request/);
});

test.run();
