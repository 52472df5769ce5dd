// The device file of the counters: its outputs, and the requests that it rejects.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  COUNTERS_DEVICE,
  CountersCode,
  IoctlCode,
  openDeviceFile,
  readCounters,
  Status,
} from '../../kernel-bridge/index.js';
import { connectedPair, take } from '../helpers/loopback.js';
import { thrownStatus, throwsStatus } from '../helpers/outcome.js';

test('counters count events, and object counts the live objects', async () => {
  const before = readCounters();
  const { a, b, release } = await connectedPair();
  const { objects } = readCounters();
  for (const kind of ['qp', 'cq', 'pd', 'mr'] as const) {
    assert.equal([kind, objects[kind]], [kind, before.objects[kind] + 2]);
  }
  b.qp.postReceive('r', []);
  a.qp.send('s', [], 4);
  await take(a.cq, 1);
  const after = readCounters();
  assert.ok(after.hca.sent_pkts! >= before.hca.sent_pkts! + 2);
  assert.is(after.cm.connections, 2);
  assert.is(after.cm['sent.REQ'], 1);
  await a.ep.disconnect();
  release();
  const { objects: left, cm } = readCounters();
  assert.equal([left.qp, left.cq, left.pd, left.mr], [0, 0, 0, 0]);
  assert.is(cm.connections, 0);
});

test('the device only accepts its own IOCTLs, and only with complete outputs', () => {
  const file = openDeviceFile(COUNTERS_DEVICE);
  throwsStatus(() => file.ioctl(CountersCode.QUERY, null, 16), Status.BUFFER_TOO_SMALL);
  assert.is(
    thrownStatus(() => file.ioctl(CountersCode.QUERY, new Uint8Array(100), 32_768)),
    Status.SUCCESS,
  );
  throwsStatus(() => file.ioctl(IoctlCode.GUID_QUERY, null, 4096), Status.PROCEDURE_NOT_FOUND);
  file.close();
  throwsStatus(() => openDeviceFile(`${COUNTERS_DEVICE}\\more`), Status.OBJECT_NAME_NOT_FOUND);
  const verbs = openDeviceFile('\\\\.\\WinVerbs');
  assert.is.not(
    thrownStatus(() => verbs.ioctl(CountersCode.QUERY, null, 32_768)),
    Status.SUCCESS,
  );
  verbs.close();
});

test.run();
