/** Parts of the door to NetworkDirect providers that run on any system: GUIDs, paths, layouts, statuses. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { expanded, refusalOf } from '../../kernel-bridge/windows/nd-provider/catalogue.js';
import { decodeAdapterInfo } from '../../kernel-bridge/windows/nd-provider/layouts.js';
import { guidBytes, guidText, interfaces } from '../../kernel-bridge/windows/nd-provider/slots.js';
import {
  NdError,
  ndProviderOf,
  openNetworkDirect2,
  readNdProviders,
  Status,
  StatusError,
} from '../../nd/index.js';
import { vendorTerms } from '../../nd/vendor/statuses.js';

test('the first three members of a GUID are little-endian', () => {
  const text = '49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E';
  const bytes = guidBytes(text);
  assert.is(Buffer.from(bytes).toString('hex'), 'c1e6ea49c476d04680035c2eaa2c9a8e');
  for (const { iid } of Object.values(interfaces)) assert.is(guidText(guidBytes(iid)), iid);
});

test('the slots of an interface follow those of IUnknown without gaps', () => {
  for (const [name, { slots }] of Object.entries(interfaces)) {
    const numbers = Object.values(slots).map(([slot]) => slot);
    assert.equal(
      numbers,
      numbers.map((_, i) => 3 + i),
      name,
    );
  }
});

test('a provider is loaded from an absolute path only', () => {
  for (const path of ['C:\\Windows\\System32\\mlx5nd.dll', 'Z:/tmp/nd.dll'])
    assert.is(refusalOf(path), undefined);
  for (const path of [
    '',
    'nd.dll',
    '.\\nd.dll',
    '\\nd.dll',
    'C:nd.dll',
    '\\\\host\\share\\nd.dll',
    '%HOME%\\nd.dll',
  ])
    assert.match(refusalOf(path) ?? '', /must be absolute/, path);
});

test('%SystemRoot% is the folder that Windows reports', () => {
  process.env.SystemRoot = 'C:\\elsewhere';
  const path = expanded('%SystemRoot%\\system32\\mlx5nd.dll', 'C:\\Windows\\system32');
  delete process.env.SystemRoot;
  assert.is(path, 'C:\\Windows\\system32\\mlx5nd.dll');
  assert.is(expanded('%nothing%\\nd.dll', 'C:\\Windows\\system32'), '%nothing%\\nd.dll');
});

test('ND2_ADAPTER_INFO is decoded', () => {
  const bytes = new Uint8Array(96);
  const view = new DataView(bytes.buffer);
  view.setUint16(4, 0x15b3, true);
  view.setUint16(6, 0x1017, true);
  view.setBigUint64(8, 0x8123_4567_89ab_cdefn, true);
  view.setBigUint64(16, 2n ** 63n, true);
  for (let at = 32; at < 96; at += 4) view.setUint32(at, at, true);
  const info = decodeAdapterInfo(bytes);
  assert.equal([info.vendorId, info.deviceId, info.adapterId], [0x15b3, 0x1017, 0x8123_4567_89ab_cdefn]);
  assert.is(info.maxRegistrationSize, Number.MAX_SAFE_INTEGER);
  const {
    maxInitiatorSge,
    maxReadSge,
    maxInlineDataSize,
    maxCompletionQueueDepth,
    maxCalleeData,
    adapterFlags,
  } = info;
  assert.equal([maxInitiatorSge, maxReadSge, maxInlineDataSize], [32, 40, 48]);
  assert.equal([maxCompletionQueueDepth, maxCalleeData, adapterFlags], [72, 88, 92]);
});

test('HRESULTs of providers become statuses of the SPI, and errors name the method', () => {
  for (const [result, status] of [
    [0x8000_4001, Status.NOT_SUPPORTED],
    [0x8007_0057, Status.INVALID_PARAMETER],
    [0x8007_000e, Status.NO_MEMORY],
    [0x8007_04c9, Status.CONNECTION_REFUSED],
    [0x8007_2741, Status.INVALID_ADDRESS],
    [Status.CONNECTION_REFUSED, Status.CONNECTION_REFUSED],
  ] as const) {
    const error = vendorTerms.error(new StatusError(result, 'IND2Connector::Connect of a.dll'), 'Connect');
    assert.instance(error, NdError);
    assert.is(error.status, status);
    assert.match(error.message, /IND2Connector::Connect of a\.dll/);
  }
});

test('readNdProviders is empty on other systems than Windows', () => {
  if (process.platform === 'win32') return;
  assert.equal(readNdProviders(), []);
  using provider = openNetworkDirect2();
  using adapter = provider.openAdapter('127.0.0.1');
  assert.is(ndProviderOf(adapter), undefined);
});

test.run();
