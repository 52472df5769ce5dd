/** The ends of connections: disconnects of either side, losses, cancelled and destroyed endpoints. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpEventType } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { QpState } from '../../kernel-bridge/ioctl/constants.js';
import { QpStateOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import { ask, scene } from '../helpers/endpoint-scene.js';
import { expect } from '../helpers/kernel-rig.js';
import { cmReply } from '../helpers/rig-cm.js';

test('Disconnect flushes the QP before the DREQ leaves, and ends in SUCCESS with the QP’s state', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  let stateAtDreq: number | undefined;
  it.connection!.disconnect = () => {
    stateAtDreq = it.rig.qpState(it.handle);
  };
  const disconnect = it.rig.disconnect(it.id);
  assert.is(stateAtDreq, QpState.ERROR);
  expect(disconnect, Status.PENDING);
  expect(notify, Status.PENDING);
  it.connection!.events.disconnectCompleted!(true);
  expect(disconnect, Status.SUCCESS);
  assert.is(QpStateOut.decode(disconnect.output).state, QpState.ERROR);
  expect(notify, Status.CONNECTION_DISCONNECTED);
  expect(it.rig.notify(it.id), Status.CONNECTION_DISCONNECTED);
});

test('Disconnect whose DREQ gets no DREP ends in TIMEOUT, and so do the notifications', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  const disconnect = it.rig.disconnect(it.id);
  it.connection!.events.disconnectCompleted!(false);
  expect(disconnect, Status.TIMEOUT);
  expect(notify, Status.TIMEOUT);
});

test('the peer’s disconnect flushes the QP and ends the notifications; Disconnect then succeeds at once', () => {
  const it = scene('connected');
  const notifies = [it.rig.notify(it.id), it.rig.notify(it.id)];
  it.connection!.events.disconnected!();
  assert.is(it.rig.qpState(it.handle), QpState.ERROR);
  for (const notify of notifies) expect(notify, Status.CONNECTION_DISCONNECTED);
  expect(it.rig.disconnect(it.id, it.qp), Status.SUCCESS);
  assert.equal(it.connection!.calls, ['ready']);
  expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.SUCCESS);
});

test('crossing disconnects: both succeed', () => {
  const it = scene('activeDisconnect');
  it.connection!.events.disconnected!();
  expect(it.waiting!, Status.SUCCESS);
});

test('E2: Disconnect ends, no matter what arrives while it waits', () => {
  for (const signal of [
    'disconnectAnswered',
    'disconnectTimedOut',
    'peerDisconnected',
    'rejected',
  ] as const) {
    const it = scene('activeDisconnect');
    it.endpoint.signal('lost');
    it.endpoint.signal('established');
    it.endpoint.signal(signal);
    assert.is.not(it.waiting!.status, Status.PENDING);
    assert.is(it.endpoint.state, 'disconnected');
  }
});

test('E14: a failed QP or a lost peer aborts the connection and notifies the peer in the background', () => {
  for (const event of [QpEventType.fatal, QpEventType.peerLost]) {
    const it = scene('connected');
    const notify = it.rig.notify(it.id);
    it.rig.hca.events.push({ type: 'qp', qp: it.handle, token: 77, event, reason: 9 });
    it.rig.events();
    expect(notify, Status.CONNECTION_ABORTED);
    assert.equal(it.connection!.calls, ['ready', 'abandon']);
    expect(it.rig.notify(it.id), Status.CONNECTION_ABORTED);
    expect(it.rig.disconnect(it.id), Status.SUCCESS);
  }
});

test('E14: a stale connection’s REJ ends the connection as lost', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  it.connection!.events.rejected!({ reason: 10, ari: new Uint8Array(0), privateData: new Uint8Array(148) });
  expect(notify, Status.CONNECTION_ABORTED);
  assert.is(it.rig.qpState(it.handle), QpState.ERROR);
});

test('E16: NotifyDisconnect may be posted before the connection is established', () => {
  const it = scene('passiveConnect');
  const early = it.rig.notify(it.id);
  it.rig.accept(it.id, it.qp);
  it.connection!.events.established!();
  expect(early, Status.PENDING);
  it.connection!.events.disconnected!();
  expect(early, Status.CONNECTION_DISCONNECTED);
});

test('E17: cancelling stops the protocol step itself', () => {
  const connect = scene('activeConnect');
  connect.waiting!.cancel();
  expect(connect.waiting!, Status.CANCELED);
  assert.equal(connect.connection!.calls, ['abandon']);
  connect.connection!.events.replied?.(cmReply());
  assert.is(connect.endpoint.state, 'routeResolved');

  const accept = scene('passiveAccepting');
  accept.waiting!.cancel();
  assert.equal(accept.connection!.calls, ['accept', 'abandon']);
  accept.connection!.events.established?.();
  assert.is(accept.endpoint.state, 'disconnected');

  const disconnect = scene('activeDisconnect');
  disconnect.waiting!.cancel();
  expect(disconnect.waiting!, Status.CANCELED);
  assert.is(disconnect.rig.qpState(disconnect.handle), QpState.ERROR);
});

test('cancelling one notification does not affect the connection and the others; EP_CANCEL ends all', () => {
  const it = scene('connected');
  const notifies = [it.rig.notify(it.id), it.rig.notify(it.id), it.rig.notify(it.id)];
  notifies[1]!.cancel();
  assert.equal(
    notifies.map(({ status }) => statusName(status)),
    ['PENDING', 'CANCELED', 'PENDING'],
  );
  assert.is(it.endpoint.state, 'connected');
  ask(it, 'cancel');
  for (const notify of notifies) expect(notify, Status.CANCELED);
  assert.is(it.endpoint.state, 'connected');
});

test('EP_CANCEL while connecting also cancels the notifications, instead of aborting them', () => {
  const it = scene('activeConnect');
  const notify = it.rig.notify(it.id);
  ask(it, 'cancel');
  expect(it.waiting!, Status.CANCELED);
  expect(notify, Status.CANCELED);
});

test('E18: Disconnect only accepts the connection’s QP', () => {
  const it = scene('connected');
  const other = it.rig.queuePair();
  expect(it.rig.disconnect(it.id, other.qp), Status.INVALID_PARAMETER);
  assert.is(it.rig.qpState(other.handle), QpState.RESET);
  assert.is(it.endpoint.state, 'connected');
  expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.DEVICE_BUSY);
  expect(it.rig.disconnect(it.id, it.qp), Status.PENDING);
});

test('destroying an endpoint in any state notifies the peer once and ends pending requests in CANCELED', () => {
  for (const state of [
    'activeConnect',
    'activeReplied',
    'passiveConnect',
    'passiveAccepting',
    'connected',
    'activeDisconnect',
  ] as const) {
    const it = scene(state);
    const notify = it.rig.notify(it.id);
    expect(ask(it, 'destroy'), Status.SUCCESS);
    expect(notify, Status.CANCELED, state);
    if (it.waiting) expect(it.waiting, Status.CANCELED, state);
    assert.is(it.connection!.calls.filter((call) => call === 'abandon').length, 1, state);
    assert.equal(it.connection!.events, {}, state);
    expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.SUCCESS, state);
    assert.equal(it.rig.faults, [], state);
  }
});

test.run();
