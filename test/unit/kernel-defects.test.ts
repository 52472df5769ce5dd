// Defects of earlier implementations that no other test covers by name. test/defects.md lists all defects.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { createConnectionManager } from '../../kernel-bridge/kernel/cm/connection-manager.js';
import type { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import { ethGuid, KernelRig } from '../helpers/kernel-rig.js';

test('K1: DEVICE_OPEN with a full table is rejected and holds no resources', () => {
  const rig = new KernelRig();
  const file = rig.kernel.io.fileObjects[0]!.context as WvFile;
  const { references } = rig.kernel.hcaDriver.find(ethGuid)!;
  Object.defineProperty(file.devices, 'full', { configurable: true, get: () => true });
  const open = () => rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid: ethGuid }));
  assert.is(open().status, Status.INSUFFICIENT_RESOURCES);
  assert.is(references.users, 0);
  Reflect.deleteProperty(file.devices, 'full');
  const opened = open();
  assert.is(opened.status, Status.SUCCESS);
  // The HCA's file, which executes its verbs, and the instance.
  assert.is(references.users, 2);
  const { id } = s.WvIoId.decode(opened.output);
  assert.is(rig.ioctl('DEVICE_CLOSE', s.WvIoObject.encode({ id })).status, Status.SUCCESS);
  assert.is(references.users, 0);
  assert.equal(rig.faults, []);
});

test('K1: with a full table, every create is rejected, and nothing is created', () => {
  const rig = new KernelRig();
  const file = rig.kernel.io.fileObjects[0]!.context as WvFile;
  const device = rig.device();
  const pd = rig.pd(device);
  const cq = rig.cq(device);
  const creates = {
    pds: () => rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device })),
    cqs: () => rig.ioctl('CQ_CREATE', rig.cqInput(device)),
    srqs: () => rig.ioctl('SRQ_CREATE', rig.srqInput(pd)),
    qps: () => rig.ioctl('QP_CREATE', rig.qpInput(pd, cq)),
    mws: () => rig.ioctl('MW_ALLOCATE', s.WvIoId.encode({ id: pd })),
    endpoints: () => rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 0x106n })),
  } satisfies Partial<Record<keyof WvFile, () => { status: number }>>;
  for (const [table, create] of Object.entries(creates)) {
    const full = file[table as keyof typeof creates];
    Object.defineProperty(full, 'full', { configurable: true, get: () => true });
    const { size } = full;
    assert.is(create().status, Status.INSUFFICIENT_RESOURCES, table);
    assert.is(full.size, size, table);
    Reflect.deleteProperty(full, 'full');
  }
  // Any created object would hold references to these.
  for (const [end, id] of [
    ['CQ_DESTROY', cq],
    ['PD_DEALLOCATE', pd],
    ['DEVICE_CLOSE', device],
  ] as const) {
    assert.is(rig.ioctl(end, rig.id(id)).status, Status.SUCCESS, end);
  }
  assert.equal(rig.faults, []);
});

test('E13: a PSN has 24 bits, no matter what the source of random numbers returns', () => {
  const sent: Uint8Array[] = [];
  const manager = createConnectionManager(
    {
      sendMad: (_path, mad) => void sent.push(mad.slice()),
      setTimer: () => ({ cancel: () => {} }),
      allocateCommId: () => 7,
      releaseCommId: () => {},
      randomPsn: () => 0xfedc_ba98,
      caGuid: () => 1n,
      maxPathMtu: () => 3,
    },
    kernelOptionsSchema.parse({}).cm,
  );
  const address = { flowLabel: 0, trafficClass: 0, hopLimit: 64, scopeId: 0 };
  const connection = manager.connect(
    {
      serviceId: 0x0106_1388n,
      path: { source: gidOfAddress('192.0.2.2'), destination: gidOfAddress('192.0.2.9'), ...address },
      localPort: 1,
      peerPort: 5000,
      qp: { qpn: 5, responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 6, srq: false },
      pathMtu: 3,
      ackTimeoutCode: 17,
      privateData: new Uint8Array(0),
    },
    {},
  );
  assert.is(connection.receivePsn, 0xdc_ba98);
  assert.is(sent.length, 1);
  // REQ: the starting PSN is 24 bits at byte 44 of the message, after 24 bytes of MAD header (IBA 1 §12.6.5).
  const psn = sent[0]!.subarray(24 + 44, 24 + 47);
  assert.is(Buffer.from(psn).toString('hex'), 'dcba98');
  manager.close();
});

test('test/defects.md lists every number once and names tests that exist', () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const rows = readFileSync(`${root}test/defects.md`, 'utf8')
    .split('\n')
    .filter((line) => /^\| [UKEN]\d/.test(line))
    .map((line) => line.slice(2, -2).split(' | '));
  const numbers = { U: 20, K: 15, E: 22, N: 11 };
  const all = Object.entries(numbers).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
  );
  assert.equal(
    rows.map(([number]) => number),
    all,
  );
  for (const [number, state, what = ''] of rows) {
    if (state !== 'shown') {
      assert.ok(state === 'open' || state === 'cannot arise', number);
      continue;
    }
    for (const one of what.split('<br>')) {
      const [, file, title] = /^`(test\/[\w./-]+)`: (.*)$/.exec(one) ?? [];
      assert.ok(file !== undefined && title !== undefined, `${number}: ${one}`);
      assert.ok(readFileSync(root + file, 'utf8').includes(title), `${number}: ${one}`);
    }
  }
});

test.run();
