// `nd verbs-info` as users run it, compared with the interfaces as the OS reports them.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { addressOfGid, readInterfaces } from '../../kernel-bridge/index.js';
import type { VerbsInfo } from '../../nd/cli/verbs-info.js';
import { openProvider } from '../../winverbs/index.js';
import { ND } from '../helpers/nd-tool.js';
import { long } from '../helpers/tiers.js';

const addon = loadAddon();

function nd(...args: string[]) {
  return spawnSync(process.execPath, [ND, 'verbs-info', ...args], { encoding: 'utf8' });
}

function json(...args: string[]): VerbsInfo {
  const { status, stdout, stderr } = nd('--json', ...args);
  assert.is(status, 0, stderr);
  return JSON.parse(stdout) as VerbsInfo;
}

test('every interface of the host is a device, with its addresses as GIDs and its numbers as the OS reports them', () => {
  const { devices, counters } = json();
  assert.is(counters, undefined);
  for (const { name, mtu, up, running, addresses } of addon.interfaces()) {
    const device = devices.find((one) => one.name === name);
    assert.ok(device, name);
    const [port] = device!.ports;
    assert.equal(
      port!.gids.map(({ address }) => address).sort(),
      addresses.map(({ gid }) => addressOfGid(gid)).sort(),
    );
    assert.ok(port!.activeMtu <= mtu && port!.activeMtu <= port!.maxMtu);
    assert.ok(port!.activeMtu * 2 > mtu - 80 || port!.activeMtu === port!.maxMtu);
    const state = up && running ? ['ACTIVE', 'LINK_UP'] : ['DOWN', 'DISABLED'];
    assert.equal([port!.state, port!.physicalState, port!.transport], [...state, 'RoCE v2']);
    assert.equal(port!.pkeys, ['0xffff']);
  }
  const loopback = devices.find(({ name }) => name === 'lo')!;
  const local = loopback.ports[0]!.gids.find(({ address }) => address === '127.0.0.1')!;
  assert.is(local.gid, '0000:0000:0000:0000:0000:ffff:7f00:0001');
});

long(test, 'limits are those of the device; a device is chosen by name or by GUID in any spelling', () => {
  using provider = openProvider();
  const guid = provider.translateAddress('127.0.0.1').deviceGuid;
  const found = readInterfaces().find((one) => one.guid === guid)!;
  assert.equal(
    [found.name, found.index],
    ['lo', addon.interfaces().find(({ name }) => name === 'lo')?.index],
  );
  const attributes = provider.queryDevice(guid);
  const byName = json('--device', 'lo').devices;
  assert.is(byName.length, 1);
  const { limits } = byName[0]!;
  assert.equal(
    [limits.maxQp, limits.maxSge, limits.maxInlineSend, limits.maxMrSize, limits.localAckDelay],
    [
      attributes.maxQp,
      attributes.maxSge,
      attributes.maxInlineSend,
      attributes.maxMrSize.toString(),
      attributes.localAckDelay,
    ],
  );
  const digits = guid.toString(16).padStart(16, '0');
  for (const spelling of [`0x${digits.toUpperCase()}`, byName[0]!.guid]) {
    assert.equal(json('--device', spelling).devices, byName);
  }
});

long(test, 'counters are reported on request', () => {
  const { counters } = json('--counters');
  assert.is(counters!.objects.qp, 0);
  for (const name of ['sent_pkts', 'ack_timeout', 'rx_icrc_errors'])
    assert.type(counters!.hca[name], 'number');
  assert.is(counters!.cm.connections, 0);
  // The file of the provider, and the one of this query.
  assert.is(counters!.io.openFiles, 2);
});

test('the output is readable by default; an unknown device is an error of one sentence', () => {
  const { status, stdout } = nd('--device', 'lo', '--counters');
  assert.is(status, 0);
  for (const line of [
    /^device lo$/m,
    /^ {2}maxQp: +\d+$/m,
    /^ {4}state: +ACTIVE$/m,
    /^ {4}GID\[\d+\]: +0000:.*7f00:0001 {2}127\.0\.0\.1$/m,
    /^ {4}P_Key\[0\]: +0xffff$/m,
    /^counters hca\n {2}sent_pkts: +\d+$/m,
  ]) {
    assert.match(stdout, line);
  }
  const [brief, long] = [nd('--device', 'lo'), nd('--device', 'lo', '-v')];
  assert.match(
    brief.stdout,
    /^lo {2}software HCA {2}GUID [\da-f:]{19}\n {2}port 1 {2}ACTIVE .*127\.0\.0\.1.*\n$/,
  );
  assert.match(long.stdout, /maxQpWr: +\d+/);
  const missing = nd('--device', 'nothing0');
  assert.equal([missing.status, missing.stdout], [1, '']);
  assert.match(missing.stderr, /^nd: No device has the name or GUID 'nothing0'\. Available: .*\blo\b/);
});

test.run();
