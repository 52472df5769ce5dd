import { networkInterfaces } from 'node:os';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { addon } from '../../kernel-bridge/hca/index.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';

test('the addon lists at least what Node lists, and agrees with it', () => {
  const all = addon.interfaces();
  assert.ok(all.length > 0);
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    const found = all.find((one) => one.name === name);
    assert.ok(found, `${name} is listed`);
    assert.ok(found.up && found.mtu > 0 && found.index > 0);
    for (const entry of entries ?? []) {
      const gid = gidOfAddress(entry.address);
      const address = found.addresses.find((one) => Buffer.compare(one.gid, gid) === 0);
      assert.ok(address, `${entry.address} is listed`);
      assert.is(`IPv${address.family}`, entry.family);
      assert.is(address.prefixLength, Number(entry.cidr?.split('/')[1]));
      assert.is(address.scopeId, entry.scopeid ?? 0);
      assert.is(Buffer.from(found.mac).toString('hex'), entry.mac.replaceAll(':', ''));
    }
  }
});

test.run();
