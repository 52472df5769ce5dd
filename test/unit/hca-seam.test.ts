/**
 * The interface that HCAs implement, in a kernel with the software HCA and a second one. Each has its own devices, GUIDs, user-mode
 * provider, handles and connections, and removing one does not affect the other.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CqEventType } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { CountersCode, FaultsCode, IbatCode } from '../../kernel-bridge/ioctl/codes.js';
import { QpType, WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import {
  addressOfGid,
  encodeSockaddr,
  gidOfAddress,
  parseSocketAddress,
  sockaddrData,
} from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import type { HcaPort } from '../../kernel-bridge/kernel/hca-driver/backend.js';
import { UserVerbsRegistry } from '../../kernel-bridge/uvp/index.js';
import { SoftUserVerbs } from '../../kernel-bridge/uvp/soft-user-verbs.js';
import { WVProvider } from '../../winverbs/provider.js';
import { ethGuid, expect, KernelRig, type Submitted } from '../helpers/kernel-rig.js';
import { cmReply } from '../helpers/rig-cm.js';
import { RigDoor } from '../helpers/rig-door.js';
import {
  SECOND_LIBRARY,
  SecondHca,
  SHARED,
  secondAddress,
  secondGuid,
  secondPortGuid,
} from '../helpers/second-hca.js';

const secondGid = gidOfAddress(secondAddress);
const peerOfSecond = gidOfAddress('198.51.100.9');
/** WinVerbs' type of a connect endpoint, which is also its port space. */
const connectType = 0x106n;

function withSecond(more: Partial<HcaPort> = {}): { rig: KernelRig; second: SecondHca } {
  const second = new SecondHca(more);
  const rig = new KernelRig({}, [() => second]);
  return { rig, second };
}

const guids = ({ kernel }: KernelRig): bigint[] => kernel.hcaDriver.guids();

function library(rig: KernelRig, guid: bigint): string {
  const { output } = rig.ioctl('LIBRARY_QUERY', s.WvIoGuid.encode({ guid }), 32);
  return Buffer.from(output).toString('latin1');
}

/** WinVerbs on both HCAs. Only the second has a provider. */
function winVerbs(): { rig: KernelRig; second: SecondHca; provider: WVProvider } {
  const { rig, second } = withSecond();
  const registry = new UserVerbsRegistry();
  registry.register(SECOND_LIBRARY, () => new SoftUserVerbs(second.books));
  const door = new RigDoor(rig);
  door.loadUserVerbs = (library) => registry.load(library);
  return { rig, second, provider: new WVProvider(door) };
}

function ibat(rig: KernelRig) {
  const file = rig.open('\\\\.\\ibat').answer!.information;
  const sockaddr = (address: string) => encodeSockaddr(parseSocketAddress(address));
  const port = (address: string) =>
    rig.control(
      IbatCode.IP_TO_PORT,
      s.IbatIpToPortIn.encode({ version: 6, address: sockaddr(address) }),
      24,
      file,
    );
  const path = (remote: string) => {
    const input = s.IbatPathIn.encode({
      version: 6,
      localAddress: new Uint8Array(28),
      remoteAddress: sockaddr(remote),
    });
    return s.IbPathRecord.decode(rig.control(IbatCode.PATH, input, 64, file).output);
  };
  return { port, path };
}

/** A connect endpoint that connects to the second HCA's peer. */
function connecting(rig: KernelRig, qp: bigint): { id: bigint; request: Submitted } {
  const id = rig.endpoint();
  expect(rig.bind(id, 0, secondAddress), Status.SUCCESS);
  expect(rig.route(id, { sgid: secondGid, dgid: peerOfSecond, mtu: 0x84 }), Status.SUCCESS);
  const peerAddress = sockaddrData({ family: 4, address: '198.51.100.9', port: 5000 });
  return { id, request: rig.connect(id, qp, { peerAddress }) };
}

function queuePairOf(rig: KernelRig, guid: bigint): { device: bigint; cq: bigint; qp: bigint } {
  const device = rig.device(guid);
  const [pd, cq] = [rig.pd(device), rig.cq(device)];
  return { device, cq, qp: rig.qp(pd, cq) };
}

// ── Devices ─────────────────────────────────────────────────────────────────────────────────────────────────

test('both HCAs’ devices are listed, with their own GUIDs and the names of their own providers', () => {
  const { rig, second } = withSecond();
  assert.is(guids(rig).length, 4);
  assert.equal(guids(rig).slice(2), [ethGuid, secondGuid]);
  const { output } = rig.ioctl('GUID_QUERY');
  assert.equal(s.WvGuidEntries.decode(output.subarray(8)).slice(0, 4), guids(rig));
  assert.is(library(rig, ethGuid), 'networkdirect_uvp\0');
  assert.is(library(rig, secondGuid), `${SECOND_LIBRARY}\0`);
  assert.equal(second.devices, [`added ${secondGuid.toString(16)}`]);
});

test('attributes, limits, link and counters of a device are those of its HCA', () => {
  const { rig } = withSecond();
  const ask = (guid: bigint) => {
    const id = rig.device(guid);
    const device = s.WvIoDeviceAttributes.decode(rig.ioctl('DEVICE_QUERY', rig.id(id)).output);
    const input = s.WvIoDevicePortQuery.encode({ id, portNumber: 1 });
    return { device, port: s.WvIoPortAttributes.decode(rig.ioctl('DEVICE_PORT_QUERY', input).output) };
  };
  const soft = ask(ethGuid);
  assert.is(soft.device.fwVersion, 1n);
  assert.equal([soft.port.maxMtu, soft.port.activeWidth, soft.port.badPkeyCounter], [4096, 2, 0]);
  const other = ask(secondGuid);
  assert.equal(
    [other.device.nodeGuid, other.device.fwVersion, other.device.vendorId],
    [secondGuid, 7n, 0x5ec0],
  );
  assert.equal([other.port.maxMtu, other.port.activeMtu, other.port.activeWidth], [2048, 2048, 1]);
  assert.equal([other.port.badPkeyCounter, other.port.qkeyViolationCounter], [3, 4]);
});

test('a queue pair is created with the commands of its device’s HCA, in that HCA’s P_Key table', () => {
  const { rig, second } = withSecond();
  queuePairOf(rig, secondGuid);
  assert.equal([rig.hca.pds.size, rig.hca.qps.size], [0, 0]);
  const [made] = second.books.qps.values();
  assert.is(made!.parameters.pkeyTable, 77);
});

test('a device whose HCA reports changed P_Keys raises PARTITION; its HCA also reports when to scan', () => {
  const { rig, second } = withSecond();
  const device = rig.device(secondGuid);
  rig.network.reportsChanges = true;
  const notify = rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: device, data: 1 }), 4);
  second.port = { ...second.port!, pkeys: [0xffff, 0x8001] };
  second.changed!();
  expect(notify, Status.SUCCESS);
  assert.is(s.WvIoEventFlags.decode(notify.output).flags, WvEvent.PARTITION);
  assert.equal(second.devices.slice(1), [`changed ${secondGuid.toString(16)}`]);
});

test('a GUID or address that both HCAs have belongs to the first', () => {
  const { rig, second } = withSecond({ guid: ethGuid });
  assert.is(guids(rig).length, 3, 'the GUID is the software HCA’s');
  assert.equal(second.devices, []);
  const other = withSecond({ gids: [gidOfAddress('192.0.2.2'), secondGid] });
  const port = other.rig.kernel.ports.get(secondGuid)!;
  assert.equal(
    port.gids.map((gid) => addressOfGid(gid)),
    [secondAddress],
  );
  assert.is(other.rig.kernel.ports.ofGid(gidOfAddress('192.0.2.2'))!.guid, ethGuid);
  // When the first HCA releases the address, it belongs to the second.
  other.rig.network.list = other.rig.network.list.filter(({ name }) => name !== 'eth0');
  other.rig.kernel.ports.refresh(true);
  assert.is(other.rig.kernel.ports.ofGid(gidOfAddress('192.0.2.2'))!.guid, secondGuid);
  rig.network.list = rig.network.list.filter(({ name }) => name !== 'eth0');
  rig.kernel.ports.refresh(true);
  assert.equal(
    second.devices,
    [`added ${ethGuid.toString(16)}`],
    'a device of that GUID, and of the other HCA',
  );
});

// ── The user side ───────────────────────────────────────────────────────────────────────────────────────────

test('a poll of an empty ring is called with its completion queue', () => {
  const { second, provider } = winVerbs();
  const device = provider.openDevice(secondGuid);
  const cqs = [device.createCompletionQueue(16), device.createCompletionQueue(16)];
  const handles = [...second.books.cqs];
  assert.equal([handles.length, new Set(handles).size], [2, 2]);
  for (const cq of [cqs[1]!, cqs[0]!, cqs[1]!]) assert.is(cq.poll([]), 0);
  assert.equal(second.books.log, [
    `progress ${handles[1]}`,
    `progress ${handles[0]}`,
    `progress ${handles[1]}`,
  ]);
  second.books.log.length = 0;
  assert.is(cqs[0]!.peek(), 0);
  assert.equal(second.books.log, [`progress ${handles[0]}`]);
});

test('an HCA that requests doorbells is notified of every Receive, on queue pairs and on shared receive queues', () => {
  const { rig, second, provider } = winVerbs();
  const device = provider.openDevice(secondGuid);
  const cq = device.createCompletionQueue(16);
  const pd = device.allocateProtectionDomain();
  const sizes = { sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const qp = pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, type: QpType.RC, ...sizes });
  const [handle] = second.books.qps.keys();
  const { log } = second.books;
  qp.postReceive(1, []);
  qp.postReceive(2, []);
  assert.equal(log, [`receive doorbell ${handle}`, `receive doorbell ${handle}`]);
  log.length = 0;
  const srq = pd.createSharedReceiveQueue(8, 1);
  const [shared] = second.books.srqs.keys();
  srq.postReceive(3, []);
  assert.equal(log, [`receive doorbell ${(SHARED | shared!) >>> 0}`]);
  assert.equal(rig.faults, []);
});

test('an unknown library is rejected, and the error names it', () => {
  const { provider } = winVerbs();
  assert.throws(() => provider.openDevice(ethGuid), /networkdirect_uvp/);
  assert.throws(() => new UserVerbsRegistry().load('toString'), /'toString', which does not exist/);
});

// ── Handles and events ──────────────────────────────────────────────────────────────────────────────────────

test('a handle refers to different queues on different HCAs; a request that the HCA does not complete itself waits in the driver', () => {
  const { rig, second } = withSecond();
  const ours = rig.cq(rig.device(ethGuid));
  const [number] = rig.hca.cqs;
  const device = rig.device(secondGuid);
  let theirs = 0n;
  while (!second.books.cqs.has(number!)) theirs = rig.cq(device);
  const wait = (id: bigint) => rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id, data: 1 }), 0);
  const [one, two] = [wait(ours), wait(theirs)];
  assert.is(rig.hca.waiters.get(number!)?.length, 1, 'the software HCA completes its requests itself');
  assert.is(second.books.waiters.size, 0);
  const completion = { type: 'cq', cq: number!, event: CqEventType.completion } as const;
  rig.hca.events.push(completion);
  rig.events();
  expect(two, Status.PENDING);
  second.events.push(completion);
  rig.events();
  expect(two, Status.SUCCESS);
  expect(one, Status.PENDING);
  const three = wait(theirs);
  expect(rig.ioctl('CQ_CANCEL', rig.id(theirs), 0), Status.SUCCESS);
  expect(three, Status.CANCELED);
  assert.equal(rig.faults, []);
});

test('an HCA may report the failure of one device; other devices are unaffected', () => {
  const { rig, second } = withSecond();
  const [ours, theirs] = [rig.device(ethGuid), rig.device(secondGuid)];
  second.events.push({ type: 'fatal', device: secondGuid, errno: 0 });
  rig.events();
  const on = (id: bigint) => s.WvIoId.encode({ id });
  expect(rig.ioctl('PD_ALLOCATE', on(theirs)), Status.FILE_FORCED_CLOSED);
  expect(rig.ioctl('PD_ALLOCATE', on(ours)), Status.SUCCESS);
});

test('an HCA may fail as a whole: all of its devices fail permanently, and no others', () => {
  const { rig, second } = withSecond();
  const [ours, theirs] = [rig.device(ethGuid), rig.device(secondGuid)];
  const reported: number[] = [];
  rig.kernel.hcaDriver.onHcaFailed = (errno) => reported.push(errno);
  for (let times = 0; times < 2; times++) second.events.push({ type: 'fatal', device: undefined, errno: 9 });
  rig.events();
  assert.equal(reported, [9], 'one failure');
  const on = (id: bigint) => s.WvIoId.encode({ id });
  expect(rig.ioctl('PD_ALLOCATE', on(theirs)), Status.FILE_FORCED_CLOSED);
  expect(rig.ioctl('PD_ALLOCATE', on(ours)), Status.SUCCESS);
  expect(rig.ioctl('DEVICE_CLOSE', s.WvIoObject.encode({ id: theirs })), Status.SUCCESS);
  // The HCA does not recover after all users have closed it.
  const open = { guid: secondGuid };
  const { status } =
    rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode(open), s.WvIoDeviceOpen.size).answer ?? {};
  assert.is(status, Status.FILE_FORCED_CLOSED);
});

test('counters are those of all HCAs', () => {
  const { rig } = withSecond();
  rig.pd(rig.device(ethGuid));
  rig.pd(rig.device(secondGuid));
  const file = rig.open('\\\\.\\NetworkDirectCounters').answer!.information;
  const { output } = rig.control(CountersCode.QUERY, new Uint8Array(0), 65_536, file);
  const { objects, cm, devices } = JSON.parse(new TextDecoder().decode(output));
  assert.equal([objects.pd, cm.connections, devices.devices], [2, 0, 4]);
});

// ── Addresses and connections ───────────────────────────────────────────────────────────────────────────────

test('IBAT finds the second HCA’s device by its address, and the path that starts there', () => {
  const { rig } = withSecond();
  const { port, path } = ibat(rig);
  rig.network.addRoute('198.51.100.9', secondAddress, 7);
  const record = (address: string) => s.IbatPortRecord.decode(port(address).output);
  assert.equal([record(secondAddress).caGuid, record(secondAddress).portGuid], [secondGuid, secondPortGuid]);
  assert.equal([record('192.0.2.2').caGuid, record('192.0.2.2').portGuid], [ethGuid, ethGuid]);
  const found = path('198.51.100.9');
  assert.equal([addressOfGid(found.sgid), found.mtu], [secondAddress, 0x80 | 4]);
  assert.is(addressOfGid(path('192.0.2.9').sgid), '192.0.2.2');
});

test('a connection uses the HCA with its address, and moves that HCA’s queue pair', () => {
  const { rig, second } = withSecond();
  const { qp } = queuePairOf(rig, secondGuid);
  const { id, request } = connecting(rig, qp);
  assert.equal([rig.cm.connections.length, second.connections.cm.connections.length], [0, 1]);
  const [connection] = second.connections.cm.connections;
  assert.equal(connection!.parameters!.path.source, secondGid);
  connection!.events.replied!(cmReply());
  expect(request, Status.SUCCESS);
  expect(rig.accept(id, qp), Status.SUCCESS);
  assert.equal(connection!.calls, ['ready']);
  assert.is(second.books.dreqsOnExit.size, 0, 'the OS disconnects by itself');
  assert.is(rig.hca.qps.size, 0);
  expect(rig.disconnect(id), Status.PENDING);
  connection!.events.disconnectCompleted!(true);
  // A queue pair of the software HCA does not have this address.
  const softQp = queuePairOf(rig, ethGuid).qp;
  expect(connecting(rig, softQp).request, Status.INVALID_ADDRESS);
  assert.equal(rig.faults, []);
});

test('a listener at one address uses its HCA, and one at all addresses uses both; requests arrive from either HCA', () => {
  const { rig, second } = withSecond();
  const { cm } = second.connections;
  const listening = (address: string, port: number): bigint => {
    const id = rig.endpoint();
    expect(rig.bind(id, port, address), Status.SUCCESS);
    expect(rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 4n })), Status.SUCCESS);
    return id;
  };
  const own = listening(secondAddress, 6000);
  assert.equal([rig.cm.listeners.length, cm.listeners.length], [0, 1]);
  assert.equal([...second.connections.claims.values()], [6000]);

  const all = listening('0.0.0.0', 7000);
  assert.equal([rig.cm.listeners.length, cm.listeners.length], [1, 2]);
  const { accepts } = cm.listeners[1]!.parameters;
  assert.is(cm.listeners[1]!.parameters.serviceId, (connectType << 16n) | 7000n);
  assert.equal([accepts!(secondGid), accepts!(gidOfAddress('192.0.2.2'))], [true, false]);

  const [one, two, three] = [rig.endpoint(), rig.endpoint(), rig.endpoint()];
  const first = rig.getRequest(own, one);
  cm.listeners[0]!.arrive({ localAddress: secondGid });
  expect(first, Status.SUCCESS);
  assert.equal(rig.query(one).device.deviceGuid, secondGuid);
  const next = rig.getRequest(all, two);
  cm.listeners[1]!.arrive({ localAddress: secondGid });
  expect(next, Status.SUCCESS);
  assert.is(rig.query(two).device.deviceGuid, secondGuid);
  const last = rig.getRequest(all, three);
  rig.cm.listeners[0]!.arrive();
  expect(last, Status.SUCCESS);
  assert.is(rig.query(three).device.deviceGuid, ethGuid);

  expect(rig.ioctl('EP_DESTROY', rig.id(all)), Status.SUCCESS);
  assert.equal(
    [rig.cm.listeners[0]!.closed, cm.listeners[1]!.closed, cm.listeners[0]!.closed],
    [true, true, false],
  );
  assert.equal([rig.hca.claims.size, second.connections.claims.size], [0, 1]);
});

test('a port on all addresses must be free on every HCA', () => {
  const { rig, second } = withSecond();
  const { taken, claims } = second.connections;
  // The software HCA would grant these two ports next.
  taken.add(49_152).add(49_153);
  const id = rig.endpoint();
  const bound = s.WvIoEpBind.decode(rig.bind(id, 0, '0.0.0.0').output);
  assert.is(Buffer.from(bound.address.sockAddr).readUInt16BE(2), 49_154);
  assert.equal([rig.hca.claims.size, [...claims.values()]], [1, [49_154]]);
  taken.add(8000);
  const other = rig.endpoint();
  rig.bind(other, 8000, '0.0.0.0');
  expect(rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id: other })), Status.ADDRESS_ALREADY_EXISTS);
  assert.equal([rig.hca.claims.size, claims.size], [1, 1], 'the first HCA has released it');
  assert.equal(rig.cm.listeners, []);
});

// ── Removal ─────────────────────────────────────────────────────────────────────────────────────────────────

test('unplugging a device leaves those of the other HCA unaffected', () => {
  const { rig, second } = withSecond();
  const { qp } = queuePairOf(rig, secondGuid);
  const { request } = connecting(rig, qp);
  const { handle } = rig.queuePair();
  second.port = undefined;
  rig.kernel.ports.refresh(true);
  expect(request, Status.DEVICE_REMOVED);
  assert.equal(second.devices.slice(1), [`gone ${secondGuid.toString(16)}`]);
  const [theirs] = second.books.qps.values();
  assert.equal([theirs!.attributes.state, rig.qpState(handle)], [6, 0]);
  assert.not.ok(guids(rig).includes(secondGuid));
  assert.ok(guids(rig).includes(ethGuid));
  expect(ibat(rig).port(secondAddress), Status.NOT_FOUND);
  assert.is(library(rig, ethGuid), 'networkdirect_uvp\0');
  rig.close();
  assert.equal(second.devices.slice(2), [`ended ${secondGuid.toString(16)}`]);
  assert.equal([second.books.qps.size, second.books.cqs.size, second.books.pds.size], [0, 0, 0]);
});

test('unplugging a device of the software HCA leaves those of the second unaffected', () => {
  const { rig, second } = withSecond();
  const { qp } = queuePairOf(rig, secondGuid);
  const { request } = connecting(rig, qp);
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  expect(rig.control(FaultsCode.UNPLUG, s.WvIoGuid.encode({ guid: ethGuid }), 0, file), Status.SUCCESS);
  assert.ok(!guids(rig).includes(ethGuid) && guids(rig).includes(secondGuid));
  expect(request, Status.PENDING);
  assert.is(second.devices.length, 1);
});

test('the end of a kernel closes both HCAs', () => {
  const { rig, second } = withSecond();
  rig.kernel.close();
  assert.equal([rig.hca.closed, rig.cm.closed], [true, true]);
  assert.equal([second.books.closed, second.connections.cm.closed], [true, true]);
});

test.run();
