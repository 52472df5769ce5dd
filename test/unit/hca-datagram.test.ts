/** The addon's commands for datagrams and partitions: accepted arguments, and the errors for others. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { PathParameters, SoftHca } from '../../kernel-bridge/hca/index.js';
import { loadAddon, QpMask } from '../../kernel-bridge/hca/index.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';

const addon = loadAddon();

const loopback = gidOfAddress('127.0.0.1');
const path: PathParameters = {
  source: loopback,
  destination: loopback,
  flowLabel: 0,
  trafficClass: 0,
  hopLimit: 64,
  scopeId: 0,
};
const group = gidOfAddress('239.1.2.3');
let hca: SoftHca;

test.before(() => {
  const faults = { seed: 1, drop: 0, duplicate: 0, reorder: 0, corrupt: 0, dropMads: {} };
  hca = addon.openHca(
    {
      keepAliveMs: 0,
      rnrTimeoutMs: 0,
      ecn: false,
      window: 64,
      longWindowBytes: 0,
      link: 'auto',
      icrc: 'solved',
      direct: true,
      capture: '',
      receiveBufferBytes: 65_536,
      faults,
    },
    () => {},
  );
});
test.after(() => hca.close());

/** A value of the wrong type, which TypeScript would reject. */
function wrong<T>(value: unknown): T {
  return value as T;
}

test('functions called for each connection are bound to their HCA', () => {
  const { queryQpState } = hca;
  assert.is(queryQpState(1), -1);
  assert.is(queryQpState.call({} as SoftHca, 1), -1);
});

test('connecting rejects the same values as modifying, and stops at the rejected step', () => {
  const attributes = {
    access: 0,
    pkeyIndex: 0,
    port: 1,
    path,
    pathMtu: 1024,
    destinationQpn: 2,
    receivePsn: 3,
    sendPsn: 4,
    responderResources: 0,
    initiatorDepth: 0,
    minRnrTimer: 0,
    ackTimeout: 14,
    retryCount: 7,
    rnrRetry: 6,
    rnrTimeout: 0,
    extensions: 0,
  };
  const none = { init: 0, rtr: 0, rts: 0 };
  const step = { ...none, rtr: QpMask.receivePsn };
  assert.is(hca.connectQp(1, none, attributes), Status.INVALID_HANDLE);
  assert.is(hca.connectQp(1, none, { ...attributes, receivePsn: -1 }), Status.INVALID_HANDLE);
  assert.is(hca.connectQp(1, step, { ...attributes, receivePsn: -1 }), Status.INVALID_PARAMETER);
  assert.is(hca.connectQp(1, { ...none, rts: -1 }, attributes), Status.INVALID_PARAMETER);
  const short = { ...path, source: new Uint8Array(4) };
  assert.is(hca.connectQp(1, none, { ...attributes, path: short }), Status.INVALID_PARAMETER);
  // Attributes in each step's mask, without states, which the steps imply.
  const psn = QpMask.receivePsn;
  for (const one of [{ ...none, init: psn }, step, { ...none, rts: psn }]) {
    assert.is(hca.connectQp(1, one, { ...attributes, receivePsn: 2 ** 24 }), Status.INVALID_PARAMETER);
  }
  hca.modifyQp(1, 0, {}); // an invalid state
  const states = QpMask.state | QpMask.currentState;
  assert.is(hca.connectQp(1, { init: states, rtr: states, rts: states }, attributes), Status.INVALID_HANDLE);
});

test('commands reject words that are out of range or missing', () => {
  const { pd } = hca.allocatePd();
  const { status, qp } = hca.createQp({
    pd,
    sendCq: 0,
    receiveCq: 0,
    srq: 0,
    pkeyTable: 0,
    type: 0,
    signalAll: false,
    ringAddress: 0,
    ringBytes: 0.5,
    sendEntries: 0,
    sendStride: 0,
    sendSge: 0,
    maxInline: 0,
    receiveEntries: 0,
    receiveStride: 0,
    receiveSge: 0,
    token: 0,
  });
  assert.equal([status, qp], [Status.INVALID_PARAMETER, 0]);
  // The attributes are checked before the handle.
  assert.is(hca.modifyQp(1, QpMask.state, { state: 1 }), Status.INVALID_HANDLE);
  for (const state of [undefined, -1, 7, 0.5, Number.NaN]) {
    const attributes = wrong<{ state: number }>({ state });
    assert.is(hca.modifyQp(1, QpMask.state, attributes), Status.INVALID_PARAMETER);
  }
  const mad = new Uint8Array(256);
  const short = { ...path, source: new Uint8Array(4) };
  const bad: PathParameters[] = [short, wrong({}), wrong(undefined), { ...path, hopLimit: 256 }];
  for (const no of bad) {
    assert.is(hca.modifyQp(1, QpMask.path, { path: no }), Status.INVALID_PARAMETER);
    assert.is(hca.sendMad(no, mad), Status.INVALID_PARAMETER);
    assert.is(hca.setDreqOnExit(1, no, mad), Status.INVALID_PARAMETER);
  }
  for (const length of [0, 255, 257]) {
    assert.is(hca.sendMad(path, new Uint8Array(length)), Status.INVALID_PARAMETER);
    assert.is(hca.setDreqOnExit(1, path, new Uint8Array(length)), Status.INVALID_PARAMETER);
  }
  assert.is(hca.sendMad(path, mad, 0x1_0000), Status.INVALID_PARAMETER);
  for (const port of [-1, 65_536, 0.5]) {
    assert.is(hca.claimPort(0x106, null, port).status, Status.INVALID_PARAMETER);
  }
  assert.is(hca.claimPort(0x106, new Uint8Array(4), 0).status, Status.INVALID_PARAMETER);
  assert.is(hca.takeEvent(), undefined);
  assert.is(hca.deallocatePd(pd), Status.SUCCESS);
});

test('address handles', () => {
  const { pd } = hca.allocatePd();
  const { status, ah } = hca.createAh(pd, path, 1024);
  assert.is(status, Status.SUCCESS);
  assert.is(hca.objectCounts().ah, 1);
  assert.is(hca.deallocatePd(pd), Status.DEVICE_BUSY);
  const toGroup = hca.createAh(pd, { ...path, destination: group }, 4096);
  assert.is(toGroup.status, Status.SUCCESS);
  for (const handle of [ah, toGroup.ah]) assert.is(hca.destroyAh(handle), Status.SUCCESS);
  assert.is(hca.destroyAh(ah), Status.INVALID_HANDLE);
  assert.is(hca.createAh(pd ^ 1, path, 1024).status, Status.INVALID_HANDLE);
  for (const mtu of [0, 1000, 8192, 1.5, -1, wrong<number>('1024')])
    assert.is(hca.createAh(pd, path, mtu).status, Status.INVALID_PARAMETER);
  const short = { ...path, destination: new Uint8Array(4) };
  for (const bad of [wrong<PathParameters>(undefined), wrong<PathParameters>({}), short])
    assert.is(hca.createAh(pd, bad, 1024).status, Status.INVALID_PARAMETER);
  const mixed = { ...path, destination: gidOfAddress('fd00::1') };
  for (const bad of [mixed, { ...path, source: group }])
    assert.is(hca.createAh(pd, bad, 1024).status, Status.INVALID_ADDRESS);
  assert.is(hca.deallocatePd(pd), Status.SUCCESS);
});

test('limits of datagrams are those of the engine', () => {
  const { maxAh, maxGroups, maxGroupQps, maxAttached } = hca.limits;
  assert.equal([maxAh, maxGroups, maxGroupQps, maxAttached], [65_536, 4096, 1024, 65_536]);
});

test('multicast groups require queue pairs', () => {
  for (const command of ['attachMulticast', 'detachMulticast'] as const) {
    assert.is(hca[command](0x777, group, 1), Status.INVALID_HANDLE);
    assert.is(hca[command](0x777, new Uint8Array(4), 1), Status.INVALID_PARAMETER);
    assert.is(hca[command](0x777, group, -1), Status.INVALID_PARAMETER);
    assert.is(hca[command](0x777, wrong<Uint8Array>([...group]), 1), Status.INVALID_PARAMETER);
  }
});

test('P_Key tables', () => {
  const { status, table } = hca.createPkeyTable();
  assert.is(status, Status.SUCCESS);
  assert.is(hca.setPkeyTable(table, Uint16Array.of(0x8001, 0xffff), [loopback, group]), Status.SUCCESS);
  assert.is(hca.setPkeyTable(table, new Uint16Array(0), []), Status.INVALID_PARAMETER);
  assert.is(hca.setPkeyTable(table, new Uint16Array(hca.limits.maxPkeys + 1), []), Status.INVALID_PARAMETER);
  for (const bad of [[0xffff], new Uint8Array(2), undefined])
    assert.is(hca.setPkeyTable(table, wrong<Uint16Array>(bad), []), Status.INVALID_PARAMETER);
  for (const bad of [undefined, loopback, [new Uint8Array(4)], [undefined]])
    assert.is(
      hca.setPkeyTable(table, Uint16Array.of(0xffff), wrong<Uint8Array[]>(bad)),
      Status.INVALID_PARAMETER,
    );
  assert.equal(hca.queryPkeyTable(table), { status: Status.SUCCESS, badPkeys: 0, badQkeys: 0 });
  assert.is(hca.queryPkeyTable(0).status, Status.SUCCESS);
  assert.is(hca.objectCounts().pkeyTable, 1);
  assert.is(hca.destroyPkeyTable(table), Status.SUCCESS);
  assert.is(hca.destroyPkeyTable(table), Status.INVALID_HANDLE);
  assert.is(hca.queryPkeyTable(table).status, Status.INVALID_HANDLE);
  assert.is(hca.setPkeyTable(table, Uint16Array.of(1), []), Status.INVALID_HANDLE);
});

test('MADs carry a P_Key', () => {
  const mad = new Uint8Array(256);
  for (const pkey of [0, 0x8000, 0x1_0000, -1, 1.5, wrong<number>(null)])
    assert.is(hca.sendMad(path, mad, pkey), Status.INVALID_PARAMETER);
  assert.is(hca.sendMad(path, mad, 0x8123), Status.SUCCESS);
  assert.is(hca.sendMad(path, mad), Status.SUCCESS);
});

test('a closed HCA reports that it is closed', () => {
  const faults = { seed: 1, drop: 0, duplicate: 0, reorder: 0, corrupt: 0, dropMads: {} };
  const closed = addon.openHca(
    {
      keepAliveMs: 0,
      rnrTimeoutMs: 0,
      ecn: false,
      window: 64,
      longWindowBytes: 0,
      link: 'auto',
      icrc: 'solved',
      direct: true,
      capture: '',
      receiveBufferBytes: 65_536,
      faults,
    },
    () => {},
  );
  closed.close();
  assert.is(closed.createAh(1, path, 1024).status, Status.DEVICE_REMOVED);
  assert.is(closed.destroyAh(1), Status.DEVICE_REMOVED);
  assert.is(closed.attachMulticast(1, group, 1), Status.DEVICE_REMOVED);
  assert.is(closed.createPkeyTable().status, Status.DEVICE_REMOVED);
  assert.is(closed.setPkeyTable(1, Uint16Array.of(1), []), Status.DEVICE_REMOVED);
  assert.is(closed.queryPkeyTable(0).status, Status.DEVICE_REMOVED);
  assert.is(closed.destroyPkeyTable(1), Status.DEVICE_REMOVED);
});

test.run();
