// Limits of verbs: they must not wait, and for user mode there are neither call-backs nor changes of a device.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { IoctlCode, ioctlRow } from '../../kernel-bridge/ioctl/codes.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { Call } from '../../kernel-bridge/kernel/filter/call.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/objects.js';
import { ciModifyCa, ciModifyPort } from '../../kernel-bridge/kernel/hca-driver/ci-attributes.js';
import { SystemNetwork } from '../../kernel-bridge/kernel/hca-driver/host-interfaces.js';
import { Irp, IrpMajor, type RequestorMode } from '../../kernel-bridge/kernel/io-manager/irp.js';
import { assertPassive, atDispatchLevel } from '../../kernel-bridge/kernel/io-manager/irql.js';
import { Asked, openCa, openedCa } from '../helpers/direct-verbs.js';
import { KernelRig } from '../helpers/kernel-rig.js';
import { tableOf } from '../helpers/port-table.js';

const addon = loadAddon();

const name = ({ status }: { status: number }): string => statusName(status);

test('DISPATCH_LEVEL lasts as long as the routine, also one that fails or is inside another', () => {
  const refused = (): void => assert.throws(() => assertPassive('reading'), /reading may wait/);
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

test('a verb that would read the host’s interfaces is a fault; other requests may', () => {
  const ports = tableOf(new SystemNetwork(addon));
  const read = (irp: Irp): number => {
    ports.all();
    return irp.complete(Status.SUCCESS, 0);
  };
  assert.throws(() => new Asked<number>(read), /DISPATCH_LEVEL/);
  const irp = new Irp({ major: IrpMajor.deviceControl, requestorMode: 'user', onComplete: () => {} });
  assert.is(irp.dispatch(read), Status.SUCCESS);
  assert.ok(ports.all().length > 0);
});

test('every verb that IOCTLs reach keeps to DISPATCH_LEVEL, with interfaces that were last read long ago', () => {
  const rig = new KernelRig();
  // Every scan of the interfaces inside a verb throws, however fresh the table is, so the verbs must work without.
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

test('user mode brings no call-backs and changes no device', () => {
  const rig = new KernelRig();
  assert.is(name(openCa(rig, { portEvent: () => {} }, 'user')), 'ACCESS_DENIED');
  assert.is(name(openCa(rig, { fatalEvent: () => {} }, 'user')), 'ACCESS_DENIED');
  assert.is(name(openCa(rig, {}, 'user')), 'SUCCESS');
  const ca = openedCa(rig, { portEvent: () => {} });
  assert.is(name(new Asked<number>((irp) => ciModifyCa(ca, 0, {}, irp), 'user')), 'ACCESS_DENIED');
  assert.is(name(new Asked<number>((irp) => ciModifyPort(ca, 1, 0, {}, irp), 'user')), 'ACCESS_DENIED');
  assert.is(name(new Asked<number>((irp) => ciModifyPort(ca, 1, 0, {}, irp))), 'SUCCESS');
});

test('the filter’s verbs run in the mode of the request that they serve', () => {
  const seen: string[] = [];
  for (const requestorMode of ['user', 'kernel'] as const satisfies readonly RequestorMode[]) {
    const irp = new Irp({ major: IrpMajor.deviceControl, requestorMode, onComplete: () => {} });
    const call = new Call(new WvFile(), irp, ioctlRow(IoctlCode.GUID_QUERY)!, new Uint8Array(0));
    const verb = (inner: Irp): number => {
      seen.push(inner.requestorMode);
      return inner.complete(Status.SUCCESS, 0);
    };
    irp.dispatch(() => call.verb(verb, () => call.done()));
  }
  assert.equal(seen, ['user', 'kernel']);
});

test.run();
