/**
 * Features of connectors and listeners that only exist in v2. T and G are the numbers of traps and gaps in
 * nd2-coverage.test.ts.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, Status } from '../../nd/index.js';
import { OWN, PEER, RigV2 } from '../helpers/nd-connector-rig.js';
import { endsIn, statusOf } from '../helpers/nd-fixture.js';
import { openFake2 } from '../helpers/nd2-fixture.js';

test('T9 connectors and listeners have their address as soon as they are bound', () => {
  const rig = new RigV2();
  const { connector } = rig.bring('Bound');
  assert.is(connector.getLocalAddress().address, OWN);
  assert.ok(connector.getLocalAddress().port >= 49_152);
  const listener = rig.fake.adapter.createListener();
  endsIn(() => listener.getLocalAddress(), Status.INVALID_DEVICE_STATE);
  listener.bind(`${OWN}:4711`);
  assert.equal(listener.getLocalAddress(), { family: 4, address: OWN, port: 4711 });
});

test('G11 the read limits of connect and accept are reduced to those of the adapter and of the peer', () => {
  const active = new RigV2().bring('Bound');
  active.connector.connect(active.queuePair, PEER, { inboundReadLimit: 1_000_000, outboundReadLimit: 5 });
  const [, , param] = active.wv.argsOf('connect');
  assert.equal(param, { responderResources: 16, initiatorDepth: 5 });
  for (const [offer, wanted, got] of [
    [4, 1, 1],
    [0, 16, 0],
  ] as const) {
    const rig = new RigV2().bring('Requested');
    rig.wv.attributes = { ...rig.wv.attributes, responderResources: offer, initiatorDepth: offer };
    rig.connector.accept(rig.queuePair, { inboundReadLimit: wanted, outboundReadLimit: wanted });
    assert.equal(rig.wv.argsOf('accept')[1], { responderResources: got, initiatorDepth: got });
  }
});

test('G7 invalid arguments of connect, accept and bind are reported by number', () => {
  const rig = new RigV2().bring('Bound');
  const connect = (options: object) => statusOf(() => rig.connector.connect(rig.queuePair, PEER, options));
  assert.is(connect({ inboundReadLimit: -1 }), Status.INVALID_PARAMETER_4);
  assert.is(connect({ outboundReadLimit: 1.5 }), Status.INVALID_PARAMETER_5);
  assert.is(rig.connector.state, 'Bound');
  for (const address of ['192.168.7.7', '0.0.0.0', '::', 'no address']) {
    const idle = rig.newConnector();
    endsIn(() => idle.bind(address), Status.INVALID_ADDRESS, address);
    idle.bind(OWN);
  }
  const passive = new RigV2().bring('Requested');
  const accept = (options: object) => statusOf(() => passive.connector.accept(passive.queuePair, options));
  assert.is(accept({ inboundReadLimit: -1 }), Status.INVALID_PARAMETER_2);
  assert.is(accept({ outboundReadLimit: Number.NaN }), Status.INVALID_PARAMETER_3);
  assert.is(passive.connector.state, 'Requested');
});

test('T3 an outstanding request is PENDING, no matter which object is queried, and ends once', async () => {
  const rig = new RigV2().bring('Bound');
  const request = rig.connect();
  const other = rig.fake.adapter.createMemoryRegion();
  assert.throws(
    () => other.getOverlappedResult(request),
    (error: unknown) => (error as NdError).status === Status.PENDING,
  );
  rig.end('connect', Status.CONNECTION_REFUSED);
  for (let i = 0; i < 3; i += 1) {
    endsIn(() => other.getOverlappedResult(request, { wait: true }), Status.CONNECTION_REFUSED);
  }
});

test('a listener binds once and listens once; its states and arguments are checked', () => {
  const { adapter } = openFake2();
  const listener = adapter.createListener();
  const connector = adapter.createConnector();
  endsIn(() => listener.listen(), Status.INVALID_DEVICE_STATE);
  endsIn(() => listener.getConnectionRequest(connector), Status.INVALID_DEVICE_STATE);
  endsIn(() => listener.bind('10.9.9.9'), Status.INVALID_ADDRESS);
  listener.cancelOverlappedRequests();
  listener.bind(OWN);
  endsIn(() => listener.bind(OWN), Status.ADDRESS_ALREADY_ASSOCIATED);
  endsIn(() => listener.getConnectionRequest(connector), Status.INVALID_DEVICE_STATE);
  for (const backlog of [-1, 1.5, Number.NaN, 2 ** 32]) {
    endsIn(() => listener.listen(backlog), Status.INVALID_PARAMETER);
  }
  listener.listen(5);
  endsIn(() => listener.listen(), Status.INVALID_DEVICE_STATE);
  endsIn(() => listener.getConnectionRequest({} as never), Status.INVALID_PARAMETER_1);
  listener.release();
  endsIn(() => listener.getConnectionRequest(connector), Status.INVALID_HANDLE);
});

test('the wildcard address of a listener means its own adapter’s addresses', () => {
  const { wv, adapter } = openFake2();
  for (const address of ['0.0.0.0', '[::]:4000']) {
    const listener = adapter.createListener();
    listener.bind(address);
    assert.equal(wv.endpoints.at(-1)!.argsOf('bindAddress')[1], {
      deviceGuid: 7n,
      pkey: 0xffff,
      portNumber: 1,
    });
  }
});

test('an address in use is reported by the same call as in the driver: Bind or Listen', () => {
  for (const [where, status] of [
    ['bindAddress', Status.SHARING_VIOLATION],
    ['bindAddress', Status.TOO_MANY_ADDRESSES],
    ['listen', Status.ADDRESS_ALREADY_EXISTS],
  ] as const) {
    const { wv, adapter } = openFake2();
    const listener = adapter.createListener();
    wv.failures.set(where, status);
    const failed = statusOf(() => {
      listener.bind(OWN);
      listener.listen();
    });
    assert.is(failed, status);
    assert.instance(new NdError(failed), NdError);
  }
});

test.run();
