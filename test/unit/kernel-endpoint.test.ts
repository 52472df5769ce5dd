/** Connect endpoints: binding, listening, connecting, accepting. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpEventType, QpMask } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import { QpStateOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { decodeSockaddr, gidOfAddress, sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { type AnyEndpoint, ObjectTable, WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { ask, endpointOf, type Scene, scene } from '../helpers/endpoint-scene.js';
import { expect, KernelRig } from '../helpers/kernel-rig.js';
import { cmReply } from '../helpers/rig-cm.js';

// ── Binding and listening ───────────────────────────────────────────────────────────────────────────────────

test('a port is granted for port 0 and claimed at once, and the device is returned', () => {
  const { rig, id } = scene('idle');
  const before = rig.hca.claims.size;
  const bound = s.WvIoEpBind.decode(rig.bind(id).output);
  const { port, address } = decodeSockaddr(bound.address.sockAddr);
  assert.ok(port >= 49_152);
  assert.is(address, '192.0.2.2');
  assert.is(bound.device.pkey, 0xffff);
  assert.is(rig.hca.claims.size, before + 1);
  rig.ioctl('EP_DESTROY', rig.id(id));
  assert.is(rig.hca.claims.size, before);
});

test('an explicit port is claimed by Listen; connectors may be bound to a listener’s address', () => {
  const { rig, listener } = scene('idle');
  const [connector, second] = [rig.endpoint(), rig.endpoint()];
  expect(rig.bind(connector, 6000), Status.SUCCESS);
  expect(rig.route(connector), Status.SUCCESS);
  expect(rig.bind(second, 6000), Status.SUCCESS);
  expect(rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id: second })), Status.ADDRESS_ALREADY_EXISTS);
  assert.is(endpointOf(rig, second).state, 'addressBound');
  rig.ioctl('EP_DESTROY', rig.id(listener.id));
  expect(rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id: second })), Status.SUCCESS);
});

test('binding only accepts local addresses and wildcards', () => {
  const { rig } = scene('idle');
  expect(rig.bind(rig.endpoint(), 0, '192.0.2.9'), Status.INVALID_ADDRESS);
  expect(rig.bind(rig.endpoint(), 0, '0.0.0.0'), Status.SUCCESS);
  expect(rig.bind(rig.endpoint(), 0, '::'), Status.SUCCESS);
  expect(rig.ioctl('EP_BIND', s.WvIoEpBind.encode({ id: rig.endpoint() })), Status.INVALID_ADDRESS);
  const wildcard = rig.endpoint();
  const { device } = s.WvIoEpBind.decode(rig.bind(wildcard, 0, '0.0.0.0').output);
  assert.is(device.deviceGuid, 0n);
});

test('endpoint types are checked: only connection and datagram endpoints exist', () => {
  const { rig } = scene('idle');
  expect(rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 0x111n })), Status.SUCCESS);
  expect(rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 6n })), Status.INVALID_PARAMETER);
});

test('EP_CREATE creates one endpoint for any output size, and none if the file’s table is full', () => {
  const rig = new KernelRig();
  const [file] = [...rig.kernel.io.fileObjects].map(({ context }) => context);
  assert.ok(file instanceof WvFile);
  Object.assign(file, { endpoints: new ObjectTable<AnyEndpoint>(2) });
  for (const [type, room] of [
    [0x106n, 65_536],
    [0x111n, 8],
  ] as const) {
    const made = rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: type }), room);
    assert.is(made.output.length, 8);
    assert.is(s.WvIoObject.decode(made.output).id, BigInt(file.endpoints.entries().at(-1)![0]));
  }
  assert.is(file.endpoints.size, 2);
  const input = s.WvIoEpCreate.encode({ epType: 0x106n });
  expect(rig.ioctl('EP_CREATE', input, 8), Status.INSUFFICIENT_RESOURCES);
  const [id] = file.endpoints.entries()[0]!;
  expect(rig.ioctl('EP_DESTROY', rig.id(BigInt(id))), Status.SUCCESS);
  expect(rig.ioctl('EP_CREATE', input, 8), Status.SUCCESS);
});

test('routes: from a local address, which must be the bound one, to a host of the same family, with the smaller MTU', () => {
  const { rig, id } = scene('addressBound');
  expect(rig.route(id, { sgid: gidOfAddress('192.0.2.3') }), Status.INVALID_ADDRESS);
  expect(rig.route(id, { sgid: gidOfAddress('127.0.0.1') }), Status.INVALID_ADDRESS);
  expect(rig.route(id, { dgid: new Uint8Array(16) }), Status.INVALID_ADDRESS);
  expect(rig.route(id, { dgid: gidOfAddress('239.0.0.1') }), Status.INVALID_ADDRESS);
  expect(rig.route(id, { dgid: gidOfAddress('fd00::9') }), Status.INVALID_PARAMETER);
  expect(rig.ioctl('EP_MODIFY', s.WvIoId.encode({ id, data: 1 })), Status.BUFFER_TOO_SMALL);
  expect(rig.ioctl('EP_MODIFY', s.WvIoEpRoute.encode({ id: { id, data: 2 } })), Status.INVALID_PARAMETER);
  assert.is(endpointOf(rig, id).state, 'addressBound');
  expect(rig.route(id, { mtu: 0x85, hopFlowRaw: (0x12345 << 8) | 9 }), Status.SUCCESS);
  rig.connect(id, rig.qp(rig.pd(rig.device()), rig.cq(rig.device())));
  const { parameters } = rig.cm.connections[0]!;
  assert.is(parameters!.pathMtu, 3, 'the code of 1024');
  assert.is(parameters!.path.flowLabel, 0x12345);
  assert.is(parameters!.path.hopLimit, 9);
});

test('E7: a listen that fails leaves the endpoint bound, without a claim', () => {
  const { rig, id } = scene('idle');
  rig.bind(id, 7001);
  const claims = rig.hca.claims.size;
  rig.cm.listenError = new Error('no');
  expect(rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id })), Status.INTERNAL_ERROR);
  assert.is(endpointOf(rig, id).state, 'addressBound');
  assert.is(rig.hca.claims.size, claims);
});

test('E8: cancelling one GetRequest does not shift the pairing of the others', () => {
  const { rig, listener } = scene('idle');
  const endpoints = [rig.endpoint(), rig.endpoint(), rig.endpoint()];
  const requests = endpoints.map((id) => rig.getRequest(listener.id, id));
  requests[0]!.cancel();
  expect(requests[0]!, Status.CANCELED);
  assert.is(endpointOf(rig, endpoints[0]!).state, 'idle');
  listener.control.arrive({ peerPort: 1111 });
  expect(requests[1]!, Status.SUCCESS);
  expect(requests[2]!, Status.PENDING);
  assert.is(decodeSockaddr(rig.query(endpoints[1]!).peerAddress.sockAddr).port, 1111);
  assert.is(endpointOf(rig, endpoints[2]!).state, 'queued');
});

test('E9: a queued endpoint and its listener can be destroyed, and nothing hangs', () => {
  const { rig, listener } = scene('idle');
  const [a, b] = [rig.endpoint(), rig.endpoint()];
  const [ra, rb] = [rig.getRequest(listener.id, a), rig.getRequest(listener.id, b)];
  expect(rig.ioctl('EP_DESTROY', rig.id(a)), Status.SUCCESS);
  expect(ra, Status.CANCELED);
  expect(rb, Status.PENDING);
  expect(rig.ioctl('EP_DESTROY', rig.id(listener.id)), Status.SUCCESS);
  expect(rb, Status.CANCELED);
  assert.is(endpointOf(rig, b).state, 'idle');
  assert.ok(listener.control.closed);
  assert.equal(rig.faults, []);
});

test('E9: a rejected GetRequest does not change its endpoint', () => {
  const { rig, listener } = scene('idle');
  expect(rig.getRequest(listener.id, listener.id), Status.CONNECTION_IN_USE);
  const bound = rig.endpoint();
  rig.bind(bound);
  expect(rig.getRequest(listener.id, bound), Status.CONNECTION_IN_USE);
  expect(rig.getRequest(listener.id, 12345n), Status.NOT_FOUND);
  const fresh = rig.endpoint();
  expect(rig.getRequest(bound, fresh), Status.INVALID_DEVICE_STATE);
  assert.is(endpointOf(rig, fresh).state, 'idle');
});

test('requests that arrived before a GetRequest are taken in order of arrival', () => {
  const { rig, listener } = scene('idle');
  for (const peerPort of [1, 2]) listener.control.arrive({ peerPort });
  const endpoints = [rig.endpoint(), rig.endpoint()];
  for (const id of endpoints) expect(rig.getRequest(listener.id, id), Status.SUCCESS);
  assert.equal(
    endpoints.map((id) => decodeSockaddr(rig.query(id).peerAddress.sockAddr).port),
    [1, 2],
  );
});

test('E10: events right after a request was received reach its new owner', () => {
  const { rig, id, listener } = scene('idle');
  rig.getRequest(listener.id, id);
  const connection = listener.control.arrive();
  connection.events.rejected!({ reason: 4, ari: new Uint8Array(0), privateData: new Uint8Array(148) });
  assert.is(endpointOf(rig, id).state, 'disconnected');
  expect(rig.accept(id, 0n), Status.CONNECTION_ABORTED);
});

test('Connect and GetRequest return the attributes of Query if the output has room', () => {
  const { size } = s.WvIoEpAttributes;
  const { rig, id, listener, qp } = scene('routeResolved');
  const connect = rig.connect(id, qp);
  rig.cm.connections[0]!.events.replied!(cmReply());
  expect(connect, Status.SUCCESS);
  assert.equal(connect.output, rig.ioctl('EP_QUERY', rig.id(id)).output);
  assert.is(connect.output.length, size + 196 - 56);

  const ask = (outputLength: number): { output: Uint8Array; answered: bigint } => {
    const answered = rig.endpoint();
    const input = s.WvIoEpGetRequest.encode({ id: listener.id, epId: answered });
    const request = rig.ioctl('EP_GET_REQUEST', input, outputLength);
    listener.control.arrive();
    expect(request, Status.SUCCESS);
    return { output: request.output, answered };
  };
  const reported = ask(1024);
  assert.equal(reported.output, rig.ioctl('EP_QUERY', rig.id(reported.answered)).output);
  assert.ok(reported.output.length >= size);
  for (const outputLength of [0, size - 1]) assert.is(ask(outputLength).output.length, 0);
  assert.equal(rig.faults, []);
});

test('the user-side caches are invalidated when the peer gives up, or the device is removed, before the next query', () => {
  for (const state of ['activeReplied', 'passiveConnect'] as const) {
    const { rig, connection, id } = scene(state);
    const before = rig.cacheEpochs;
    connection!.events.rejected!({
      reason: 28,
      ari: new Uint8Array(0),
      privateData: new Uint8Array(148).fill(3),
    });
    assert.is(rig.cacheEpochs, before + 1, state);
    assert.is(rig.query(id).param.connect.data[0], 3);
    const other = scene(state);
    const begun = other.rig.cacheEpochs;
    other.endpoint.deviceLost(Status.DEVICE_REMOVED);
    assert.is(other.rig.cacheEpochs, begun + 1, `${state}, device`);
  }
});

test('E11: an accepted endpoint reports its local address with the listener’s port, and its device', () => {
  const { rig, id } = scene('passiveConnect');
  const attributes = rig.query(id);
  assert.equal(decodeSockaddr(attributes.localAddress.sockAddr), {
    family: 4,
    address: '192.0.2.2',
    port: 6000,
  });
  assert.equal(decodeSockaddr(attributes.peerAddress.sockAddr), {
    family: 4,
    address: '192.0.2.9',
    port: 40_000,
  });
  assert.is(attributes.device.portNumber, 1);
  assert.is(attributes.param.connect.responderResources, 4n);
  assert.is(attributes.param.connect.initiatorDepth, 8n);
  assert.is(attributes.param.connect.dataLength, 56);
});

test('a listener’s attributes include its backlog', () => {
  const { rig, listener } = scene('idle');
  assert.is(rig.query(listener.id).param.backlog, 4n);
  assert.is(listener.control.parameters.backlog, 4);
  assert.is(listener.control.parameters.serviceId, 0x0106_0000n + 6000n);
});

// ── Connecting ──────────────────────────────────────────────────────────────────────────────────────────────

test('Connect passes the parameters of the REQ to the CM', () => {
  const { rig, id } = scene('routeResolved');
  const param = {
    responderResources: 99n,
    initiatorDepth: 1n << 40n,
    retryCount: 3,
    rnrRetryCount: 2,
    dataLength: 2,
    data: Uint8Array.of(7, 8, 9),
  };
  expect(rig.connect(id, rig.queuePair().qp, { param }), Status.PENDING);
  const { parameters } = rig.cm.connections[0]!;
  assert.is(parameters!.serviceId, 0x0106_0000n + 5000n);
  assert.is(parameters!.peerPort, 5000);
  assert.ok(parameters!.localPort >= 49_152);
  assert.equal(parameters!.privateData, Uint8Array.of(7, 8));
  // Depths above the HCA's limit are reduced silently.
  assert.is(parameters!.qp.responderResources, 16);
  assert.is(parameters!.qp.initiatorDepth, 16);
  assert.is(parameters!.qp.retryCount, 3);
  assert.is(parameters!.qp.rnrRetryCount, 2);
  assert.is(parameters!.ackTimeoutCode, 17);
});

test('N8: only a queue pair with a shared receive queue makes its peer wait without a limit', () => {
  const param = { responderResources: 1n, initiatorDepth: 1n, retryCount: 7, rnrRetryCount: 7 };
  const reported = (withSrq: boolean) => {
    const { rig, id } = scene('routeResolved');
    const device = rig.device();
    const pd = rig.pd(device);
    const srqId = withSrq ? rig.srq(pd) : 0n;
    expect(rig.connect(id, rig.qp(pd, rig.cq(device), { srqId }), { param }), Status.PENDING);
    const { srq, rnrRetryCount } = rig.cm.connections[0]!.parameters!.qp;
    return [srq, rnrRetryCount];
  };
  assert.equal(reported(false), [false, 6]);
  assert.equal(reported(true), [true, 7]);
});

test('UC: the REQ has the type but no depths, and each step sets the attributes of an unreliable queue pair', () => {
  const { rig, id } = scene('routeResolved');
  const device = rig.device();
  const pd = rig.pd(device);
  const qp = rig.qp(pd, rig.cq(device), { qpType: QpType.UC });
  const handle = [...rig.hca.qps.keys()].at(-1)!;
  expect(rig.connect(id, qp), Status.PENDING);
  const connection = rig.cm.connections[0]!;
  const { type, responderResources, initiatorDepth } = connection.parameters!.qp;
  assert.equal([type, responderResources, initiatorDepth], [QpType.UC, 0, 0]);
  connection.events.replied!(cmReply());
  const masks: number[] = [];
  const modifyQp = rig.hca.modifyQp.bind(rig.hca);
  rig.hca.modifyQp = (of, mask, attributes) => {
    masks.push(mask);
    return modifyQp(of, mask, attributes);
  };
  expect(rig.accept(id, qp), Status.SUCCESS);
  const { state, access, pkeyIndex, port, path, pathMtu, destinationQpn, receivePsn, sendPsn } = QpMask;
  assert.equal(masks, [
    state | access | pkeyIndex | port,
    state | path | pathMtu | destinationQpn | receivePsn,
    state | sendPsn,
  ]);
  assert.is(rig.qpState(handle), QpState.RTS);
});

test('E19: a Connect with invalid arguments has no effect and can be repeated', () => {
  const it = scene('routeResolved');
  const { rig, id, qp, handle } = it;
  const param = { retryCount: 7, rnrRetryCount: 6 };
  const peer = (address: string, port = 5000) => ({
    peerAddress: sockaddrData({ family: 4, address, port }),
    param,
  });
  expect(rig.connect(id, qp, { param: { ...param, dataLength: 57 } }), Status.INVALID_BUFFER_SIZE);
  const long = s.WvIoEpConnect.encode({
    id,
    qpId: qp,
    ...peer('192.0.2.9'),
    param: { ...param, dataLength: 57 },
  });
  expect(rig.ioctl('EP_CONNECT', Buffer.concat([long, new Uint8Array(16)])), Status.INVALID_BUFFER_SIZE);
  expect(rig.connect(id, qp, { param: { retryCount: 8 } }), Status.INVALID_PARAMETER);
  expect(rig.connect(id, qp, { param: { rnrRetryCount: 8 } }), Status.INVALID_PARAMETER);
  expect(rig.connect(id, qp, peer('192.0.2.10')), Status.INVALID_ADDRESS);
  expect(rig.connect(id, qp, peer('192.0.2.9', 0)), Status.INVALID_ADDRESS);
  expect(rig.connect(id, 0n), Status.NOT_FOUND);
  expect(rig.connect(id, 99n), Status.NOT_FOUND);
  rig.hca.modifyQp(handle, 1, { state: QpState.ERROR });
  expect(rig.connect(id, qp), Status.INVALID_DEVICE_STATE);
  rig.hca.modifyQp(handle, 1, { state: QpState.RESET });
  assert.is(rig.cm.connections.length, 0);
  assert.is(it.endpoint.state, 'routeResolved');
  assert.is(it.endpoint.peer, undefined);
  expect(rig.connect(id, qp), Status.PENDING);
});

test('a QP of another device, or one that is connected, cannot be used', () => {
  const { rig, id } = scene('routeResolved');
  const lo = rig.device(rig.kernel.hcaDriver.guids()[0]!);
  expect(rig.connect(id, rig.qp(rig.pd(lo), rig.cq(lo))), Status.INVALID_ADDRESS);
  const { qp } = rig.queuePair();
  expect(rig.connect(id, qp), Status.PENDING);
  const other = rig.endpoint();
  rig.bind(other);
  rig.route(other);
  expect(rig.connect(other, qp), Status.CONNECTION_ACTIVE);
  expect(rig.ioctl('QP_DESTROY', rig.id(qp)), Status.DEVICE_BUSY);
});

test('if a REQ cannot be sent, Connect ends at once and may be retried', () => {
  for (const status of [Status.HOST_UNREACHABLE, Status.NETWORK_UNREACHABLE]) {
    const it = scene('routeResolved');
    it.rig.hca.sendStatus = status;
    expect(it.rig.connect(it.id, it.qp), status);
    assert.equal(it.rig.cm.connections[0]!.calls, ['abandon']);
    assert.is(it.endpoint.state, 'routeResolved');
    it.rig.hca.sendStatus = Status.SUCCESS;
    expect(it.rig.connect(it.id, it.qp), Status.PENDING);
  }
});

test('E1: a second Connect or Accept is busy, and the first still gets its own reply', () => {
  const active = scene('activeConnect');
  const second = active.rig.connect(active.id, active.qp);
  expect(second, Status.DEVICE_BUSY);
  active.connection!.events.replied!(cmReply());
  expect(active.waiting!, Status.SUCCESS);
  assert.is(active.rig.cm.connections.length, 1);
  const passive = scene('passiveAccepting');
  const notify = passive.rig.notify(passive.id);
  expect(passive.rig.accept(passive.id, passive.qp), Status.DEVICE_BUSY);
  passive.connection!.events.established!();
  expect(passive.waiting!, Status.SUCCESS);
  expect(notify, Status.PENDING);
  assert.equal(passive.connection!.calls, ['accept']);
});

test('a refused Connect leaves the QP unchanged, returns the peer’s data, and can be repeated', () => {
  const it = scene('activeConnect');
  it.rig.hca.modifyQp(it.handle, 1, { state: QpState.INIT });
  it.connection!.events.rejected!({
    reason: 28,
    ari: new Uint8Array(0),
    privateData: new Uint8Array(148).fill(0x53),
  });
  expect(it.waiting!, Status.CONNECTION_REFUSED);
  assert.is(it.rig.qpState(it.handle), QpState.INIT);
  assert.equal(it.rig.query(it.id).param.connect.data, new Uint8Array(56).fill(0x53));
  expect(it.rig.connect(it.id, it.qp), Status.PENDING);
});

test('data beyond the structure’s 56 bytes follows the structure if the output has room, without the message’s padding', () => {
  const it = scene('activeConnect');
  const said = Uint8Array.from({ length: 148 }, (_, i) => (i < 100 ? i + 1 : 0));
  it.connection!.events.rejected!({ reason: 28, ari: new Uint8Array(0), privateData: said });
  const { size } = s.WvIoEpAttributes;
  for (const [room, length] of [
    [0, 0],
    [7, 7],
    [44, 44],
    [200, 44],
  ] as const) {
    const { output } = it.rig.ioctl('EP_QUERY', it.rig.id(it.id), size + room);
    assert.is(output.length, size + length);
    assert.is(s.WvIoEpAttributes.decode(output).param.connect.dataLength, 56);
    assert.equal(output.subarray(size), said.subarray(56, 56 + length));
  }
});

test('E6: after a REQ timeout the old connection is forgotten and a new Connect gets its own', () => {
  const it = scene('activeConnect');
  const old = it.connection!;
  old.events.timedOut!();
  expect(it.waiting!, Status.TIMEOUT);
  const again = it.rig.connect(it.id, it.qp);
  expect(again, Status.PENDING);
  assert.is.not(it.rig.cm.connections[1], old);
  it.rig.cm.connections[1]!.events.replied!(cmReply());
  expect(again, Status.SUCCESS);
});

test('E12: depths after the REP are the local view and never exceed the offered ones', () => {
  const it = scene('activeConnect');
  it.connection!.events.replied!(cmReply({ responderResources: 200, initiatorDepth: 2 }));
  const { connect } = it.rig.query(it.id).param;
  assert.is(connect.responderResources, 4n);
  assert.is(connect.initiatorDepth, 2n);
  assert.is(connect.dataLength, 56);
  assert.equal(connect.data, new Uint8Array(56).fill(0x52));
});

test('E22: the active QP gets the attributes of REQ and REP, then the RTU is sent, then the DREQ for the exit is stored', () => {
  const it = scene('activeReplied');
  const accepted = it.rig.accept(it.id, it.qp);
  assert.is(QpStateOut.decode(accepted.output).state, QpState.RTS);
  const { attributes } = it.rig.hca.qps.get(it.handle)!;
  assert.is(attributes.state, QpState.RTS);
  assert.is(attributes.receivePsn, it.connection!.receivePsn);
  assert.is(attributes.sendPsn, 0x22_2222);
  assert.is(attributes.destinationQpn, 0x0b_0002);
  assert.is(attributes.pathMtu, 1024);
  assert.is(attributes.responderResources, 3);
  assert.is(attributes.initiatorDepth, 2);
  assert.is(attributes.retryCount, 7);
  assert.is(attributes.rnrRetry, 6, 'finite, as the peer has no SRQ');
  assert.is(attributes.ackTimeout, 17);
  assert.is(attributes.minRnrTimer, 12);
  assert.is(attributes.access, 0xa | 1 | 4);
  assert.equal(it.connection!.calls, ['ready']);
  assert.ok(it.rig.hca.dreqsOnExit.has(it.handle));
});

test('the passive QP gets the attributes of REQ and REP before the REP is sent', () => {
  const it = scene('passiveAccepting');
  const { attributes } = it.rig.hca.qps.get(it.handle)!;
  assert.is(attributes.state, QpState.RTS);
  assert.is(attributes.receivePsn, it.connection!.receivePsn);
  assert.is(attributes.sendPsn, 0x11_1111);
  assert.is(attributes.destinationQpn, 0x0a_0001);
  assert.is(attributes.pathMtu, 512, 'as the REQ says');
  assert.is(attributes.responderResources, 4, 'not above what the peer will use');
  assert.is(attributes.initiatorDepth, 2);
  assert.is(attributes.retryCount, 5);
  assert.is(attributes.rnrRetry, 6);
  assert.is(attributes.ackTimeout, 18);
  const { parameters } = it.connection!.accepted!;
  assert.is(parameters.responderResources, 4);
  assert.is(parameters.initiatorDepth, 2);
  assert.is(parameters.qpn, attributes.qpn);
  it.connection!.events.established!();
  assert.is(QpStateOut.decode(it.waiting!.output).state, QpState.RTS);
  assert.ok(it.rig.hca.dreqsOnExit.has(it.handle));
});

test('if the peer uses an SRQ, RNR retries may be unlimited; without responder resources, Reads are not permitted', () => {
  const it = scene('activeConnect');
  it.connection!.events.replied!(cmReply({ peerUsesSrq: true, responderResources: 0 }));
  it.rig.accept(it.id, 0n);
  const { attributes } = it.rig.hca.qps.get(it.handle)!;
  assert.is(attributes.rnrRetry, 7);
  assert.is(attributes.access, 0xa);
});

test('E3: an Accept whose QP cannot be moved sends a REJ and no RTU or REP, and the QP ends in ERROR', () => {
  for (const state of ['activeReplied', 'passiveConnect'] as const) {
    for (const failing of [QpState.INIT, QpState.RTR, QpState.RTS]) {
      const it = scene(state);
      it.rig.hca.refuseState = { state: failing, status: Status.INVALID_PARAMETER };
      expect(it.rig.accept(it.id, it.qp), Status.INVALID_PARAMETER);
      assert.equal(it.connection!.calls, ['reject 0']);
      assert.is(it.rig.qpState(it.handle), QpState.ERROR);
      assert.is(it.endpoint.state, 'disconnected');
    }
  }
});

test('E4: REJ, timeout, loss and cancel after the REP move the QP to ERROR and release it', () => {
  const ends: ((it: Scene) => void)[] = [
    (it) =>
      it.connection!.events.rejected!({
        reason: 28,
        ari: new Uint8Array(0),
        privateData: new Uint8Array(148),
      }),
    (it) => it.connection!.events.timedOut!(),
    (it) => it.waiting!.cancel(),
    (it) => it.rig.ioctl('EP_CANCEL', it.rig.id(it.id)),
    (it) => it.rig.ioctl('EP_DESTROY', it.rig.id(it.id)),
  ];
  for (const end of ends) {
    const it = scene('passiveAccepting');
    end(it);
    assert.is(it.rig.qpState(it.handle), QpState.ERROR);
    expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.SUCCESS);
    assert.equal(it.rig.faults, []);
  }
});

test('a Connect or Accept that connection management cannot complete ends with that status', () => {
  for (const [state, next] of [
    ['activeConnect', 'routeResolved'],
    ['passiveAccepting', 'disconnected'],
  ] as const) {
    const it = scene(state);
    it.connection!.events.timedOut!(Status.HOST_UNREACHABLE);
    expect(it.waiting!, Status.HOST_UNREACHABLE);
    assert.is(it.endpoint.state, next);
  }
});

test('E5: Reject while Connect waits withdraws the REQ and ends the Connect', () => {
  const it = scene('activeConnect');
  expect(ask(it, 'reject'), Status.SUCCESS);
  expect(it.waiting!, Status.CANCELED);
  assert.equal(it.connection!.calls, ['abandon']);
  it.connection!.events.replied?.(cmReply());
  assert.is(it.endpoint.state, 'disconnected');
});

test('Reject sends the data of either side, 148 bytes at most', () => {
  for (const state of ['activeReplied', 'passiveConnect'] as const) {
    const it = scene(state);
    const reject = (length: number) => {
      const input = new Uint8Array(16 + length);
      s.WvIoId.encode({ id: it.id }, input);
      return it.rig.ioctl('EP_REJECT', input);
    };
    expect(reject(149), Status.INVALID_BUFFER_SIZE);
    expect(reject(148), Status.SUCCESS);
    assert.equal(it.connection!.calls, ['reject 148']);
  }
});

test('a packet before the RTU is reported to the CM, which then reports established', () => {
  const it = scene('passiveAccepting');
  it.rig.hca.events.push({
    type: 'qp',
    qp: it.handle,
    token: 77,
    event: QpEventType.communicationEstablished,
    reason: 0,
  });
  it.rig.events();
  assert.equal(it.connection!.calls, ['accept', 'communicationEstablished']);
  expect(it.waiting!, Status.PENDING);
});

test('Accept of the active side requires the QP of Connect', () => {
  const it = scene('activeReplied');
  expect(it.rig.accept(it.id, it.rig.queuePair().qp), Status.INVALID_PARAMETER);
  assert.is(it.endpoint.state, 'activeReplied');
  expect(it.rig.accept(it.id, 0n), Status.SUCCESS);
});

test('after rejected arguments, the request can still be accepted', () => {
  const it = scene('passiveConnect');
  const param = { retryCount: 7, rnrRetryCount: 6 };
  expect(it.rig.accept(it.id, 0n), Status.NOT_FOUND);
  expect(it.rig.accept(it.id, it.qp, { param: { ...param, dataLength: 57 } }), Status.INVALID_BUFFER_SIZE);
  expect(
    it.rig.ioctl('EP_ACCEPT', s.WvIoEpAccept.encode({ id: it.id, qpId: it.qp, param }), 3),
    Status.BUFFER_TOO_SMALL,
  );
  const behind = (dataLength: number, bytes: number) => {
    const head = s.WvIoEpAccept.encode({ id: it.id, qpId: it.qp, param: { ...param, dataLength } });
    return it.rig.ioctl('EP_ACCEPT', Buffer.concat([head, new Uint8Array(bytes).fill(5)]), 4);
  };
  expect(behind(197, 200), Status.INVALID_BUFFER_SIZE);
  expect(behind(196, 139), Status.INVALID_BUFFER_SIZE);
  assert.is(it.rig.qpState(it.handle), QpState.RESET);
  expect(behind(196, 140), Status.PENDING);
  assert.equal([...it.connection!.accepted!.privateData], [...Array(56).fill(0), ...Array(140).fill(5)]);
});

test.run();
