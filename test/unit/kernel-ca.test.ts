// Verbs of the IRP-based verbs RFC (2005) on an HCA instance: events, attributes and their sizes, modifications.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import {
  IbCaAttr,
  IbPortAttr,
  ModifyCaFlag,
  ModifyPortFlag,
  PortCapability,
} from '../../kernel-bridge/ioctl/hca-file.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import { WvGidList } from '../../kernel-bridge/ioctl/structs.js';
import {
  ciModifyCa,
  ciModifyPort,
  ciQueryCa,
  ciQueryPort,
  type IbModifyPort,
} from '../../kernel-bridge/kernel/hca-driver/ci-attributes.js';
import { ciCloseCa } from '../../kernel-bridge/kernel/hca-driver/ci-ca.js';
import {
  ciGetCaFatalEvent,
  ciGetCaPortEvent,
  raiseFatalEvent,
} from '../../kernel-bridge/kernel/hca-driver/ci-events.js';
import type { IbCa } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import { openedCa, VerbCall } from '../helpers/direct-verbs.js';
import { ethGuid, hostInterface, KernelRig } from '../helpers/kernel-rig.js';

const name = ({ status }: { status: number }): string => statusName(status);
const fatal = (ca: IbCa) => new VerbCall<number>((irp) => ciGetCaFatalEvent(ca, irp));
const portEvent = (ca: IbCa, port = 1) => new VerbCall<number>((irp) => ciGetCaPortEvent(ca, port, irp));
const close = (ca: IbCa) => new VerbCall<number>((irp) => ciCloseCa(ca, irp));

/** Changes the addresses of eth0, or removes its carrier. */
function change(rig: KernelRig, address: string, up = true): void {
  rig.network.list[2] = hostInterface('eth0', 4, [address], { up });
  rig.kernel.ports.refresh(true);
}

test('port events: several requests may be pending, and each event completes the oldest one', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const [first, second, third] = [portEvent(ca), portEvent(ca), portEvent(ca)];
  assert.equal([first, second, third].map(name), ['PENDING', 'PENDING', 'PENDING']);
  change(rig, '192.0.2.3/24');
  assert.equal([first, second, third].map(name), ['SUCCESS', 'PENDING', 'PENDING']);
  assert.is(first.information, WvEvent.ADDRESS);
  change(rig, '192.0.2.3/24', false);
  assert.equal([second, third].map(name), ['SUCCESS', 'PENDING']);
  assert.is(second.information, WvEvent.STATE);
  assert.is(name(portEvent(ca, 0)), 'INVALID_PORT_HANDLE');
  assert.is(name(portEvent(ca, 2)), 'INVALID_PORT_HANDLE');
});

test('port events without a pending request are kept for the next one', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  change(rig, '192.0.2.3/24');
  change(rig, '192.0.2.3/24', false);
  const asked = portEvent(ca);
  assert.is(asked.returned, Status.PENDING, 'a request that was marked pending says so');
  assert.is(name(asked), 'SUCCESS');
  assert.is(asked.information, WvEvent.ADDRESS);
  assert.is(portEvent(ca).information, WvEvent.STATE, 'the second change is an event of its own');
  assert.is(name(portEvent(ca)), 'PENDING');
});

test('fatal events: one request is completed per event, one event is kept', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const [first, second] = [fatal(ca), fatal(ca)];
  raiseFatalEvent(ca);
  assert.equal([first, second].map(name), ['SUCCESS', 'PENDING']);
  raiseFatalEvent(ca);
  raiseFatalEvent(ca);
  assert.equal([second, fatal(ca), fatal(ca)].map(name), ['SUCCESS', 'SUCCESS', 'PENDING']);
});

test('callbacks are called instead, members are optional, and requests may also be pending', () => {
  const rig = new KernelRig();
  const reported: string[] = [];
  const both = openedCa(rig, {
    portEvent: (_ca, _context, port, event) => reported.push(`port ${port} ${event}`),
    fatalEvent: () => reported.push('fatal'),
  });
  const none = openedCa(rig);
  const waiting = portEvent(both);
  change(rig, '192.0.2.3/24');
  raiseFatalEvent(both);
  raiseFatalEvent(none);
  assert.equal(reported, [`port 1 ${WvEvent.ADDRESS}`, 'fatal']);
  assert.is(name(waiting), 'SUCCESS');
  assert.is(name(portEvent(both)), 'PENDING', 'an event delivered to a callback is not delivered again');
  assert.is(name(fatal(both)), 'PENDING');
  assert.is(name(fatal(none)), 'SUCCESS');
});

test('event requests can be cancelled one by one, and all end in CANCELED when the instance is closed', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const [one, two, three] = [portEvent(ca), portEvent(ca), fatal(ca)];
  assert.ok(one.irp.cancel());
  assert.equal([one, two, three].map(name), ['CANCELED', 'PENDING', 'PENDING']);
  change(rig, '192.0.2.3/24');
  assert.is(name(two), 'SUCCESS', 'an event does not hit a cancelled request');
  const four = portEvent(ca);
  assert.is(name(close(ca)), 'SUCCESS');
  assert.equal([three, four].map(name), ['CANCELED', 'CANCELED']);
  assert.equal([portEvent(ca), fatal(ca)].map(name), ['CANCELED', 'CANCELED']);
});

test('CiQueryCa returns complete output, truncated output with the required size, or an error for even less room', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const query = (bytes: number) => {
    const attr = new Uint8Array(bytes).fill(0xee);
    return { attr, asked: new VerbCall<number>((irp) => ciQueryCa(ca, attr, irp)) };
  };
  for (const bytes of [0, 3]) assert.is(name(query(bytes).asked), 'BUFFER_TOO_SMALL');
  const probe = query(4);
  assert.is(name(probe.asked), 'BUFFER_OVERFLOW');
  assert.is(probe.asked.information, 4);
  const needed = new DataView(probe.attr.buffer).getUint32(0, true);
  const whole = query(needed + 16);
  assert.is(name(whole.asked), 'SUCCESS');
  assert.is(whole.asked.information, needed);
  assert.ok(
    whole.attr.subarray(needed).every((byte) => byte === 0xee),
    'nothing is written after the end',
  );
  const head = IbCaAttr.decode(whole.attr);
  assert.is(head.attributes.nodeGuid, ethGuid);
  assert.is(head.portCount, 1);
  for (const bytes of [5, IbCaAttr.size, needed - 1]) {
    const part = query(bytes);
    assert.is(name(part.asked), 'BUFFER_OVERFLOW');
    assert.is(part.asked.information, bytes);
    assert.equal(part.attr, whole.attr.slice(0, bytes));
  }
  const portAt = Math.ceil(IbCaAttr.size / 8) * 8;
  const port = new Uint8Array(needed - portAt);
  assert.is(name(new VerbCall<number>((irp) => ciQueryPort(ca, 1, port, irp))), 'SUCCESS');
  assert.equal(port, whole.attr.slice(portAt, needed), 'the port is part of it');
});

test('CiQueryPort: attributes, GID and P_Key tables', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const attr = new Uint8Array(4096);
  const asked = new VerbCall<number>((irp) => ciQueryPort(ca, 1, attr, irp));
  const head = IbPortAttr.decode(attr);
  assert.is(asked.information, head.size);
  assert.is(head.attributes.state, 4);
  assert.equal([head.gidCount, head.pkeyCount], [3, 1]);
  const gids = WvGidList.decode(attr.subarray(IbPortAttr.size, IbPortAttr.size + 48));
  assert.equal(gids[1], gidOfAddress('192.0.2.2'));
  assert.is(new DataView(attr.buffer).getUint16(IbPortAttr.size + 48), 0xffff);
  assert.is(name(new VerbCall<number>((irp) => ciQueryPort(ca, 2, attr, irp))), 'INVALID_PORT_HANDLE');
  assert.is(
    name(new VerbCall<number>((irp) => ciQueryPort(ca, 1, new Uint8Array(3), irp))),
    'BUFFER_TOO_SMALL',
  );
});

test('CiModifyCa sets the fields selected by the flags', () => {
  const rig = new KernelRig();
  const [ca, other] = [openedCa(rig), openedCa(rig)];
  const systemImage = (): bigint => {
    const attr = new Uint8Array(4096);
    new VerbCall<number>((irp) => ciQueryCa(other, attr, irp));
    return IbCaAttr.decode(attr).attributes.systemImageGuid;
  };
  const modify = (flags: number, systemImageGuid: bigint) =>
    new VerbCall<number>((irp) => ciModifyCa(ca, flags, { systemImageGuid }, irp));
  assert.is(name(modify(0, 7n)), 'SUCCESS');
  assert.is(systemImage(), ethGuid);
  assert.is(name(modify(ModifyCaFlag.SYSTEM_IMAGE_GUID, 7n)), 'SUCCESS');
  assert.is(systemImage(), 7n);
  assert.is(name(modify(2, 8n)), 'INVALID_PARAMETER');
  assert.is(name(modify(ModifyCaFlag.SYSTEM_IMAGE_GUID, 2n ** 64n)), 'INVALID_PARAMETER');
  assert.is(systemImage(), 7n);
});

test('CiModifyPort: a capability has one holder, which releases it by clearing it or by closing', () => {
  const rig = new KernelRig();
  const [ca, other] = [openedCa(rig), openedCa(rig)];
  const { SET_CAPABILITIES: SET, CLEAR_CAPABILITIES: CLEAR, INIT_TYPE } = ModifyPortFlag;
  const { IS_SM, CM_SUP, SNMP_SUP } = PortCapability;
  const modify = (who: IbCa, flags: number, what: Partial<IbModifyPort>, port = 1) =>
    name(new VerbCall<number>((irp) => ciModifyPort(who, port, flags, what, irp)));
  const port = () => {
    const attr = new Uint8Array(4096);
    new VerbCall<number>((irp) => ciQueryPort(other, 1, attr, irp));
    return IbPortAttr.decode(attr);
  };
  assert.is(modify(ca, SET, { setCapabilities: IS_SM | CM_SUP }), 'SUCCESS');
  assert.is(modify(ca, SET, { setCapabilities: IS_SM }), 'SUCCESS');
  assert.is(modify(other, SET, { setCapabilities: IS_SM | SNMP_SUP }), 'FILE_LOCK_CONFLICT');
  assert.is(modify(other, CLEAR, { clearCapabilities: CM_SUP }), 'FILE_LOCK_CONFLICT');
  assert.is(port().capabilities, IS_SM | CM_SUP, 'a conflict changes nothing');
  assert.is(modify(other, CLEAR, { setCapabilities: IS_SM, clearCapabilities: SNMP_SUP }), 'SUCCESS');
  assert.is(modify(ca, CLEAR, { clearCapabilities: CM_SUP }), 'SUCCESS');
  assert.is(modify(other, SET, { setCapabilities: CM_SUP }), 'SUCCESS');
  close(ca);
  assert.is(port().capabilities, CM_SUP);
  assert.is(modify(other, SET | INIT_TYPE, { setCapabilities: IS_SM, initType: 5 }), 'SUCCESS');
  assert.is(port().attributes.initTypeReply, 5);
  assert.is(modify(other, INIT_TYPE, { initType: 16 }), 'INVALID_PARAMETER');
  assert.is(modify(other, SET, { setCapabilities: 0x1000 }), 'INVALID_PARAMETER');
  assert.is(
    modify(other, SET | CLEAR, { setCapabilities: IS_SM, clearCapabilities: IS_SM }),
    'INVALID_PARAMETER',
  );
  assert.is(modify(other, 8, {}), 'INVALID_PARAMETER');
  assert.is(modify(other, 0, {}, 2), 'INVALID_PORT_HANDLE');
});

test.run();
