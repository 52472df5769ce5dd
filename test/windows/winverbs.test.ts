// The control path of WinVerbs with the stand-in driver, which checks every field of its input.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/index.js';
import { QpAttr, QpState, Status, WvAccess, WvError, WvEvent } from '../../winverbs/index.js';
import { openPlain, PlainVerbs } from './plain-verbs.js';
import { clean, GUID, Standin, statusOf } from './standin.js';

const standin = new Standin();
const peer = { family: 4, address: '192.0.2.9', port: 4000 } as const;
const local = { family: 4, address: '127.0.0.1', port: 0 } as const;

function objects(provider = openPlain()) {
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(64);
  const qp = pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 16,
    sendSge: 4,
    receiveDepth: 16,
    receiveSge: 4,
    maxInlineSend: 32,
  });
  const ep = provider.createConnectEndpoint();
  const release = (): void => {
    for (const object of [ep, qp, cq, pd, device, provider]) object.release();
  };
  return { provider, device, pd, cq, qp, ep, release };
}

clean(test, standin, 'devices and their attributes, ports and tables', () => {
  const provider = openPlain();
  assert.equal(provider.queryDeviceList(), [GUID]);
  const attributes = provider.queryDevice(GUID);
  assert.is(attributes.fwVersion, 0x0807060504030201n);
  assert.is(attributes.nodeGuid, GUID);
  assert.is(attributes.vendorId, 0x1c1b1a19);
  assert.is(attributes.maxQp, 1056);
  assert.is(attributes.maxPkeys, 1140);
  assert.is(attributes.localAckDelay, 15);
  assert.is(attributes.physPortCount, 1);
  const device = provider.openDevice(GUID);
  const port = device.queryPort(1);
  assert.is(port.portCapabilityFlags, 0x06050403);
  assert.is(port.maxMtu, 4096);
  assert.is(port.gidTableLength, 2);
  assert.is(Buffer.from(device.queryGid(1, 1)).toString('hex'), '00000000000000000000ffff0a000001');
  assert.is(device.queryPkey(1, 1), 0x8001);
  assert.throws(
    () => device.queryPort(2),
    (error: unknown) => error instanceof WvError && error.status === Status.INVALID_PORT_HANDLE,
  );
  assert.throws(
    () => provider.openDevice(1n),
    (error: unknown) => error instanceof WvError && error.status === Status.NO_SUCH_DEVICE,
  );
  device.release();
  provider.release();
});

clean(
  test,
  standin,
  'objects with provider data in both directions, and every hook of the user-mode provider',
  () => {
    const verbs = new PlainVerbs();
    const { pd, qp, cq, release } = objects(openPlain(verbs));
    const mw = pd.allocateMemoryWindow();
    const srq = pd.createSharedReceiveQueue(8, 2, 1);
    assert.is(srq.query().srqLimit, 7);
    srq.modify(16, 2);
    cq.resize(128);
    qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE);
    assert.ok(qp.qpn > 0x120000);
    assert.is(qp.query().qpn, qp.qpn);
    const region = pd.registerMemory(new Uint8Array(1000), WvAccess.REMOTE_READ);
    assert.ok(region.lkey > 0x1000 && region.rkey > 0x2000);
    pd.deregisterMemory(region);
    srq.release();
    mw.release();
    release();
    assert.equal(
      verbs.calls,
      ['ca', 'pd', 'cq', 'qp', 'mw', 'srq'].flatMap((name) => [`pre ${name}`, `post ${name}`]),
    );
  },
);

clean(test, standin, 'addresses and routes from ibat', async () => {
  const provider = openPlain();
  const place = provider.translateAddress(local);
  assert.equal(place, { deviceGuid: GUID, pkey: 0xffff, portNumber: 1 });
  assert.is(await statusOf(() => provider.translateAddress('9.9.9.9')), Status.NOT_FOUND);
  assert.is(provider.resolvePath(peer).addressVector.destinationGid.length, 16);
  provider.release();
});

clean(test, standin, 'a connection is established and ended, and its statuses are reported', async () => {
  const { provider, ep, qp, release } = objects();
  ep.bindAddress(local);
  assert.ok(ep.query().localAddress.port > 40_000);
  ep.resolveRoute(peer);
  const refused = ep.connect(qp, peer, { privateData: Buffer.from('hello') });
  standin.complete(1, Status.CONNECTION_REFUSED);
  assert.is(await statusOf(() => refused), Status.CONNECTION_REFUSED);
  const late = ep.connect(qp, peer, {});
  standin.complete(1, Status.TIMEOUT);
  assert.is(await statusOf(() => late), Status.TIMEOUT);
  const connecting = ep.connect(qp, peer, { responderResources: 4, initiatorDepth: 4, retryCount: 7 });
  assert.is(connecting.completed, false);
  standin.complete(1);
  await connecting;
  const attributes = ep.query();
  assert.is(Buffer.from(attributes.privateData.subarray(0, 5)).toString(), 'hello');
  assert.is(attributes.peerAddress?.address, peer.address);
  const accepting = ep.accept(null, {});
  standin.complete(1);
  await accepting;
  const ended = ep.notifyDisconnect();
  const disconnecting = ep.disconnect();
  standin.complete(2);
  await disconnecting;
  assert.ok((await statusOf(() => ended)) !== Status.PENDING);
  void provider;
  release();
});

clean(test, standin, 'a listener, its connection requests, and cancelling them', async () => {
  const { provider, ep, release } = objects();
  ep.bindAddress(local);
  ep.listen(4);
  const fresh = provider.createConnectEndpoint();
  const request = ep.getRequest(fresh);
  standin.complete(1);
  await request;
  fresh.reject(Buffer.from('no'));
  const next = provider.createConnectEndpoint();
  const waiting = ep.getRequest(next);
  ep.cancelOverlappedRequests();
  assert.is(await statusOf(() => waiting), Status.CANCELED);
  fresh.release();
  next.release();
  release();
});

clean(test, standin, 'notifications pend, complete and are cancelled', async () => {
  const { device, cq, pd, release } = objects();
  const event = device.notify(1);
  standin.complete(1);
  assert.is(await event, WvEvent.STATE);
  for (const type of ['any', 'solicited', 'errors'] as const) {
    const notified = cq.notify(type);
    standin.complete(1);
    await notified;
  }
  const cancelled = [device.notify(1), cq.notify('any')];
  device.cancelOverlappedRequests();
  cq.cancelOverlappedRequests();
  for (const request of cancelled) assert.is(await statusOf(() => request), Status.CANCELED);
  const srq = pd.createSharedReceiveQueue(8, 2, 1);
  const limit = srq.notify();
  srq.cancelOverlappedRequests();
  assert.is(await statusOf(() => limit), Status.CANCELED);
  srq.release();
  release();
});

clean(test, standin, 'a failed create leaves no objects', async () => {
  const { device, pd, release } = objects();
  for (const status of [Status.INSUFFICIENT_RESOURCES, Status.NO_MEMORY, Status.UNSUCCESSFUL]) {
    standin.script(IoctlCode.PD_ALLOCATE, status, new Uint8Array(0));
    assert.is(await statusOf(() => device.allocateProtectionDomain()), status);
    standin.script(IoctlCode.CQ_CREATE, status, new Uint8Array(0));
    assert.is(await statusOf(() => device.createCompletionQueue(4)), status);
    standin.script(IoctlCode.MEMORY_REGISTER, status, new Uint8Array(0));
    assert.is(await statusOf(() => pd.registerMemory(new Uint8Array(4), 0)), status);
  }
  release();
});

clean(test, standin, 'objects that a program does not release are destroyed with its provider', async () => {
  const { provider, cq, device, ep } = objects();
  const pending = [cq.notify('any'), device.notify(1)];
  void ep;
  provider.file.close();
  for (const request of pending) assert.is(await statusOf(() => request), Status.CANCELED);
});

test.run();
