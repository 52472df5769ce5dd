import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { PacketBytes } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { IbatCode } from '../../kernel-bridge/ioctl/codes.js';
import { PortState, WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import {
  addressOfGid,
  encodeSockaddr,
  gidOfAddress,
  parseSocketAddress,
} from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import {
  activeMtuOf,
  mtuBytes,
  mtuCode,
  type PortTable,
  portEvents,
} from '../../kernel-bridge/kernel/hca-driver/hca-ports.js';
import { ethernetMac, SystemNetwork } from '../../kernel-bridge/kernel/hca-driver/network-interfaces.js';
import { guidOfMac, localGuid } from '../../kernel-bridge/kernel/soft-hca/guids.js';
import { ethGuid, FakeNetwork, hostInterface, KernelRig } from '../helpers/kernel-rig.js';
import { tableOf } from '../helpers/port-table.js';

const addon = loadAddon();

test('the active MTU is the largest that fits the interface MTU with 80 bytes of headers', () => {
  const expected = [
    [65_536, 4096],
    [4176, 4096],
    [4175, 2048],
    [2128, 2048],
    [1500, 1024],
    [1103, 512],
    [591, 256],
    [68, 256],
  ];
  for (const [mtu, active] of expected) assert.is(activeMtuOf(mtu!), active, `${mtu}`);
  for (const bytes of [256, 512, 1024, 2048, 4096]) assert.is(mtuBytes(mtuCode(bytes)), bytes);
  assert.is(mtuBytes(0), 0);
  assert.is(mtuBytes(6), 0);
});

test('a CA GUID is the EUI-64 of the MAC with the universal bit inverted', () => {
  assert.is(guidOfMac(Uint8Array.of(2, 0xfc, 0, 0, 0, 1)), 0x00fc_00ff_fe00_0001n);
  assert.is(guidOfMac(Uint8Array.of(0xe4, 0x1d, 0x2d, 7, 8, 9)), 0xe61d_2dff_fe07_0809n);
  assert.is(ethernetMac(new Uint8Array(6)), undefined);
  assert.is(ethernetMac(Uint8Array.of(1, 2, 3, 4)), undefined);
  assert.equal(ethernetMac(Uint8Array.of(2, 0, 0, 0, 0, 1)), Uint8Array.of(2, 0, 0, 0, 0, 1));
});

test('an interface without a MAC has a stable, locally administered GUID, which depends on its name and host', () => {
  const guid = localGuid('boot 1', 'lo');
  assert.is(localGuid('boot 1', 'lo'), guid);
  assert.is.not(localGuid('boot 1', 'wg0'), guid);
  assert.is.not(localGuid('boot 2', 'lo'), guid);
  assert.is(Number(guid >> 56n) & 3, 0);
});

test('every interface is a device, link-local addresses come first, and interfaces with the same MAC get different GUIDs', () => {
  const network = new FakeNetwork();
  network.list.push(hostInterface('eth0.7', 9, ['10.7.0.1/24'], { mac: network.list[2]!.mac }));
  const ports = tableOf(network);
  const all = ports.all();
  assert.equal(
    all.map((port) => port.interfaceName),
    ['lo', 'ifb0', 'eth0', 'eth0.7'],
  );
  assert.is(new Set(all.map(({ guid }) => guid)).size, 4);
  assert.is(all[2]!.guid, ethGuid);
  assert.equal(all[1]!.gids, []);
  assert.equal(
    all[2]!.gids.map((gid) => addressOfGid(gid)),
    ['fe80::fc:ff:fe00:1', '192.0.2.2', 'fd00::2'],
  );
  assert.is(all[0]!.activeMtu, 4096);
  assert.is(all[2]!.activeMtu, 1024);
});

test('an interface keeps its GUID when its MAC changes, and no other device gets a GUID from that MAC', () => {
  const network = new FakeNetwork();
  const ports = tableOf(network);
  const changes: string[] = [];
  ports.onChange = ({ guid, port, previous }) =>
    changes.push(`${guid === ethGuid} ${port && previous ? portEvents(previous, port) : 'other'}`);
  ports.refresh(true);
  changes.length = 0;
  const eth = network.list[2]!;
  network.list[2] = { ...eth, mac: Uint8Array.of(2, 0, 0, 0, 0, 9) };
  ports.refresh(true);
  assert.equal(changes, [`true ${WvEvent.LINK_ADDRESS}`]);
  network.list.push(hostInterface('eth1', 7, [], { mac: eth.mac }));
  ports.refresh(true);
  const [, , first, second] = ports.all();
  assert.is(first!.guid, ethGuid);
  assert.is(second!.guid, localGuid('boot 1', 'eth1'));
});

test('K14: queries read the interfaces once; a miss or a new second reads them again', () => {
  const network = new FakeNetwork();
  let now = 0;
  const ports = tableOf(network, () => now);
  for (let n = 0; n < 100; n++) ports.get(ethGuid);
  assert.is(network.reads, 1);
  assert.is(ports.ofGid(gidOfAddress('192.0.2.77')), undefined);
  assert.is(network.reads, 2);
  network.list[2] = hostInterface('eth0', 4, ['192.0.2.77/24']);
  assert.ok(ports.ofGid(gidOfAddress('192.0.2.77')));
  now += 1001;
  ports.all();
  assert.is(network.reads, 4);
});

const routeTo = (ports: PortTable, remote: string, from?: string, scopeId = 0) => {
  const route = ports.routeTo(
    gidOfAddress(remote),
    from === undefined ? undefined : gidOfAddress(from),
    scopeId,
  );
  return route && [addressOfGid(route.source), route.port.interfaceName, route.pathMtu];
};

test('packets fill the outgoing link if both the route and the path MTU permit it', () => {
  const network = new FakeNetwork();
  network.list.push(
    hostInterface('eth1', 5, ['198.51.100.1/24', '2001:db8::1/64'], { mtu: 9000 }),
    hostInterface('tiny', 6, ['203.0.113.1/24'], { mtu: 60 }),
  );
  const ports = tableOf(network);
  const bytes = (remote: string, source: string, pathMtu: number) => {
    const path = [gidOfAddress(source), gidOfAddress(remote)] as const;
    assert.is(ports.packetBytes(...path, pathMtu), 0, 'the route was not requested');
    const mtu = ports.routeTo(path[1], path[0])!.pathMtu;
    return [mtu, ports.packetBytes(...path, pathMtu)];
  };
  for (const [remote, source, interfaceIndex, mtu] of [
    ['192.0.2.9', '192.0.2.2', 4, 0],
    ['198.51.100.9', '198.51.100.1', 5, 0],
    ['198.51.100.10', '198.51.100.1', 5, 1500],
    ['198.51.100.11', '198.51.100.1', 4, 0],
    ['198.51.100.12', '198.51.100.1', 77, 0],
    ['2001:db8::9', '2001:db8::1', 5, 0],
    ['203.0.113.9', '203.0.113.1', 6, 0],
  ] as const)
    network.addRoute(remote, source, interfaceIndex, mtu);
  assert.equal(bytes('192.0.2.9', '192.0.2.2', 1024), [1024, 1432]);
  assert.equal(bytes('198.51.100.9', '198.51.100.1', 4096), [4096, 8936]);
  assert.equal(bytes('198.51.100.10', '198.51.100.1', 1024), [1024, 1432], "the route's MTU");
  assert.equal(bytes('198.51.100.11', '198.51.100.1', 1024), [1024, 1432], "the other interface's MTU");
  assert.equal(bytes('198.51.100.12', '198.51.100.1', 4096), [4096, 0], 'an unknown interface');
  assert.equal(bytes('2001:db8::9', '2001:db8::1', 4096), [4096, 8912], 'longer headers');
  assert.equal(bytes('203.0.113.9', '203.0.113.1', 256), [256, 0]);
  assert.equal(bytes('127.0.0.1', '127.0.0.1', 4096), [4096, 9152], 'no longer than pays');
  assert.ok(9152 <= PacketBytes.longest && 9152 % PacketBytes.step === 0);
  const path = [gidOfAddress('198.51.100.1'), gidOfAddress('198.51.100.9')] as const;
  assert.is(ports.packetBytes(...path, 2048), 0, 'a smaller path MTU is wanted');
  const eth1 = network.list.findIndex(({ name }) => name === 'eth1');
  network.list[eth1] = { ...network.list[eth1]!, mtu: 8000 };
  ports.refresh(true);
  assert.is(ports.packetBytes(...path, 4096), 7936, 'the MTU has fallen since');
});

test('the number of cached routes is limited', () => {
  const network = new FakeNetwork();
  const ports = tableOf(network);
  const source = gidOfAddress('192.0.2.2');
  const remote = (n: number) => gidOfAddress(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  for (let n = 0; n < 1100; n++) {
    network.addRoute(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, '192.0.2.2', 4);
    assert.ok(ports.routeTo(remote(n), source));
    ports.routeTo(remote(0), source);
  }
  assert.equal(
    [0, 1, 76, 77, 78, 1099].map((n) => ports.packetBytes(source, remote(n), 1024) !== 0),
    [true, false, false, true, true, true],
  );
});

test('a path starts at a local address, or at the one selected by the OS; its MTU is that of the outgoing link', () => {
  const network = new FakeNetwork();
  network.list.push(
    hostInterface('eth1', 5, ['192.0.2.130/25', 'fe80::5/64']),
    hostInterface('dummy0', 6, ['198.51.100.1/32'], { mtu: 65_536 }),
  );
  const ports = tableOf(network);
  assert.equal(routeTo(ports, '192.0.2.2'), ['192.0.2.2', 'eth0', 1024]);
  assert.equal(routeTo(ports, '127.0.0.1'), ['127.0.0.1', 'lo', 4096]);
  assert.equal(routeTo(ports, '192.0.2.2', '192.0.2.130'), ['192.0.2.130', 'eth1', 1024]);
  assert.is(routeTo(ports, '8.8.8.8'), undefined, 'no route');
  network.addRoute('8.8.8.8', '192.0.2.130', 5);
  assert.equal(routeTo(ports, '8.8.8.8'), ['192.0.2.130', 'eth1', 1024]);
  assert.equal(routeTo(ports, '8.8.8.8', undefined, 5), ['192.0.2.130', 'eth1', 1024], 'no scope of its own');
  assert.equal(routeTo(ports, '8.8.8.8', '192.0.2.2'), ['192.0.2.2', 'eth0', 1024], 'a given source');
  assert.is(routeTo(ports, '8.8.8.8', '127.0.0.1'), undefined, 'loopback leads to no other host');
  network.addRoute('8.8.4.4', '198.51.100.1', 4);
  assert.equal(routeTo(ports, '8.8.4.4'), ['198.51.100.1', 'dummy0', 1024], "the other interface's MTU");
  network.addRoute('8.8.4.5', '198.51.100.1', 4, 700);
  assert.equal(routeTo(ports, '8.8.4.5'), ['198.51.100.1', 'dummy0', 512], "the route's MTU");
  network.addRoute('8.8.4.6', '203.0.113.9', 4);
  assert.is(routeTo(ports, '8.8.4.6'), undefined, 'an address of no device');
  network.addRoute('fe80::99%5', 'fe80::5', 5);
  network.addRoute('fe80::99%4', 'fe80::fc:ff:fe00:1', 4);
  assert.equal(routeTo(ports, 'fe80::99', undefined, 5), ['fe80::5', 'eth1', 1024]);
  assert.equal(routeTo(ports, 'fe80::99', undefined, 4), ['fe80::fc:ff:fe00:1', 'eth0', 1024]);
});

test('if no socket can be created, a route lookup ends in INSUFFICIENT_RESOURCES', () => {
  const answer = (status: number) =>
    new SystemNetwork({
      ...addon,
      findRoute: (_destination, source) => ({ status, source, interfaceIndex: 3, mtu: 0 }),
    }).route(gidOfAddress('8.8.8.8'), undefined, 0);
  assert.throws(
    () => answer(Status.INSUFFICIENT_RESOURCES),
    (error: unknown) => error instanceof StatusError && error.status === Status.INSUFFICIENT_RESOURCES,
  );
  assert.is(answer(Status.NETWORK_UNREACHABLE), undefined);
  assert.is(answer(Status.SUCCESS)?.interfaceIndex, 3);
});

test('cached paths are invalidated when routes change, while a device is open', () => {
  const rig = new KernelRig();
  const begun = rig.cacheEpochs;
  assert.is(rig.network.routeWatchers.size, 0);
  rig.device();
  assert.is(rig.network.routeWatchers.size, 1);
  // Earlier cache entries were created before the watch.
  assert.ok(rig.cacheEpochs > begun);
  const watched = rig.cacheEpochs;
  for (const changed of rig.network.routeWatchers) changed();
  assert.is(rig.cacheEpochs, watched + 1);
});

test('the real host has a loopback device with its address', () => {
  const ports = tableOf(new SystemNetwork(addon));
  assert.is(ports.ofGid(gidOfAddress('127.0.0.1'))?.interfaceName, 'lo');
});

test('an interface is only an active port with a carrier; without one it still has its MTU and addresses', () => {
  const one = (name: string, index: number, up: boolean, running: boolean) => ({
    name,
    index,
    mtu: 9000,
    up,
    running,
    mac: Uint8Array.of(2, 0, 0, 0, 0, index),
    addresses: [{ gid: gidOfAddress(`192.0.2.${index}`), family: 4 as const, prefixLength: 24, scopeId: 0 }],
  });
  const system = [one('a', 1, true, true), one('b', 2, true, false), one('c', 3, false, true)];
  const ports = tableOf(
    new SystemNetwork({ ...addon, interfaces: () => system, watchInterfaces: () => undefined }),
  ).all();
  assert.equal(
    ports.map(({ state }) => state),
    [PortState.ACTIVE, PortState.DOWN, PortState.DOWN],
  );
  for (const { activeMtu, gids } of ports) assert.equal([activeMtu, gids.length], [4096, 1]);
});

// ── IBAT ────────────────────────────────────────────────────────────────────────────────────────────────────

function ibat() {
  const rig = new KernelRig();
  const file = rig.open('\\\\.\\ibat').answer!.information;
  const sockaddr = (text: string | undefined) =>
    text === undefined ? new Uint8Array(28) : encodeSockaddr(parseSocketAddress(text));
  return {
    rig,
    port: (address: string, version = 6) =>
      rig.control(
        IbatCode.IP_TO_PORT,
        s.IbatIpToPortIn.encode({ version, address: sockaddr(address) }),
        24,
        file,
      ),
    path: (local: string | undefined, remote: string, version = 6) =>
      rig.control(
        IbatCode.PATH,
        s.IbatPathIn.encode({ version, localAddress: sockaddr(local), remoteAddress: sockaddr(remote) }),
        64,
        file,
      ),
    raw: (code: number, input: Uint8Array, outputLength: number) =>
      rig.control(code, input, outputLength, file),
  };
}

test('IBAT returns device, P_Key and port of local addresses, and NOT_FOUND for all others', () => {
  const { port } = ibat();
  const record = s.IbatPortRecord.decode(port('192.0.2.2').output);
  assert.equal(record, { caGuid: ethGuid, portGuid: ethGuid, pKey: 0xffff, portNum: 1 });
  assert.is(s.IbatPortRecord.decode(port('fe80::fc:ff:fe00:1%4').output).caGuid, ethGuid);
  for (const other of ['192.0.2.9', '0.0.0.0', '::', '2001:db8::5', '127.0.0.2']) {
    assert.is(port(other).status, Status.NOT_FOUND, other);
  }
  assert.is(port('192.0.2.2', 5).status, Status.INVALID_PARAMETER);
});

test('IBAT path records: GIDs, MTU of the local port, hop limit, packet life', () => {
  const { path } = ibat();
  const record = s.IbPathRecord.decode(path('192.0.2.2', '192.0.2.9').output);
  assert.equal(record.sgid, gidOfAddress('192.0.2.2'));
  assert.equal(record.dgid, gidOfAddress('192.0.2.9'));
  assert.is(record.hopFlowRaw & 0xff, 64);
  assert.is(record.mtu & 0x3f, 3);
  assert.is(record.pktLife & 0x3f, 16);
  assert.is(record.pkey, 0xffff);
  assert.is(path('192.0.2.2', '192.0.2.9').output.length, 64);
});

test('IBAT selects the local address, keeps loopback on the host, and rejects invalid destinations', () => {
  const { path } = ibat();
  const ends = (local: string | undefined, remote: string) => {
    const { sgid, dgid } = s.IbPathRecord.decode(path(local, remote).output);
    return `${addressOfGid(sgid)} ${addressOfGid(dgid)}`;
  };
  assert.is(ends(undefined, '192.0.2.9'), '192.0.2.2 192.0.2.9');
  assert.is(ends('0.0.0.0', '127.0.0.1'), '127.0.0.1 127.0.0.1');
  assert.is(ends('192.0.2.2', '127.0.0.1'), '192.0.2.2 192.0.2.2');
  assert.is(ends('::', 'fd00::9'), 'fd00::2 fd00::9');
  assert.is(path(undefined, '0.0.0.0').status, Status.BAD_NETWORK_NAME);
  assert.is(path(undefined, '224.0.0.1').status, Status.BAD_NETWORK_NAME);
  assert.is(path(undefined, 'ff02::1').status, Status.BAD_NETWORK_NAME);
  assert.is(path('192.0.2.77', '192.0.2.9').status, Status.INVALID_ADDRESS);
  assert.is(path('192.0.2.2', 'fd00::9').status, Status.INVALID_PARAMETER);
  assert.is(path('127.0.0.1', '192.0.2.9').status, Status.NETWORK_UNREACHABLE);
  assert.is(path('192.0.2.2', '192.0.2.9', 7).status, Status.INVALID_PARAMETER);
});

test('IBAT rejects short buffers, unknown families, unknown codes, and codes of WinVerbs', () => {
  const { raw, rig } = ibat();
  assert.is(raw(IbatCode.IP_TO_PORT, new Uint8Array(31), 24).status, Status.BUFFER_TOO_SMALL);
  assert.is(raw(IbatCode.IP_TO_PORT, new Uint8Array(32), 23).status, Status.BUFFER_TOO_SMALL);
  assert.is(raw(IbatCode.PATH, new Uint8Array(59), 64).status, Status.BUFFER_TOO_SMALL);
  assert.is(raw(IbatCode.PATH, s.IbatPathIn.encode({ version: 6 }), 64).status, Status.INVALID_ADDRESS);
  assert.is(raw(0x003b_e004, new Uint8Array(0), 64).status, Status.PROCEDURE_NOT_FOUND);
  assert.equal(rig.faults, []);
});

test.run();
