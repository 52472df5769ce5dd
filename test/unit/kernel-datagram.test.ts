// Address handles, multicast groups and UD queue pairs in the filter and the HCA driver: statuses, owners, cleanup.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpMask } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { QpAttr, QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import type { Input } from '../../kernel-bridge/ioctl/layout.js';
import { AvProviderOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { ciCreateAv, ciDestroyAv, ciQueryAv } from '../../kernel-bridge/kernel/hca-driver/ci-datagram.js';
import { ciModifyQp } from '../../kernel-bridge/kernel/hca-driver/ci-queues.js';
import type { IbAddressVector } from '../../kernel-bridge/kernel/hca-driver/hca-ports.js';
import type { IbAv } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import { VerbCall } from '../helpers/direct-verbs.js';
import { ethGuid, expect, KernelRig, type Submitted, sound } from '../helpers/kernel-rig.js';

const sGid = gidOfAddress('192.0.2.2');
const dGid = gidOfAddress('192.0.2.9');
const group = gidOfAddress('239.1.2.3');
const good = { networkRouteValid: 1, sGid, dGid, portNumber: 1 };

class DatagramRig extends KernelRig {
  createAh(pd: bigint, addressVector: Input<typeof s.WvIoAv>, outputLength = 128): Submitted {
    return this.ioctl('AH_CREATE', s.WvIoAhCreate.encode({ id: { id: pd }, addressVector }), outputLength);
  }
  ah(pd: bigint, addressVector: Input<typeof s.WvIoAv> = good): bigint {
    const made = this.createAh(pd, addressVector);
    expect(made, Status.SUCCESS);
    return s.WvIoAhCreate.decode(made.output).id.id;
  }
  multicast(name: 'QP_ATTACH' | 'QP_DETACH', qp: bigint, gid: Uint8Array, lid = 0): Submitted {
    const input = s.WvIoQpMulticast.encode({ id: { id: qp, data: lid }, gid: { raw: gid } });
    return this.ioctl(name, input, 0);
  }
  ud(): { device: bigint; pd: bigint; cq: bigint; qp: bigint; handle: number } {
    const device = this.device();
    const pd = this.pd(device);
    const cq = this.cq(device);
    const qp = s.WvIoObject.decode(
      this.ioctl('QP_CREATE', this.qpInput(pd, cq, { qpType: QpType.UD })).output,
    ).id;
    return { device, pd, cq, qp, handle: [...this.hca.qps.keys()].at(-1)! };
  }
}

test('AH_CREATE passes the path with the port’s MTU to the HCA, and its handle to the provider', () => {
  const rig = new DatagramRig();
  const pd = rig.pd(rig.device());
  const made = rig.createAh(pd, { ...good, trafficClass: 0x68, flowLabel: 0xfff12345 });
  expect(made, Status.SUCCESS);
  assert.is(made.answer!.information, s.WvIoAhCreate.size + AvProviderOut.size);
  const { handle } = AvProviderOut.decode(made.output, s.WvIoAhCreate.size);
  const { path, pathMtu } = rig.hca.ahs.get(handle)!;
  assert.is(pathMtu, 1024);
  assert.equal(path, {
    source: sGid,
    destination: dGid,
    trafficClass: 0x68,
    flowLabel: 0x12345,
    hopLimit: 64,
    scopeId: 0,
  });
  // A provider without the hook does not request output.
  assert.is(rig.createAh(pd, good, s.WvIoAhCreate.size).answer!.information, s.WvIoAhCreate.size);
  sound(rig);
});

test('link-local destinations and IPv6 groups use the device’s interface', () => {
  const rig = new DatagramRig();
  const pd = rig.pd(rig.device());
  const scopeOf = (source: string, destination: string): number => {
    const av = { ...good, sGid: gidOfAddress(source), dGid: gidOfAddress(destination), hopLimit: 3 };
    const { handle } = AvProviderOut.decode(rig.createAh(pd, av).output, s.WvIoAhCreate.size);
    const { path } = rig.hca.ahs.get(handle)!;
    assert.is(path.hopLimit, 3);
    return path.scopeId;
  };
  assert.is(scopeOf('fe80::fc:ff:fe00:1', 'fe80::9'), 4);
  assert.is(scopeOf('fd00::2', 'ff15::9'), 4);
  assert.is(scopeOf('fd00::2', 'fd00::9'), 0);
});

test('statuses of AH_CREATE', () => {
  const rig = new DatagramRig();
  const device = rig.device();
  const pd = rig.pd(device);
  const ends = (status: number, av: Input<typeof s.WvIoAv>): void =>
    expect(rig.createAh(pd, { ...good, ...av }), status, JSON.stringify(av));
  ends(Status.INVALID_PARAMETER, { networkRouteValid: 0 });
  ends(Status.INVALID_PORT_HANDLE, { portNumber: 0 });
  ends(Status.INVALID_PORT_HANDLE, { portNumber: 2 });
  ends(Status.INVALID_ADDRESS, { sGid: gidOfAddress('192.0.2.3') });
  ends(Status.INVALID_ADDRESS, { dGid: gidOfAddress('fd00::9') });
  ends(Status.INVALID_ADDRESS, { dGid: gidOfAddress('0.0.0.0') });
  ends(Status.INVALID_ADDRESS, { sGid: gidOfAddress('fd00::2'), dGid: gidOfAddress('::') });
  expect(rig.createAh(pd + 1n, good), Status.NOT_FOUND);
  expect(rig.createAh(pd, good, s.WvIoAhCreate.size + 1), Status.BUFFER_TOO_SMALL);
  rig.hca.refuse.set('createAh', Status.INSUFFICIENT_RESOURCES);
  ends(Status.INSUFFICIENT_RESOURCES, {});
  rig.hca.refuse.clear();
  rig.kernel.hcaDriver.fail(ethGuid);
  ends(Status.FILE_FORCED_CLOSED, {});
  assert.is(rig.hca.ahs.size, 0);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS, 'failures leave no reference');
  sound(rig);
});

test('an address handle keeps its protection domain and is destroyed once', () => {
  const rig = new DatagramRig();
  const pd = rig.pd(rig.device());
  const ah = rig.ah(pd);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.DEVICE_BUSY);
  expect(rig.ioctl('AH_DESTROY', rig.id(ah + 1n)), Status.NOT_FOUND);
  const other = rig.open('\\\\.\\WinVerbs').answer!.information;
  expect(rig.ioctl('AH_DESTROY', rig.id(ah), 0, other), Status.NOT_FOUND, 'it is not the other file’s');
  expect(rig.ioctl('AH_DESTROY', rig.id(ah)), Status.SUCCESS);
  expect(rig.ioctl('AH_DESTROY', rig.id(ah)), Status.NOT_FOUND);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS);
  sound(rig);
});

test('address handles can still be destroyed after a fatal error', () => {
  const rig = new DatagramRig();
  const pd = rig.pd(rig.device());
  const ah = rig.ah(pd);
  rig.kernel.hcaDriver.fail(ethGuid);
  expect(rig.ioctl('AH_DESTROY', rig.id(ah)), Status.SUCCESS);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS);
  assert.is(rig.hca.ahs.size, 0);
  sound(rig);
});

test('closing the file frees address handles and attachments, users before the objects that they use', () => {
  const rig = new DatagramRig();
  const { pd, qp } = rig.ud();
  rig.ah(pd);
  rig.ah(pd);
  expect(rig.multicast('QP_ATTACH', qp, group), Status.SUCCESS);
  expect(rig.close(), Status.SUCCESS);
  assert.is(rig.hca.ahs.size + rig.hca.qps.size + rig.hca.pds.size + rig.hca.cqs.size, 0);
  sound(rig);
});

test('QP_ATTACH and QP_DETACH: groups by GID and LID, on the device’s interface', () => {
  const rig = new DatagramRig();
  const { pd, cq, qp, handle } = rig.ud();
  expect(rig.multicast('QP_ATTACH', qp, group, 7), Status.SUCCESS);
  assert.equal([...rig.hca.attachments], [`${handle.toString(16)}/${Buffer.from(group).toString('hex')}/4`]);
  expect(rig.multicast('QP_ATTACH', qp, group, 7), Status.ADDRESS_ALREADY_EXISTS);
  expect(rig.multicast('QP_DETACH', qp, group, 8), Status.NOT_FOUND);
  expect(rig.multicast('QP_DETACH', qp, gidOfAddress('239.1.2.4'), 7), Status.NOT_FOUND);
  expect(rig.multicast('QP_DETACH', qp, group, 7), Status.SUCCESS);
  expect(rig.multicast('QP_DETACH', qp, group, 7), Status.NOT_FOUND);
  assert.is(rig.hca.attachments.size, 0);
  expect(rig.multicast('QP_ATTACH', qp, gidOfAddress('ff15::1')), Status.SUCCESS);
  expect(rig.multicast('QP_ATTACH', qp, dGid), Status.INVALID_ADDRESS);
  expect(rig.multicast('QP_ATTACH', qp + 1n, group), Status.NOT_FOUND);
  expect(rig.multicast('QP_DETACH', qp + 1n, group), Status.NOT_FOUND);
  const rc = rig.qp(pd, cq);
  expect(rig.multicast('QP_ATTACH', rc, group), Status.NOT_SUPPORTED);
  expect(rig.multicast('QP_DETACH', rc, group), Status.NOT_FOUND);
  rig.hca.refuse.set('attachMulticast', Status.NETWORK_UNREACHABLE);
  expect(rig.multicast('QP_ATTACH', qp, group), Status.NETWORK_UNREACHABLE);
  rig.hca.refuse.clear();
  expect(rig.multicast('QP_ATTACH', qp, group), Status.SUCCESS, 'a refused one is no attachment');
  rig.kernel.hcaDriver.fail(ethGuid);
  expect(rig.multicast('QP_ATTACH', qp, gidOfAddress('239.1.2.5')), Status.FILE_FORCED_CLOSED);
  expect(rig.multicast('QP_DETACH', qp, group), Status.SUCCESS);
  sound(rig);
});

test('a UD queue pair needs P_Key, port and Q_Key for INIT, nothing for RTR, and a PSN for RTS', () => {
  const rig = new DatagramRig();
  const { qp, handle } = rig.ud();
  const move = (qpState: number, more: object = {}, options = 0): number =>
    rig.ioctl(
      'QP_MODIFY',
      s.WvIoQpAttributes.encode({ id: { id: qp }, options: QpAttr.STATE | options, qpState, ...more }),
      4,
    ).status;
  const mask = (): number => rig.hca.qps.get(handle)!.mask;
  const { state, pkeyIndex, port, qkey, sendPsn, drainNotify, path } = QpMask;
  assert.is(move(QpState.INIT, { qkey: 0x1111_1111 }), Status.SUCCESS);
  assert.is(mask(), state | pkeyIndex | port | qkey);
  assert.is(rig.hca.qps.get(handle)!.attributes.qkey, 0x1111_1111);
  assert.is(move(QpState.RTR), Status.SUCCESS);
  assert.is(mask(), state);
  assert.is(move(QpState.RTS, { sendPsn: 5 }), Status.SUCCESS);
  assert.is(mask(), state | sendPsn);
  // From SQ_ERROR and SQD to RTS only the attributes of the options are set.
  for (const from of [QpState.SQERROR, QpState.SQD]) {
    rig.hca.qps.get(handle)!.attributes.state = from;
    move(QpState.RTS);
    assert.is(mask(), state);
    rig.hca.qps.get(handle)!.attributes.state = QpState.RTS;
  }
  assert.is(move(QpState.SQD), Status.SUCCESS);
  assert.is(mask(), state | drainNotify);
  // The HCA checks paths, so they are passed on.
  rig.hca.qps.get(handle)!.attributes.state = QpState.INIT;
  assert.is(move(QpState.RTR, { addressVector: good, pathMtu: 1024 }, QpAttr.AV), Status.SUCCESS);
  assert.is(mask(), state | path);
  const query = s.WvIoQpAttributes.decode(rig.ioctl('QP_QUERY', rig.id(qp)).output);
  assert.is(query.qpType, QpType.UD);
  sound(rig);
});

test('only the kernel can set a controlled Q_Key', () => {
  const rig = new DatagramRig();
  const { qp, handle } = rig.ud();
  const init = s.WvIoQpAttributes.encode({
    id: { id: qp },
    options: QpAttr.STATE,
    qpState: QpState.INIT,
    qkey: 0x8001_0000,
  });
  expect(rig.ioctl('QP_MODIFY', init, 4), Status.ACCESS_DENIED);
  assert.is(rig.qpState(handle), QpState.RESET);
  const ibQp = [...rig.registry.qps.values()].at(-1)!;
  const attributes = { state: QpState.INIT, qkey: 0x8001_0000, pkeyIndex: 0, port: 1 };
  const mask = QpMask.state | QpMask.qkey | QpMask.pkeyIndex | QpMask.port;
  for (const [mode, status] of [
    ['user', Status.ACCESS_DENIED],
    ['kernel', Status.SUCCESS],
  ] as const) {
    assert.is(new VerbCall<number>((irp) => ciModifyQp(ibQp, mask, attributes, irp), mode).status, status);
  }
  // The error for a lost HCA has precedence.
  rig.network.list.length = 0;
  rig.kernel.ports.refresh(true);
  assert.ok(ibQp.pd.ca.hca.gone);
  const asked = new VerbCall<number>((irp) => ciModifyQp(ibQp, mask, attributes, irp), 'user');
  assert.is(asked.status, Status.FILE_FORCED_CLOSED);
});

test('CiCreateAv, CiQueryAv and CiDestroyAv as direct calls', () => {
  const rig = new DatagramRig();
  rig.ud();
  const { pd } = [...rig.registry.qps.values()].at(-1)!;
  const av: IbAddressVector = { ...s.WvIoAv.zero(), ...good };
  const udata = { input: new Uint8Array(0), output: new Uint8Array(0), outputSize: 0 };
  const made = new VerbCall<IbAv>((irp) => ciCreateAv(pd, av, udata, irp));
  assert.is(made.status, Status.SUCCESS);
  const handle = made.information!;
  assert.equal(new VerbCall<IbAddressVector>((irp) => ciQueryAv(handle, irp)).information, av);
  assert.is(new VerbCall<number>((irp) => ciDestroyAv(handle, irp)).status, Status.SUCCESS);
  assert.is(new VerbCall<number>((irp) => ciDestroyAv(handle, irp)).status, Status.INVALID_HANDLE);
  rig.kernel.hcaDriver.fail(ethGuid);
  assert.is(new VerbCall<IbAddressVector>((irp) => ciQueryAv(handle, irp)).status, Status.FILE_FORCED_CLOSED);
});

test.run();
