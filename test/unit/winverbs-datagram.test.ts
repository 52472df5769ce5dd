// Datagrams above the IOCTLs: address handles, work requests, multicast, GRHs, resolved paths.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IbatCode } from '../../kernel-bridge/ioctl/codes.js';
import { CqProviderIn, QpProviderIn } from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import {
  addressOf,
  gidOf,
  isMulticastGid,
  MULTICAST_QPN,
  parseGrh,
  QpAttr,
  QpState,
  QpType,
  replyAddressVector,
  Status,
  WVProvider,
  type WvAddressVector,
  type WvCompletion,
  type WvError,
  WvSend,
  type WvSendRequest,
  WvWc,
} from '../../winverbs/index.js';
import { writeCqe } from '../helpers/fake-hca.js';
import { ethGuid } from '../helpers/kernel-rig.js';
import { throwsStatus, throwsWv } from '../helpers/outcome.js';
import { failWith, NO_BYTES, RigDoor } from '../helpers/rig-door.js';

const vector: WvAddressVector = { sourceGid: '192.0.2.2', destinationGid: gidOfAddress('192.0.2.9') };
const region = { lkey: 0x77, address: 0x7fee_0000_1000, bytes: new Uint8Array(64).fill(7) };
const sge = { region, offset: 0, length: 16 };

function setUp() {
  const door = new RigDoor();
  const provider = new WVProvider(door);
  const device = provider.openDevice(ethGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(16);
  const cqIn = CqProviderIn.decode(door.input('CQ_CREATE'), s.WvIoId.size);
  const cqRing = door.rig.hca.rings.get(Number(cqIn.ringAddress))!;
  const sizes = { sendDepth: 4, sendSge: 2, receiveDepth: 4, receiveSge: 2, maxInlineSend: 64 };
  const qp = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...sizes, initiatorDepth: 3 });
  const qpIn = QpProviderIn.decode(door.input('QP_CREATE'), s.WvIoQpCreate.size);
  const ring = door.rig.hca.rings.get(Number(qpIn.ringAddress))!;
  const ah = pd.createAddressHandle(vector);
  ring.words[abi.qpState] = QpState.RTS;
  const word = (index: number, at: number) =>
    ring.words[(abi.qpHeaderBytes + index * qpIn.sendStride) / 4 + at];
  const all = [provider, device, pd, cq, qp, ah];
  return { door, provider, device, pd, cq, cqRing, qp, ah, ring, word, sizes, token: qpIn.token, all };
}

test('a datagram queue pair is created with type UD and without read depths', () => {
  const { door } = setUp();
  const { qpType, initiatorDepth, responderResources } = s.WvIoQpCreate.decode(door.input('QP_CREATE'));
  assert.equal([qpType, initiatorDepth, responderResources], [QpType.UD, 0, 0]);
});

test('AH_CREATE carries the vector; the last release destroys the handle, which keeps its domain until then', () => {
  const { door, pd, ah, all } = setUp();
  const { id, addressVector: av } = s.WvIoAhCreate.decode(door.input('AH_CREATE'));
  assert.is(id.id, s.WvIoId.decode(door.input('QP_CREATE')).id);
  assert.equal([av.networkRouteValid, av.portNumber, av.hopLimit], [1, 1, 0]);
  assert.equal([addressOf(av.sGid), addressOf(av.dGid)], ['192.0.2.2', '192.0.2.9']);
  const full = { ...vector, flowLabel: 0x12345, trafficClass: 8, hopLimit: 3 };
  pd.createAddressHandle(full).release();
  throwsWv(
    () => pd.createAddressHandle({ ...full, portNumber: 2 }),
    Status.INVALID_PORT_HANDLE,
    /`portNumber` must be 1; got 2\./,
  );
  const { addressVector: other } = s.WvIoAhCreate.decode(door.input('AH_CREATE'));
  assert.equal([other.flowLabel, other.trafficClass, other.hopLimit, other.portNumber], [0x12345, 8, 3, 2]);
  assert.is(door.log.filter((name) => name === 'AH_DESTROY').length, 1);
  for (const object of all) if (object !== ah) object.release();
  assert.not(door.log.includes('PD_DEALLOCATE'));
  ah.release();
  assert.is(door.objects, 0);
  assert.ok(door.log.indexOf('AH_DESTROY') < door.log.indexOf('PD_DEALLOCATE'));
});

test('a failed creation of an address handle reports the reason and leaves nothing behind', () => {
  const { door, pd } = setUp();
  const objects = door.objects;
  const refused = (more: object, status: number, text: RegExp) =>
    throwsWv(() => pd.createAddressHandle({ ...vector, ...more }), status, text);
  refused({ sourceGid: 'here' }, Status.INVALID_ADDRESS, /must be an IP address, .*; got 'here'/);
  refused({ destinationGid: new Uint8Array(4) }, Status.INVALID_PARAMETER, /16 bytes/);
  refused({ destinationGid: undefined }, Status.INVALID_PARAMETER, /16 bytes/);
  refused({ portNumber: 256 }, Status.INVALID_PARAMETER, /`portNumber` must be .*; got 256/);
  refused({ hopLimit: -1 }, Status.INVALID_PARAMETER, /`hopLimit` must be .*; got -1/);
  door.on('AH_CREATE', () => failWith(Status.INVALID_ADDRESS));
  refused({}, Status.INVALID_ADDRESS, /AH_CREATE/);
  assert.is(door.objects, objects);
});

test('a UVP may create address handles without the kernel', () => {
  const { door, pd, qp, verbsLog } = withOwnHandles();
  const before = door.log.length;
  const ah = pd.createAddressHandle(vector);
  assert.is(door.log.length, before, 'no IOCTL');
  qp.send(1, ah, sge, 0, 5, 6);
  ah.release();
  assert.is(door.log.includes('AH_DESTROY'), false);
  assert.equal(verbsLog, ['pre create', 'pre destroy']);
});

function withOwnHandles() {
  const { door, pd, qp } = setUp();
  const verbsLog: string[] = [];
  const { verbs } = door;
  const create = verbs.preCreateAv.bind(verbs);
  Object.assign(verbs, {
    preCreateAv: (...args: Parameters<typeof create>) => {
      verbsLog.push('pre create');
      const av = create(...args);
      args[2].processingDone = true;
      return av;
    },
    postCreateAv: () => verbsLog.push('post create'),
    preDestroyAv: () => {
      verbsLog.push('pre destroy');
      return true;
    },
    postDestroyAv: () => verbsLog.push('post destroy'),
  });
  return { door, pd, qp, verbsLog };
}

test('the fields of a datagram: handle, QPN, Q_Key, flags, immediate data', () => {
  const { door, qp, ah, word } = setUp();
  const message = {
    context: 'c',
    addressHandle: ah,
    sgl: [sge, { ...sge, length: 8 }],
    flags: WvSend.SIGNALED | WvSend.IMMEDIATE | WvSend.SOLICITED,
    immediateData: 0xcafe_f00d,
    destinationQpn: MULTICAST_QPN,
    destinationQkey: 0xffff_ffff,
  };
  qp.sendMessage(message);
  const [handle] = door.rig.hca.ahs.keys();
  assert.equal(
    [
      abi.swOpcode,
      abi.swFlags,
      abi.swSgeCount,
      abi.swImmediate,
      abi.swAh,
      abi.swRemoteQpn,
      abi.swRemoteQkey,
    ].map((at) => word(0, at)),
    [0, 13, 2, 0xcafe_f00d, Number(handle), 0xff_ffff, 0xffff_ffff],
  );
  qp.send('d', ah, sge, WvSend.INLINE, 0x12_3456, 0x1111_1111);
  assert.equal(
    [abi.swFlags, abi.swSgeCount, abi.swRemoteQpn, abi.swRemoteQkey].map((at) => word(1, at)),
    [WvSend.INLINE, 16, 0x12_3456, 0x1111_1111],
  );
  assert.is(door.log.filter((name) => name.startsWith('doorbell')).length, 2);
});

test('a list of datagrams is posted with one doorbell; those before a rejected one are queued', () => {
  const { door, qp, ah, word, ring, sizes } = setUp();
  const to = { addressHandle: ah, destinationQpn: 0x12_3456, destinationQkey: 5, sgl: [sge] };
  qp.postSend([to, { ...to, flags: WvSend.IMMEDIATE, immediate: 9 }, { ...to, destinationQkey: 6 }]);
  assert.is(door.log.filter((name) => name.startsWith('doorbell')).length, 1);
  assert.equal(
    [0, 1, 2].map((at) => [abi.swFlags, abi.swImmediate, abi.swRemoteQkey].map((one) => word(at, one))),
    [
      [0, 0, 5],
      [1, 9, 5],
      [0, 0, 6],
    ],
  );
  assert.is(word(0, abi.swRemoteQpn), 0x12_3456);
  const fails = (requests: readonly WvSendRequest[], failed: number, text: RegExp, status: number): void => {
    const before = ring.words[abi.qpSendProducer]!;
    const { failedRequest } = throwsStatus(() => qp.postSend(requests), status, text) as WvError;
    assert.equal([failedRequest, ring.words[abi.qpSendProducer]], [failed, before + failed]);
  };
  const { INVALID_PARAMETER, NO_MORE_ENTRIES } = Status;
  fails([{ ...to, opcode: 1 }], 0, /`opcode` must be 0/, INVALID_PARAMETER);
  fails([{ ...to, invalidateRkey: 7 }], 0, /without `invalidateRkey`/, INVALID_PARAMETER);
  fails([{ sgl: [sge], destinationQpn: 1 }], 0, /must have `addressHandle`/, INVALID_PARAMETER);
  fails([{ sgl: [sge], addressHandle: ah }], 0, /and `destinationQpn`/, INVALID_PARAMETER);
  assert.is(sizes.sendDepth, 4);
  fails([to, to], 1, /Request 2 of 2/, NO_MORE_ENTRIES);
  throwsWv(() => qp.postSend(7 as never), Status.INVALID_PARAMETER, /`requests` must be an array/);
});

test('invalid datagrams are rejected, and nothing is queued', () => {
  const { qp, pd, device, ah, ring, sizes } = setUp();
  const send = (more: { flags?: number; qpn?: number; qkey?: number }) => () =>
    qp.send(0, ah, sge, more.flags ?? 0, more.qpn ?? 1, more.qkey ?? 1);
  throwsWv(send({ flags: WvSend.FENCE }), Status.INVALID_PARAMETER, /without FENCE/);
  throwsWv(send({ flags: 0x100 }), Status.INVALID_PARAMETER);
  for (const qpn of [-1, 0x100_0000, 1.5, Number.NaN])
    throwsWv(send({ qpn }), Status.INVALID_PARAMETER, /24-bit/);
  for (const qkey of [-1, 2 ** 32, 0.5]) throwsWv(send({ qkey }), Status.INVALID_PARAMETER, /32-bit/);
  const other = device.allocateProtectionDomain().createAddressHandle(vector);
  throwsWv(() => qp.send(0, other, sge, 0, 1, 1), Status.INVALID_PARAMETER, /protection domain/);
  throwsWv(() => qp.send(0, {} as typeof ah, sge, 0, 1, 1), Status.INVALID_PARAMETER, /protection domain/);
  throwsWv(
    () =>
      qp.sendMessage({
        context: 0,
        addressHandle: ah,
        sgl: Array(qp.sendSge + 1).fill(sge),
        flags: 0,
        destinationQpn: 1,
        destinationQkey: 1,
      }),
    Status.DATA_OVERRUN,
  );
  const gone = pd.createAddressHandle(vector);
  gone.release();
  throwsWv(() => qp.send(0, gone, sge, 0, 1, 1), Status.INVALID_HANDLE, /address handle was released/);
  ring.words[abi.qpState] = QpState.RTR;
  throwsWv(send({}), Status.INVALID_DEVICE_STATE, /ready to send/);
  assert.is(ring.words[abi.qpSendProducer], 0);
  ring.words[abi.qpState] = QpState.RTS;
  for (let i = 0; i < sizes.sendDepth; i++) send({})();
  throwsWv(send({}), Status.NO_MORE_ENTRIES);
});

test('a Receive reports its sender: QPN, P_Key index, GRH', () => {
  const { cq, cqRing, qp, token } = setUp();
  qp.postReceive('r', [sge]);
  writeCqe(cqRing, {
    token,
    wqe: 0,
    opcode: 128,
    length: 56,
    flags: abi.cqeFlagReceiveQueue | abi.cqeFlagGrh,
    sourceQpn: 0xabcdef,
    pkeyIndex: 2,
  });
  const completions: WvCompletion[] = [];
  assert.is(cq.poll(completions, 4), 1);
  const { flags, sourceQpn, pkeyIndex, sLid, sl, dLidPathBits, length } = completions[0]!;
  assert.equal(
    [flags, sourceQpn, pkeyIndex, sLid, sl, dLidPathBits, length],
    [WvWc.GRH_VALID, 0xabcdef, 2, 0, 0, 0, 56],
  );
});

test('start moves a queue pair to RTS in three steps', () => {
  const { door, qp } = setUp();
  qp.start(0x1111_1111, { sendPsn: 9 });
  const steps = door.inputs
    .filter(({ name }) => name === 'QP_MODIFY')
    .map(({ input }) => s.WvIoQpAttributes.decode(input));
  assert.equal(
    steps.map(({ qpState, options }) => [qpState, options]),
    [QpState.INIT, QpState.RTR, QpState.RTS].map((state) => [state, QpAttr.STATE]),
  );
  assert.equal([steps[0]!.qkey, steps[0]!.addressVector.portNumber], [0x1111_1111, 1]);
  assert.is(steps[2]!.sendPsn, 9);
  assert.ok(steps.every(({ qpType }) => qpType === QpType.UD));
  qp.modify({ qpState: QpState.RESET }, QpAttr.STATE);
  qp.start(1);
  const psns = door.inputs.slice(-1).map(({ input }) => s.WvIoQpAttributes.decode(input).sendPsn);
  assert.ok(psns[0]! >= 0 && psns[0]! < 2 ** 24);
});

test('groups are attached by address or GID; failures reject the promise', async () => {
  const { door, qp } = setUp();
  await qp.attachMulticast('239.1.2.3');
  const attached = s.WvIoQpMulticast.decode(door.input('QP_ATTACH'));
  assert.equal([addressOf(attached.gid.raw), attached.id.data], ['239.1.2.3', 0]);
  await qp.attachMulticast(gidOfAddress('ff15::1'), 0xc001);
  qp.detachMulticast(gidOfAddress('ff15::1'), 0xc001).getResult({ wait: true });
  const detached = s.WvIoQpMulticast.decode(door.input('QP_DETACH'));
  assert.equal([addressOf(detached.gid.raw), detached.id.data], ['ff15::1', 0xc001]);
  throwsWv(() => qp.attachMulticast('everybody'), Status.INVALID_ADDRESS, /everybody/);
  door.on('QP_ATTACH', () => failWith(Status.ADDRESS_ALREADY_EXISTS));
  throwsWv(() => qp.attachMulticast('239.1.2.3').getResult({ wait: true }), Status.ADDRESS_ALREADY_EXISTS);
});

// ── GRHs and paths ──────────────────────────────────────────────────────────────────────────────────────────

/** An IPv4 header as in received datagrams, with a correct checksum. */
function grh4(source: string, destination: string, tos = 0x68, ttl = 33): Uint8Array {
  const bytes = new Uint8Array(40);
  bytes.set([0x45, tos, 0, 84, 0, 0, 0x40, 0, ttl, 17, 0, 0], 20);
  bytes.set(gidOfAddress(source).subarray(12), 32);
  bytes.set(gidOfAddress(destination).subarray(12), 36);
  let sum = 0;
  for (let at = 20; at < 40; at += 2) sum += (bytes[at]! << 8) | bytes[at + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  bytes.set([(~sum >>> 8) & 0xff, ~sum & 0xff], 30);
  return bytes;
}

function grh6(source: string, destination: string): Uint8Array {
  const bytes = new Uint8Array(40);
  bytes.set([0x6a, 0x41, 0x23, 0x45, 0, 40, 17, 12]);
  bytes.set(gidOfAddress(source), 8);
  bytes.set(gidOfAddress(destination), 24);
  return bytes;
}

test('GRHs of both families are parsed, and other bytes are rejected', () => {
  const four = parseGrh(grh4('192.0.2.9', '192.0.2.2'));
  assert.equal([four.ipVersion, four.trafficClass, four.flowLabel, four.hopLimit], [4, 0x68, 0, 33]);
  assert.equal([addressOf(four.sourceGid), addressOf(four.destinationGid)], ['192.0.2.9', '192.0.2.2']);
  // The bytes before an IPv4 header are ignored (IBA 1 Annex A17).
  const dirty = grh4('192.0.2.9', '192.0.2.2').fill(0x66, 0, 20);
  assert.is(parseGrh(dirty).ipVersion, 4);
  const six = parseGrh(grh6('2001:db8::9', '2001:db8::2'));
  assert.equal([six.ipVersion, six.trafficClass, six.flowLabel, six.hopLimit], [6, 0xa4, 0x12345, 12]);
  assert.equal([addressOf(six.sourceGid), addressOf(six.destinationGid)], ['2001:db8::9', '2001:db8::2']);
  const spoilt = grh4('192.0.2.9', '192.0.2.2');
  spoilt[30]! ^= 1;
  for (const bytes of [spoilt, new Uint8Array(40), grh6('::1', '::1').subarray(0, 39), NO_BYTES])
    throwsWv(() => parseGrh(bytes), Status.INVALID_PARAMETER, /GRH/);
});

test('the reply vector is the reversed GRH, and for a group it needs an address', () => {
  const text = ({ sourceGid, destinationGid }: WvAddressVector) =>
    [sourceGid, destinationGid].map((gid) => addressOf(gidOf(gid)));
  const direct = replyAddressVector(grh4('192.0.2.9', '192.0.2.2'));
  assert.equal(text(direct), ['192.0.2.2', '192.0.2.9']);
  assert.is(direct.trafficClass, 0x68);
  const toGroup = grh6('2001:db8::9', 'ff15::1');
  throwsWv(() => replyAddressVector(toGroup), Status.INVALID_PARAMETER, /ff15::1/);
  assert.equal(text(replyAddressVector(toGroup, '2001:db8::2')), ['2001:db8::2', '2001:db8::9']);
});

test('multicast GIDs', () => {
  for (const group of ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ffff::'])
    assert.ok(isMulticastGid(gidOf(group)), group);
  for (const host of ['223.255.255.255', '240.0.0.1', 'fe80::1', '::', '::ff00:0']) {
    assert.not(isMulticastGid(gidOf(host)), host);
  }
});

test('a resolved path opens its device and creates its address handle', () => {
  const { door, provider, pd } = setUp();
  let asked: { local: string; remote: string } | undefined;
  door.handlers.set(IbatCode.PATH, (input) => {
    const { localAddress, remoteAddress } = s.IbatPathIn.decode(input);
    const of = (bytes: Uint8Array) => s.WvIoSockaddrIn.decode(bytes).sinAddr.toString(16);
    asked = { local: of(localAddress), remote: of(remoteAddress) };
    return s.IbPathRecord.encode({
      sgid: gidOfAddress('192.0.2.2'),
      dgid: gidOfAddress('192.0.2.9'),
      hopFlowRaw: (0x54321 << 8) | 17,
      tclass: 5,
      mtu: 0x85,
    });
  });
  const { device, addressVector } = provider.resolvePath('192.0.2.9');
  assert.equal(asked, { local: '0', remote: 'c0000209' });
  assert.equal(device, { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 });
  const { flowLabel, hopLimit, trafficClass, portNumber } = addressVector;
  assert.equal([flowLabel, hopLimit, trafficClass, portNumber], [0x54321, 17, 5, 1]);
  pd.createAddressHandle(addressVector).release();
  provider.resolvePath('192.0.2.9', '192.0.2.3');
  assert.is(asked!.local, 'c0000203');
  throwsWv(() => provider.resolvePath('nowhere'), Status.INVALID_ADDRESS, /nowhere/);
});

test('a resolved group uses an interface', () => {
  const { provider } = setUp();
  throwsWv(() => provider.resolvePath('239.1.2.3'), Status.INVALID_PARAMETER, /interface/);
  throwsWv(() => provider.resolvePath('239.1.2.3', '::1'), Status.INVALID_PARAMETER, /same family/);
  const { device, addressVector } = provider.resolvePath('239.1.2.3', '192.0.2.2');
  assert.is(device.deviceGuid, ethGuid);
  assert.equal([gidOf(addressVector.sourceGid), gidOf(addressVector.destinationGid)].map(addressOf), [
    '192.0.2.2',
    '239.1.2.3',
  ]);
});

test.run();
