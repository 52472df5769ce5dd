/** The v2 connector and listener on WinVerbs in memory. T and G number the traps and gaps of nd2-coverage.test.ts. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type ConnectorMethod,
  type ConnectorState,
  connectorMethods,
  connectorStates,
} from '../../nd/core/connector-states.js';
import { NdError, type Overlapped, Status } from '../../nd/index.js';
import type { Connector } from '../../nd/v2/connector.js';
import { QpState } from '../../winverbs/index.js';
import type { FakeEndpoint } from '../helpers/fake-winverbs.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { openFake2, queuePairOf } from '../helpers/nd2-fixture.js';
import { outcome } from '../helpers/outcome.js';

const OWN = '10.0.0.1';
const PEER = '10.0.0.2:4000';
const DATA = new Uint8Array([1, 2, 3]);

class Rig {
  readonly fake = openFake2();
  readonly connector = this.fake.adapter.createConnector() as Connector;
  readonly parts = queuePairOf(this.fake.adapter, this.fake.pd, { connected: false });
  readonly listener = this.fake.adapter.createListener();
  readonly listening: FakeEndpoint;

  constructor() {
    this.listener.bind(OWN);
    this.listener.listen();
    this.listening = this.fake.wv.endpoints[0]!;
  }

  /** The connector's WinVerbs endpoint. */
  get wv(): FakeEndpoint {
    return this.fake.wv.endpoints.at(-1)!;
  }

  connect(): Overlapped<void> {
    return this.connector.connect(this.parts.queuePair, PEER, { privateData: DATA });
  }

  end(name: string, status: number = Status.SUCCESS): void {
    const request = this.wv.request(name);
    if (status === Status.SUCCESS) request.succeed(undefined);
    else request.fail(status);
  }

  bring(state: ConnectorState): this {
    const { connector } = this;
    const steps: Record<ConnectorState, () => void> = {
      Idle: () => {},
      Bound: () => connector.bind(OWN),
      Queued: () => void this.listener.getConnectionRequest(connector),
      Requested: () => {
        this.bring('Queued');
        this.listening.request('getRequest').succeed(undefined);
      },
      Accepting: () => void this.bring('Requested').connector.accept(this.parts.queuePair),
      Connecting: () => void this.bring('Bound').connect(),
      Replied: () => this.bring('Connecting').end('connect'),
      Completing: () => void this.bring('Replied').connector.completeConnect(),
      Connected: () => this.bring('Completing').end('accept'),
      ActiveDisconnect: () => void this.bring('Connected').connector.disconnect(),
      PassiveDisconnect: () => {
        this.bring('Connected').connector.notifyDisconnect();
        this.end('notifyDisconnect', Status.CONNECTION_DISCONNECTED);
      },
      Disconnected: () => this.bring('ActiveDisconnect').end('disconnect'),
    };
    steps[state]();
    assert.is(connector.state, state);
    return this;
  }

  try(method: ConnectorMethod): number {
    const { connector } = this;
    const other = queuePairOf(this.fake.adapter, this.fake.pd, { connected: false }).queuePair;
    const calls: Record<ConnectorMethod, () => unknown> = {
      bind: () => connector.bind(OWN),
      getConnectionRequest: () => this.listener.getConnectionRequest(connector),
      connect: () => connector.connect(other, PEER),
      completeConnect: () => connector.completeConnect(),
      accept: () => connector.accept(other),
      reject: () => connector.reject(DATA),
      getReadLimits: () => connector.getReadLimits(),
      getPrivateData: () => connector.getPrivateData(),
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
const ASSOC = 0xc0000238;
const NASSOC = 0xc0000239;
const DISC = 0xc000020c;

// biome-ignore format: a table, typed anew from the SPI's rules and not from the code
const expected: Record<ConnectorMethod, readonly number[]> = {
  // Idle, Bound, Queued, Requested, Accepting, Connecting, Replied, Completing, Connected, ActiveDisconnect, PassiveDisconnect, Disconnected
  bind:                 [0, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC],
  getConnectionRequest: [0, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT],
  connect:              [NASSOC, 0, STATE, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, STATE],
  completeConnect:      [INV, INV, INV, INV, INV, INV, 0, INV, INV, INV, INV, ABT],
  accept:               [INV, INV, INV, 0, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ABT],
  reject:               [STATE, STATE, STATE, 0, STATE, STATE, 0, STATE, STATE, STATE, STATE, INV],
  getReadLimits:        [STATE, STATE, STATE, 0, 0, STATE, 0, 0, 0, STATE, STATE, INV],
  getPrivateData:       [INV, INV, STATE, 0, 0, STATE, 0, 0, 0, STATE, STATE, INV],
  getLocalAddress:      [NASSOC, 0, NASSOC, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  getPeerAddress:       [INV, INV, INV, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  notifyDisconnect:     [INV, INV, INV, INV, INV, INV, INV, 0, 0, DISC, 0, DISC],
  disconnect:           [INV, INV, INV, INV, INV, INV, INV, INV, 0, STATE, 0, INV],
};

for (const method of connectorMethods) {
  test(`G3 ${method}: what each state answers`, () => {
    for (const [index, state] of connectorStates.entries()) {
      const rig = new Rig().bring(state);
      const { wv } = rig;
      wv.attributes = { ...wv.attributes, peerAddress: { family: 4, address: '10.0.0.2', port: 4000 } };
      const status = expected[method][index]!;
      assert.is(rig.try(method), status, `${method} in ${state}`);
      // A refused call has no effect.
      if (status !== 0) assert.is(rig.connector.state, state);
    }
  });
}

test('T9 both ends have their address as soon as they are bound', () => {
  const rig = new Rig();
  const { connector } = rig.bring('Bound');
  assert.is(connector.getLocalAddress().address, OWN);
  assert.ok(connector.getLocalAddress().port >= 49_152);
  const listener = rig.fake.adapter.createListener();
  assert.is(
    statusOf(() => listener.getLocalAddress()),
    Status.INVALID_DEVICE_STATE,
  );
  listener.bind(`${OWN}:4711`);
  assert.equal(listener.getLocalAddress(), { family: 4, address: OWN, port: 4711 });
});

test('G11 connect passes read limits within the adapter, and the data', () => {
  const rig = new Rig().bring('Bound');
  rig.connector.connect(rig.parts.queuePair, PEER, {
    inboundReadLimit: 1_000_000,
    outboundReadLimit: 5,
    privateData: DATA,
  });
  const [qp, peer, param] = rig.wv.argsOf('connect');
  assert.is(qp, rig.parts.qp);
  assert.equal(peer, { family: 4, address: '10.0.0.2', port: 4000 });
  assert.equal(param, { privateData: DATA, responderResources: 16, initiatorDepth: 5 });
});

test('G11 accept stays within the adapter and within what the peer offers, also where that is nothing', () => {
  for (const [offer, wanted, got] of [
    [[4, 2], {}, [4, 2]],
    [[4, 2], { inboundReadLimit: 1, outboundReadLimit: 1 }, [1, 1]],
    [[100, 100], {}, [16, 8]],
    [[0, 0], { inboundReadLimit: 16, outboundReadLimit: 16 }, [0, 0]],
  ] as const) {
    const rig = new Rig().bring('Requested');
    rig.wv.attributes = { ...rig.wv.attributes, responderResources: offer[0], initiatorDepth: offer[1] };
    assert.equal(rig.connector.getReadLimits(), {
      inbound: Math.min(offer[0], 16),
      outbound: Math.min(offer[1], 8),
    });
    rig.connector.accept(rig.parts.queuePair, wanted);
    const [, param] = rig.wv.argsOf('accept');
    assert.equal(param, { responderResources: got[0], initiatorDepth: got[1] });
  }
});

test('G4 G5 T11 a failed connect leaves the connector bound to its port, and the queue pair as it was', async () => {
  const rig = new Rig().bring('Bound');
  const { port } = rig.connector.getLocalAddress();
  rig.parts.queuePair.receive('posted', []);
  const before = rig.wv;
  for (const [below, status] of [
    [Status.CONNECTION_REFUSED, Status.CONNECTION_REFUSED],
    [Status.TIMEOUT, Status.IO_TIMEOUT],
    [Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
    [Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
  ] as const) {
    const request = rig.connect();
    rig.end('connect', below);
    rig.wv.request('connect').deliver();
    assert.is(await outcome(request), status);
    assert.is(rig.connector.state, 'Bound');
    assert.is(rig.connector.getLocalAddress().port, port);
    assert.is(rig.parts.queuePair.connector, undefined);
  }
  assert.is.not(rig.wv, before, 'a WinVerbs endpoint connects once');
  assert.is(before.references, 1, 'the first keeps the port claimed');
  assert.equal(rig.wv.argsOf('bindAddress'), [{ family: 4, address: OWN, port }]);
  assert.is(rig.parts.qp.state, QpState.INIT);
  assert.is(rig.parts.qp.posted.length, 1);
  // Another connector may use the queue pair.
  const other = rig.fake.adapter.createConnector();
  other.bind(OWN);
  other.connect(rig.parts.queuePair, PEER);
  assert.is(
    statusOf(() => rig.connect()),
    Status.CONNECTION_ACTIVE,
  );
});

test('a destination without a path is an outcome of Connect, not an argument error', async () => {
  const rig = new Rig().bring('Bound');
  for (const [below, status] of [
    [Status.BAD_NETWORK_NAME, Status.BAD_NETWORK_NAME],
    [Status.BAD_NETWORK_PATH, Status.BAD_NETWORK_NAME],
    [Status.NOT_FOUND, Status.BAD_NETWORK_NAME],
    [Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
  ] as const) {
    rig.fake.wv.failures.set('resolveRoute', below);
    assert.is(await outcome(rig.connect()), status);
    assert.is(rig.connector.state, 'Bound');
  }
});

test('G2 private data is what a message carries; one byte more is INVALID_BUFFER_SIZE', () => {
  const active = new Rig().bring('Bound');
  const connect = (bytes: number) =>
    active.connector.connect(active.parts.queuePair, PEER, { privateData: new Uint8Array(bytes) });
  assert.is(
    statusOf(() => connect(57)),
    Status.INVALID_BUFFER_SIZE,
  );
  assert.is(active.connector.state, 'Bound');
  connect(56);
  for (const most of [148, 56]) acceptsAtMost(most);
});

/** Of accept and reject: by the soft kernel 148 bytes, a REJ's; by a Windows driver 56, an Accept's structure. */
function acceptsAtMost(bytes: number): void {
  const most = new Uint8Array(bytes);
  const tooMuch = { privateData: new Uint8Array(bytes + 1) };
  const passive = new Rig();
  passive.fake.wv.maxAcceptData = bytes === 148 ? 196 : 56;
  passive.bring('Requested');
  const { connector, parts } = passive;
  for (const answer of [
    () => connector.accept(parts.queuePair, tooMuch),
    () => connector.reject(tooMuch.privateData),
  ])
    assert.is(statusOf(answer), Status.INVALID_BUFFER_SIZE);
  passive.connector.accept(passive.parts.queuePair, { privateData: most });
  assert.is(passive.connector.state, 'Accepting');
  const { maxCallerData, maxCalleeData } = passive.fake.adapter.query();
  assert.equal([maxCallerData, maxCalleeData], [56, bytes]);
}

test('G7 arguments of connect, accept and bind are told by their numbers', () => {
  const rig = new Rig().bring('Bound');
  const { connector, parts } = rig;
  const foreign = queuePairOf(openFake2().adapter, rig.fake.pd, { connected: false }).queuePair;
  assert.is(
    statusOf(() => connector.connect({} as never, PEER)),
    Status.INVALID_PARAMETER_1,
  );
  assert.is(
    statusOf(() => connector.connect(foreign, PEER)),
    Status.INVALID_PARAMETER_1,
  );
  assert.is(
    statusOf(() => connector.connect(parts.queuePair, PEER, { inboundReadLimit: -1 })),
    Status.INVALID_PARAMETER_4,
  );
  assert.is(
    statusOf(() => connector.connect(parts.queuePair, PEER, { outboundReadLimit: 1.5 })),
    Status.INVALID_PARAMETER_5,
  );
  assert.is(
    statusOf(() => connector.connect(parts.queuePair, 'nonsense')),
    Status.INVALID_ADDRESS,
  );
  assert.is(
    statusOf(() => connector.connect(parts.queuePair, '[fd00::2]:1')),
    Status.INVALID_ADDRESS,
  );
  for (const port of [-1, 70_000, 1.5, undefined as never]) {
    const peer = { family: 4, address: '10.0.0.2', port } as const;
    assert.is(
      statusOf(() => connector.connect(parts.queuePair, peer)),
      Status.INVALID_ADDRESS,
      String(port),
    );
  }
  assert.is(connector.state, 'Bound');
  for (const address of ['192.168.7.7', '0.0.0.0', '::', 'no address']) {
    const idle = rig.fake.adapter.createConnector();
    assert.is(
      statusOf(() => idle.bind(address)),
      Status.INVALID_ADDRESS,
      address,
    );
    idle.bind(OWN);
  }
  const passive = new Rig().bring('Requested');
  const accept = (options: object) =>
    statusOf(() => passive.connector.accept(passive.parts.queuePair, options));
  assert.is(accept({ inboundReadLimit: -1 }), Status.INVALID_PARAMETER_2);
  assert.is(accept({ outboundReadLimit: Number.NaN }), Status.INVALID_PARAMETER_3);
  assert.is(passive.connector.state, 'Requested');
});

test('G17 T3 what times out is IO_TIMEOUT; a Disconnect that nobody confirms has done what it should', async () => {
  for (const below of [Status.TIMEOUT, Status.IO_TIMEOUT]) {
    const accepting = new Rig().bring('Requested');
    const accept = accepting.connector.accept(accepting.parts.queuePair);
    accepting.end('accept', below);
    assert.is(await outcome(accept), Status.IO_TIMEOUT);
    assert.is(accepting.connector.state, 'Disconnected', 'a failed Accept ends the connector');

    const completing = new Rig().bring('Replied');
    const complete = completing.connector.completeConnect();
    completing.end('accept', below);
    assert.is(await outcome(complete), Status.IO_TIMEOUT);
    assert.is(completing.connector.state, 'Disconnected', 'and so does a failed CompleteConnect');

    const ending = new Rig().bring('Connected');
    const disconnect = ending.connector.disconnect();
    ending.end('disconnect', below);
    assert.is(await outcome(disconnect), Status.SUCCESS);
    assert.is(ending.connector.state, 'Disconnected');
  }
});

test('T3 an outstanding request is PENDING, whichever object is asked, and ends once', async () => {
  const rig = new Rig().bring('Bound');
  const request = rig.connect();
  const other = rig.fake.adapter.createMemoryRegion();
  assert.throws(
    () => other.getOverlappedResult(request),
    (error: unknown) => (error as NdError).status === Status.PENDING,
  );
  rig.end('connect', Status.CONNECTION_REFUSED);
  for (let i = 0; i < 3; i += 1) {
    assert.is(
      statusOf(() => other.getOverlappedResult(request, { wait: true })),
      Status.CONNECTION_REFUSED,
    );
  }
});

test('G12 NotifyDisconnect: SUCCESS by the peer, CONNECTION_DISCONNECTED by ourselves, CANCELED by cancelling', async () => {
  for (const below of [Status.CONNECTION_DISCONNECTED, Status.CONNECTION_ABORTED, Status.TIMEOUT]) {
    const peer = new Rig().bring('Connected');
    const notified = peer.connector.notifyDisconnect();
    peer.end('notifyDisconnect', below);
    assert.is(await outcome(notified), Status.SUCCESS);
    assert.is(peer.connector.state, 'PassiveDisconnect');
  }
  const own = new Rig().bring('Connected');
  const two = [own.connector.notifyDisconnect(), own.connector.notifyDisconnect()];
  own.connector.disconnect();
  for (const one of two) assert.is(await outcome(one), 0xc000020c);

  const canceled = new Rig().bring('Connected');
  const waiting = canceled.connector.notifyDisconnect();
  canceled.connector.cancelOverlappedRequests();
  assert.is(waiting.completed, true);
  assert.is(await outcome(waiting), Status.CANCELED);
  assert.is(canceled.connector.state, 'Connected', 'the connection stays up');
});

test('G14 a CompleteConnect and a NotifyDisconnect that wait together end each in its own way', async () => {
  const rig = new Rig().bring('Replied');
  const complete = rig.connector.completeConnect();
  const notified = rig.connector.notifyDisconnect();
  rig.end('accept', Status.CONNECTION_ABORTED);
  rig.end('notifyDisconnect', Status.CONNECTION_ABORTED);
  assert.is(await outcome(complete), Status.CONNECTION_ABORTED);
  assert.is(await outcome(notified), Status.SUCCESS);
  assert.is(rig.connector.state, 'Disconnected');
});

test('T20 a bound connector takes no request, a queued one makes no connection, an ended one does nothing', () => {
  assert.is(new Rig().bring('Bound').try('getConnectionRequest'), Status.CONNECTION_ACTIVE);
  assert.is(new Rig().bring('Queued').try('bind'), Status.ADDRESS_ALREADY_ASSOCIATED);
  const ended = new Rig().bring('Disconnected');
  for (const method of ['bind', 'connect', 'getConnectionRequest', 'accept'] as const) {
    assert.is.not(ended.try(method), Status.SUCCESS, method);
  }
});

test('a cancelled GetConnectionRequest returns its connector to Idle, for either role', async () => {
  const rig = new Rig().bring('Queued');
  rig.listener.cancelOverlappedRequests();
  assert.is(rig.connector.state, 'Idle');
  rig.connector.bind(OWN);
  rig.connect();
  assert.is(rig.connector.state, 'Connecting');
});

test('a queue pair that goes while connected ends its connection', () => {
  const rig = new Rig().bring('Connected');
  rig.parts.queuePair.release();
  assert.is(rig.connector.state, 'ActiveDisconnect');
  assert.is(rig.wv.request('disconnect').pending, true);
});

test('a queue pair that goes while Accept waits ends the connection as soon as it is there', () => {
  const rig = new Rig().bring('Accepting');
  rig.parts.queuePair.release();
  assert.is(rig.connector.state, 'Accepting');
  rig.end('accept');
  assert.is(rig.connector.state, 'ActiveDisconnect');
});

test('a listener: bound once, listening once, its states and its arguments', () => {
  const { adapter } = openFake2();
  const listener = adapter.createListener();
  const connector = adapter.createConnector();
  assert.is(
    statusOf(() => listener.listen()),
    Status.INVALID_DEVICE_STATE,
  );
  assert.is(
    statusOf(() => listener.getConnectionRequest(connector)),
    Status.INVALID_DEVICE_STATE,
  );
  assert.is(
    statusOf(() => listener.bind('10.9.9.9')),
    Status.INVALID_ADDRESS,
  );
  listener.cancelOverlappedRequests();
  listener.bind(OWN);
  assert.is(
    statusOf(() => listener.bind(OWN)),
    Status.ADDRESS_ALREADY_ASSOCIATED,
  );
  assert.is(
    statusOf(() => listener.getConnectionRequest(connector)),
    Status.INVALID_DEVICE_STATE,
  );
  for (const backlog of [-1, 1.5, Number.NaN, 2 ** 32]) {
    assert.is(
      statusOf(() => listener.listen(backlog)),
      Status.INVALID_PARAMETER,
    );
  }
  listener.listen(5);
  assert.is(
    statusOf(() => listener.listen()),
    Status.INVALID_DEVICE_STATE,
  );
  assert.is(
    statusOf(() => listener.getConnectionRequest({} as never)),
    Status.INVALID_PARAMETER_1,
  );
  listener.release();
  assert.is(
    statusOf(() => listener.getConnectionRequest(connector)),
    Status.INVALID_HANDLE,
  );
});

test('the wildcard address of a listener stands for its own adapter’s addresses', () => {
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

test('a taken address is told where the driver tells it: by Bind or by Listen', () => {
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
