import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpEventType, QpMask } from '../../kernel-bridge/hca/binding.js';
import { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import { QpStateOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { decodeSockaddr, gidOfAddress, sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { Endpoint } from '../../kernel-bridge/kernel/filter/endpoint.js';
import {
  type EndpointRequest,
  type EndpointSignal,
  type EndpointState,
  endpointRequests,
  endpointSignals,
  endpointStates,
} from '../../kernel-bridge/kernel/filter/endpoint-states.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/objects.js';
import {
  cmReply,
  type FakeConnection,
  type FakeListener,
  KernelRig,
  type Submitted,
} from '../helpers/kernel-rig.js';

function expect(request: Submitted, status: number, what = ''): void {
  assert.is(statusName(request.status), statusName(status), what);
}

/** An endpoint in some state, with everything around it. */
interface Scene {
  rig: KernelRig;
  id: bigint;
  endpoint: Endpoint;
  qp: bigint;
  handle: number;
  connection: FakeConnection | undefined;
  listener: { id: bigint; control: FakeListener };
  /** The request that waits in this state. */
  waiting: Submitted | undefined;
}

/** The endpoint behind an id: the tests look at its state, which no IOCTL tells. */
function endpointOf(rig: KernelRig, id: bigint): Endpoint {
  for (const file of rig.kernel.io.fileObjects) {
    if (file.context instanceof WvFile) {
      const endpoint = file.context.endpoints.get(Number(id));
      if (endpoint instanceof Endpoint) return endpoint;
    }
  }
  throw new Error(`no endpoint ${id}`);
}

/** Brings an endpoint into a state the way applications do. */
function scene(state: EndpointState): Scene {
  const rig = new KernelRig();
  const { qp, handle } = rig.queuePair();
  const listener = rig.listener(6000);
  const id = rig.endpoint();
  const it: Scene = {
    rig,
    id,
    endpoint: endpointOf(rig, id),
    qp,
    handle,
    connection: undefined,
    listener,
    waiting: undefined,
  };
  const active = (): void => {
    rig.bind(id);
    rig.route(id);
    it.waiting = rig.connect(id, qp);
    it.connection = rig.cm.connections[0]!;
  };
  const replied = (): void => {
    active();
    it.connection!.events.replied!(cmReply());
    it.waiting = undefined;
  };
  const connected = (): void => {
    replied();
    rig.accept(id, qp);
  };
  const passive = (): void => {
    rig.getRequest(listener.id, id);
    it.connection = listener.control.arrive();
  };
  const steps: Record<EndpointState, () => void> = {
    idle: () => {},
    addressBound: () => void rig.bind(id),
    listening: () => {
      rig.bind(id, 7000);
      rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 1n }));
    },
    queued: () => {
      it.waiting = rig.getRequest(listener.id, id);
    },
    routeResolved: () => {
      rig.bind(id);
      rig.route(id);
    },
    activeConnect: active,
    activeReplied: replied,
    passiveConnect: passive,
    passiveAccepting: () => {
      passive();
      it.waiting = rig.accept(id, qp);
    },
    connected,
    activeDisconnect: () => {
      connected();
      it.waiting = rig.disconnect(id);
    },
    passiveDisconnect: () => {
      connected();
      it.connection!.events.disconnected!();
    },
    disconnected: () => {
      replied();
      it.connection!.events.rejected!({
        reason: 28,
        ari: new Uint8Array(0),
        privateData: new Uint8Array(148),
      });
    },
    destroying: () => void rig.ioctl('EP_DESTROY', rig.id(id)),
  };
  steps[state]();
  assert.is(it.endpoint.state, state);
  return it;
}

/** One request of every kind on the endpoint of a scene. */
function ask({ rig, id, qp, listener }: Scene, request: EndpointRequest): Submitted {
  const peerAddress = sockaddrData({ family: 4, address: '192.0.2.9', port: 5000 });
  const all: Record<EndpointRequest, () => Submitted> = {
    bind: () => rig.bind(id),
    modify: () => rig.route(id),
    listen: () => rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 1n })),
    getRequest: () => rig.getRequest(id, rig.endpoint()),
    assign: () => rig.getRequest(listener.id, id),
    connect: () => rig.connect(id, qp, { peerAddress }),
    accept: () => rig.accept(id, qp),
    reject: () => rig.ioctl('EP_REJECT', s.WvIoId.encode({ id })),
    disconnect: () => rig.disconnect(id),
    notifyDisconnect: () => rig.notify(id),
    query: () => rig.ioctl('EP_QUERY', rig.id(id)),
    cancel: () => rig.ioctl('EP_CANCEL', rig.id(id)),
    destroy: () => rig.ioctl('EP_DESTROY', rig.id(id)),
  };
  return all[request]();
}

/** Status and next state by state and request; what is missing is INVALID_DEVICE_STATE and changes nothing. */
const expectedRequests: Record<
  EndpointState,
  Partial<Record<EndpointRequest, [status: number, next: EndpointState]>>
> = {
  idle: { bind: [Status.SUCCESS, 'addressBound'], assign: [Status.PENDING, 'queued'] },
  addressBound: { modify: [Status.SUCCESS, 'routeResolved'], listen: [Status.SUCCESS, 'listening'] },
  listening: { getRequest: [Status.PENDING, 'listening'] },
  queued: {},
  routeResolved: { modify: [Status.SUCCESS, 'routeResolved'], connect: [Status.PENDING, 'activeConnect'] },
  activeConnect: {
    connect: [Status.DEVICE_BUSY, 'activeConnect'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'activeConnect'],
    cancel: [Status.SUCCESS, 'routeResolved'],
  },
  activeReplied: {
    accept: [Status.SUCCESS, 'connected'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'activeReplied'],
  },
  passiveConnect: {
    accept: [Status.PENDING, 'passiveAccepting'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'passiveConnect'],
  },
  passiveAccepting: {
    accept: [Status.DEVICE_BUSY, 'passiveAccepting'],
    notifyDisconnect: [Status.PENDING, 'passiveAccepting'],
    cancel: [Status.SUCCESS, 'disconnected'],
  },
  connected: {
    disconnect: [Status.PENDING, 'activeDisconnect'],
    notifyDisconnect: [Status.PENDING, 'connected'],
  },
  activeDisconnect: {
    disconnect: [Status.DEVICE_BUSY, 'activeDisconnect'],
    notifyDisconnect: [Status.PENDING, 'activeDisconnect'],
    cancel: [Status.SUCCESS, 'disconnected'],
  },
  passiveDisconnect: {
    disconnect: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.CONNECTION_DISCONNECTED, 'passiveDisconnect'],
  },
  disconnected: {
    accept: [Status.CONNECTION_ABORTED, 'disconnected'],
    notifyDisconnect: [Status.CONNECTION_ABORTED, 'disconnected'],
  },
  destroying: {},
};

function expectedRequest(state: EndpointState, request: EndpointRequest): [number, EndpointState] {
  if (state === 'destroying') return [Status.NOT_FOUND, state];
  const told = expectedRequests[state][request];
  if (told) return told;
  if (request === 'query' || request === 'cancel') return [Status.SUCCESS, state];
  if (request === 'destroy') return [Status.SUCCESS, 'destroying'];
  if (request === 'assign') return [Status.CONNECTION_IN_USE, state];
  return [Status.INVALID_DEVICE_STATE, state];
}

for (const state of endpointStates) {
  test(`every request in state ${state}`, () => {
    for (const request of endpointRequests) {
      const it = scene(state);
      const [status, next] = expectedRequest(state, request);
      const asked = ask(it, request);
      expect(asked, status, `${state} ${request}`);
      assert.is(it.endpoint.state, next, `${state} ${request}`);
      // A refused request disturbs nothing.
      if (next === state && it.waiting) expect(it.waiting, Status.PENDING, `${state} ${request}`);
      assert.equal(it.rig.faults, [], `${state} ${request}`);
      expect(it.rig.close(), Status.SUCCESS);
      assert.is(it.rig.kernel.io.counters.abandonedIrps, 0, `${state} ${request}`);
      assert.equal(it.rig.hca.objectCounts(), {
        pd: 0,
        mr: 0,
        mw: 0,
        cq: 0,
        qp: 0,
        srq: 0,
        ring: 0,
        range: 0,
      });
      assert.is(it.rig.hca.claims.size, 0);
    }
  });
}

/** Next state by state and happening, and what the request that waits ends in; the rest is ignored. */
const expectedSignals: Record<
  EndpointState,
  Partial<Record<EndpointSignal, [next: EndpointState, waiting?: number]>>
> = {
  idle: {},
  addressBound: {},
  listening: {},
  queued: {},
  routeResolved: {},
  activeConnect: {
    replied: ['activeReplied', Status.SUCCESS],
    rejected: ['routeResolved', Status.CONNECTION_REFUSED],
    timedOut: ['routeResolved', Status.TIMEOUT],
    connectCancelled: ['routeResolved', Status.CANCELLED],
  },
  activeReplied: {
    rejected: ['disconnected'],
    timedOut: ['disconnected'],
    peerDisconnected: ['disconnected'],
  },
  passiveConnect: {
    rejected: ['disconnected'],
    timedOut: ['disconnected'],
    peerDisconnected: ['disconnected'],
  },
  passiveAccepting: {
    established: ['connected', Status.SUCCESS],
    firstPacket: ['passiveAccepting', Status.PENDING],
    rejected: ['disconnected', Status.CONNECTION_REFUSED],
    timedOut: ['disconnected', Status.IO_TIMEOUT],
    peerDisconnected: ['passiveDisconnect', Status.SUCCESS],
    lost: ['disconnected', Status.CONNECTION_ABORTED],
    acceptCancelled: ['disconnected', Status.CANCELLED],
  },
  connected: {
    rejected: ['passiveDisconnect'],
    peerDisconnected: ['passiveDisconnect'],
    lost: ['passiveDisconnect'],
  },
  activeDisconnect: {
    peerDisconnected: ['disconnected', Status.SUCCESS],
    disconnectAnswered: ['disconnected', Status.SUCCESS],
    rejected: ['disconnected', Status.SUCCESS],
    disconnectTimedOut: ['disconnected', Status.TIMEOUT],
    disconnectCancelled: ['disconnected', Status.CANCELLED],
  },
  passiveDisconnect: {},
  disconnected: {},
  destroying: {},
};

/** {@link expectedSignals}, and the loss of the device, which ends everything that has to do with one. */
function expectedSignal(state: EndpointState, signal: EndpointSignal): [EndpointState, number?] | undefined {
  if (signal !== 'deviceLost') return expectedSignals[state][signal];
  if (['idle', 'queued', 'disconnected', 'destroying'].includes(state)) return undefined;
  const waits = ['activeConnect', 'passiveAccepting', 'activeDisconnect'].includes(state);
  return waits ? ['disconnected', Status.DEVICE_REMOVED] : ['disconnected'];
}

for (const state of endpointStates) {
  test(`every happening in state ${state}`, () => {
    for (const signal of endpointSignals) {
      // These two only come with a request of the listener's, see below.
      if (state === 'queued' && (signal === 'delivered' || signal === 'unassigned')) continue;
      const it = scene(state);
      const { ignoredSignals } = it.endpoint;
      const reject = { reason: 28, ari: new Uint8Array(0), privateData: new Uint8Array(148).fill(0x53) };
      const waitedFor = {
        connectCancelled: it.waiting,
        acceptCancelled: it.waiting,
        disconnectCancelled: it.waiting,
      };
      const told = expectedSignal(state, signal);
      if (told && signal in waitedFor) waitedFor[signal as keyof typeof waitedFor]!.cancel();
      else
        it.endpoint.signal(
          signal,
          signal === 'replied' ? { reply: cmReply() } : signal === 'rejected' ? { reject } : undefined,
        );
      assert.is(it.endpoint.state, told?.[0] ?? state, `${state} ${signal}`);
      if (!told) assert.is(it.endpoint.ignoredSignals, ignoredSignals + 1, `${state} ${signal}`);
      if (told?.[1] !== undefined) expect(it.waiting!, told[1], `${state} ${signal}`);
      else if (it.waiting) expect(it.waiting, Status.PENDING, `${state} ${signal}`);
      assert.equal(it.rig.faults, [], `${state} ${signal}`);
      expect(it.rig.close(), Status.SUCCESS);
      assert.is(it.rig.kernel.io.counters.abandonedIrps, 0);
    }
  });
}

// ── Binding and listening ───────────────────────────────────────────────────────────────────────────────────

test('port 0 is granted and claimed at once, and the device is told', () => {
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

test('binding takes own addresses and wildcards only', () => {
  const { rig } = scene('idle');
  expect(rig.bind(rig.endpoint(), 0, '192.0.2.9'), Status.INVALID_ADDRESS);
  expect(rig.bind(rig.endpoint(), 0, '0.0.0.0'), Status.SUCCESS);
  expect(rig.bind(rig.endpoint(), 0, '::'), Status.SUCCESS);
  expect(rig.ioctl('EP_BIND', s.WvIoEpBind.encode({ id: rig.endpoint() })), Status.INVALID_ADDRESS);
  const wildcard = rig.endpoint();
  const { device } = s.WvIoEpBind.decode(rig.bind(wildcard, 0, '0.0.0.0').output);
  assert.is(device.deviceGuid, 0n);
});

test('endpoint types are checked: there are those of connections and of datagrams', () => {
  const { rig } = scene('idle');
  expect(rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 0x111n })), Status.SUCCESS);
  expect(rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 6n })), Status.INVALID_PARAMETER);
});

test('routes: from an own and the bound address, to a host, in one family, with the smaller MTU', () => {
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
  expect(requests[0]!, Status.CANCELLED);
  assert.is(endpointOf(rig, endpoints[0]!).state, 'idle');
  listener.control.arrive({ peerPort: 1111 });
  expect(requests[1]!, Status.SUCCESS);
  expect(requests[2]!, Status.PENDING);
  assert.is(decodeSockaddr(rig.query(endpoints[1]!).peerAddress.sockAddr).port, 1111);
  assert.is(endpointOf(rig, endpoints[2]!).state, 'queued');
});

test('E9: an endpoint that is queued can be destroyed, as can its listener, and nothing hangs', () => {
  const { rig, listener } = scene('idle');
  const [a, b] = [rig.endpoint(), rig.endpoint()];
  const [ra, rb] = [rig.getRequest(listener.id, a), rig.getRequest(listener.id, b)];
  expect(rig.ioctl('EP_DESTROY', rig.id(a)), Status.SUCCESS);
  expect(ra, Status.CANCELLED);
  expect(rb, Status.PENDING);
  expect(rig.ioctl('EP_DESTROY', rig.id(listener.id)), Status.SUCCESS);
  expect(rb, Status.CANCELLED);
  assert.is(endpointOf(rig, b).state, 'idle');
  assert.ok(listener.control.closed);
  assert.equal(rig.faults, []);
});

test('E9: a GetRequest that is refused leaves its endpoint as it was', () => {
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

test('requests that came before a GetRequest are taken in order of arrival', () => {
  const { rig, listener } = scene('idle');
  for (const peerPort of [1, 2]) listener.control.arrive({ peerPort });
  const endpoints = [rig.endpoint(), rig.endpoint()];
  for (const id of endpoints) expect(rig.getRequest(listener.id, id), Status.SUCCESS);
  assert.equal(
    endpoints.map((id) => decodeSockaddr(rig.query(id).peerAddress.sockAddr).port),
    [1, 2],
  );
});

test('E10: what happens right after a request was taken reaches its new owner', () => {
  const { rig, id, listener } = scene('idle');
  rig.getRequest(listener.id, id);
  const connection = listener.control.arrive();
  connection.events.rejected!({ reason: 4, ari: new Uint8Array(0), privateData: new Uint8Array(148) });
  assert.is(endpointOf(rig, id).state, 'disconnected');
  expect(rig.accept(id, 0n), Status.CONNECTION_ABORTED);
});

test('E11: an accepted endpoint knows its local address with the listener’s port, and its device', () => {
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

test('a listener’s attributes carry its backlog', () => {
  const { rig, listener } = scene('idle');
  assert.is(rig.query(listener.id).param.backlog, 4n);
  assert.is(listener.control.parameters.backlog, 4);
  assert.is(listener.control.parameters.serviceId, 0x0106_0000n + 6000n);
});

// ── Connecting ──────────────────────────────────────────────────────────────────────────────────────────────

test('Connect hands CM what the REQ needs', () => {
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

test('N8: only a queue pair with a shared receive queue asks its peer to wait without an end', () => {
  const param = { responderResources: 1n, initiatorDepth: 1n, retryCount: 7, rnrRetryCount: 7 };
  const told = (withSrq: boolean) => {
    const { rig, id } = scene('routeResolved');
    const device = rig.device();
    const pd = rig.pd(device);
    const srqId = withSrq ? rig.srq(pd) : 0n;
    expect(rig.connect(id, rig.qp(pd, rig.cq(device), { srqId }), { param }), Status.PENDING);
    const { srq, rnrRetryCount } = rig.cm.connections[0]!.parameters!.qp;
    return [srq, rnrRetryCount];
  };
  assert.equal(told(false), [false, 6]);
  assert.equal(told(true), [true, 7]);
});

test('UC: the REQ says so and no depths; each step carries what an unreliable queue pair takes', () => {
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

test('E19: a Connect with bad arguments changes nothing and can be repeated', () => {
  const it = scene('routeResolved');
  const { rig, id, qp, handle } = it;
  const param = { retryCount: 7, rnrRetryCount: 6 };
  const peer = (address: string, port = 5000) => ({
    peerAddress: sockaddrData({ family: 4, address, port }),
    param,
  });
  expect(rig.connect(id, qp, { param: { ...param, dataLength: 57 } }), Status.INVALID_BUFFER_SIZE);
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

test('a REQ that cannot leave ends Connect at once, and Connect may be tried again', () => {
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

test('E1: a second Connect or Accept is busy, and the first still gets its own answer', () => {
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

test('a refused Connect leaves the QP as it was, shows the peer’s data, and can be repeated', () => {
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

test('E12: depths after the REP are the local view and never above what was offered', () => {
  const it = scene('activeConnect');
  it.connection!.events.replied!(cmReply({ responderResources: 200, initiatorDepth: 2 }));
  const { connect } = it.rig.query(it.id).param;
  assert.is(connect.responderResources, 4n);
  assert.is(connect.initiatorDepth, 2n);
  assert.is(connect.dataLength, 56);
  assert.equal(connect.data, new Uint8Array(56).fill(0x52));
});

test('E22: the active QP gets the attributes of REQ and REP, then the RTU goes out, then the will is left', () => {
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
  assert.ok(it.rig.hca.wills.has(it.handle));
});

test('the passive QP gets the attributes of REQ and REP before the REP goes out', () => {
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
  assert.ok(it.rig.hca.wills.has(it.handle));
});

test('with an SRQ at the peer RNR retries may be for ever; without responder resources nobody may read', () => {
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

test('E4: REJ, timeout, loss and cancel after the REP put the QP in ERROR and let it go', () => {
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

test('E5: Reject while Connect waits withdraws the REQ and ends the Connect', () => {
  const it = scene('activeConnect');
  expect(ask(it, 'reject'), Status.SUCCESS);
  expect(it.waiting!, Status.CANCELLED);
  assert.equal(it.connection!.calls, ['abandon']);
  it.connection!.events.replied?.(cmReply());
  assert.is(it.endpoint.state, 'disconnected');
});

test('Reject carries the data of either side, 148 bytes at most', () => {
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

test('a packet before the RTU is told to CM, which then says established', () => {
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

test('Accept of the active side takes the QP of Connect and no other', () => {
  const it = scene('activeReplied');
  expect(it.rig.accept(it.id, it.rig.queuePair().qp), Status.INVALID_PARAMETER);
  assert.is(it.endpoint.state, 'activeReplied');
  expect(it.rig.accept(it.id, 0n), Status.SUCCESS);
});

test('arguments that Accept refuses leave the request acceptable', () => {
  const it = scene('passiveConnect');
  const param = { retryCount: 7, rnrRetryCount: 6 };
  expect(it.rig.accept(it.id, 0n), Status.NOT_FOUND);
  expect(it.rig.accept(it.id, it.qp, { param: { ...param, dataLength: 57 } }), Status.INVALID_BUFFER_SIZE);
  expect(
    it.rig.ioctl('EP_ACCEPT', s.WvIoEpAccept.encode({ id: it.id, qpId: it.qp, param }), 3),
    Status.BUFFER_TOO_SMALL,
  );
  assert.is(it.rig.qpState(it.handle), QpState.RESET);
  expect(it.rig.accept(it.id, it.qp), Status.PENDING);
});

// ── Disconnecting ───────────────────────────────────────────────────────────────────────────────────────────

test('Disconnect flushes the QP before the DREQ leaves, and ends in SUCCESS with the QP’s state', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  let stateAtDreq: number | undefined;
  it.connection!.disconnect = () => {
    stateAtDreq = it.rig.qpState(it.handle);
  };
  const disconnect = it.rig.disconnect(it.id);
  assert.is(stateAtDreq, QpState.ERROR);
  expect(disconnect, Status.PENDING);
  expect(notify, Status.PENDING);
  it.connection!.events.disconnectCompleted!(true);
  expect(disconnect, Status.SUCCESS);
  assert.is(QpStateOut.decode(disconnect.output).state, QpState.ERROR);
  expect(notify, Status.CONNECTION_DISCONNECTED);
  expect(it.rig.notify(it.id), Status.CONNECTION_DISCONNECTED);
});

test('Disconnect whose DREQ is never answered ends in TIMEOUT, and so do the notifications', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  const disconnect = it.rig.disconnect(it.id);
  it.connection!.events.disconnectCompleted!(false);
  expect(disconnect, Status.TIMEOUT);
  expect(notify, Status.TIMEOUT);
});

test('the peer’s disconnect flushes the QP and ends the notifications; Disconnect then succeeds at once', () => {
  const it = scene('connected');
  const notifies = [it.rig.notify(it.id), it.rig.notify(it.id)];
  it.connection!.events.disconnected!();
  assert.is(it.rig.qpState(it.handle), QpState.ERROR);
  for (const notify of notifies) expect(notify, Status.CONNECTION_DISCONNECTED);
  expect(it.rig.disconnect(it.id, it.qp), Status.SUCCESS);
  assert.equal(it.connection!.calls, ['ready']);
  expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.SUCCESS);
});

test('crossing disconnects: both succeed', () => {
  const it = scene('activeDisconnect');
  it.connection!.events.disconnected!();
  expect(it.waiting!, Status.SUCCESS);
});

test('E2: whatever comes while Disconnect waits, it ends', () => {
  for (const signal of [
    'disconnectAnswered',
    'disconnectTimedOut',
    'peerDisconnected',
    'rejected',
  ] as const) {
    const it = scene('activeDisconnect');
    it.endpoint.signal('lost');
    it.endpoint.signal('established');
    it.endpoint.signal(signal);
    assert.is.not(it.waiting!.status, Status.PENDING);
    assert.is(it.endpoint.state, 'disconnected');
  }
});

test('E14: a QP that fails, or a peer that is lost, aborts the connection and tells the peer in the background', () => {
  for (const event of [QpEventType.fatal, QpEventType.peerLost]) {
    const it = scene('connected');
    const notify = it.rig.notify(it.id);
    it.rig.hca.events.push({ type: 'qp', qp: it.handle, token: 77, event, reason: 9 });
    it.rig.events();
    expect(notify, Status.CONNECTION_ABORTED);
    assert.equal(it.connection!.calls, ['ready', 'abandon']);
    expect(it.rig.notify(it.id), Status.CONNECTION_ABORTED);
    expect(it.rig.disconnect(it.id), Status.SUCCESS);
  }
});

test('E14: a stale connection’s REJ ends the connection as lost', () => {
  const it = scene('connected');
  const notify = it.rig.notify(it.id);
  it.connection!.events.rejected!({ reason: 10, ari: new Uint8Array(0), privateData: new Uint8Array(148) });
  expect(notify, Status.CONNECTION_ABORTED);
  assert.is(it.rig.qpState(it.handle), QpState.ERROR);
});

test('E16: NotifyDisconnect may be posted before the connection is established', () => {
  const it = scene('passiveConnect');
  const early = it.rig.notify(it.id);
  it.rig.accept(it.id, it.qp);
  it.connection!.events.established!();
  expect(early, Status.PENDING);
  it.connection!.events.disconnected!();
  expect(early, Status.CONNECTION_DISCONNECTED);
});

test('E17: cancelling stops the protocol step itself', () => {
  const connect = scene('activeConnect');
  connect.waiting!.cancel();
  expect(connect.waiting!, Status.CANCELLED);
  assert.equal(connect.connection!.calls, ['abandon']);
  connect.connection!.events.replied?.(cmReply());
  assert.is(connect.endpoint.state, 'routeResolved');

  const accept = scene('passiveAccepting');
  accept.waiting!.cancel();
  assert.equal(accept.connection!.calls, ['accept', 'abandon']);
  accept.connection!.events.established?.();
  assert.is(accept.endpoint.state, 'disconnected');

  const disconnect = scene('activeDisconnect');
  disconnect.waiting!.cancel();
  expect(disconnect.waiting!, Status.CANCELLED);
  assert.is(disconnect.rig.qpState(disconnect.handle), QpState.ERROR);
});

test('cancelling one notification leaves the connection and the others alone; EP_CANCEL takes all', () => {
  const it = scene('connected');
  const notifies = [it.rig.notify(it.id), it.rig.notify(it.id), it.rig.notify(it.id)];
  notifies[1]!.cancel();
  assert.equal(
    notifies.map(({ status }) => statusName(status)),
    ['PENDING', 'CANCELLED', 'PENDING'],
  );
  assert.is(it.endpoint.state, 'connected');
  ask(it, 'cancel');
  for (const notify of notifies) expect(notify, Status.CANCELLED);
  assert.is(it.endpoint.state, 'connected');
});

test('EP_CANCEL while connecting cancels the notifications too, instead of aborting them', () => {
  const it = scene('activeConnect');
  const notify = it.rig.notify(it.id);
  ask(it, 'cancel');
  expect(it.waiting!, Status.CANCELLED);
  expect(notify, Status.CANCELLED);
});

test('E18: Disconnect takes no other QP than the connection’s', () => {
  const it = scene('connected');
  const other = it.rig.queuePair();
  expect(it.rig.disconnect(it.id, other.qp), Status.INVALID_PARAMETER);
  assert.is(it.rig.qpState(other.handle), QpState.RESET);
  assert.is(it.endpoint.state, 'connected');
  expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.DEVICE_BUSY);
  expect(it.rig.disconnect(it.id, it.qp), Status.PENDING);
});

test('destroying an endpoint in any state tells the peer once and ends what waits in CANCELLED', () => {
  for (const state of [
    'activeConnect',
    'activeReplied',
    'passiveConnect',
    'passiveAccepting',
    'connected',
    'activeDisconnect',
  ] as const) {
    const it = scene(state);
    const notify = it.rig.notify(it.id);
    expect(ask(it, 'destroy'), Status.SUCCESS);
    expect(notify, Status.CANCELLED, state);
    if (it.waiting) expect(it.waiting, Status.CANCELLED, state);
    assert.is(it.connection!.calls.filter((call) => call === 'abandon').length, 1, state);
    assert.equal(it.connection!.events, {}, state);
    expect(it.rig.ioctl('QP_DESTROY', it.rig.id(it.qp)), Status.SUCCESS, state);
    assert.equal(it.rig.faults, [], state);
  }
});

test.run();
