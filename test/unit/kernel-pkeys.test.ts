// P_Key tables in the kernel: options, the HCA's tables, the ports' attributes, and the entry of a connection.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { managementPkey, pkeyIndexFor, pkeysFit } from '../../kernel-bridge/kernel/hca-driver/pkeys.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import { ethGuid, hostInterface, KernelRig } from '../helpers/kernel-rig.js';

test('members of a partition may communicate if at least one is a full member', () => {
  assert.ok(pkeysFit(0x8001, 0x8001) && pkeysFit(0x8001, 1) && pkeysFit(1, 0x8001));
  assert.not.ok(
    pkeysFit(1, 1) || pkeysFit(0x8001, 0x8002) || pkeysFit(0x8000, 0x8000) || pkeysFit(0, 0x8000),
  );
});

test('an entry for a peer: a full membership first, none if there is no common partition', () => {
  assert.is(pkeyIndexFor([0xffff, 1, 0x8001], 0x8001), 2);
  assert.is(pkeyIndexFor([0xffff, 1], 0x8001), 1);
  assert.is(pkeyIndexFor([0xffff, 1], 1), -1);
  assert.is(pkeyIndexFor([0xffff], 0x8001), -1);
});

test('management datagrams use the default partition, or the requested one if the port does not belong to it', () => {
  assert.is(managementPkey([0x8001, 0x7fff, 0xffff], 0x8001), 0xffff);
  assert.is(managementPkey([0x8001, 0x7fff], 0x8001), 0x7fff);
  assert.is(managementPkey([0x8001, 2], 0x8002), 2);
  assert.is(managementPkey([0x8001, 2], 0x8003), 0x8001);
  assert.is(managementPkey([0x8001, 2], undefined), 0x8001);
  assert.is(managementPkey([], undefined), 0xffff);
});

test('options: one list for all interfaces or one for each; errors for invalid ones name them', () => {
  assert.equal(kernelOptionsSchema.parse({}).pkeys, [0xffff]);
  assert.equal(resolveKernelOptions({ pkeys: { eth0: [1] } }).pkeys, { eth0: [1] });
  const wrong = [
    [],
    [0],
    [0x8000],
    [-1],
    [0x1_0000],
    [1, 1],
    [1.5],
    Array.from({ length: 65 }, (_, n) => n + 1),
    { eth0: [0] },
    { eth0: 1 },
    'x',
  ];
  for (const pkeys of wrong) {
    assert.throws(() => resolveKernelOptions({ pkeys } as never), /`pkeys.*must be 1 to 64 P_Keys/);
  }
});

const port = (id: bigint) => s.WvIoDevicePortQuery.encode({ id, portNumber: 1 });
const ethTable = (rig: KernelRig) => [...rig.hca.pkeyTables].find(([, { pkeys }]) => pkeys.length === 2)!;

test('every port has a table with its P_Keys and addresses; queue pairs use it; it is removed with its HCA', () => {
  const rig = new KernelRig({ pkeys: { eth0: [0x8001, 0x7fff] } });
  assert.is(rig.hca.pkeyTables.size, rig.kernel.ports.all().length);
  const [handle, table] = ethTable(rig);
  assert.equal(table.pkeys, [0x8001, 0x7fff]);
  assert.is(table.gids.length, 3);
  const others = [...rig.hca.pkeyTables.values()].filter((one) => one !== table);
  for (const { pkeys } of others) assert.equal(pkeys, [0xffff]);

  rig.queuePair();
  assert.is([...rig.hca.qps.values()][0]!.parameters.pkeyTable, handle);
  rig.network.list[2] = hostInterface('eth0', 4, ['192.0.2.3/24']);
  rig.kernel.ports.refresh(true);
  assert.is(ethTable(rig)[1].gids.length, 1, 'MADs for an address that is gone are no longer its own');

  rig.network.list.splice(2, 1);
  rig.kernel.ports.refresh(true);
  assert.ok(rig.hca.pkeyTables.has(handle), 'its queue pair is still there');
  assert.equal(rig.hca.pkeyTables.get(handle)!.gids, []);
  rig.close();
  assert.not.ok(rig.hca.pkeyTables.has(handle));
  assert.equal(rig.faults, []);
});

test('DEVICE_PKEY_QUERY, port attributes, their counters and IBAT report the table', () => {
  const rig = new KernelRig({ pkeys: { eth0: [0x8001, 0x7fff] } });
  const id = rig.device();
  Object.assign(ethTable(rig)[1], { badPkeys: 7, badQkeys: 2 ** 33 });
  const listed = rig.ioctl('DEVICE_PKEY_QUERY', port(id), 64);
  assert.equal(s.WvPkeyList.decode(listed.output), [0x8001, 0x7fff]);
  const attributes = s.WvIoPortAttributes.decode(rig.ioctl('DEVICE_PORT_QUERY', port(id)).output);
  assert.equal(
    [attributes.pkeyTableLength, attributes.badPkeyCounter, attributes.qkeyViolationCounter],
    [2, 7, 0xffff_ffff],
  );
  assert.equal(rig.kernel.ports.get(ethGuid)!.pkeys, [0x8001, 0x7fff]);
});

test('a route is in a partition of its port; Connect passes the P_Key to the CM, and the queue pair gets the index', () => {
  const rig = new KernelRig({ pkeys: [0xffff, 0x8001, 0x0002] });
  const { qp } = rig.queuePair();
  const id = rig.endpoint();
  rig.bind(id);
  assert.is(rig.route(id, { pkey: 0x8009 }).status, Status.INVALID_PARAMETER);
  assert.is(rig.route(id, { pkey: 0x0002 }).status, Status.SUCCESS);
  assert.is(rig.connect(id, qp).status, Status.PENDING);
  assert.is(rig.cm.connections[0]!.parameters!.path.pkey, 0x0002);
});

test('Accept uses the entry that matches the request; if none matches any more, it is rejected before any action', () => {
  const rig = new KernelRig({ pkeys: [0xffff, 0x0001, 0x8001] });
  const { qp, handle } = rig.queuePair();
  const { id: listener, control } = rig.listener();
  const [good, bad] = [rig.endpoint(), rig.endpoint()];
  rig.getRequest(listener, bad);
  control.arrive({ pkey: 0x8007 });
  assert.is(rig.accept(bad, qp).status, Status.INVALID_ADDRESS);
  assert.is(rig.qpState(handle), 0);
  rig.getRequest(listener, good);
  control.arrive({ pkey: 0x0001 });
  assert.is(rig.accept(good, qp).status, Status.PENDING);
  assert.is(rig.hca.qps.get(handle)!.attributes.pkeyIndex, 2);
  assert.equal(rig.faults, []);
});

test.run();
