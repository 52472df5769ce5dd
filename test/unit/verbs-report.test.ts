// The report about RDMA devices, from a tree of files that replaces the OS's.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { collectReport, formatReport, type SystemRoots } from '../../nd/cli/verbs-report.js';

const noDevices = () => ({ devices: [] });

/** Creates the tree of an OS with a NIC. @returns its location; the test removes `root` */
function system(): { root: string; roots: SystemRoots; put(path: string, text: string): void } {
  const root = mkdtempSync(join(tmpdir(), 'nd-report-'));
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const nic = 'sys/class/infiniband/mlx5_0';
  put(`${nic}/fw_ver`, '16.35.2000\n');
  put(`${nic}/board_id`, 'MT_0000000012\n');
  put(`${nic}/node_guid`, '0c42:a103:0012:3456\n');
  put(`${nic}/node_type`, '1: CA\n');
  put(`${nic}/device/vendor`, '0x15b3\n');
  put(`${nic}/device/device`, '0x1017\n');
  symlinkSync('../../../bus/pci/drivers/mlx5_core', join(root, nic, 'device/driver'));
  put(`${nic}/ports/1/state`, '4: ACTIVE\n');
  put(`${nic}/ports/1/phys_state`, '5: LinkUp\n');
  put(`${nic}/ports/1/rate`, '100 Gb/sec (4X EDR)\n');
  put(`${nic}/ports/1/link_layer`, 'Ethernet\n');
  put(`${nic}/ports/1/gids/0`, 'fe80:0000:0000:0000:0e42:a1ff:fe12:3456\n');
  put(`${nic}/ports/1/gids/1`, '0000:0000:0000:0000:0000:ffff:0a01:0203\n');
  put(`${nic}/ports/1/gids/2`, '0000:0000:0000:0000:0000:0000:0000:0000\n');
  put(`${nic}/ports/1/gid_attrs/types/1`, 'RoCE v2\n');
  put(`${nic}/ports/1/gid_attrs/ndevs/1`, 'ens1f0\n');
  for (const name of ['ib_core', 'ib_uverbs', 'rdma_ucm']) put(`sys/module/${name}/refcnt`, '1\n');
  put('sys/module/ib_core/parameters/netns_mode', 'Y\n');
  put('dev/uverbs0', '');
  put('dev/rdma_cm', '');
  put('proc/self/limits', 'Max locked memory         unlimited            unlimited            bytes\n');
  put('lib/libibverbs.so.1.14.44.0', '');
  symlinkSync('libibverbs.so.1.14.44.0', join(root, 'lib/libibverbs.so.1'));
  put('lib/librdmacm.so.1', '');
  const roots = {
    sys: join(root, 'sys'),
    dev: join(root, 'dev'),
    proc: join(root, 'proc'),
    libraries: [join(root, 'lib')],
  };
  return { root, roots, put };
}

test('a report has device, driver, firmware, link, GIDs and versions, and nothing that identifies the host', () => {
  const { root, roots } = system();
  const report = collectReport('9.8.7', noDevices, roots);
  rmSync(root, { recursive: true });
  assert.equal(report.devices, [
    {
      name: 'mlx5_0',
      driver: 'mlx5_core',
      firmware: '16.35.2000',
      board: 'MT_0000000012',
      model: '',
      pci: '15b3:1017',
      nodeType: 'CA',
      guid: '0c42:a1xx:xxxx:xxxx',
      ports: [
        {
          port: 1,
          state: 'ACTIVE',
          physicalState: 'LinkUp',
          rate: '100 Gb/sec (4X EDR)',
          linkLayer: 'Ethernet',
          gids: ['0: fe80:0000:0000:0000:x', '1: RoCE v2, 10.1.x.x, ens1f0'],
        },
      ],
    },
  ]);
  assert.is(report.versions.package, '9.8.7');
  assert.is(report.versions.libibverbs, 'libibverbs.so.1.14.44.0');
  assert.ok(report.versions.kernel !== '' && report.versions.node === process.version);
  assert.equal(report.modules, ['ib_core', 'ib_uverbs', 'rdma_ucm']);
  assert.equal([report.lockedMemory, report.namespaces], ['unlimited', 'shared']);
  assert.equal(report.advice, []);
  const all = JSON.stringify(report) + formatReport(report);
  for (const secret of ['1234:3456', 'fe12', '3456', '10.1.2.3', '0a01:0203', root])
    assert.not.ok(all.includes(secret), secret);
});

test('detected problems are reported with their cures', () => {
  const { root, roots, put } = system();
  put('proc/self/limits', 'Max locked memory         65536                65536                bytes\n');
  rmSync(join(root, 'lib'), { recursive: true });
  rmSync(join(root, 'sys/module/rdma_ucm'), { recursive: true });
  rmSync(join(root, 'dev/rdma_cm'));
  const { advice } = collectReport('1', noDevices, roots);
  rmSync(join(root, 'sys/class'), { recursive: true });
  const none = collectReport('1', noDevices, roots);
  rmSync(root, { recursive: true });
  for (const word of [
    'install libibverbs1',
    'install librdmacm1',
    'modprobe rdma_ucm',
    '--device=/dev/infiniband',
  ])
    assert.is(advice.filter((sentence) => sentence.includes(word)).length, 1, word);
  assert.ok(advice.some((sentence) => sentence.includes('65536 bytes (RLIMIT_MEMLOCK)')));
  assert.ok(none.advice[0]!.includes('rdma dev set'));
});

test('a device file that this user may not open is reported', () => {
  const { root, roots } = system();
  rmSync(join(root, 'dev/uverbs0'));
  symlinkSync('nowhere', join(root, 'dev/uverbs0')); // not even root can open it
  const { files, advice } = collectReport('1', noDevices, roots);
  rmSync(root, { recursive: true });
  assert.is(files['/dev/infiniband/uverbs0'], 'no access');
  assert.ok(advice.some((sentence) => sentence.includes('uverbs0') && sentence.includes('udev')));
});

test('devices as opened by this package: only real ones, without data that identifies the host', () => {
  const { root, roots } = system();
  const gid = {
    index: 0,
    gid: 'fe80:0000:0000:0000:5054:00ff:fe12:3456',
    address: 'fe80::5054:ff:fe12:3456',
  };
  const port = {
    port: 1,
    state: 'ACTIVE',
    physicalState: 'LINK_UP',
    transport: 'RoCE v2',
    maxMtu: 4096,
    activeMtu: 1024,
    maxMessageSize: 2 ** 31,
    badPkeyCounter: 0,
    qkeyViolationCounter: 0,
    gids: [gid, { ...gid, index: 1 }],
    pkeys: ['0xffff'],
  };
  const device = {
    name: 'eth0',
    hca: 'rxe0',
    guid: '5054:00ff:fe12:3456',
    systemImageGuid: '5054:00ff:fe12:3456',
    firmware: '1.2.3',
    vendorId: 1,
    vendorPartId: 2,
    hwVersion: 3,
    atomics: 'HCA',
    limits: { maxQp: 100 },
    ports: [port],
  };
  const open = () => ({ devices: [device, { ...device, hca: 'software', name: 'lo' }] });
  const report = collectReport('1', open, roots);
  rmSync(root, { recursive: true });
  const { guid: _guid, systemImageGuid: _image, ...rest } = device;
  assert.equal(report.opened, [{ ...rest, ports: [{ ...port, gids: 2 }] }]);
  assert.is(report.failure, undefined);
  const all = JSON.stringify(report) + formatReport(report);
  for (const secret of ['fe12', '5054', '3456']) assert.not.ok(all.includes(secret), secret);
  assert.ok(formatReport(report).includes('rxe0'));
});

test('if devices cannot be opened, the report contains the reason', () => {
  const { root, roots } = system();
  const { failure, opened } = collectReport(
    '1',
    () => {
      throw new Error('no RDMA device can be used');
    },
    roots,
  );
  rmSync(root, { recursive: true });
  assert.is(failure, 'no RDMA device can be used');
  assert.equal(opened, []);
});

test.run();
