import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Input } from '../../kernel-bridge/ioctl/layout.js';
import { decodeSockaddr, gidOfAddress, sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import {
  DatagramEndpoint,
  GROUPS_MOST,
  PEERS_KEPT,
} from '../../kernel-bridge/kernel/filter/datagram-endpoint.js';
import {
  type DatagramRequest,
  type DatagramSignal,
  type DatagramState,
  datagramRequests,
  datagramSignals,
  datagramStates,
} from '../../kernel-bridge/kernel/filter/datagram-endpoint-states.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { expect, KernelRig, type Submitted } from '../helpers/kernel-rig.js';
import type { FakeInquiry, FakeSidrListener } from '../helpers/rig-cm.js';

const ATTRIBUTES = s.WvIoEpDatagramAttributes;

const address = (text: string, port = 5000) =>
  sockaddrData({ family: text.includes(':') ? 6 : 4, address: text, port });

/** Short calls for the IOCTLs of datagram endpoints. */
class Datagrams {
  constructor(readonly rig = new KernelRig()) {}

  create(): bigint {
    const request = this.rig.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 0x111n }));
    return s.WvIoObject.decode(request.output).id;
  }
  endpoint(id: bigint): DatagramEndpoint {
    for (const { context } of this.rig.kernel.io.fileObjects) {
      const found = context instanceof WvFile ? context.endpoints.get(Number(id)) : undefined;
      if (found instanceof DatagramEndpoint) return found;
    }
    throw new Error(`no datagram endpoint ${id}`);
  }
  listen(id: bigint, backlog = 4n): Submitted {
    return this.rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog }));
  }
  lookup(id: bigint, more: Input<typeof s.WvIoEpLookup> = {}, room: number = ATTRIBUTES.size): Submitted {
    const input = s.WvIoEpLookup.encode({ id, peerAddress: address('192.0.2.9'), ...more });
    return this.rig.ioctl('EP_LOOKUP', input, room);
  }
  accept(id: bigint, param: Input<typeof s.WvIoDatagramParam> = {}, qpId = 0n): Submitted {
    const whole = { qpn: 0x77, qkey: 0x0123_4567, ...param };
    return this.rig.ioctl('EP_ACCEPT', s.WvIoEpDatagramAccept.encode({ id, qpId, param: whole }), 0);
  }
  reject(id: bigint, bytes = 0): Submitted {
    const input = new Uint8Array(s.WvIoId.size + bytes);
    return this.rig.ioctl('EP_REJECT', s.WvIoId.encode({ id }, input), 0);
  }
  join(id: bigint, group = '239.1.2.3', port = 0): Submitted {
    return this.rig.ioctl(
      'EP_MULTICAST_JOIN',
      s.WvIoEpMulticast.encode({ id, address: address(group, port) }),
    );
  }
  leave(id: bigint, group = '239.1.2.3'): Submitted {
    return this.rig.ioctl('EP_MULTICAST_LEAVE', s.WvIoEpMulticast.encode({ id, address: address(group) }));
  }
  query(id: bigint, peer?: { sockAddr: Uint8Array }): Submitted {
    const input = s.WvIoEpDatagramQuery.encode({ id, ...(peer && { peerAddress: peer }) });
    return this.rig.ioctl('EP_QUERY', input);
  }
  attributes(id: bigint, peer?: { sockAddr: Uint8Array }) {
    const request = this.query(id, peer);
    expect(request, Status.SUCCESS);
    return ATTRIBUTES.decode(request.output);
  }
  /** A bound endpoint with a route to 192.0.2.9. */
  routed(): bigint {
    const id = this.create();
    expect(this.rig.bind(id), Status.SUCCESS);
    expect(this.rig.route(id), Status.SUCCESS);
    return id;
  }
  listener(port = 6000): { id: bigint; control: FakeSidrListener } {
    const id = this.create();
    this.rig.bind(id, port);
    expect(this.listen(id), Status.SUCCESS);
    return { id, control: this.rig.cm.sidrListeners.at(-1)! };
  }
  /** An endpoint with a received lookup. */
  requested(port = 6000): { id: bigint; inquiry: FakeInquiry } {
    const { id: listener, control } = this.listener(port);
    const id = this.create();
    const request = this.rig.getRequest(listener, id);
    const inquiry = control.arrive();
    expect(request, Status.SUCCESS);
    return { id, inquiry };
  }
}

// ── The table, cell by cell ─────────────────────────────────────────────────────────────────────────────────

interface Scene {
  it: Datagrams;
  id: bigint;
  inquiry: FakeInquiry | undefined;
}

function scene(state: DatagramState): Scene {
  const it = new Datagrams();
  if (state === 'requested' || state === 'accepted' || state === 'ended') {
    const { id, inquiry } = it.requested();
    if (state === 'accepted') it.accept(id);
    if (state === 'ended') it.reject(id);
    return { it, id, inquiry };
  }
  const id = it.create();
  const steps: Partial<Record<DatagramState, () => void>> = {
    addressBound: () => it.rig.bind(id),
    routeResolved: () => {
      it.rig.bind(id);
      it.rig.route(id);
    },
    listening: () => {
      it.rig.bind(id, 7000);
      it.listen(id);
    },
    queued: () => it.rig.getRequest(it.listener().id, id),
    destroying: () => it.rig.ioctl('EP_DESTROY', it.rig.id(id)),
  };
  steps[state]?.();
  return { it, id, inquiry: undefined };
}

function ask({ it, id }: Scene, request: DatagramRequest): Submitted {
  const { rig } = it;
  switch (request) {
    case 'bind':
      return rig.bind(id, 8000);
    case 'modify':
      return rig.route(id);
    case 'listen':
      return it.listen(id);
    case 'getRequest':
      return rig.getRequest(id, it.create());
    case 'assign':
      return rig.getRequest(it.listener(6100).id, id);
    case 'lookup':
      return it.lookup(id);
    case 'accept':
      return it.accept(id);
    case 'reject':
      return it.reject(id);
    case 'join':
      return it.join(id);
    case 'leave':
      return it.leave(id);
    case 'query':
      return it.query(id);
    case 'cancel':
      return rig.ioctl('EP_CANCEL', rig.id(id));
    case 'destroy':
      return rig.ioctl('EP_DESTROY', rig.id(id));
  }
}

const S = Status;
/** Written by hand from the interface. Missing entries are INVALID_DEVICE_STATE. */
const expectedRequests: Record<DatagramState, Partial<Record<DatagramRequest, [number, DatagramState]>>> = {
  idle: { bind: [S.SUCCESS, 'addressBound'], assign: [S.PENDING, 'queued'] },
  addressBound: {
    modify: [S.SUCCESS, 'routeResolved'],
    listen: [S.SUCCESS, 'listening'],
    join: [S.SUCCESS, 'addressBound'],
    leave: [S.NOT_FOUND, 'addressBound'],
  },
  routeResolved: {
    modify: [S.SUCCESS, 'routeResolved'],
    lookup: [S.PENDING, 'routeResolved'],
    join: [S.SUCCESS, 'routeResolved'],
    leave: [S.NOT_FOUND, 'routeResolved'],
  },
  listening: {
    getRequest: [S.PENDING, 'listening'],
    join: [S.SUCCESS, 'listening'],
    leave: [S.NOT_FOUND, 'listening'],
  },
  queued: {},
  requested: { accept: [S.SUCCESS, 'accepted'], reject: [S.SUCCESS, 'ended'] },
  accepted: { join: [S.SUCCESS, 'accepted'], leave: [S.NOT_FOUND, 'accepted'] },
  ended: { accept: [S.CONNECTION_ABORTED, 'ended'] },
  destroying: {},
};

for (const state of datagramStates) {
  test(`every request in state ${state}`, () => {
    for (const request of datagramRequests) {
      const one = scene(state);
      const { rig } = one.it;
      const endpoint = state === 'destroying' ? undefined : one.it.endpoint(one.id);
      const [status, next] =
        state === 'destroying'
          ? [S.NOT_FOUND, state]
          : (expectedRequests[state][request] ??
            (request === 'query' || request === 'cancel'
              ? [S.SUCCESS, state]
              : request === 'destroy'
                ? [S.SUCCESS, 'destroying' as const]
                : [request === 'assign' ? S.CONNECTION_IN_USE : S.INVALID_DEVICE_STATE, state]));
      expect(ask(one, request), status, `${state} ${request}`);
      if (endpoint) assert.is(endpoint.state, next, `${state} ${request}`);
      assert.equal(rig.faults, [], `${state} ${request}`);
      expect(rig.close(), S.SUCCESS);
      assert.is(rig.kernel.io.counters.abandonedIrps, 0, `${state} ${request}`);
      assert.is(rig.hca.claims.size, 0);
      assert.ok(rig.cm.sidrListeners.every(({ closed }) => closed));
      assert.ok(rig.cm.lookups.every((lookup) => lookup.state === 'over'));
    }
  });
}

const expectedSignals: Record<DatagramState, Partial<Record<DatagramSignal, DatagramState>>> = {
  idle: {},
  addressBound: { deviceLost: 'ended' },
  routeResolved: { deviceLost: 'ended' },
  listening: { deviceLost: 'ended' },
  queued: { delivered: 'requested', unassigned: 'idle' },
  requested: { withdrawn: 'ended', deviceLost: 'ended' },
  accepted: { deviceLost: 'ended' },
  ended: {},
  destroying: {},
};

test('every event in every state', () => {
  for (const state of datagramStates.filter((one) => one !== 'destroying')) {
    for (const signal of datagramSignals) {
      const { it, id } = scene(state);
      const endpoint = it.endpoint(id);
      endpoint.signal(signal);
      const next = expectedSignals[state][signal];
      assert.is(endpoint.state, next ?? state, `${state} ${signal}`);
      assert.is(endpoint.ignoredSignals, next ? 0 : 1, `${state} ${signal}`);
    }
  }
});

// ── Lookups ──────────────────────────────────────────────────────────────────────────────────────────────

test('a lookup requests the UDP service of the port, and returns the peer’s complete address', () => {
  const it = new Datagrams();
  const id = it.routed();
  const request = it.lookup(id, { dataLength: 3, data: Uint8Array.of(1, 2, 3) });
  const asked = it.rig.cm.lookups[0]!;
  assert.is(asked.parameters.serviceId, 0x0111_1388n);
  assert.is(asked.parameters.localPort, 49_152);
  assert.is(asked.parameters.pkey, 0xffff);
  assert.equal([...asked.parameters.privateData], [1, 2, 3]);
  expect(request, S.PENDING);
  asked.answer({ qpn: 0x0c_0003, qkey: 0x1122_3344 });
  expect(request, S.SUCCESS);
  for (const bytes of [request.output, it.query(id, address('192.0.2.9')).output]) {
    const { localAddress, peerAddress, device, param } = ATTRIBUTES.decode(bytes);
    assert.equal(decodeSockaddr(localAddress.sockAddr), { family: 4, address: '192.0.2.2', port: 49_152 });
    assert.equal(decodeSockaddr(peerAddress.sockAddr), { family: 4, address: '192.0.2.9', port: 5000 });
    assert.is(device.portNumber, 1);
    assert.equal(
      [param.qpn, param.qkey, param.dataLength, param.sidrStatus],
      [0x0c_0003, 0x1122_3344, 136, 0],
    );
    assert.equal([...param.addressVector.dGid], [...gidOfAddress('192.0.2.9')]);
    assert.equal([...param.addressVector.sGid], [...gidOfAddress('192.0.2.2')]);
    assert.equal([param.addressVector.networkRouteValid, param.addressVector.hopLimit], [1, 64]);
  }
  expect(it.query(id, address('192.0.2.9', 5001)), S.NOT_FOUND);
});

test('several lookups may be pending at once, and each gets its own reply', () => {
  const it = new Datagrams();
  const id = it.routed();
  const requests = [5001, 5002, 5003].map((port) =>
    it.lookup(id, { peerAddress: address('192.0.2.9', port) }),
  );
  const [first, second, third] = it.rig.cm.lookups;
  third!.answer({ qpn: 103 });
  first!.answer({ qpn: 101 });
  second!.events.timedOut!();
  assert.equal(
    requests.map(({ status }) => statusName(status)),
    ['SUCCESS', 'TIMEOUT', 'SUCCESS'],
  );
  assert.equal(
    [5001, 5003].map((port) => it.attributes(id, address('192.0.2.9', port)).param.qpn),
    [101, 103],
  );
});

test('a refusal is CONNECTION_REFUSED, and its reason and private data can be queried', () => {
  const it = new Datagrams();
  const id = it.routed();
  const request = it.lookup(id);
  it.rig.cm.lookups[0]!.answer({ status: 2, qpn: 5, qkey: 6, privateData: new Uint8Array(136).fill(9) });
  expect(request, S.CONNECTION_REFUSED);
  const { param } = it.attributes(id, address('192.0.2.9'));
  assert.equal([param.sidrStatus, param.qpn, param.qkey, param.data[0]], [2, 0, 0, 9]);
});

test('cancelling a lookup abandons its request; so do EP_CANCEL, destroying and closing the file', () => {
  for (const end of ['one', 'cancel', 'destroy', 'close'] as const) {
    const it = new Datagrams();
    const id = it.routed();
    const request = it.lookup(id);
    if (end === 'one') request.cancel();
    else if (end === 'cancel') it.rig.ioctl('EP_CANCEL', it.rig.id(id));
    else if (end === 'destroy') it.rig.ioctl('EP_DESTROY', it.rig.id(id));
    else it.rig.close();
    expect(request, S.CANCELED, end);
    const [lookup] = it.rig.cm.lookups;
    assert.is(lookup!.state, 'over', end);
    // Later events have no effect.
    lookup!.events.timedOut!();
    lookup!.answer();
    assert.equal(it.rig.faults, []);
  }
});

test('a lookup whose peer cannot be asked completes with the reason', () => {
  const it = new Datagrams();
  const request = it.lookup(it.routed());
  it.rig.cm.lookups[0]!.events.timedOut!(S.HOST_UNREACHABLE);
  expect(request, S.HOST_UNREACHABLE);
});

test('an impossible lookup is rejected before anything is sent', () => {
  const it = new Datagrams();
  const id = it.routed();
  expect(it.lookup(id, { peerAddress: address('192.0.2.8') }), S.INVALID_ADDRESS);
  expect(it.lookup(id, { peerAddress: address('192.0.2.9', 0) }), S.INVALID_ADDRESS);
  expect(it.lookup(id, { peerAddress: { sockAddr: new Uint8Array(28) } }), S.INVALID_ADDRESS);
  expect(it.lookup(id, { dataLength: 181 }), S.INVALID_BUFFER_SIZE);
  expect(it.lookup(id, {}, ATTRIBUTES.size - 1), S.BUFFER_TOO_SMALL);
  expect(it.lookup(99n), S.NOT_FOUND);
  assert.is(it.rig.cm.lookups.length, 0);
  it.rig.hca.sendStatus = S.HOST_UNREACHABLE;
  expect(it.lookup(id), S.HOST_UNREACHABLE);
  assert.is(it.rig.cm.lookups[0]!.state, 'over');
});

test('connect and datagram endpoints do not receive each other’s requests', () => {
  const it = new Datagrams();
  const { rig } = it;
  const [datagram, connect] = [it.routed(), rig.endpoint()];
  expect(rig.connect(datagram, 0n), S.NOT_SUPPORTED);
  expect(rig.disconnect(datagram), S.NOT_SUPPORTED);
  expect(rig.notify(datagram), S.NOT_SUPPORTED);
  expect(it.lookup(connect), S.NOT_SUPPORTED);
  expect(it.join(connect), S.NOT_SUPPORTED);
  expect(it.leave(connect), S.NOT_SUPPORTED);
  expect(rig.getRequest(it.listener().id, connect), S.INVALID_PARAMETER);
  expect(rig.getRequest(rig.listener(6200).id, it.create()), S.INVALID_PARAMETER);
});

test('beyond a limit, the oldest peers are forgotten first', () => {
  const it = new Datagrams();
  const id = it.routed();
  for (let port = 1; port <= PEERS_KEPT + 1; port++) {
    it.lookup(id, { peerAddress: address('192.0.2.9', port) });
    it.rig.cm.lookups.pop()!.answer();
  }
  expect(it.query(id, address('192.0.2.9', 1)), S.NOT_FOUND);
  expect(it.query(id, address('192.0.2.9', 2)), S.SUCCESS);
});

// ── Replies ───────────────────────────────────────────────────────────────────────────────────────────────

test('a received lookup reports its sender and data, and is accepted with a queue pair number', () => {
  const it = new Datagrams();
  const { id, inquiry } = it.requested();
  for (const peer of [undefined, address('192.0.2.9', 40_000)]) {
    const { localAddress, peerAddress, param } = it.attributes(id, peer);
    assert.equal(decodeSockaddr(localAddress.sockAddr).port, 6000);
    assert.equal(decodeSockaddr(peerAddress.sockAddr), { family: 4, address: '192.0.2.9', port: 40_000 });
    assert.equal([param.qpn, param.dataLength, param.data[179]], [0, 180, 0x54]);
    assert.equal([...param.addressVector.dGid], [...gidOfAddress('192.0.2.9')]);
  }
  expect(it.accept(id, { qpn: 1 }), S.INVALID_PARAMETER);
  expect(it.accept(id, { qpn: 0xff_ffff }), S.INVALID_PARAMETER);
  expect(it.accept(id, { dataLength: 137 }), S.INVALID_BUFFER_SIZE);
  expect(it.accept(id, {}, 12345n), S.NOT_FOUND);
  expect(it.accept(id, {}, it.rig.queuePair().qp), S.INVALID_PARAMETER);
  assert.equal(inquiry.calls, []);
  expect(it.accept(id, { qpn: 0x77, qkey: 5, dataLength: 2, data: Uint8Array.of(8, 9) }), S.SUCCESS);
  assert.equal([inquiry.accepted?.qpn, inquiry.accepted?.qkey], [0x77, 5]);
  assert.equal([...inquiry.accepted!.privateData], [8, 9]);
  expect(it.accept(id), S.INVALID_DEVICE_STATE);
});

test('a received lookup that is rejected, destroyed or abandoned gets a reply; a withdrawn one has ended', () => {
  const it = new Datagrams();
  const { id, inquiry } = it.requested();
  expect(it.reject(id, 137), S.INVALID_BUFFER_SIZE);
  expect(it.reject(id, 136), S.SUCCESS);
  assert.equal(inquiry.calls, ['reject 136']);
  const destroyed = new Datagrams().requested();
  const other = new Datagrams();
  const left = other.requested();
  other.rig.close();
  assert.equal([destroyed.inquiry.calls, left.inquiry.calls], [[], ['abandon']]);
  const late = new Datagrams();
  const { id: lateId, inquiry: withdrawn } = late.requested();
  withdrawn.events.timedOut!();
  expect(late.accept(lateId), S.CONNECTION_ABORTED);
  assert.equal(withdrawn.calls, []);
});

test('two listeners cannot use the same port, but a connect listener can use the same number', () => {
  const it = new Datagrams();
  it.listener(5000);
  const second = it.create();
  it.rig.bind(second, 5000);
  expect(it.listen(second), S.ADDRESS_ALREADY_EXISTS);
  it.rig.listener(5000);
  assert.is(it.rig.hca.claims.size, 2);
});

// ── Groups ──────────────────────────────────────────────────────────────────────────────────────────────────

test('joining a group returns its address vector, QPN and Q_Key; leaving undoes this', () => {
  const it = new Datagrams();
  const id = it.create();
  it.rig.bind(id);
  const joined = it.join(id, '239.1.2.3', 77);
  expect(joined, S.SUCCESS);
  const { param, peerAddress } = ATTRIBUTES.decode(joined.output);
  assert.equal([param.qpn, param.qkey], [0xff_ffff, 0x0123_4567]);
  assert.equal([...param.addressVector.dGid], [...gidOfAddress('239.1.2.3')]);
  assert.equal([...param.addressVector.sGid], [...gidOfAddress('192.0.2.2')]);
  assert.is(decodeSockaddr(peerAddress.sockAddr).address, '239.1.2.3');
  assert.is(it.attributes(id, address('239.1.2.3', 1)).param.qpn, 0xff_ffff);
  expect(it.join(id), S.ADDRESS_ALREADY_EXISTS);
  expect(it.leave(id), S.SUCCESS);
  expect(it.leave(id), S.NOT_FOUND);
  expect(it.query(id, address('239.1.2.3')), S.NOT_FOUND);
  expect(it.join(id), S.SUCCESS);
});

test('groups: IPv4 and IPv6, of the endpoint’s family and interface, which the route selects if the endpoint is not bound', () => {
  const it = new Datagrams();
  const v6 = it.create();
  it.rig.bind(v6, 0, 'fd00::2');
  const { param } = ATTRIBUTES.decode(it.join(v6, 'ff0e::1:2').output);
  assert.equal([...param.addressVector.dGid], [...gidOfAddress('ff0e::1:2')]);
  expect(it.join(v6, '239.1.2.3'), S.INVALID_ADDRESS);
  expect(it.join(v6, 'ff02::5%1'), S.INVALID_ADDRESS);
  expect(it.join(v6, 'ff02::5%4'), S.SUCCESS);
  const any = it.create();
  it.rig.bind(any, 0, '0.0.0.0');
  it.rig.network.addRoute('239.1.2.3', '192.0.2.2', 4);
  const chosen = ATTRIBUTES.decode(it.join(any).output).param.addressVector.sGid;
  assert.equal([...chosen], [...gidOfAddress('192.0.2.2')]);
  for (const none of ['192.0.2.9', '255.255.255.255', '240.0.0.1', '0.0.0.0']) {
    expect(it.join(any, none), S.INVALID_ADDRESS, none);
    expect(it.leave(any, none), S.INVALID_ADDRESS, none);
  }
  const lost = it.create();
  it.rig.bind(lost, 0, '0.0.0.0');
  expect(it.join(lost, '239.1.2.4'), S.NETWORK_UNREACHABLE);
});

test('an endpoint can join a limited number of groups', () => {
  const it = new Datagrams();
  const id = it.create();
  it.rig.bind(id);
  for (let n = 0; n < GROUPS_MOST; n++) it.join(id, `239.1.${n >> 8}.${n & 255}`);
  expect(it.join(id, '239.9.9.9'), S.INSUFFICIENT_RESOURCES);
});

// ── Removal of the device ─────────────────────────────────────────────────────────────────────────────────────────

test('when the device is removed, lookups and GetRequests end in DEVICE_REMOVED, and received lookups get a reply', () => {
  const it = new Datagrams();
  const looking = it.routed();
  const lookup = it.lookup(looking);
  const { id: listener } = it.listener();
  const named = it.create();
  const waiting = it.rig.getRequest(listener, named);
  const { inquiry } = it.requested(6300);
  it.rig.network.list = it.rig.network.list.filter(({ name }) => name !== 'eth0');
  it.rig.kernel.ports.refresh(true);
  expect(lookup, S.DEVICE_REMOVED);
  expect(waiting, S.DEVICE_REMOVED);
  assert.is(it.endpoint(named).state, 'idle');
  assert.equal(inquiry.calls, ['abandon']);
  assert.equal(it.rig.faults, []);
  expect(it.rig.close(), S.SUCCESS);
});

test.run();
