/**
 * Moving a queue pair for connection management: the requests that the driver itself rejects, the attributes that it stores, and the state
 * after a rejection.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  ALL_PEER_EXTENSIONS,
  type ConnectAttributes,
  QpMask,
  RnrTimeout,
} from '../../kernel-bridge/hca/soft-hca-binding.js';
import { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import { type ConnectionAttributes, connectQp } from '../../kernel-bridge/kernel/filter/endpoint-qp.js';
import type { IbQp } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';

const gid = new Uint8Array(16);
const connection: ConnectionAttributes = {
  pkeyIndex: 2,
  path: { source: gid, destination: gid, flowLabel: 0, trafficClass: 0, hopLimit: 64, scopeId: 0 },
  pathMtu: 1024,
  peerQpn: 3,
  receivePsn: 4,
  sendPsn: 5,
  responderResources: 6,
  initiatorDepth: 7,
  minRnrTimer: 8,
  ackTimeout: 9,
  retryCount: 5,
  rnrRetry: 4,
  peerRnrRetry: 4,
  peerUsesSrq: false,
};

/** A queue pair in INIT, of an HCA that records its commands and returns `status`. */
function queuePair(type: number, { gone = false, status = Status.SUCCESS as number } = {}) {
  const asked: string[] = [];
  const given: ConnectAttributes[] = [];
  const native = {
    connectQp: (qp: number, _steps: unknown, attributes: ConnectAttributes): number => {
      asked.push(`connect ${qp} ${attributes.pathMtu}`);
      given.push(attributes);
      return status;
    },
    modifyQp: (qp: number, mask: number, { state }: { state?: number }): number => {
      asked.push(`modify ${qp} ${mask} ${state}`);
      return Status.SUCCESS;
    },
  };
  const hca = { native, gone, port: { activeMtu: 1024 } };
  const fake = { handle: 11, given: QpMask.qkey, pkeyIndex: 1, create: { type }, pd: { ca: { hca } } };
  return { qp: fake as unknown as IbQp, asked, given };
}

const failed = `modify 11 ${QpMask.state} ${QpState.ERROR}`;

test('a connected queue pair remembers its attributes', () => {
  const reliable = QpMask.initiatorDepth | QpMask.responderResources | QpMask.retryCount;
  for (const type of [QpType.RC, QpType.UC]) {
    const { qp, asked } = queuePair(type);
    assert.is(connectQp(qp, connection), Status.SUCCESS);
    assert.equal(asked, ['connect 11 1024']);
    assert.is(qp.pkeyIndex, 2);
    const each = QpMask.qkey | QpMask.state | QpMask.pkeyIndex | QpMask.receivePsn | QpMask.sendPsn;
    assert.is(qp.given & (each | reliable), type === QpType.RC ? each | reliable : each);
  }
});

test('the largest RNR count means a time limit, and smaller ones mean themselves', () => {
  const { responder, requester } = RnrTimeout;
  const cases: [
    rnrRetry: number,
    peerRnrRetry: number,
    peerUsesSrq: boolean,
    count: number,
    rnrTimeout: number,
  ][] = [
    [6, 6, false, 6, responder | requester],
    [7, 6, false, 6, responder | requester],
    [7, 7, true, 7, responder | requester],
    [5, 7, false, 5, responder],
    [6, 5, true, 6, requester],
    [0, 0, false, 0, 0],
  ];
  for (const [rnrRetry, peerRnrRetry, peerUsesSrq, count, rnrTimeout] of cases) {
    const { qp, given } = queuePair(QpType.RC);
    assert.is(connectQp(qp, { ...connection, rnrRetry, peerRnrRetry, peerUsesSrq }), Status.SUCCESS);
    assert.equal([given[0]!.rnrRetry, given[0]!.rnrTimeout], [count, rnrTimeout]);
  }
});

test('only a peer of this package gets extensions beyond the standard', () => {
  for (const peerExtensions of [undefined, 0, 7, ALL_PEER_EXTENSIONS]) {
    const { qp, given } = queuePair(QpType.RC);
    const peer = peerExtensions === undefined ? {} : { peerExtensions };
    assert.is(connectQp(qp, { ...connection, ...peer }), Status.SUCCESS);
    assert.is(given[0]!.extensions, peerExtensions ?? 0);
  }
});

test('a rejection by the driver or the HCA leaves the queue pair in ERROR', () => {
  const busy = Status.INVALID_DEVICE_STATE;
  const cases: [what: ReturnType<typeof queuePair>, pathMtu: number, status: number, asked: string[]][] = [
    [queuePair(QpType.RC, { gone: true }), 1024, Status.FILE_FORCED_CLOSED, [failed]],
    [queuePair(QpType.RC), 2048, Status.INVALID_PARAMETER, [failed]],
    [queuePair(QpType.RC, { status: busy }), 1024, busy, ['connect 11 1024', failed]],
  ];
  for (const [{ qp, asked }, pathMtu, status, expected] of cases) {
    assert.is(statusName(connectQp(qp, { ...connection, pathMtu })), statusName(status));
    assert.equal(asked, expected);
    assert.is(qp.pkeyIndex, 1);
    assert.is(qp.given, QpMask.qkey | QpMask.state);
  }
});

test.run();
