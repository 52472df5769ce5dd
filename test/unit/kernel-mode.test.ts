// Restrictions of verbs: they must not block, and user-mode requests cannot modify a device.
import vm from 'node:vm';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode, ioctlRow } from '../../kernel-bridge/ioctl/codes.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { Call, callVerbFor } from '../../kernel-bridge/kernel/filter/call.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { ciModifyCa, ciModifyPort } from '../../kernel-bridge/kernel/hca-driver/ci-attributes.js';
import { freshMs } from '../../kernel-bridge/kernel/hca-driver/hca-ports.js';
import { Irp, IrpMajor, type RequestorMode } from '../../kernel-bridge/kernel/io-manager/irp.js';
import {
  assertPassive,
  atDispatchLevel,
  atSameLevel,
  isPassive,
} from '../../kernel-bridge/kernel/io-manager/irql.js';
import { WorkItems } from '../../kernel-bridge/kernel/io-manager/work-items.js';
import { openAl, openCa, openedCa, VerbCall } from '../helpers/direct-verbs.js';
import { FakeNetwork, KernelRig } from '../helpers/kernel-rig.js';
import { tableOf } from '../helpers/port-table.js';
import { otherGid } from '../helpers/rig-cm.js';

const name = ({ status }: { status: number }): string => statusName(status);

test('DISPATCH_LEVEL lasts as long as the routine, even if it fails or is nested', () => {
  const refused = (): void => assert.throws(() => assertPassive('reading'), /reading may block/);
  assertPassive('reading');
  atDispatchLevel(() => {
    atDispatchLevel(refused);
    refused();
  });
  assert.throws(() =>
    atDispatchLevel(() => {
      throw new Error('inside');
    }),
  );
  assertPassive('reading');
});

test('at DISPATCH_LEVEL the last scan of the host’s interfaces is used, and one new scan is queued', () => {
  const network = new FakeNetwork();
  const work = new WorkItems();
  let now = 0;
  const ports = tableOf(network, () => now, work);
  assert.is(ports.all().length, 3);
  const looks = network.reads;
  now = 2 * freshMs;
  network.list.pop();
  const look = (irp: Irp): number => {
    assert.throws(() => ports.routeTo(otherGid, undefined), /routes may block/);
    for (let n = 0; n < 3; n++) assert.is(ports.all().length, 3);
    return irp.complete(Status.SUCCESS, 0);
  };
  assert.is(new VerbCall<number>(look).status, Status.SUCCESS);
  assert.is(network.reads, looks);
  assert.is(work.size, 1);
  work.run();
  assert.is(network.reads, looks + 1);
  assert.is(ports.all().length, 2);
  work.queue(() => {});
  assert.throws(() => atDispatchLevel(() => work.run()), /work items may block/);
});

test('code that is interrupted without its finally blocks does not change the level', () => {
  const code = (): number => atDispatchLevel(() => spin());
  const spin = (): never => {
    for (;;);
  };
  const brokenOff = (): unknown => vm.runInNewContext('code()', { code }, { timeout: 20 });
  assert.throws(() => atSameLevel(brokenOff), /timed out/);
  assertPassive('reading');
  atDispatchLevel(() => {
    assert.throws(() => atSameLevel(brokenOff), /timed out/);
    assert.not.ok(isPassive());
  });
});

test('work items that keep queueing others yield after some rounds, and continue later', async () => {
  const work = new WorkItems();
  let runs = 0;
  const again = (): void => {
    if (runs++ < 100) work.queue(again);
  };
  again();
  work.run();
  assert.ok(runs > 4 && runs < 100, 'those that a few queue run at once');
  while (work.size > 0) await new Promise(setImmediate);
  assert.is(runs, 101);
});

test('every verb reached by IOCTLs works at DISPATCH_LEVEL, even if the interfaces were last read long ago', () => {
  const rig = new KernelRig();
  // Every scan of the interfaces inside a verb throws, even if the table is fresh, so the verbs must work without scanning.
  const { device, pd, cq, qp } = rig.queuePair();
  const on = (id: bigint, data = 0) => s.WvIoId.encode({ id, data });
  const port = s.WvIoDevicePortQuery.encode({ id: device, portNumber: 1 });
  const [sGid, dGid] = [gidOfAddress('192.0.2.2'), gidOfAddress('192.0.2.9')];
  const addressVector = { networkRouteValid: 1, sGid, dGid, portNumber: 1 };
  for (const request of [
    rig.ioctl('DEVICE_QUERY', rig.id(device)),
    rig.ioctl('DEVICE_PORT_QUERY', port),
    rig.ioctl('DEVICE_GID_QUERY', port),
    rig.ioctl('DEVICE_PKEY_QUERY', port),
    rig.ioctl('MEMORY_REGISTER', s.WvIoMemoryRegister.encode({ id: pd, address: 4096n, bufferLength: 64n })),
    rig.ioctl('MW_ALLOCATE', on(pd)),
    rig.ioctl('CQ_RESIZE', rig.cqInput(cq, 32, { entries: 32 })),
    rig.ioctl('AH_CREATE', s.WvIoAhCreate.encode({ id: { id: pd }, addressVector })),
    rig.ioctl('QP_QUERY', rig.id(qp)),
    rig.ioctl('QP_DESTROY', rig.id(qp)),
    rig.ioctl('CQ_DESTROY', rig.id(cq)),
  ]) {
    assert.is(name(request), 'SUCCESS');
  }
  assert.is(name(rig.close()), 'SUCCESS');
  assert.equal(rig.faults, []);
});

test('user mode cannot modify a device', () => {
  const rig = new KernelRig();
  assert.is(name(openCa(rig, {}, 'user')), 'SUCCESS');
  const ca = openedCa(rig, { portEvent: () => {} });
  assert.is(name(new VerbCall<number>((irp) => ciModifyCa(ca, 0, {}, irp), 'user')), 'ACCESS_DENIED');
  assert.is(name(new VerbCall<number>((irp) => ciModifyPort(ca, 1, 0, {}, irp), 'user')), 'ACCESS_DENIED');
  assert.is(name(new VerbCall<number>((irp) => ciModifyPort(ca, 1, 0, {}, irp))), 'SUCCESS');
});

test('the filter’s verbs run in the mode of the request that they serve', () => {
  const seen: string[] = [];
  for (const requestorMode of ['user', 'kernel'] as const satisfies readonly RequestorMode[]) {
    const irp = new Irp({ major: IrpMajor.deviceControl, requestorMode, onComplete: () => {} });
    const call = new Call(
      new WvFile(openAl(new KernelRig().kernel)),
      irp,
      ioctlRow(IoctlCode.GUID_QUERY)!,
      new Uint8Array(0),
    );
    const verb = (inner: Irp): number => {
      seen.push(inner.requestorMode);
      return inner.complete(Status.SUCCESS, 0);
    };
    irp.dispatch(() => callVerbFor(irp, verb, () => call.done()));
  }
  assert.equal(seen, ['user', 'kernel']);
});

test.run();
