/**
 * The connectors of both versions on WinVerbs in memory. T and G are the numbers of traps and gaps in
 * nd2-coverage.test.ts.
 */
import { suite, test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type ConnectorMethod,
  connectorEvents,
  connectorMethods,
  connectorStates,
  legalityOf,
  nextState,
  refusalOf,
} from '../../nd/core/connector-states.js';
import { Status } from '../../nd/index.js';
import { QpState } from '../../winverbs/index.js';
import { DATA, OWN, PEER, RigV1, RigV2 } from '../helpers/nd-connector-rig.js';
import { endsIn, statusOf } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const INV = 0xc000023a;
const ACT = 0xc000023b;
const ABT = 0xc0000241;
const STATE = 0xc0000184;
const ASSOC = 0xc0000238;
const NASSOC = 0xc0000239;
const DISC = 0xc000020c;

// biome-ignore format: a table, written from the SPI's rules and not from the code
const expected: Record<ConnectorMethod, readonly number[]> = {
  // Idle, Bound, Queued, Requested, Accepting, Connecting, Replied, Completing, Connected, ActiveDisconnect, PassiveDisconnect, Disconnected
  bind:                 [0, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC, ASSOC],
  getConnectionRequest: [0, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT],
  connect:              [NASSOC, 0, STATE, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ACT, STATE],
  completeConnect:      [INV, INV, INV, INV, INV, INV, 0, INV, INV, INV, INV, ABT],
  accept:               [INV, INV, INV, 0, ACT, ACT, ACT, ACT, ACT, ACT, ACT, ABT],
  reject:               [STATE, STATE, STATE, 0, STATE, STATE, 0, STATE, STATE, STATE, STATE, INV],
  getReadLimits:        [STATE, STATE, STATE, 0, 0, STATE, 0, 0, 0, STATE, STATE, INV],
  // Bound and Disconnected: without a reject, no private data is available.
  getPrivateData:       [INV, INV, STATE, 0, 0, STATE, 0, 0, 0, STATE, STATE, INV],
  getLocalAddress:      [NASSOC, 0, NASSOC, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  getPeerAddress:       [INV, INV, INV, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  notifyDisconnect:     [INV, INV, INV, INV, INV, INV, INV, 0, 0, DISC, 0, DISC],
  disconnect:           [INV, INV, INV, INV, INV, INV, INV, INV, 0, STATE, 0, INV],
};
/** In v1, Connect includes Bind, and GetConnectionData returns the same as GetPrivateData. */
const onlyV2: readonly ConnectorMethod[] = ['bind', 'getReadLimits'];

test('a refusal states what is required, the state, and what to do, without contradiction', () => {
  for (const method of connectorMethods)
    for (const state of connectorStates.filter((one) => legalityOf(method, one) !== 0)) {
      const text = refusalOf(method, state);
      const [, required = '', actual = ''] =
        /^The connector must (.+); it (?:is|holds|was) (.+?)\. [A-Z].+\.$/.exec(text) ?? [];
      assert.ok(actual !== '' && !` ${required}`.includes(` ${actual}`), text);
    }
  assert.match(refusalOf('connect', 'Idle'), /it is unused\. Call bind\(\) first\.$/);
  assert.match(refusalOf('disconnect', 'Replied'), /holds the peer's reply\. .*completeConnect\(\)\.$/);
});

test('every cell of the transition table', () => {
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

test.run();

for (const Rig of [RigV1, RigV2]) {
  const test = suite(`the connector of ND ${Rig.spi}`);

  for (const method of connectorMethods) {
    if (Rig === RigV1 && onlyV2.includes(method)) continue;
    test(`G3 T20 ${method}: the status in each state`, () => {
      for (const [index, state] of connectorStates.entries()) {
        const rig = new Rig().bring(state);
        const { wv } = rig;
        wv.attributes = { ...wv.attributes, peerAddress: { family: 4, address: '10.0.0.2', port: 4000 } };
        const binds = Rig === RigV1 && method === 'connect' && state === 'Idle';
        const status = binds ? 0 : expected[method][index]!;
        assert.is(rig.try(method), status, `${method} in ${state}`);
        // A rejected call has no effect.
        if (status !== 0) assert.is(rig.connector.state, state);
      }
    });
  }

  test('connect passes address, data and read limits, from the adapter address', () => {
    const rig = new Rig().bound();
    rig.connect();
    assert.equal(rig.wv.argsOf('bindAddress'), [{ family: 4, address: OWN, port: 0 }]);
    assert.equal(rig.wv.argsOf('resolveRoute'), [{ family: 4, address: '10.0.0.2', port: 4000 }]);
    const [qp, peer, param] = rig.wv.argsOf('connect');
    assert.is(qp, rig.qp);
    assert.equal(peer, { family: 4, address: '10.0.0.2', port: 4000 });
    assert.equal(param, { privateData: DATA, responderResources: 16, initiatorDepth: 8 });
  });

  test('a loopback destination refers to the adapter itself', () => {
    const rig = new Rig().bound();
    rig.connect('127.0.0.1:4000');
    assert.equal(rig.wv.argsOf('resolveRoute'), [{ family: 4, address: OWN, port: 4000 }]);
  });

  test('G4 G5 T11 a failed connect reports the reason; port and queue pair can be used again', async () => {
    const rig = new Rig().bound();
    const { connector, queuePair, qp } = rig;
    rig.receive();
    let request = rig.connect();
    const first = rig.wv;
    const { port } = connector.getLocalAddress();
    first.attributes = { ...first.attributes, privateData: new Uint8Array([9, 9]) };
    rig.end('connect', Status.CONNECTION_REFUSED);
    first.request('connect').deliver();
    assert.is(await outcome(request), Status.CONNECTION_REFUSED);
    assert.is(connector.state, 'Bound');
    assert.equal(rig.privateData(), new Uint8Array([9, 9]));

    for (const [below, status] of [
      [Status.CONNECTION_REFUSED, Status.CONNECTION_REFUSED],
      [Status.TIMEOUT, rig.says.timeout],
      [Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
      [Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
    ] as const) {
      const before = rig.wv;
      request = rig.connect();
      assert.is.not(rig.wv, before, 'a WinVerbs endpoint connects once');
      assert.equal(rig.wv.argsOf('bindAddress'), [{ family: 4, address: OWN, port }]);
      assert.is(first.references, 1, 'the first keeps the port claimed');
      if (before !== first) assert.is(before.references, 0, 'those in between are released');
      rig.end('connect', below);
      rig.wv.request('connect').deliver();
      assert.is(await outcome(request), status);
      assert.is(connector.state, 'Bound');
      assert.is(connector.getLocalAddress().port, port);
      assert.is(queuePair.connector, undefined);
    }
    assert.is(qp.modified.length, 1, 'the queue pair is unchanged after INIT');
    assert.is(qp.state, QpState.INIT);
    assert.is(qp.posted.length, 1);

    // Another connector may use the queue pair.
    const last = rig.wv;
    const other = rig.newConnector();
    rig.bind(other);
    rig.connectWith(other, queuePair, PEER);
    endsIn(() => rig.connect(), Status.CONNECTION_ACTIVE);
    connector.release();
    assert.is(first.references, 0);
    assert.is(last.references, 0);
  });

  test('the data of a reject is cleared when the next connect starts', () => {
    const rig = new Rig().bound();
    rig.connect();
    rig.end('connect', Status.CONNECTION_REFUSED);
    assert.is(rig.try('getPrivateData'), Status.SUCCESS);
    rig.connect();
    rig.end('connect', Status.TIMEOUT);
    assert.is(rig.try('getPrivateData'), Status.CONNECTION_INVALID);
  });

  test('G17 T3 timeouts of connect, accept, completeConnect and disconnect', async () => {
    for (const below of [Status.TIMEOUT, Status.IO_TIMEOUT]) {
      const active = new Rig().bound();
      const connect = active.connect();
      active.end('connect', below);
      assert.is(await outcome(connect), active.says.timeout);
      assert.is(active.connector.state, 'Bound');

      const passive = new Rig().bring('Requested');
      const accept = passive.accept();
      passive.end('accept', below);
      assert.is(await outcome(accept), passive.says.timeout);
      assert.is(passive.connector.state, 'Disconnected', 'a failed Accept ends the connector');

      const completing = new Rig().bring('Replied');
      const complete = completing.connector.completeConnect();
      completing.end('accept', below);
      assert.is(await outcome(complete), completing.says.timeout);
      assert.is(completing.connector.state, 'Disconnected', 'a failed CompleteConnect ends the connector');

      const ending = new Rig().bring('Connected');
      const disconnect = ending.connector.disconnect();
      ending.end('disconnect', below);
      assert.is(await outcome(disconnect), ending.says.unconfirmed);
      assert.is(ending.connector.state, 'Disconnected');
    }
  });

  test('a canceled connect ends the connector and releases the queue pair', async () => {
    const rig = new Rig().bring('Bound');
    const request = rig.connect();
    rig.connector.cancelOverlappedRequests();
    assert.is(request.completed, true);
    assert.is(await outcome(request), Status.CANCELED);
    assert.is(rig.connector.state, 'Disconnected');
    assert.is(rig.queuePair.connector, undefined);
  });

  test('an unreachable peer is reported by the request, and connect may be repeated', async () => {
    const rig = new Rig().bound();
    for (const [below, status] of [
      [Status.HOST_UNREACHABLE, Status.HOST_UNREACHABLE],
      [Status.NETWORK_UNREACHABLE, Status.NETWORK_UNREACHABLE],
      [Status.BAD_NETWORK_NAME, Status.BAD_NETWORK_NAME],
      [Status.BAD_NETWORK_PATH, Status.BAD_NETWORK_NAME],
      [Status.NOT_FOUND, Status.BAD_NETWORK_NAME],
    ] as const) {
      rig.wvProvider.failures.set('resolveRoute', below);
      assert.is(await outcome(rig.connect()), status);
      assert.is(rig.connector.state, 'Bound');
    }
    rig.connect();
    assert.is(rig.connector.state, 'Connecting');
  });

  test('G7 invalid arguments of connect and accept throw and have no effect', () => {
    const rig = new Rig().bring('Bound');
    const connect = (...args: Parameters<typeof rig.connect>) => statusOf(() => rig.connect(...args));
    const ports = [-1, 0, 65_536, 70_000, 1.5, undefined];
    const peers = ports.map((port) => ({ family: 4, address: '10.0.0.2', port }));
    for (const peer of ['nonsense', '10.0.0.2', '[fd00::2]:1', ...peers])
      assert.is(connect(peer), Status.INVALID_ADDRESS, JSON.stringify(peer));
    for (const foreign of [{}, new Rig().queuePair]) {
      endsIn(() => rig.connectWith(rig.connector, foreign as never, PEER), Status.INVALID_PARAMETER_1);
    }
    assert.is(rig.connector.state, 'Bound');

    const passive = new Rig().bring('Requested');
    endsIn(() => passive.acceptWith(rig.queuePair), Status.INVALID_PARAMETER_1);
    assert.is(passive.connector.state, 'Requested');
  });

  test('G2 private data may be as long as a message permits; one more byte is INVALID_BUFFER_SIZE', () => {
    const active = new Rig().bring('Bound');
    const tooLong = { privateData: new Uint8Array(57) };
    endsIn(() => active.connect(PEER, tooLong), Status.INVALID_BUFFER_SIZE);
    assert.is(active.connector.state, 'Bound');
    active.connect(PEER, { privateData: new Uint8Array(56) });
    // Limits of accept and reject: 148 bytes with the soft kernel, as in a REJ, and 56 with a Windows driver, as in Accept's structure.
    for (const [below, most] of [
      [196, 148],
      [56, 56],
    ] as const) {
      const passive = new Rig();
      passive.wvProvider.maxAcceptData = below;
      passive.bring('Requested');
      const tooMuch = new Uint8Array(most + 1);
      for (const answer of [() => passive.accept(tooMuch), () => passive.connector.reject(tooMuch)])
        endsIn(answer, Status.INVALID_BUFFER_SIZE);
      assert.is(passive.connector.state, 'Requested');
      passive.accept(new Uint8Array(most));
      assert.is(passive.connector.state, 'Accepting');
      const { maxCallerData, maxCalleeData } = passive.dataSizes();
      assert.equal([maxCallerData, maxCalleeData], [56, most]);
    }
  });

  test('a queue pair serves one connector at a time', () => {
    const rig = new Rig().bring('Connecting');
    const second = rig.newConnector();
    rig.bind(second);
    endsIn(() => rig.connectWith(second, rig.queuePair, PEER), Status.CONNECTION_ACTIVE);
  });

  test('a failed bind leaves the connector idle and releases the WinVerbs endpoint', () => {
    const rig = new Rig();
    rig.wvProvider.failures.set('bindAddress', Status.SHARING_VIOLATION);
    endsIn(() => rig.bound().connect(), rig.says.taken);
    assert.is(rig.connector.state, 'Idle');
    assert.is(rig.wv.references, 0);
  });

  test('G11 accept reduces limits to those of the adapter and of the peer’s offer, even to 0', () => {
    for (const [offer, got] of [
      [
        [4, 2],
        [4, 2],
      ],
      [
        [200, 2],
        [16, 2],
      ],
      [
        [100, 100],
        [16, 8],
      ],
      [
        [0, 0],
        [0, 0],
      ],
    ] as const) {
      const rig = new Rig().bring('Requested');
      rig.wv.attributes = { ...rig.wv.attributes, responderResources: offer[0], initiatorDepth: offer[1] };
      assert.equal(rig.readLimits(), { inbound: got[0], outbound: got[1] });
      rig.accept(DATA);
      const [qp, param] = rig.wv.argsOf('accept');
      assert.is(qp, rig.qp);
      assert.equal(param, { privateData: DATA, responderResources: got[0], initiatorDepth: got[1] });
    }
  });

  test('completeConnect keeps the queue pair and depths of connect', () => {
    const rig = new Rig().bring('Completing');
    assert.equal(rig.wv.argsOf('accept'), [null, {}]);
  });

  test('a requester that gave up is CONNECTION_ABORTED', async () => {
    const accepting = new Rig().bring('Requested');
    const accept = accepting.accept();
    accepting.end('accept', Status.INVALID_DEVICE_STATE);
    assert.is(await outcome(accept), Status.CONNECTION_ABORTED);
    assert.is(accepting.connector.state, 'Disconnected');

    const rejecting = new Rig().bring('Requested');
    rejecting.wvProvider.failures.set('reject', Status.INVALID_DEVICE_STATE);
    assert.is(rejecting.try('reject'), Status.CONNECTION_ABORTED);
    assert.is(rejecting.connector.state, 'Disconnected');
  });

  test('reading the peer’s data does not start a request', () => {
    for (const state of ['Requested', 'Replied'] as const) {
      const rig = new Rig().bring(state);
      const before = rig.wv.requests.length;
      for (let i = 0; i < 3; i += 1) rig.privateData();
      rig.readLimits();
      assert.is(rig.wv.requests.length, before);
      assert.is(rig.connector.state, state);
    }
  });

  test('a rejected reply is CONNECTION_REFUSED, and the reject data can be read', async () => {
    const rig = new Rig().bring('Requested');
    const accept = rig.accept();
    rig.end('accept', Status.CONNECTION_REFUSED);
    assert.is(await outcome(accept), Status.CONNECTION_REFUSED);
    assert.is(rig.try('getPrivateData'), Status.SUCCESS);
  });

  test('G12 when the peer disconnects or is lost, notifications and disconnect succeed', async () => {
    for (const below of [Status.CONNECTION_DISCONNECTED, Status.CONNECTION_ABORTED, Status.TIMEOUT]) {
      const rig = new Rig().bring('Connected');
      const notifications = [rig.connector.notifyDisconnect(), rig.connector.notifyDisconnect()];
      for (const request of rig.wv.requests.filter(({ name }) => name === 'notifyDisconnect')) {
        request.fail(below);
        request.deliver();
      }
      for (const notification of notifications) assert.is(await outcome(notification), Status.SUCCESS);
      assert.is(rig.connector.state, 'PassiveDisconnect');
      const disconnect = rig.connector.disconnect();
      rig.end('disconnect');
      rig.wv.request('disconnect').deliver();
      assert.is(await outcome(disconnect), Status.SUCCESS);
      assert.is(rig.connector.state, 'Disconnected');
    }
  });

  test('G12 a disconnect by this side ends notifications at once, in a distinct status', async () => {
    const rig = new Rig().bring('Connected');
    const two = [rig.connector.notifyDisconnect(), rig.connector.notifyDisconnect()];
    rig.connector.disconnect();
    assert.is(rig.wv.request('notifyDisconnect').canceled, true);
    for (const one of two) assert.is(await outcome(one), rig.says.ownDisconnect);
    assert.is(rig.connector.state, 'ActiveDisconnect');
  });

  test('a disconnect by this side ends notifications in that status even if the peer replies first', async () => {
    const rig = new Rig().bring('Connected');
    const notification = rig.connector.notifyDisconnect();
    // The kernel completes the notification before our cancel, but after our disconnect.
    const request = rig.wv.request('notifyDisconnect');
    const { disconnect } = rig.wv;
    rig.wv.disconnect = () => {
      request.fail(Status.CONNECTION_DISCONNECTED);
      return disconnect.call(rig.wv);
    };
    rig.connector.disconnect();
    assert.is(await outcome(notification), rig.says.ownDisconnect);
  });

  test('G12 canceling a notification leaves the connection up', async () => {
    for (const all of [false, true]) {
      const rig = new Rig().bring('Connected');
      const notification = rig.connector.notifyDisconnect();
      if (all) rig.connector.cancelOverlappedRequests();
      else notification.cancel();
      assert.is(notification.completed, true);
      assert.is(await outcome(notification), Status.CANCELED);
      assert.is(rig.connector.state, 'Connected');
    }
  });

  test('G14 pending CompleteConnect and NotifyDisconnect requests end in different statuses', async () => {
    const rig = new Rig().bring('Replied');
    const complete = rig.connector.completeConnect();
    const notified = rig.connector.notifyDisconnect();
    rig.end('accept', Status.CONNECTION_ABORTED);
    rig.end('notifyDisconnect', Status.CONNECTION_ABORTED);
    assert.is(await outcome(complete), Status.CONNECTION_ABORTED);
    assert.is(await outcome(notified), Status.SUCCESS);
    assert.is(rig.connector.state, 'Disconnected');
  });

  test('a canceled getConnectionRequest returns the connector to idle, for either role', async () => {
    const rig = new Rig();
    const request = rig.getConnectionRequest(rig.connector);
    rig.listener.cancelOverlappedRequests();
    assert.is(rig.connector.state, 'Idle');
    assert.is(await outcome(request), Status.CANCELED);
    rig.bound().connect();
    assert.is(rig.connector.state, 'Connecting');
  });

  test('releasing a connector also ends its waiting request', () => {
    const rig = new Rig().bring('Queued');
    const { connector } = rig;
    connector.release();
    assert.is(rig.listening.request('getRequest').canceled, true);
    assert.is(rig.try('getLocalAddress'), Status.INVALID_HANDLE);
    assert.is(connector.release(), 0, 'releasing again has no effect');
  });

  test('releasing a connected queue pair ends its connection', () => {
    const rig = new Rig().bring('Connected');
    rig.queuePair.release();
    assert.is(rig.connector.state, 'ActiveDisconnect');
    assert.is(rig.wv.request('disconnect').pending, true);
  });

  test('releasing a queue pair while Accept waits ends the connection once it is established', () => {
    const rig = new Rig().bring('Accepting');
    rig.queuePair.release();
    assert.is(rig.connector.state, 'Accepting');
    rig.end('accept');
    assert.is(rig.connector.state, 'ActiveDisconnect');
  });

  test('states also change on completions that are not awaited', () => {
    const rig = new Rig().bound();
    rig.connect();
    rig.end('connect');
    // Without an await or a turn of the event loop.
    rig.connector.completeConnect();
    rig.end('accept');
    rig.connector.notifyDisconnect();
    assert.is(rig.connector.state, 'Connected');
  });

  test('`await using` disconnects and releases', async () => {
    const rig = new Rig().bring('Connected');
    const disposed = rig.connector[Symbol.asyncDispose]();
    rig.end('disconnect', Status.TIMEOUT);
    rig.wv.request('disconnect').deliver();
    await disposed;
    assert.is(rig.wv.references, 0);
  });

  test.run();
}
