import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DeviceFile } from '../../kernel-bridge/door/device-file.js';
import type { Overlapped } from '../../kernel-bridge/door/overlapped.js';
import { openDeviceFile } from '../../kernel-bridge/door/soft/index.js';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { ChannelMajor, loadAddon } from '../../kernel-bridge/hca/index.js';
import { IbatCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { QpState } from '../../kernel-bridge/ioctl/constants.js';
import {
  CqProviderIn,
  CqProviderOut,
  QpProviderIn,
  QpStateOut,
  withProviderData,
} from '../../kernel-bridge/ioctl/provider-data.js';
import {
  decodeSockaddr,
  encodeSockaddr,
  type SocketAddress,
  sockaddrData,
} from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { optionsDelivery } from '../../kernel-bridge/option-checks/options-delivery.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { outcomeName, thrownName } from '../helpers/outcome.js';

const addon = loadAddon();

const loopback = (port = 0): SocketAddress => ({ family: 4, address: '127.0.0.1', port });
/** Code 12 is 17 ms, so that requests without a response time out within a fraction of a second. */
const options = { cm: { responseTimeoutCode: 12, maxRetries: 3, timewaitMs: 10 } };

const open = (name = '\\\\.\\WinVerbs'): DeviceFile => openDeviceFile(name, options);

/** Short calls for the IOCTLs of one file. */
class Caller {
  constructor(readonly file = open()) {}

  id(id: bigint): Uint8Array {
    return s.WvIoObject.encode({ id });
  }
  made(code: number, input: Uint8Array, outputLength: number): bigint {
    return s.WvIoObject.decode(this.file.ioctl(code, input, outputLength)).id;
  }
  start(code: number, input: Uint8Array, outputLength = 0): Overlapped<Uint8Array> {
    return this.file.ioctlOverlapped(code, input, outputLength, (output) => output);
  }

  /** A queue pair on the loopback device, with its own rings. */
  queuePair() {
    const ibat = open('\\\\.\\ibat');
    const address = s.IbatIpToPortIn.encode({ version: 6, address: encodeSockaddr(loopback()) });
    const { caGuid } = s.IbatPortRecord.decode(ibat.ioctl(IbatCode.IP_TO_PORT, address, 24));
    ibat.close();
    const device = this.made(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid: caGuid }), 16);
    const pd = this.made(IoctlCode.PD_ALLOCATE, s.WvIoId.encode({ id: device }), 16);
    const cqRing = addon.allocateRing(abi.cqHeaderBytes + 16 * abi.cqeBytes);
    const cqIn = CqProviderIn.encode({
      ringAddress: BigInt(cqRing.address),
      ringBytes: cqRing.buffer.byteLength,
      entries: 16,
    });
    const cqOut = this.file.ioctl(
      IoctlCode.CQ_CREATE,
      withProviderData(s.WvIoId.encode({ id: device, data: 16 }), cqIn),
      s.WvIoId.size + CqProviderOut.size,
    );
    const cq = s.WvIoId.decode(cqOut).id;
    const cqHandle = CqProviderOut.decode(cqOut, s.WvIoId.size).handle;
    const [entries, sendStride, receiveStride] = [8, 128, 64];
    const qpRing = addon.allocateRing(abi.qpHeaderBytes + entries * (sendStride + receiveStride));
    const qpIn = QpProviderIn.encode({
      ringAddress: BigInt(qpRing.address),
      ringBytes: qpRing.buffer.byteLength,
      sendEntries: entries,
      sendStride,
      receiveEntries: entries,
      receiveStride,
    });
    const create = s.WvIoQpCreate.encode({
      id: { id: pd },
      sendCqId: cq,
      receiveCqId: cq,
      sendDepth: entries,
      sendSge: 1,
      receiveDepth: entries,
      receiveSge: 1,
    });
    const qp = this.made(IoctlCode.QP_CREATE, withProviderData(create, qpIn), s.WvIoQpCreate.size);
    return { device, pd, cq, cqHandle, qp, cqRing, qpRing };
  }

  state(qp: bigint): number {
    return s.WvIoQpAttributes.decode(
      this.file.ioctl(IoctlCode.QP_QUERY, this.id(qp), s.WvIoQpAttributes.size),
    ).qpState;
  }

  endpoint(): bigint {
    return this.made(IoctlCode.EP_CREATE, s.WvIoEpCreate.encode({ epType: 0x106n }), 8);
  }
  /** Binds to the loopback address; returns the port. */
  bind(id: bigint, port = 0): number {
    const input = s.WvIoEpBind.encode({ id, address: sockaddrData(loopback(port)) });
    const output = this.file.ioctl(IoctlCode.EP_BIND, input, s.WvIoEpBind.size);
    return decodeSockaddr(s.WvIoEpBind.decode(output).address.sockAddr).port;
  }
  listener(backlog = 8n): { id: bigint; port: number } {
    const id = this.endpoint();
    const port = this.bind(id);
    this.file.ioctl(IoctlCode.EP_LISTEN, s.WvIoEpListen.encode({ id, backlog }), 0);
    return { id, port };
  }
  getRequest(id: bigint, epId: bigint): Overlapped<Uint8Array> {
    return this.start(IoctlCode.EP_GET_REQUEST, s.WvIoEpGetRequest.encode({ id, epId }));
  }
  /** An endpoint bound and routed on the loopback. */
  routed(): bigint {
    const id = this.endpoint();
    this.bind(id);
    const ibat = open('\\\\.\\ibat');
    const pair = {
      version: 6,
      localAddress: encodeSockaddr(loopback()),
      remoteAddress: encodeSockaddr(loopback()),
    };
    const path = ibat.ioctl(IbatCode.PATH, s.IbatPathIn.encode(pair), 64);
    ibat.close();
    this.file.ioctl(IoctlCode.EP_MODIFY, withProviderData(s.WvIoId.encode({ id, data: 1 }), path), 0);
    return id;
  }
  connect(id: bigint, qpId: bigint, port: number): Overlapped<Uint8Array> {
    const param = { responderResources: 4n, initiatorDepth: 4n, retryCount: 7, rnrRetryCount: 6 };
    const peerAddress = sockaddrData(loopback(port));
    return this.start(IoctlCode.EP_CONNECT, s.WvIoEpConnect.encode({ id, qpId, peerAddress, param }));
  }
  accept(id: bigint, qpId: bigint): Overlapped<Uint8Array> {
    const param = { responderResources: 4n, initiatorDepth: 4n, retryCount: 7, rnrRetryCount: 6 };
    return this.start(IoctlCode.EP_ACCEPT, s.WvIoEpAccept.encode({ id, qpId, param }), 4);
  }
  disconnect(id: bigint): Overlapped<Uint8Array> {
    return this.start(IoctlCode.EP_DISCONNECT, s.WvIoEpDisconnect.encode({ id }), 4);
  }
  notify(id: bigint): Overlapped<Uint8Array> {
    return this.start(IoctlCode.EP_DISCONNECT_NOTIFY, this.id(id));
  }
}

/** Two files whose queue pairs are connected. */
async function connected() {
  const [a, b] = [new Caller(), new Caller()];
  const [qa, qb] = [a.queuePair(), b.queuePair()];
  const listener = b.listener();
  const [ea, eb] = [a.routed(), b.endpoint()];
  const requested = b.getRequest(listener.id, eb);
  const connecting = a.connect(ea, qa.qp, listener.port);
  await requested;
  const accepting = b.accept(eb, qb.qp);
  await connecting;
  assert.is(QpStateOut.decode(await a.accept(ea, qa.qp)).state, QpState.RTS);
  assert.is(QpStateOut.decode(await accepting).state, QpState.RTS);
  return { a, b, qa, qb, ea, eb, listener };
}

test('the kernel’s devices can be opened; other names are rejected with the reason', () => {
  for (const name of ['\\\\.\\WinVerbs', '\\\\.\\ibat']) open(name).close();
  assert.throws(() => open('\\\\.\\nothing'), /no device has this name/);
  assert.throws(() => open('nothing'), /not a valid device name/);
});

test('the devices of this host, and the route between two of its addresses', () => {
  const caller = new Caller();
  const list = caller.file.ioctl(IoctlCode.GUID_QUERY, null, 4096);
  const guids = s.WvGuidEntries.decode(list.subarray(8));
  assert.is(s.WvIoGuidList.decode(list).count, BigInt(guids.length));
  assert.is(new Set(guids).size, guids.length);
  for (const guid of guids) {
    const device = caller.made(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid }), 16);
    const attributes = s.WvIoDeviceAttributes.decode(
      caller.file.ioctl(IoctlCode.DEVICE_QUERY, caller.id(device), 152),
    );
    assert.is(attributes.nodeGuid, guid);
    caller.file.ioctl(IoctlCode.DEVICE_CLOSE, caller.id(device), 0);
  }
  caller.file.close();
});

test('closing a file disconnects: the peer is notified, and the file’s own requests end in CANCELED', async () => {
  const { a, b, ea, eb, qb } = await connected();
  const [mine, theirs] = [a.notify(ea), b.notify(eb)];
  a.file.close();
  assert.is(await outcomeName(theirs), 'CONNECTION_DISCONNECTED');
  assert.is(await outcomeName(mine), 'CANCELED');
  assert.is(b.state(qb.qp), QpState.ERROR);
  b.file.close();
});

test('a flush completes an armed notification, even a blocking one, but not an unarmed one', async () => {
  const { a, b, qb, ea } = await connected();
  // Publishes one Receive without SGEs. The disconnect completes it by flushing.
  const words = new Uint32Array(qb.qpRing.buffer);
  Atomics.store(words, abi.qpReceiveProducer, 1);
  const input = s.WvIoId.encode({ id: qb.cq, data: 1 });
  const notified = b.start(IoctlCode.CQ_NOTIFY, input);
  const second = b.start(IoctlCode.CQ_NOTIFY, s.WvIoId.encode({ id: qb.cq, data: 0 }));
  assert.is(addon.armCq(qb.cqHandle, false), Status.SUCCESS);
  const disconnecting = a.disconnect(ea);
  assert.is(notified.getResult({ wait: true }).length, 0);
  assert.is(Atomics.load(new Uint32Array(qb.cqRing.buffer), abi.cqProducer), 1);
  await disconnecting;
  assert.not.ok(second.completed, 'waits for errors of the CQ');
  const unarmed = b.start(IoctlCode.CQ_NOTIFY, input);
  a.file.close();
  b.file.close();
  assert.equal([await outcomeName(second), await outcomeName(unarmed)], ['CANCELED', 'CANCELED']);
});

test('objects in use are not destroyed, on the real HCA', () => {
  const caller = new Caller();
  const { device, pd, cq, qp } = caller.queuePair();
  const destroy = (code: number, id: bigint) => thrownName(() => caller.file.ioctl(code, caller.id(id), 0));
  assert.is(destroy(IoctlCode.DEVICE_CLOSE, device), 'DEVICE_BUSY');
  assert.is(destroy(IoctlCode.PD_DEALLOCATE, pd), 'DEVICE_BUSY');
  assert.is(destroy(IoctlCode.CQ_DESTROY, cq), 'DEVICE_BUSY');
  for (const [code, id] of [
    [IoctlCode.QP_DESTROY, qp],
    [IoctlCode.CQ_DESTROY, cq],
    [IoctlCode.PD_DEALLOCATE, pd],
    [IoctlCode.DEVICE_CLOSE, device],
  ] as const) {
    assert.is(destroy(code, id), 'SUCCESS');
    assert.is(destroy(code, id), code === IoctlCode.DEVICE_CLOSE ? 'NO_SUCH_DEVICE' : 'NOT_FOUND');
  }
  caller.file.close();
});

test('the HCA rejects invalid rings and memory that is not pinned', () => {
  const caller = new Caller();
  const { device, pd } = caller.queuePair();
  const ring = CqProviderIn.encode({ ringAddress: 0x1000n, ringBytes: 4096, entries: 16 });
  const input = withProviderData(s.WvIoId.encode({ id: device, data: 16 }), ring);
  assert.is.not(
    thrownName(() => caller.file.ioctl(IoctlCode.CQ_CREATE, input, 16)),
    'SUCCESS',
  );
  const memory = s.WvIoMemoryRegister.encode({ id: pd, address: 0x1000n, bufferLength: 64n, accessFlags: 8 });
  assert.is.not(
    thrownName(() => caller.file.ioctl(IoctlCode.MEMORY_REGISTER, memory, 8)),
    'SUCCESS',
  );
  caller.file.close();
});

test('if a kernel cannot start, opening it always fails with the reason', async () => {
  const channel = addon.createChannel(8, () => {});
  const main = new URL('../../kernel-bridge/kernel/main.js', import.meta.url);
  const { delivery, deliver } = optionsDelivery();
  deliver({ ...resolveKernelOptions(undefined, {}), window: 0 });
  const worker = new Worker(main, {
    workerData: { channel: channel.id, options: delivery },
    transferList: [delivery.port],
  });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  for (let n = 0; n < 2; n++) {
    const slot = channel.submit(
      ChannelMajor.create,
      0,
      0,
      new TextEncoder().encode('\\\\.\\WinVerbs'),
      1000,
      false,
    );
    assert.ok(channel.wait(slot, 20_000));
    assert.is(channel.status(slot), Status.DEVICE_NOT_READY);
    assert.match(new TextDecoder().decode(channel.output(slot)), /did not start.*window/s);
    channel.release(slot);
  }
  channel.close();
  await ended;
});

test.run();
