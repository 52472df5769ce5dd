import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, Status } from '../../nd/index.js';
import { endsIn, openFake } from '../helpers/nd-fixture.js';
import { throwsStatus } from '../helpers/outcome.js';

test('the address list contains the addresses of RDMA devices', () => {
  const { nd, wv } = openFake();
  assert.equal(
    nd.queryAddressList().map(({ address }) => address),
    ['10.0.0.1', 'fd00::1'],
  );
  wv.translateAddress = () => {
    throw new TypeError('broken');
  };
  assert.throws(() => nd.queryAddressList(), TypeError);
});

test('an adapter can be opened by each of its addresses, as text or object', () => {
  const { nd } = openFake();
  assert.equal(nd.openAdapter('fd00::1').address, { family: 6, address: 'fd00::1', port: 0 });
  const byObject = nd.openAdapter({ family: 4, address: '10.0.0.1', port: 999 });
  assert.equal(byObject.address, { family: 4, address: '10.0.0.1', port: 0 });
  assert.equal(nd.openAdapter({ address: 'fd00::1', port: 1 }).address.family, 6);
  assert.equal(nd.openAdapter({ address: '10.0.0.1', port: 1, family: undefined }).address.family, 4);
});

test('v1 can also open an adapter by its v2 id', () => {
  const { nd, wv } = openFake();
  const { deviceGuid } = wv.translateAddress({ family: 4, address: '10.0.0.1', port: 0 });
  assert.is(nd.openAdapter(deviceGuid).address.address, '10.0.0.1');
  for (const id of [deviceGuid + 1n, -1n, 1n << 64n]) {
    endsIn(() => nd.openAdapter(id), Status.INVALID_PARAMETER, String(id));
  }
});

test('foreign, wildcard and malformed addresses are INVALID_ADDRESS, and nothing stays open', () => {
  const { nd, wv } = openFake();
  const before = wv.references;
  const objects = [{ family: 5, address: 'x', port: 0 }, undefined, null, 7];
  for (const address of ['192.168.7.7', '0.0.0.0', '::', 'here', '', ...objects]) {
    endsIn(() => nd.openAdapter(address as string), Status.INVALID_ADDRESS, String(address));
  }
  assert.is(wv.references, before);
});

test('an adapter whose opening fails half-way leaves nothing open', () => {
  const { nd, wv } = openFake();
  const before = wv.references;
  wv.failures.set('allocateProtectionDomain', Status.NO_MEMORY);
  endsIn(() => nd.openAdapter('10.0.0.1'), Status.NO_MEMORY);
  assert.is(wv.references, before);
  assert.is(wv.devices.at(-1)!.references, 0);
});

test('the error for an unknown option names it and lists the known ones', () => {
  const { adapter } = openFake();
  const cq = adapter.createCompletionQueue(4);
  const refused = (call: () => unknown, text: RegExp): void =>
    assert.instance(throwsStatus(call, Status.INVALID_PARAMETER, text), NdError);
  // Untyped JavaScript may pass any options.
  const loose = <O>(options: unknown): O => options as O;
  refused(() => adapter.listen(loose({ prot: 1 })), /must contain only port, backlog, protocol; got 'prot'/);
  refused(() => adapter.listen(loose(null)), /object with port/);
  const connector = adapter.createConnector();
  const endpoint = {
    inboundCompletionQueue: cq,
    outboundCompletionQueue: cq,
    inboundEntries: 1,
    outboundEntries: 1,
  };
  refused(
    () => connector.createEndpoint(loose({ ...endpoint, inboundSges: 2 })),
    /must contain only .*; got 'inboundSges'/,
  );
  const made = connector.createEndpoint(endpoint);
  refused(
    () => connector.connect(made, '10.0.0.2:5', loose({ data: 1 })),
    /must contain only priv.*; got 'data'/,
  );
  // The connector is unchanged.
  connector.connect(made, '10.0.0.2:5', { localPort: 0 });
});

test('N4: limits are integers of the right size', () => {
  const { adapter, wv } = openFake();
  // This failure prevents the measurement of the threshold.
  wv.failures.set('registerMemory', Status.INSUFFICIENT_RESOURCES);
  assert.equal(adapter.query(), {
    vendorId: 0x1234,
    deviceId: 0x56,
    maxInboundSge: 4,
    maxInboundRequests: 1000,
    maxInboundLength: 2147483648,
    maxOutboundSge: 4,
    maxOutboundRequests: 1000,
    maxOutboundLength: 2147483648,
    maxInlineData: 512,
    maxInboundReadLimit: 16,
    maxOutboundReadLimit: 8,
    maxCqEntries: 5000,
    maxRegistrationSize: 2 ** 20,
    maxWindowSize: 2 ** 20,
    largeRequestThreshold: 2 ** 20,
    maxCallerData: 56,
    maxCalleeData: 148,
  });
  endsIn(() => adapter.query(0x20000), Status.NOT_SUPPORTED);
});

test('control is not supported', () => {
  const { adapter } = openFake();
  endsIn(() => adapter.control(1, null, 0), Status.NOT_SUPPORTED);
});

test('listen binds the adapter address and reports the port', () => {
  const { adapter, wv } = openFake();
  const listen = adapter.listen({ port: 0, backlog: 5 });
  const [endpoint] = wv.endpoints;
  assert.equal(endpoint!.argsOf('bindAddress'), [{ family: 4, address: '10.0.0.1', port: 0 }]);
  assert.equal(endpoint!.argsOf('listen'), [5]);
  assert.is(listen.port, 50_001);
  assert.equal(listen.address, { family: 4, address: '10.0.0.1', port: 50_001 });
  assert.is(adapter.listen({ port: 7, protocol: 123 }).port, 7);
});

test('N9: a rejected listen does not create an endpoint; a failed one releases its endpoint once', () => {
  const { adapter, wv } = openFake();
  const { INVALID_PARAMETER, INVALID_PARAMETER_1, INVALID_PARAMETER_3, NOT_SUPPORTED } = Status;
  for (const [options, status] of [
    [{ port: Number.NaN }, INVALID_PARAMETER],
    [{ backlog: 0.5 }, INVALID_PARAMETER_1],
    [{ protocol: 1.5 }, INVALID_PARAMETER_3],
    [{ protocol: 17 }, NOT_SUPPORTED],
  ] as const) {
    throwsStatus(() => adapter.listen(options), status);
  }
  assert.is(wv.endpoints.length, 0);
  wv.failures.set('listen', Status.ADDRESS_ALREADY_EXISTS);
  endsIn(() => adapter.listen({ port: 7 }), Status.ADDRESS_ALREADY_EXISTS);
  assert.is(wv.endpoints[0]!.references, 0);
});

test('getConnectionRequest only accepts connectors of its own adapter instance', () => {
  const { adapter, nd, wv } = openFake();
  const listen = adapter.listen();
  const foreign = nd.openAdapter('10.0.0.1').createConnector();
  endsIn(() => listen.getConnectionRequest(foreign), Status.INVALID_PARAMETER_1);
  endsIn(() => listen.getConnectionRequest({} as never), Status.INVALID_PARAMETER_1);
  const connector = adapter.createConnector();
  listen.getConnectionRequest(connector);
  assert.is(wv.endpoints[0]!.argsOf('getRequest')[0], wv.endpoints[1]);
});

test('everything can be released in any order', () => {
  const { adapter, nd, wv, device, pd } = openFake();
  const queue = adapter.createCompletionQueue(1);
  const window = adapter.createMemoryWindow();
  const listen = adapter.listen();
  const connector = adapter.createConnector();
  nd.release();
  adapter.release();
  assert.is(adapter.release(), 0);
  endsIn(() => adapter.query(), Status.INVALID_HANDLE);
  queue.release();
  connector.release();
  window.release();
  assert.is(pd.references, 1);
  listen.release();
  assert.equal(
    [pd, device, wv, device.queues[0]!, pd.windows[0]!, wv.endpoints[0]!].map(({ references }) => references),
    [0, 0, 0, 0, 0, 0],
  );
});

test.run();
