import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { decodeSockaddr, encodeSockaddr, gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { ethGuid } from '../helpers/kernel-rig.js';
import { outcome, throwsWv } from '../helpers/outcome.js';
import { openPair } from '../helpers/rig-door.js';

const local = { family: 4, address: '192.0.2.2', port: 0 } as const;
const peer = { family: 4, address: '192.0.2.9', port: 7174 } as const;
const group = { family: 4, address: '239.1.2.3', port: 0 } as const;

const answer = s.WvIoEpDatagramAttributes.encode({
  localAddress: { sockAddr: encodeSockaddr({ ...local, port: 6 }) },
  peerAddress: { sockAddr: encodeSockaddr(peer) },
  device: { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 },
  param: {
    addressVector: {
      networkRouteValid: 1,
      hopLimit: 64,
      sGid: gidOfAddress('192.0.2.2'),
      dGid: gidOfAddress('192.0.2.9'),
      portNumber: 1,
    },
    qpn: 0x77,
    qkey: 0x0123_4567,
    dataLength: 2,
    data: Uint8Array.of(8, 9),
  },
});

const attributes = {
  localAddress: { ...local, port: 6 },
  peerAddress: peer,
  device: { deviceGuid: ethGuid, pkey: 0xffff, portNumber: 1 },
  backlog: 0,
  addressVector: {
    sourceGid: gidOfAddress('192.0.2.2'),
    destinationGid: gidOfAddress('192.0.2.9'),
    flowLabel: 0,
    trafficClass: 0,
    hopLimit: 64,
    portNumber: 1,
  },
  qpn: 0x77,
  qkey: 0x0123_4567,
  sidrStatus: 0,
  privateData: Uint8Array.of(8, 9),
};

function datagrams() {
  const { provider, door, ep, qp } = openPair();
  const endpoint = provider.createDatagramEndpoint();
  endpoint.bindAddress(local);
  return { provider, door, endpoint, connect: ep, rc: qp };
}

test('lookup resolves the route, sends the data, and returns everything needed to send', async () => {
  const { endpoint, door } = datagrams();
  assert.is(s.WvIoEpCreate.decode(door.input('EP_CREATE')).epType, 0x111n);
  const lookup = endpoint.lookup(peer, Uint8Array.of(1, 2, 3));
  assert.ok(door.log.includes('EP_MODIFY'));
  const { peerAddress, dataLength, data } = s.WvIoEpLookup.decode(door.input('EP_LOOKUP'));
  assert.equal(decodeSockaddr(peerAddress.sockAddr), peer);
  assert.equal([dataLength, ...data.subarray(0, 4)], [3, 1, 2, 3, 0]);
  door.request('EP_LOOKUP').complete(Status.SUCCESS, answer);
  assert.equal(await lookup, attributes);
});

test('query can select a peer; an unknown peer has no address vector', () => {
  const { endpoint, door } = datagrams();
  door.on('EP_QUERY', () => answer);
  assert.equal(endpoint.query(peer), attributes);
  const selected = s.WvIoEpDatagramQuery.decode(door.input('EP_QUERY')).peerAddress;
  assert.equal(decodeSockaddr(selected.sockAddr), peer);
  door.on('EP_QUERY', () => s.WvIoEpDatagramAttributes.encode({ backlog: 3n }));
  const own = endpoint.query();
  assert.equal([own.backlog, own.addressVector, own.peerAddress], [3, undefined, undefined]);
  assert.ok(
    s.WvIoEpDatagramQuery.decode(door.input('EP_QUERY')).peerAddress.sockAddr.every((byte) => byte === 0),
  );
});

test('accept passes a queue pair number, with RDMA CM’s Q_Key by default', () => {
  const { endpoint, door } = datagrams();
  endpoint.accept({ qp: 0x77, privateData: Uint8Array.of(5) });
  const { qpId, param } = s.WvIoEpDatagramAccept.decode(door.input('EP_ACCEPT'));
  assert.equal([qpId, param.qpn, param.qkey, param.dataLength, param.data[0]], [0n, 0x77, 0x0123_4567, 1, 5]);
  endpoint.accept({ qp: 2, qkey: 0xffff_fffe });
  assert.is(s.WvIoEpDatagramAccept.decode(door.input('EP_ACCEPT')).param.qkey, 0xffff_fffe);
});

test('invalid arguments are rejected before anything is sent', () => {
  const { endpoint, door, connect, rc, provider } = datagrams();
  const sent = door.log.length;
  throwsWv(() => endpoint.lookup(peer, new Uint8Array(181)), Status.INVALID_BUFFER_SIZE, /180/);
  throwsWv(
    () => endpoint.accept({ qp: 5, privateData: new Uint8Array(137) }),
    Status.INVALID_BUFFER_SIZE,
    /136/,
  );
  throwsWv(() => endpoint.reject(new Uint8Array(137)), Status.INVALID_BUFFER_SIZE, /136/);
  for (const qp of [0, 1, 0xff_ffff, 2.5, -3])
    throwsWv(() => endpoint.accept({ qp }), Status.INVALID_PARAMETER);
  throwsWv(() => endpoint.accept({ qp: 5, qkey: -1 }), Status.INVALID_PARAMETER, /qkey/);
  throwsWv(() => endpoint.accept({ qp: rc as never }), Status.INVALID_PARAMETER, /datagram queue pair/);
  throwsWv(() => endpoint.getRequest(connect as never), Status.INVALID_PARAMETER, /type/);
  throwsWv(() => connect.getRequest(endpoint as never), Status.INVALID_PARAMETER, /type/);
  throwsWv(() => endpoint.getRequest(datagrams().endpoint), Status.INVALID_PARAMETER, /provider/);
  throwsWv(() => endpoint.joinMulticast({ ...group, address: 'nowhere' }), Status.INVALID_ADDRESS);
  throwsWv(() => provider.createDatagramEndpoint().lookup(peer), Status.INVALID_DEVICE_STATE, /bindAddress/);
  assert.equal(door.log.slice(sent), ['EP_CREATE']);
});

test('join returns the group’s address, and leave passes it; released endpoints release everything', async () => {
  const { endpoint, door } = datagrams();
  const join = endpoint.joinMulticast(group);
  assert.equal(
    decodeSockaddr(s.WvIoEpMulticast.decode(door.input('EP_MULTICAST_JOIN')).address.sockAddr),
    group,
  );
  door.request('EP_MULTICAST_JOIN').complete(Status.SUCCESS, answer);
  assert.is((await join).qpn, 0x77);
  const leave = endpoint.leaveMulticast(group);
  door.request('EP_MULTICAST_LEAVE').complete(Status.NOT_FOUND);
  assert.is(await outcome(leave), Status.NOT_FOUND);
  const lookup = endpoint.lookup(peer);
  endpoint.release();
  throwsWv(() => lookup.getResult(), Status.CANCELED);
  throwsWv(() => endpoint.query(), Status.INVALID_HANDLE);
});

test.run();
