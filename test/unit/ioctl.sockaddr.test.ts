import { isIPv4 as isIPv4OfNode, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  addressOfGid,
  decodeOptionalSockaddr,
  decodeSockaddr,
  encodeSockaddr,
  formatSocketAddress,
  gidOfAddress,
  gidOfSockaddr,
  parseSocketAddress,
  Status,
  StatusError,
  scopeIdOfAddress,
  sharedGid,
  sockaddrData,
  sockaddrOfGid,
} from '../../kernel-bridge/ioctl/index.js';
import { isIPv4 } from '../../kernel-bridge/ioctl/sockaddr.js';
import { throwsStatus } from '../helpers/outcome.js';

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

test('IPv4 is family 2, port and address in network order, the rest zero', () => {
  assert.is(
    hex(encodeSockaddr({ family: 4, address: '192.0.2.1', port: 0x1234 })),
    `02001234c0000201${'00'.repeat(20)}`,
  );
  assert.is(
    hex(encodeSockaddr({ family: 4, address: '255.255.255.255', port: 65535 })).slice(0, 16),
    '0200ffffffffffff',
  );
});

test('IPv6 is family 23 with flow information, address and scope', () => {
  assert.is(
    hex(encodeSockaddr({ family: 6, address: 'fe80::1:2%7', port: 4791 })),
    '170012b700000000fe80000000000000000000000001000207000000',
  );
});

test('encoded addresses decode to the same address', () => {
  const port = fc.integer({ min: 0, max: 65535 });
  fc.assert(
    fc.property(fc.ipV4(), port, (address, p) => {
      const value = { family: 4, address, port: p } as const;
      assert.equal(decodeSockaddr(encodeSockaddr(value)), value);
      assert.equal(parseSocketAddress(formatSocketAddress(value)), value);
      assert.is(addressOfGid(gidOfAddress(address)), address);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.nat(), port, (gid, scope, p) => {
      const address = addressOfGid(gid, scope);
      assert.equal(gidOfAddress(address), gid);
      if (!address.includes(':')) return;
      assert.ok(isIPv6(address), address);
      assert.is(scopeIdOfAddress(address), scope);
      const value = { family: 6, address, port: p } as const;
      assert.equal(decodeSockaddr(encodeSockaddr(value)), value);
      assert.equal(parseSocketAddress(formatSocketAddress(value)), value);
    }),
  );
});

test('IPv6 text is parsed like by the platform', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV6(), fc.stringMatching(/^[0-9a-f:.]{0,24}$/)), (text) => {
      const ours = ((): string | undefined => {
        try {
          return addressOfGid(gidOfAddress(text));
        } catch {
          return undefined;
        }
      })();
      if (!isIPv6(text)) return; // IPv4 and invalid texts are tested below
      const theirs = new URL(`http://[${text}]/`).hostname.slice(1, -1);
      assert.ok(ours !== undefined, text);
      assert.equal(gidOfAddress(theirs), gidOfAddress(text), text);
      if (!ours.includes('.')) assert.is(ours, theirs);
    }),
    { numRuns: 2000 },
  );
});

test('invalid IPv6 text is refused exactly when the platform refuses it', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9a-f:.]{0,16}$/), (text) => {
      const accepted = ((): boolean => {
        try {
          encodeSockaddr({ family: 6, address: text, port: 0 });
          return true;
        } catch (error) {
          assert.is((error as StatusError).status, Status.INVALID_ADDRESS);
          return false;
        }
      })();
      assert.is(accepted, isIPv6(text), text);
    }),
    { numRuns: 5000 },
  );
  for (const text of [
    '::',
    '1::',
    '::1',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
    '1:2:3:4:5:6:1.2.3.4',
    '::1.2.3.4',
  ]) {
    assert.ok(isIPv6(text));
    assert.is(gidOfAddress(text).length, 16, text);
  }
  const wrong = [
    '',
    ':',
    ':::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '1.2.3.4::',
    '::1.2.3',
    '1:2:3:4:5:6:7:1.2.3.4',
    '::12345',
    '::g',
    '1:2:3:4::5:6:7:8',
    ' ::1',
    '[::1]',
  ];
  for (const text of wrong) {
    assert.not.ok(isIPv6(text), text);
    throwsStatus(
      () => encodeSockaddr({ family: 6, address: text, port: 0 }),
      Status.INVALID_ADDRESS,
      /not a valid address/,
    );
  }
});

test('IPv6 text is formatted in canonical form', () => {
  const cases: [string, string][] = [
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['1:0:0:0:0:0:0:0', '1::'],
    ['::ffff:c000:201', '::ffff:192.0.2.1'],
  ];
  for (const [text, canonical] of cases) assert.is(parseSocketAddress(text).address, canonical);
});

test('IPv4 as a GID is mapped', () => {
  assert.is(hex(gidOfAddress('192.0.2.33')), '00000000000000000000ffffc0000221');
  assert.is(addressOfGid(gidOfAddress('::ffff:192.0.2.33')), '192.0.2.33');
  assert.is(addressOfGid(gidOfAddress('fe80::1%5')), 'fe80::1');
  throwsStatus(
    () => addressOfGid(new Uint8Array(15)),
    Status.INVALID_PARAMETER,
    /must have 16 bytes; got 15/,
  );
});

test('a scope may be the name of an existing interface', () => {
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    const linkLocal = entries?.find((entry) => entry.family === 'IPv6' && entry.scopeid > 0);
    if (linkLocal?.family !== 'IPv6') continue;
    assert.is(scopeIdOfAddress(`fe80::1%${name}`), linkLocal.scopeid);
  }
  for (const scope of ['no-such-if', 'constructor', '__proto__', '', '4294967296', '-1']) {
    throwsStatus(() => gidOfAddress(`fe80::1%${scope}`), Status.INVALID_ADDRESS, /interface/);
  }
  throwsStatus(() => gidOfAddress('fe80::1%1%2'), Status.INVALID_ADDRESS, /not a valid address/);
});

test('text with and without a port is parsed', () => {
  const cases: [string, ReturnType<typeof parseSocketAddress>][] = [
    ['1.2.3.4:5', { family: 4, address: '1.2.3.4', port: 5 }],
    ['1.2.3.4', { family: 4, address: '1.2.3.4', port: 77 }],
    ['[::1]:65535', { family: 6, address: '::1', port: 65535 }],
    ['[::1]', { family: 6, address: '::1', port: 77 }],
    ['::1', { family: 6, address: '::1', port: 77 }],
    ['[fe80::1%3]:9', { family: 6, address: 'fe80::1%3', port: 9 }],
    ['[::ffff:1.2.3.4]:9', { family: 6, address: '::ffff:1.2.3.4', port: 9 }],
  ];
  for (const [text, value] of cases) assert.equal(parseSocketAddress(text, 77), value);
  assert.is(parseSocketAddress('1.2.3.4').port, 0);
});

test('invalid addresses are refused with an explanation', () => {
  for (const text of [
    '',
    'localhost',
    'localhost:5',
    '1.2.3:5',
    '1.2.3.4:',
    '1.2.3.4:x',
    '[1.2.3.4]:5',
    '[::1',
    '::1]:5',
  ]) {
    throwsStatus(() => parseSocketAddress(text), Status.INVALID_ADDRESS, /not a valid address/);
  }
  for (const text of ['1.2.3.4:65536', '[::1]:99999']) {
    throwsStatus(
      () => parseSocketAddress(text),
      Status.INVALID_PARAMETER,
      /must be an integer from 0 to 65535/,
    );
  }
  throwsStatus(
    () => parseSocketAddress(undefined as never),
    Status.INVALID_ADDRESS,
    /must be a string; got undefined/,
  );
});

test('addresses with a wrong family or port are refused', () => {
  const bad = Status.INVALID_ADDRESS;
  throwsStatus(() => encodeSockaddr({ family: 4, address: '::1', port: 0 }), bad, /'::1'.*four numbers/);
  throwsStatus(() => encodeSockaddr({ family: 6, address: '1.2.3.4', port: 0 }), bad, /1\.2\.3\.4/);
  throwsStatus(() => encodeSockaddr({ family: 4, address: '256.1.1.1', port: 0 }), bad, /256/);
  throwsStatus(() => encodeSockaddr({ family: 5 as never, address: '1.2.3.4', port: 0 }), bad, /family 5/);
  throwsStatus(
    () => encodeSockaddr({ family: 6, address: undefined as never, port: 0 }),
    bad,
    /must be a string; got undefined/,
  );
  for (const port of [-1, 65536, 1.5, Number.NaN, '80' as never]) {
    throwsStatus(
      () => encodeSockaddr({ family: 4, address: '1.2.3.4', port }),
      Status.INVALID_PARAMETER,
      /port/,
    );
  }
});

test('any bytes decode to an address or end in a status', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0, 2, 23, 0x217), (bytes, family) => {
      if (bytes.length > 1) bytes.set([family & 0xff, family >> 8]);
      try {
        const address = decodeSockaddr(bytes);
        assert.ok(address.family === 4 || address.family === 6);
        assert.equal(decodeSockaddr(encodeSockaddr(address)), address);
      } catch (error) {
        assert.instance(error, StatusError);
        const short = bytes.length < (family === 23 ? 28 : 16);
        assert.is((error as StatusError).status, short ? Status.BUFFER_TOO_SMALL : Status.INVALID_ADDRESS);
      }
    }),
  );
});

test('conversion between sockaddrs and GIDs matches conversion through text', () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const v4 = fc
    .tuple(octet, octet, octet, octet)
    .map((all) => ({ family: 4, address: all.join('.') }) as const);
  const v6 = fc
    .tuple(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.constantFrom(0, 7))
    .map(([gid, scopeId]) => ({ family: 6, address: addressOfGid(gid, scopeId) }) as const)
    .filter(({ address }) => isIPv6(address.replace(/%.*/, '')));
  fc.assert(
    fc.property(fc.oneof(v4, v6), fc.integer({ min: 0, max: 65_535 }), (where, port) => {
      const bytes = encodeSockaddr({ ...where, port });
      const found = gidOfSockaddr(bytes);
      const byText = { gid: gidOfAddress(where.address), port, scopeId: scopeIdOfAddress(where.address) };
      assert.equal(found, byText);
      assert.equal(sockaddrOfGid(found.gid, found.port, found.scopeId), bytes);
    }),
  );
  throwsStatus(() => gidOfSockaddr(new Uint8Array(28)), Status.INVALID_ADDRESS, /family must be .*; got 0/);
  throwsStatus(() => gidOfSockaddr(new Uint8Array(3)), Status.BUFFER_TOO_SMALL, /needs 16 bytes/);
});

test('equal GIDs are shared, and are not affected by changes of their source', () => {
  const given = gidOfAddress('192.0.2.7');
  const kept = sharedGid(given);
  assert.equal(kept, gidOfAddress('192.0.2.7'));
  given[15] = 8;
  assert.equal(kept, gidOfAddress('192.0.2.7'));
  assert.is(sharedGid(gidOfAddress('192.0.2.7')), kept);
  for (let last = 0; last < 40; last++) {
    const one = gidOfAddress(`198.51.100.${last}`);
    assert.equal(sharedGid(one), one);
    assert.is(sharedGid(one.slice()), sharedGid(one));
  }
  assert.equal(sharedGid(gidOfAddress('192.0.2.7')), kept);
});

test('IPv4 text is accepted as by Node.js', () => {
  const part = fc.oneof(
    { weight: 8, arbitrary: fc.nat(300).map(String) },
    fc.constantFrom('', '00', '01', '256', '1e1', '+1', ' 1', '1\n', '٣', '-1'),
  );
  const text = fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => parts.join('.'));
  const whole = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((parts) => parts.join('.'));
  for (const strings of [text, whole, fc.string()]) {
    fc.assert(
      fc.property(strings, (one) => isIPv4(one) === isIPv4OfNode(one)),
      { numRuns: 2000 },
    );
  }
});

test('a missing address is 28 zero bytes', () => {
  assert.equal(sockaddrData(undefined).sockAddr, new Uint8Array(28));
  assert.is(decodeOptionalSockaddr(sockaddrData(undefined).sockAddr), undefined);
  const address = { family: 4, address: '1.2.3.4', port: 5 } as const;
  assert.equal(decodeOptionalSockaddr(sockaddrData(address).sockAddr), address);
  throwsStatus(() => decodeSockaddr(new Uint8Array(28)), Status.INVALID_ADDRESS, /family must be .*; got 0/);
});

test.run();
