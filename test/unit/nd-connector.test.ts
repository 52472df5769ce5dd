import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type ConnectorState,
  type ConnectorMethod as CoreMethod,
  connectorEvents,
  connectorStates,
  nextState,
} from '../../nd/core/connector-states.js';
import { NdError, type Overlapped, Status } from '../../nd/index.js';
import type { Connector } from '../../nd/v1/connector.js';
import type { FakeEndpoint } from '../helpers/fake-winverbs.js';
import { endpointOf, openFake, statusOf } from '../helpers/nd-fixture.js';

/** v1 has no Bind of its own, and one method for two of v2. */
type ConnectorMethod = Exclude<CoreMethod, 'bind' | 'getReadLimits' | 'getPrivateData'> | 'getConnectionData';

const PEER = '10.0.0.2:4000';
const SMALL = new Uint8Array([1, 2, 3]);

/** A connector, its surroundings, and ways to bring it into a state. */
class Rig {
  readonly fake = openFake();
  readonly connector = this.fake.adapter.createConnector() as Connector;
  readonly parts = endpointOf(this.fake.adapter, this.fake.pd, { connected: false });
  readonly listen = this.fake.adapter.listen();
  readonly listener = this.fake.wv.endpoints[0]!;

  get wv(): FakeEndpoint {
    return this.fake.wv.endpoints.at(-1)!;
  }

  connect(): Overlapped<void> {
    return this.connector.connect(this.parts.endpoint, PEER, { privateData: SMALL });
  }

  /** Ends the latest request of that name on the connector's WinVerbs endpoint, not yet observed. */
  end(name: string, status: number = Status.SUCCESS): void {
    const request = this.wv.request(name);
    if (status === Status.SUCCESS) request.succeed(undefined);
    else request.fail(status);
  }

  bring(state: ConnectorState): this {
    const { connector } = this;
    const steps: Record<ConnectorState, () => void> = {
      Idle: () => {},
      Bound: () => {
        this.connect();
        this.end('connect', Status.TIMEOUT);
      },
      Queued: () => void this.listen.getConnectionRequest(connector),
      Requested: () => {
        this.bring('Queued');
        this.listener.request('getRequest').succeed(undefined);
      },
      Accepting: () => {
        this.bring('Requested');
        connector.accept(this.parts.endpoint);
      },
      Connecting: () => void this.connect(),
      Replied: () => {
        this.bring('Connecting');
        this.end('connect');
      },
      Completing: () => {
        this.bring('Replied');
        connector.completeConnect();
      },
      Connected: () => {
        this.bring('Completing');
        this.end('accept');
      },
      ActiveDisconnect: () => {
        this.bring('Connected');
        connector.disconnect();
      },
      PassiveDisconnect: () => {
        this.bring('Connected');
        connector.notifyDisconnect();
        this.end('notifyDisconnect', Status.CONNECTION_DISCONNECTED);
      },
      Disconnected: () => {
        this.bring('ActiveDisconnect');
        this.end('disconnect');
      },
    };
    steps[state]();
    assert.is(connector.state, state);
    return this;
  }

  /** Calls a method; returns the status of its refusal, SUCCESS if it is accepted. */
  try(method: ConnectorMethod): number {
    const { connector } = this;
    const other = endpointOf(this.fake.adapter, this.fake.pd, { connected: false }).endpoint;
    const calls: Record<ConnectorMethod, () => unknown> = {
      getConnectionRequest: () => this.listen.getConnectionRequest(connector),
      connect: () => connector.connect(other, PEER),
      completeConnect: () => connector.completeConnect(),
      accept: () => connector.accept(other),
      reject: () => connector.reject(SMALL),
      getConnectionData: () => connector.getConnectionData(),
      getLocalAddress: () => connector.getLocalAddress(),
      getPeerAddress: () => connector.getPeerAddress(),
      notifyDisconnect: () => connector.notifyDisconnect(),
      disconnect: () => connector.disconnect(),
    };
    return statusOf(calls[method]);
  }
}

const INV = 0xc000023a;
const ACT = 0xc000023b;
const ABT = 0xc0000241;
const STATE = 0xc0000184;
const NASSOC = 0xc0000239;
const DISC = 0xc000020c;

// biome-ignore format: a table, typed anew from the SPI's rules and not from the code
const expectedLegality: Record<ConnectorMethod, Record<ConnectorState, number>> = {
  getConnectionRequest: { Idle: 0, Bound: ACT, Queued: ACT, Requested: ACT, Accepting: ACT, Connecting: ACT, Replied: ACT, Completing: ACT, Connected: ACT, ActiveDisconnect: ACT, PassiveDisconnect: ACT, Disconnected: ACT },
  connect: { Idle: 0, Bound: 0, Queued: STATE, Requested: ACT, Accepting: ACT, Connecting: ACT, Replied: ACT, Completing: ACT, Connected: ACT, ActiveDisconnect: ACT, PassiveDisconnect: ACT, Disconnected: STATE },
  completeConnect: { Idle: INV, Bound: INV, Queued: INV, Requested: INV, Accepting: INV, Connecting: INV, Replied: 0, Completing: INV, Connected: INV, ActiveDisconnect: INV, PassiveDisconnect: INV, Disconnected: ABT },
  accept: { Idle: INV, Bound: INV, Queued: INV, Requested: 0, Accepting: ACT, Connecting: ACT, Replied: ACT, Completing: ACT, Connected: ACT, ActiveDisconnect: ACT, PassiveDisconnect: ACT, Disconnected: ABT },
  reject: { Idle: STATE, Bound: STATE, Queued: STATE, Requested: 0, Accepting: STATE, Connecting: STATE, Replied: 0, Completing: STATE, Connected: STATE, ActiveDisconnect: STATE, PassiveDisconnect: STATE, Disconnected: INV },
  // Bound and Disconnected: there was no reject, so there is no data.
  getConnectionData: { Idle: INV, Bound: INV, Queued: STATE, Requested: 0, Accepting: 0, Connecting: STATE, Replied: 0, Completing: 0, Connected: 0, ActiveDisconnect: STATE, PassiveDisconnect: STATE, Disconnected: INV },
  getLocalAddress: { Idle: NASSOC, Bound: 0, Queued: NASSOC, Requested: 0, Accepting: 0, Connecting: 0, Replied: 0, Completing: 0, Connected: 0, ActiveDisconnect: 0, PassiveDisconnect: 0, Disconnected: 0 },
  getPeerAddress: { Idle: INV, Bound: INV, Queued: INV, Requested: 0, Accepting: 0, Connecting: 0, Replied: 0, Completing: 0, Connected: 0, ActiveDisconnect: 0, PassiveDisconnect: 0, Disconnected: 0 },
  notifyDisconnect: { Idle: INV, Bound: INV, Queued: INV, Requested: INV, Accepting: INV, Connecting: INV, Replied: INV, Completing: 0, Connected: 0, ActiveDisconnect: DISC, PassiveDisconnect: 0, Disconnected: DISC },
  disconnect: { Idle: INV, Bound: INV, Queued: INV, Requested: INV, Accepting: INV, Connecting: INV, Replied: INV, Completing: INV, Connected: 0, ActiveDisconnect: STATE, PassiveDisconnect: 0, Disconnected: INV },
};

for (const method of Object.keys(expectedLegality) as ConnectorMethod[]) {
  test(`${method}: what each state answers`, () => {
    for (const state of connectorStates) {
      const rig = new Rig().bring(state);
      rig.wv.attributes = {
        ...rig.wv.attributes,
        peerAddress: { family: 4, address: '10.0.0.2', port: 4000 },
      };
      assert.is(rig.try(method), expectedLegality[method][state], `${method} in ${state}`);
      // A refused call has no effect.
      if (expectedLegality[method][state] !== 0) assert.is(rig.connector.state, state);
    }
  });
}

test('the transition table, every cell', () => {
  const expected: Record<string, string> = {
    'bound Idle': 'Bound',
    'requestAwaited Idle': 'Queued',
    'requestArrived Queued': 'Requested',
    'requestFailed Queued': 'Idle',
    'connectStarted Idle': 'Connecting',
    'connectStarted Bound': 'Connecting',
    'connectFailed Connecting': 'Bound',
    'connectCanceled Connecting': 'Disconnected',
    'replied Connecting': 'Replied',
    'completeStarted Replied': 'Completing',
    'completed Completing': 'Connected',
    'completeFailed Completing': 'Disconnected',
    'completeFailed PassiveDisconnect': 'Disconnected',
    'acceptStarted Requested': 'Accepting',
    'accepted Accepting': 'Connected',
    'acceptFailed Accepting': 'Disconnected',
    'rejected Requested': 'Disconnected',
    'rejected Replied': 'Disconnected',
    'peerGaveUp Requested': 'Disconnected',
    'peerGaveUp Replied': 'Disconnected',
    'peerDisconnected Completing': 'PassiveDisconnect',
    'peerDisconnected Connected': 'PassiveDisconnect',
    'disconnectStarted Connected': 'ActiveDisconnect',
    'disconnectStarted PassiveDisconnect': 'ActiveDisconnect',
    'disconnected ActiveDisconnect': 'Disconnected',
  };
  for (const event of connectorEvents) {
    for (const state of connectorStates) {
      assert.is(nextState(state, event), expected[`${event} ${state}`] ?? state, `${event} in ${state}`);
    }
  }
});

test('connect passes address, data and read limits, and binds the adapter address', () => {
  const rig = new Rig();
  rig.connect();
  assert.equal(rig.wv.argsOf('bindAddress'), [{ family: 4, address: '10.0.0.1', port: 0 }]);
  assert.equal(rig.wv.argsOf('resolveRoute'), [{ family: 4, address: '10.0.0.2', port: 4000 }]);
  const [qp, peer, param] = rig.wv.argsOf('connect');
  assert.is(qp, rig.parts.qp);
  assert.equal(peer, { family: 4, address: '10.0.0.2', port: 4000 });
  assert.equal(param, { privateData: SMALL, responderResources: 16, initiatorDepth: 8 });
});

test('a loopback destination means the adapter itself', () => {
  const rig = new Rig();
  rig.connector.connect(rig.parts.endpoint, '127.0.0.1:4000');
  assert.equal(rig.wv.argsOf('resolveRoute'), [{ family: 4, address: '10.0.0.1', port: 4000 }]);
});

test('a refused connect reports why and leaves endpoint and connector ready, with the same port', async () => {
  const rig = new Rig();
  const first = rig.connect();
  const firstWv = rig.wv;
  const { port } = rig.connector.getLocalAddress();
  firstWv.attributes = { ...firstWv.attributes, privateData: new Uint8Array([9, 9]) };
  rig.end('connect', Status.CONNECTION_REFUSED);
  firstWv.request('connect').deliver();
  await rejects(first, Status.CONNECTION_REFUSED);
  assert.is(rig.connector.state, 'Bound');
  assert.equal(rig.connector.getConnectionData().privateData, new Uint8Array([9, 9]));
  assert.is(rig.parts.qp.modified.length, 1, 'nothing touched the queue pair after INIT');

  // Again, on a new WinVerbs endpoint bound to the port that the first one holds.
  rig.connect();
  assert.is.not(rig.wv, firstWv);
  assert.equal(rig.wv.argsOf('bindAddress'), [{ family: 4, address: '10.0.0.1', port }]);
  assert.is(firstWv.references, 1, 'the first keeps the port claimed');
  rig.end('connect', Status.TIMEOUT);
  const second = rig.wv;
  rig.connect();
  assert.is(second.references, 0, 'those in between are let go');
  assert.is(rig.connector.getLocalAddress().port, port);
  rig.end('connect');
  assert.is(rig.connector.state, 'Replied');
  rig.connector.release();
  assert.is(firstWv.references, 0);
  assert.is(rig.wv.references, 0);
});

test('reject data is gone when the next connect starts', () => {
  const rig = new Rig();
  rig.connect();
  rig.end('connect', Status.CONNECTION_REFUSED);
  assert.is(
    statusOf(() => rig.connector.getConnectionData()),
    Status.SUCCESS,
  );
  rig.connect();
  rig.end('connect', Status.TIMEOUT);
  assert.is(
    statusOf(() => rig.connector.getConnectionData()),
    Status.CONNECTION_INVALID,
  );
});

test('time-outs of connect, accept and completeConnect are TIMEOUT', async () => {
  for (const below of [Status.TIMEOUT, Status.IO_TIMEOUT]) {
    const active = new Rig();
    const connect = active.connect();
    active.end('connect', below);
    await rejects(connect, Status.TIMEOUT);

    const passive = new Rig().bring('Requested');
    const accept = passive.connector.accept(passive.parts.endpoint);
    passive.end('accept', below);
    await rejects(accept, Status.TIMEOUT);
    assert.is(passive.connector.state, 'Disconnected');

    const completing = new Rig().bring('Replied');
    const complete = completing.connector.completeConnect();
    completing.end('accept', below);
    await rejects(complete, Status.TIMEOUT);
    assert.is(completing.connector.state, 'Disconnected');
  }
});

test('a canceled connect ends the connector and frees the endpoint', async () => {
  const rig = new Rig();
  const request = rig.connect();
  rig.connector.cancelOverlappedRequests();
  assert.is(request.completed, true);
  await rejects(request, Status.CANCELED);
  assert.is(rig.connector.state, 'Disconnected');
  assert.is(rig.parts.endpoint.connector, undefined);
});

test('an unreachable peer is an outcome of the request, and connect may be repeated', async () => {
  const rig = new Rig();
  for (const [below, status] of [
    [Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
    [Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
    [Status.NOT_FOUND, Status.BAD_NETWORK_NAME],
  ] as const) {
    rig.fake.wv.failures.set('resolveRoute', below);
    await rejects(rig.connect(), status);
    assert.is(rig.connector.state, 'Bound');
  }
  rig.connect();
  assert.is(rig.connector.state, 'Connecting');
});

test('bad arguments of connect and accept throw and change nothing', () => {
  const rig = new Rig();
  const { connector, parts } = rig;
  const tooLong = { privateData: new Uint8Array(57) };
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, PEER, tooLong)),
    Status.INVALID_BUFFER_SIZE,
  );
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, 'nonsense')),
    Status.INVALID_ADDRESS,
  );
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, '[fd00::2]:1')),
    Status.INVALID_ADDRESS,
  );
  for (const port of [-1, 70_000, 1.5, undefined as never]) {
    const peer = { family: 4, address: '10.0.0.2', port } as const;
    assert.is(
      statusOf(() => connector.connect(parts.endpoint, peer)),
      Status.INVALID_ADDRESS,
      String(port),
    );
  }
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, PEER, { protocol: 17 })),
    Status.NOT_SUPPORTED,
  );
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, PEER, { protocol: 256 })),
    Status.INVALID_PARAMETER_3,
  );
  assert.is(
    statusOf(() => connector.connect(parts.endpoint, PEER, { localPort: -1 })),
    Status.INVALID_PARAMETER,
  );
  assert.is(
    statusOf(() => connector.connect({} as never, PEER)),
    Status.INVALID_PARAMETER_1,
  );
  assert.is(connector.state, 'Idle');

  const passive = new Rig().bring('Requested');
  assert.is(
    statusOf(() => passive.connector.accept(passive.parts.endpoint, new Uint8Array(149))),
    Status.INVALID_BUFFER_SIZE,
  );
  assert.is(
    statusOf(() => passive.connector.accept(parts.endpoint)),
    Status.INVALID_PARAMETER_1,
  );
  assert.is(passive.connector.state, 'Requested');
});

test('an endpoint of another adapter instance is refused', () => {
  const rig = new Rig();
  const other = openFake();
  const { endpoint } = endpointOf(other.adapter, other.pd);
  assert.is(
    statusOf(() => rig.connector.connect(endpoint, PEER)),
    Status.INVALID_PARAMETER_1,
  );
});

test('an endpoint serves one connector at a time', () => {
  const rig = new Rig().bring('Connecting');
  const second = rig.fake.adapter.createConnector();
  assert.is(
    statusOf(() => second.connect(rig.parts.endpoint, PEER)),
    Status.CONNECTION_ACTIVE,
  );
});

test('a bind that fails leaves the connector idle and lets the endpoint below go', () => {
  const rig = new Rig();
  rig.fake.wv.failures.set('bindAddress', Status.SHARING_VIOLATION);
  assert.is(
    statusOf(() => rig.connect()),
    Status.ADDRESS_ALREADY_EXISTS,
  );
  assert.is(rig.connector.state, 'Idle');
  assert.is(rig.wv.references, 0);
});

test('accept stays within what the peer offered', () => {
  const rig = new Rig().bring('Requested');
  rig.wv.attributes = { ...rig.wv.attributes, responderResources: 200, initiatorDepth: 2 };
  const data = rig.connector.getConnectionData();
  assert.is(data.inboundReadLimit, 16, 'reduced to what the adapter can');
  assert.is(data.outboundReadLimit, 2);
  rig.connector.accept(rig.parts.endpoint, SMALL);
  const [qp, param] = rig.wv.argsOf('accept');
  assert.is(qp, rig.parts.qp);
  assert.equal(param, { privateData: SMALL, responderResources: 16, initiatorDepth: 2 });
});

test('completeConnect leaves queue pair and depths to what connect said', () => {
  const rig = new Rig().bring('Completing');
  assert.equal(rig.wv.argsOf('accept'), [null, {}]);
});

test('a requester that gave up is CONNECTION_ABORTED', async () => {
  const accepting = new Rig().bring('Requested');
  const accept = accepting.connector.accept(accepting.parts.endpoint);
  accepting.end('accept', Status.INVALID_DEVICE_STATE);
  await rejects(accept, Status.CONNECTION_ABORTED);
  assert.is(accepting.connector.state, 'Disconnected');

  const rejecting = new Rig().bring('Requested');
  rejecting.fake.wv.failures.set('reject', Status.INVALID_DEVICE_STATE);
  assert.is(
    statusOf(() => rejecting.connector.reject()),
    Status.CONNECTION_ABORTED,
  );
  assert.is(rejecting.connector.state, 'Disconnected');
});

test('a reply that the peer turned down is CONNECTION_REFUSED, and its data can be read', async () => {
  const rig = new Rig().bring('Requested');
  const accept = rig.connector.accept(rig.parts.endpoint);
  rig.end('accept', Status.CONNECTION_REFUSED);
  await rejects(accept, Status.CONNECTION_REFUSED);
  assert.is(
    statusOf(() => rig.connector.getConnectionData()),
    Status.SUCCESS,
  );
});

test('the peer disconnects: notifications succeed, and so does disconnect', async () => {
  const rig = new Rig().bring('Connected');
  const notifications = [rig.connector.notifyDisconnect(), rig.connector.notifyDisconnect()];
  for (const request of rig.wv.requests.filter(({ name }) => name === 'notifyDisconnect')) {
    request.fail(Status.CONNECTION_DISCONNECTED);
    request.deliver();
  }
  await Promise.all(notifications);
  assert.is(rig.connector.state, 'PassiveDisconnect');
  const disconnect = rig.connector.disconnect();
  rig.end('disconnect');
  rig.wv.request('disconnect').deliver();
  await disconnect;
  assert.is(rig.connector.state, 'Disconnected');
});

test('a connection that was lost ends notifications with success too', async () => {
  const rig = new Rig().bring('Connected');
  const notification = rig.connector.notifyDisconnect();
  rig.end('notifyDisconnect', Status.CONNECTION_ABORTED);
  await notification;
  assert.is(rig.connector.state, 'PassiveDisconnect');
});

test('our own disconnect ends notifications with CANCELED, at once', async () => {
  const rig = new Rig().bring('Connected');
  const notification = rig.connector.notifyDisconnect();
  rig.connector.disconnect();
  assert.is(rig.wv.request('notifyDisconnect').canceled, true);
  await rejects(notification, Status.CANCELED);
  assert.is(rig.connector.state, 'ActiveDisconnect');
});

test('our own disconnect ends notifications with CANCELED also when the answer of the peer is faster', async () => {
  const rig = new Rig().bring('Connected');
  const notification = rig.connector.notifyDisconnect();
  // The kernel below completes it before our cancel, but after our disconnect.
  const request = rig.wv.request('notifyDisconnect');
  const { disconnect } = rig.wv;
  rig.wv.disconnect = () => {
    request.fail(Status.CONNECTION_DISCONNECTED);
    return disconnect.call(rig.wv);
  };
  rig.connector.disconnect();
  await rejects(notification, Status.CANCELED);
});

test('a disconnect that nobody answers is TIMEOUT, and the connection is over', async () => {
  const rig = new Rig().bring('Connected');
  const disconnect = rig.connector.disconnect();
  rig.end('disconnect', Status.TIMEOUT);
  await rejects(disconnect, Status.TIMEOUT);
  assert.is(rig.connector.state, 'Disconnected');
});

test('canceling a notification leaves the connection up', async () => {
  const rig = new Rig().bring('Connected');
  const notification = rig.connector.notifyDisconnect();
  notification.cancel();
  await rejects(notification, Status.CANCELED);
  assert.is(rig.connector.state, 'Connected');
});

test('a canceled getConnectionRequest returns the connector to idle, for any role', async () => {
  const rig = new Rig();
  const request = rig.listen.getConnectionRequest(rig.connector);
  rig.listen.cancelOverlappedRequests();
  assert.is(rig.connector.state, 'Idle');
  await rejects(request, Status.CANCELED);
  rig.connect();
  assert.is(rig.connector.state, 'Connecting');
});

test('a released connector takes its waiting request along', () => {
  const rig = new Rig().bring('Queued');
  const { connector } = rig;
  connector.release();
  assert.is(rig.listener.request('getRequest').canceled, true);
  assert.is(
    statusOf(() => connector.getLocalAddress()),
    Status.INVALID_HANDLE,
  );
  assert.is(connector.release(), 0, 'releasing again does nothing');
});

test('states follow completions that nobody awaits', () => {
  const rig = new Rig();
  rig.connect();
  rig.end('connect');
  // No await, no turn of the event loop.
  rig.connector.completeConnect();
  rig.end('accept');
  rig.connector.notifyDisconnect();
  assert.is(rig.connector.state, 'Connected');
});

test('await using disconnects and releases', async () => {
  const rig = new Rig().bring('Connected');
  const disposed = rig.connector[Symbol.asyncDispose]();
  rig.end('disconnect', Status.TIMEOUT);
  rig.wv.request('disconnect').deliver();
  await disposed;
  assert.is(rig.wv.references, 0);
});

async function rejects(request: Overlapped<unknown>, status: number): Promise<void> {
  request.settle();
  try {
    await request;
  } catch (error) {
    assert.instance(error, NdError, String(error));
    assert.is((error as NdError).status, status);
    return;
  }
  assert.unreachable('The request succeeded.');
}

test('an endpoint that waited for a request is not used to connect in another protocol’s port space', () => {
  const rig = new Rig().bring('Queued');
  rig.connector.cancelOverlappedRequests();
  rig.listener.request('getRequest').fail(Status.CANCELED);
  assert.is(rig.connector.state, 'Idle');
  const waited = rig.wv;
  rig.connector.connect(rig.parts.endpoint, PEER, { protocol: 200 });
  assert.is.not(rig.wv, waited);
  assert.is(rig.wv.protocol, 200);
});

test.run();
