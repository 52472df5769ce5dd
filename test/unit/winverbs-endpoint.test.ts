import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IbatCode } from '../../kernel-bridge/ioctl/codes.js';
import { QpStateOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { decodeSockaddr, encodeSockaddr } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { RemoteMemory, WvAccess, WvOpcode, WvSend } from '../../winverbs/index.js';
import { writeCqe } from '../helpers/fake-hca.js';
import { ethGuid } from '../helpers/kernel-rig.js';
import { throwsWv } from '../helpers/outcome.js';
import { failWith, NO_BYTES, openPair } from '../helpers/rig-door.js';

const peer = { family: 4, address: '192.0.2.9', port: 4711 } as const;
const local = { family: 4, address: '192.0.2.2', port: 0 } as const;
const state = (value: number) => QpStateOut.encode({ state: value });

test('translateAddress accepts text, and distinguishes malformed from foreign addresses', () => {
  const { provider, door } = openPair();
  assert.equal(provider.translateAddress('192.0.2.2'), { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 });
  assert.equal(s.IbatIpToPortIn.decode(door.input('IP_TO_PORT')).version, 6);
  provider.translateAddress({ family: 6, address: 'fd00::2', port: 0 });
  for (const text of ['', '300.1.1.1', 'localhost', '::g', undefined as never, 4711n as never]) {
    throwsWv(() => provider.translateAddress(text), Status.INVALID_ADDRESS, /must be an IP address/);
  }
  throwsWv(() => provider.translateAddress({ family: 4, address: '::1', port: 0 }), Status.INVALID_ADDRESS);
  throwsWv(
    () => provider.translateAddress('1.2.3.4:99999'),
    Status.INVALID_ADDRESS,
    /port of .* must be an integer from 0 to 65535; got 99999/,
  );
  for (const port of [70_000, 5n as never]) {
    const address = { family: 4, address: '192.0.2.1', port } as const;
    throwsWv(() => provider.translateAddress(address), Status.INVALID_ADDRESS, /port .*0 to 65535/);
  }
  door.handlers.set(IbatCode.IP_TO_PORT, () => failWith(Status.NOT_FOUND));
  throwsWv(() => provider.translateAddress('192.0.2.99'), Status.NOT_FOUND, /has the address 192\.0\.2\.99/);
});

test('bindAddress passes the device, except for the wildcard, and keeps the granted port', () => {
  const { ep, door } = openPair();
  ep.bindAddress(local);
  assert.is(s.WvIoEpBind.decode(door.input('EP_BIND')).device.deviceGuid, ethGuid);
  ep.resolveRoute(peer);
  const path = s.IbatPathIn.decode(door.input('PATH'));
  assert.is(decodeSockaddr(path.localAddress).port, 49_152);
  assert.equal(decodeSockaddr(path.remoteAddress), peer);
  const modify = door.input('EP_MODIFY');
  assert.is(modify.length, 16 + 64);
  assert.is(s.WvIoId.decode(modify).data, 1);
  assert.is(s.IbPathRecord.decode(modify, 16).mtu, 0x83);
  for (const [address, family] of [
    ['0.0.0.0', 4],
    ['::', 6],
  ] as const) {
    const { ep, door } = openPair();
    ep.bindAddress({ family, address, port: 9 });
    assert.is(s.WvIoEpBind.decode(door.input('EP_BIND')).device.deviceGuid, 0n);
    assert.not(door.log.includes('IP_TO_PORT'));
  }
});

test('U13: an address of the wrong family, or a second bind, is rejected', () => {
  const { ep, door } = openPair();
  throwsWv(() => ep.resolveRoute(peer), Status.INVALID_DEVICE_STATE, /bindAddress/);
  throwsWv(() => ep.bindAddress({ family: 6, address: '192.0.2.1', port: 1 }), Status.INVALID_ADDRESS);
  throwsWv(() => ep.bindAddress({ ...local, port: 70000 }), Status.INVALID_ADDRESS);
  door.on('EP_BIND', () => failWith(Status.INVALID_DEVICE_STATE));
  throwsWv(() => ep.bindAddress(local), Status.INVALID_DEVICE_STATE);
});

test('U11: the length of private data is checked before anything is sent', () => {
  const { ep, qp, door } = openPair();
  for (const length of [57, 256, 256 + 10]) {
    const param = { privateData: new Uint8Array(length) };
    throwsWv(
      () => ep.connect(qp, peer, param),
      Status.INVALID_BUFFER_SIZE,
      new RegExp(`at most 56 bytes; got ${length}`),
    );
    if (length > 196) throwsWv(() => ep.accept(qp, param), Status.INVALID_BUFFER_SIZE, /196/);
  }
  throwsWv(() => ep.reject(new Uint8Array(149)), Status.INVALID_BUFFER_SIZE, /148/);
  assert.not(door.log.some((name) => /EP_CONNECT|EP_ACCEPT|EP_REJECT/.test(name)));
  door.on('EP_REJECT', () => NO_BYTES);
  ep.reject(new Uint8Array(148));
  assert.is(door.input('EP_REJECT').length, 16 + 148);
  for (const param of [{ retryCount: 8 }, { rnrRetryCount: -1 }, { initiatorDepth: 1.5 }]) {
    throwsWv(() => ep.connect(qp, peer, param), Status.INVALID_PARAMETER);
  }
});

test('private data that exceeds Accept’s structure follows the structure; a Windows driver only accepts as much as fits', () => {
  const { ep, qp, door, provider } = openPair();
  assert.is(provider.maxAcceptData, 196);
  const privateData = Uint8Array.from({ length: 196 }, (_, i) => i + 1);
  ep.accept(qp, { privateData });
  const input = door.input('EP_ACCEPT');
  const { param } = s.WvIoEpAccept.decode(input);
  assert.is(param.dataLength, 196);
  assert.equal([...param.data, ...input.subarray(s.WvIoEpAccept.size)], [...privateData]);
  const plain = openPair();
  for (const file of plain.door.files) file.extended = false;
  assert.is(plain.provider.maxAcceptData, 56);
  const accept = (bytes: number) => plain.ep.accept(plain.qp, { privateData: new Uint8Array(bytes) });
  throwsWv(() => accept(57), Status.INVALID_BUFFER_SIZE, /56/);
  accept(56);
  assert.is(plain.door.input('EP_ACCEPT').length, s.WvIoEpAccept.size);
});

test('connect passes the parameters, with defaults for missing ones', () => {
  const { ep, qp, door } = openPair();
  ep.connect(qp, peer, { privateData: Uint8Array.of(1, 2, 3) });
  const { param, peerAddress } = s.WvIoEpConnect.decode(door.input('EP_CONNECT'));
  assert.equal(decodeSockaddr(peerAddress.sockAddr), peer);
  assert.equal([param.retryCount, param.rnrRetryCount, param.dataLength], [7, 6, 3]);
  assert.equal([...param.data.subarray(0, 4)], [1, 2, 3, 0]);
  assert.ok(param.responderResources > 0n && param.initiatorDepth > 0n);
});

test('U12: a queue pair is only kept on success, and replaced without a leak', async () => {
  const { ep, qp, door, all, pd, cq } = openPair();
  const qps = () => door.rig.hca.qps.size;
  const failing = ep.connect(qp, peer, {});
  door.request('EP_CONNECT').complete(Status.TIMEOUT);
  await failing.catch(() => {});
  throwsWv(() => ep.accept(null, {}), Status.INVALID_PARAMETER, /queue pair/);
  throwsWv(() => ep.disconnect(), Status.INVALID_DEVICE_STATE, /never/);
  const first = ep.connect(qp, peer, {});
  door.request('EP_CONNECT').complete(Status.SUCCESS);
  await first;
  qp.release();
  assert.is(qps(), 1, 'the endpoint keeps it');
  const other = pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 1,
    sendSge: 1,
    receiveDepth: 1,
    receiveSge: 1,
  });
  const second = ep.accept(other, {});
  assert.is(qps(), 2);
  door.request('EP_ACCEPT').complete(Status.SUCCESS, state(3));
  await second;
  assert.is(qps(), 1, 'the first is released');
  for (const object of [...all, other]) object.release();
  assert.is(door.objects, 0);
});

test('U12: a queue pair is released when its request is rejected before it is sent, even if the result is not read', async () => {
  const { ep, qp, door } = openPair();
  door.files[0]!.closed = true;
  ep.connect(qp, peer, {});
  await Promise.resolve();
  door.files[0]!.closed = false;
  qp.release();
  assert.is(door.rig.hca.qps.size, 0);
  throwsWv(() => ep.accept(null, {}), Status.INVALID_PARAMETER, /queue pair/);
});

test('U12: requests that complete without the event loop also count', () => {
  const { ep, qp, door } = openPair();
  const connect = ep.connect(qp, peer, {});
  door.request('EP_CONNECT').complete(Status.SUCCESS, new Uint8Array(0), false);
  assert.ok(connect.completed);
  ep.accept(null, {});
  assert.is(
    s.WvIoEpAccept.decode(door.input('EP_ACCEPT')).qpId,
    s.WvIoEpConnect.decode(door.input('EP_CONNECT')).qpId,
  );
  door.request('EP_ACCEPT').complete(Status.SUCCESS, state(3), false);
  const disconnect = ep.disconnect();
  door.request('EP_DISCONNECT').complete(Status.TIMEOUT);
  throwsWv(() => disconnect.getResult({ wait: true }), Status.TIMEOUT);
});

test('an endpoint released with outstanding requests releases everything', async () => {
  const { ep, qp, door, all } = openPair();
  const connect = ep.connect(qp, peer, {});
  const notify = ep.notifyDisconnect();
  for (const object of all) object.release();
  assert.is(door.objects, 0);
  for (const request of [connect, notify]) throwsWv(() => request.getResult(), Status.CANCELED);
  await connect.catch(() => {});
  assert.is(door.objects, 0);
});

test('getRequest only accepts endpoints of its own provider', async () => {
  const { ep, provider, door } = openPair();
  throwsWv(() => ep.getRequest(openPair().ep), Status.INVALID_PARAMETER, /provider/);
  const fresh = provider.createConnectEndpoint();
  const request = ep.getRequest(fresh);
  door.request('EP_GET_REQUEST').complete(Status.SUCCESS);
  await request;
  fresh.release();
  throwsWv(() => ep.getRequest(fresh), Status.INVALID_HANDLE);
});

test('query returns addresses, data and depths, and the backlog of a listener', () => {
  const { ep, door } = openPair();
  door.on('EP_QUERY', () =>
    s.WvIoEpAttributes.encode({
      localAddress: { sockAddr: encodeSockaddr({ ...local, port: 6 }) },
      peerAddress: { sockAddr: encodeSockaddr(peer) },
      device: { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 },
      param: {
        connect: {
          responderResources: 4n,
          initiatorDepth: 5n,
          retryCount: 7,
          rnrRetryCount: 6,
          dataLength: 2,
          data: Uint8Array.of(8, 9),
        },
      },
    }),
  );
  assert.equal(ep.query(), {
    localAddress: { ...local, port: 6 },
    peerAddress: peer,
    device: { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 },
    privateData: Uint8Array.of(8, 9),
    responderResources: 4,
    initiatorDepth: 5,
    retryCount: 7,
    rnrRetryCount: 6,
    backlog: 0,
  });
  // The bytes after the structure belong to the private data.
  door.on('EP_QUERY', () =>
    Uint8Array.of(
      ...s.WvIoEpAttributes.encode({
        param: { connect: { dataLength: 56, data: new Uint8Array(56).fill(1) } },
      }),
      ...[2, 3],
    ),
  );
  assert.equal(ep.query().privateData, Uint8Array.of(...new Uint8Array(56).fill(1), 2, 3));
  door.on('EP_LISTEN', () => NO_BYTES);
  ep.listen(12);
  assert.is(s.WvIoEpListen.decode(door.input('EP_LISTEN')).backlog, 12n);
  throwsWv(() => ep.listen(-1), Status.INVALID_PARAMETER, /backlog/);
  door.on('EP_QUERY', () =>
    s.WvIoEpAttributes.encode({
      localAddress: { sockAddr: encodeSockaddr(local) },
      param: { backlog: 12n },
    }),
  );
  const { backlog, peerAddress, privateData, responderResources } = ep.query();
  assert.equal([backlog, peerAddress, privateData.length, responderResources], [12, undefined, 0, 0]);
});

test('requests reach the ring, failures are WvErrors, and nothing of them is retained', () => {
  const { qp, sendWord, setState, cqRing, cq, token, pd, mw } = openPair();
  const memory = new Uint8Array(64).fill(7);
  const region = pd.registerMemory(memory, WvAccess.REMOTE_WRITE | WvAccess.MW_BIND);
  const remote = new RemoteMemory({ address: 0x1234_5678_9abc_def0n, rkey: 0xcafe });
  const sgl = [{ region, offset: 4, length: 8 }];
  throwsWv(() => qp.send('x', sgl, 0), Status.INVALID_DEVICE_STATE, /PostSend/);
  setState(3);
  qp.write('w', sgl, WvSend.SIGNALED | WvSend.IMMEDIATE, remote, 0x10, 0x77);
  assert.equal(
    [0, 1, 2, 3, 4, 5, 6].map((word) => sendWord(0, word)),
    [abi.opWrite, 5, 1, 0x77, 0x9abcdf00, 0x12345678, 0xcafe],
  );
  qp.compareExchange('c', sgl[0]!, 0, 0x1_0000_0002n, 0xffff_ffff_ffff_ffffn, remote, 0);
  assert.equal(
    [8, 9, 10, 11].map((word) => sendWord(1, word)),
    [2, 1, 0xffff_ffff, 0xffff_ffff],
  );
  throwsWv(() => qp.fetchAdd('f', sgl[0]!, 0, -1n, remote, 0), Status.INVALID_PARAMETER, /value/);
  qp.fetchAdd('f', sgl[0]!, 0, 5n, remote, 0);
  assert.equal(
    [0, 8, 9].map((word) => sendWord(2, word)),
    [abi.opFetchAdd, 5, 0],
  );
  qp.sendAndInvalidate('i', sgl, WvSend.INLINE, 0xbeef);
  assert.equal(
    [1, 2, 3].map((word) => sendWord(3, word)),
    [0x110, 8, 0xbeef],
  );
  throwsWv(() => qp.read('r', sgl, 0, remote, 0), Status.NO_MORE_ENTRIES, /4/);
  writeCqe(cqRing, { token, wqe: 3, opcode: WvOpcode.SEND });
  const completions: Parameters<typeof cq.poll>[0] = [];
  assert.is(cq.poll(completions, 4), 1);
  assert.equal([completions[0]!.context, completions[0]!.qpContext], ['i', 'qp']);
  const before = mw.rkey;
  const key = qp.bindMemoryWindow(mw, 'b', region, 0, 32, WvAccess.REMOTE_READ, WvSend.SIGNALED);
  assert.equal([mw.rkey, mw.rkey >>> 8], [key, before >>> 8]);
  qp.invalidateMemoryWindow(mw, 'inv', WvSend.SIGNALED);
  assert.equal(
    [0, 6].map((word) => sendWord(1, word)),
    [abi.opLocalInvalidate, key],
  );
  throwsWv(() => qp.invalidateMemoryWindow(openPair().mw, 0, 0), Status.INVALID_PARAMETER);
  mw.release();
  throwsWv(
    () => qp.bindMemoryWindow(mw, 0, region, 0, 1, 0, 0),
    Status.INVALID_HANDLE,
    /memory window was released/,
  );
});

test('poll fills an array and rejects other arguments', () => {
  const { cq, cqRing, qp, token, setState } = openPair();
  setState(3);
  qp.send('x', [], WvSend.SIGNALED);
  writeCqe(cqRing, { token, wqe: 0 });
  // The first argument is only their number, as in C.
  for (const value of [8, undefined, null, {}, 'text']) {
    throwsWv(() => cq.poll(value as never), Status.INVALID_PARAMETER, /array/);
    throwsWv(() => cq.poll(value as never, 4), Status.INVALID_PARAMETER, /array/);
  }
  assert.is(cq.poll([], 4), 1);
});

test('RemoteMemory accepts 64-bit addresses and 32-bit keys', () => {
  const { addressLow, addressHigh } = new RemoteMemory({
    address: 0xffff_ffff_8000_0000n,
    rkey: 0xffff_ffff,
  });
  assert.equal([addressLow, addressHigh], [0x8000_0000, 0xffff_ffff]);
  throwsWv(() => new RemoteMemory({ address: 1n << 64n, rkey: 0 }), Status.INVALID_PARAMETER, /2\^64/);
  throwsWv(() => new RemoteMemory({ address: -1n, rkey: 0 }), Status.INVALID_PARAMETER);
  throwsWv(() => new RemoteMemory({ address: 0n, rkey: 2 ** 32 }), Status.INVALID_PARAMETER, /rkey/);
});

test.run();
