import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as ioctl from '../../kernel-bridge/ioctl/index.js';
import {
  type AnyStruct,
  bytes,
  Status,
  struct,
  u8,
  u16,
  u32,
  union,
} from '../../kernel-bridge/ioctl/index.js';
import { layouts } from '../fixtures/ioctl-layouts.js';
import { throwsStatus } from '../helpers/outcome.js';

function isStruct(value: unknown): value is AnyStruct {
  return typeof value === 'object' && value !== null && 'fields' in value && 'encode' in value;
}

const structs = (Object.values(ioctl) as unknown[]).filter(isStruct);
const byName = new Map(structs.map((one) => [one.name, one]));

interface ExpectedField {
  offset: number;
  type: string;
  name: string;
}

function expectedFields(name: string): ExpectedField[] {
  return layouts[name]!.fields.split('·').map((text) => {
    const [offset, type, field] = text.trim().split(' ');
    return { offset: Number(offset), type: type!, name: field! };
  });
}

function sizeOfType(type: string): number {
  const bracket = /\[(\d+)\]$/.exec(type);
  if (bracket) return Number(bracket[1]);
  const bits = /^u(\d+)(be)?$/.exec(type);
  return bits ? Number(bits[1]) / 8 : layouts[type]!.size;
}

/** Encodes a value whose type is known only to the table. */
function encode(one: AnyStruct, value: unknown): Uint8Array {
  return one.encode(value as never);
}

test('the library has exactly the structures of the interface', () => {
  assert.equal([...byName.keys()].sort(), Object.keys(layouts).sort());
});

for (const [name, { size }] of Object.entries(layouts)) {
  test(`${name}: size, offsets, types and names`, () => {
    const one = byName.get(name)!;
    assert.is(one.size, size);
    const actual = one.fields.map((field) => {
      const type = field.reserved ? `pad[${field.size}]` : field.type;
      return `${field.offset} ${type} ${field.name}`;
    });
    assert.equal(
      actual,
      expectedFields(name).map((field) => `${field.offset} ${field.type} ${field.name}`),
    );
    for (const [i, field] of expectedFields(name).entries()) {
      assert.is(one.fields[i]!.size, sizeOfType(field.type), field.name);
    }
  });

  test(`${name}: fields are contiguous and fill the structure`, () => {
    const one = byName.get(name)!;
    if (name === 'WV_IO_EP_ATTRIBUTES.Param') return; // a union
    let end = 0;
    for (const field of one.fields) {
      assert.is(field.offset, end, field.name);
      end += field.size;
    }
    assert.is(end, one.size);
  });

  test(`${name}: every integer has its offset and byte order`, () => {
    const one = byName.get(name)!;
    for (const field of expectedFields(name)) {
      const match = /^u(8|16|32|64)(be)?$/.exec(field.type);
      if (!match) continue;
      const width = Number(match[1]) / 8;
      const bigEndianBytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8].slice(0, width);
      const number = BigInt(`0x${Buffer.from(bigEndianBytes).toString('hex')}`);
      const key = one.fields.find((info) => info.name === field.name)!.key;
      const expected = new Uint8Array(one.size);
      expected.set(match[2] ? bigEndianBytes : bigEndianBytes.toReversed(), field.offset);
      const value = width === 8 ? number : Number(number);
      assert.equal(encode(one, { [key]: value }), expected, field.name);
      assert.equal((one.decode(expected) as Record<string, unknown>)[key], value, field.name);
    }
  });

  test(`${name}: a decoded value encodes to the same bytes, with zeroed padding, and decodes to the same value`, () => {
    const one = byName.get(name)!;
    fc.assert(
      fc.property(fc.uint8Array({ minLength: size, maxLength: size }), (bytes) => {
        const again = encode(one, one.decode(bytes));
        const masked = bytes.slice();
        for (const range of padRanges(name, 0)) masked.fill(0, range.start, range.end);
        assert.equal(again, masked);
        assert.equal(one.decode(again), one.decode(bytes));
      }),
      { numRuns: 50 },
    );
  });

  test(`${name}: shorter input or output is BUFFER_TOO_SMALL, and nothing is written`, () => {
    const one = byName.get(name)!;
    for (let length = 0; length < size; length++) {
      const out = new Uint8Array(length).fill(0xee);
      throwsStatus(() => one.decode(new Uint8Array(length)), Status.BUFFER_TOO_SMALL);
      throwsStatus(() => one.encode({} as never, out), Status.BUFFER_TOO_SMALL);
      assert.ok(out.every((byte) => byte === 0xee));
      // The bytes after the view do not belong to the view.
      const view = new Uint8Array(new ArrayBuffer(4096), 8, length);
      throwsStatus(() => one.decode(view), Status.BUFFER_TOO_SMALL);
    }
    throwsStatus(() => one.decode(new Uint8Array(size + 8), 9), Status.BUFFER_TOO_SMALL);
    throwsStatus(() => one.decode(new Uint8Array(size), -1), Status.INVALID_PARAMETER);
    throwsStatus(() => one.decode(new Uint8Array(size), 0.5), Status.INVALID_PARAMETER);
  });

  test(`${name}: omitted fields are zero, and old bytes are overwritten`, () => {
    const one = byName.get(name)!;
    const out = new Uint8Array(size + 7).fill(0xee);
    one.encode({} as never, out, 4);
    assert.ok(out.subarray(4, 4 + size).every((byte) => byte === 0));
    assert.ok(out.subarray(0, 4).every((byte) => byte === 0xee));
    assert.ok(out.subarray(4 + size).every((byte) => byte === 0xee));
    assert.equal(one.decode(new Uint8Array(size)), one.zero());
    assert.equal(encode(one, one.zero()), new Uint8Array(size));
  });
}

/** The padding of a structure, including that of its members, according to the expected layouts. */
function padRanges(name: string, base: number): { start: number; end: number }[] {
  return expectedFields(name).flatMap((field) => {
    const start = base + field.offset;
    if (field.type.startsWith('pad[')) return [{ start, end: start + sizeOfType(field.type) }];
    return field.type in layouts ? padRanges(field.type, start) : [];
  });
}

test('random values survive encoding and decoding', () => {
  const u32s = fc.integer({ min: 0, max: 0xffff_ffff });
  const u64s = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(
      u64s,
      u64s,
      u32s,
      fc.uint8Array({ minLength: 56, maxLength: 56 }),
      (id, qpId, small, data) => {
        const sockAddr = data.slice(0, 28);
        const value = {
          id,
          qpId,
          peerAddress: { sockAddr },
          param: {
            responderResources: id,
            initiatorDepth: qpId,
            retryCount: small & 0xff,
            rnrRetryCount: small >>> 24,
            dataLength: 56,
            data,
          },
        };
        assert.equal(ioctl.WvIoEpConnect.decode(ioctl.WvIoEpConnect.encode(value)), value);
      },
    ),
  );
});

test('values that do not fit in a field are rejected with field, value and range', () => {
  const cases: [() => unknown, RegExp][] = [
    [
      () => ioctl.WvIoId.encode({ data: -1 }),
      /^WV_IO_ID\.Data must be an integer from 0 to 4294967295; got -1$/,
    ],
    [() => ioctl.WvIoId.encode({ data: 2 ** 32 }), /4294967296/],
    [() => ioctl.WvIoId.encode({ data: 1.5 }), /1\.5/],
    [() => ioctl.WvIoId.encode({ data: Number.NaN }), /NaN/],
    [() => ioctl.WvIoId.encode({ id: -1n }), /^WV_IO_ID\.Id must be .*; got -1/],
    [() => ioctl.WvIoId.encode({ id: 2n ** 64n }), /18446744073709551616/],
    [() => ioctl.WvIoId.encode({ id: 7 as never }), /Id must be a bigint .*; got 7/],
    [
      () => ioctl.WvIoEpAccept.encode({ param: { retryCount: 256 } }),
      /WV_IO_EP_ACCEPT\.Param\.RetryCount must be .*; got 256/,
    ],
    [
      () => ioctl.WvIoConnectParam.encode({ data: new Uint8Array(57) }),
      /Data must be at most 56 bytes; got 57 bytes/,
    ],
    [() => ioctl.WvIoConnectParam.encode({ data: 'text' as never }), /Uint8Array/],
    [() => ioctl.WvIoEpAccept.encode({ param: 5 as never }), /Param must be an object .*; got 5/],
    [() => ioctl.WvIoEpAccept.encode(null as never), /null/],
  ];
  for (const [action, message] of cases) {
    throwsStatus(action, Status.INVALID_PARAMETER);
    assert.throws(action, message);
  }
});

test('bytes fields accept fewer bytes than their size, and decoded bytes are copies', () => {
  const bytes = ioctl.WvIoConnectParam.encode(
    { data: new Uint8Array([1, 2, 3]) },
    new Uint8Array(80).fill(0xff),
  );
  assert.equal(bytes.subarray(24), new Uint8Array([1, 2, 3, ...new Array(53).fill(0)]));
  for (const input of [bytes, Buffer.from(bytes)]) {
    const { data } = ioctl.WvIoConnectParam.decode(input);
    input.fill(0xaa);
    assert.equal(data.subarray(0, 4), new Uint8Array([1, 2, 3, 0]));
    assert.is(data.constructor, Uint8Array);
  }
});

test('encodeOnce() overwrites all bytes of the previous request', () => {
  const Sample = struct('SAMPLE', { Number: u32, Bytes: bytes(12) });
  const first = Sample.encodeOnce({ number: 7, bytes: new Uint8Array(12).fill(9) });
  assert.equal(first, Sample.encode({ number: 7, bytes: new Uint8Array(12).fill(9) }));
  const second = Sample.encodeOnce({ number: 1 });
  assert.equal(second, Sample.encode({ number: 1 }));
  assert.is(second, first, 'the same bytes');
});

test('encoded bytes and decoded values are not changed by later calls', () => {
  const Sample = struct('SAMPLE', { Number: u32, Bytes: bytes(12) });
  const value = { number: 7, bytes: new Uint8Array(12).fill(9) };
  const other = { number: 1, bytes: new Uint8Array(12).fill(2) };
  const encoded = Sample.encode(value);
  const decoded = Sample.decode(encoded);
  Sample.decode(Sample.encode(other));
  assert.equal(decoded, value);
  assert.equal(Sample.decode(encoded), value);
});

test('long structures and long inputs are handled like short ones', () => {
  const Long = struct('LONG', { Number: u32, Bytes: bytes(2000) });
  const value = { number: 7, bytes: new Uint8Array(2000).fill(9) };
  assert.equal(Long.decode(Long.encode(value)), value);
  const Short = struct('SHORT', { Number: u32 });
  const room = new Uint8Array(3000).fill(5);
  for (const length of [4, 1024, 1025, 3000]) {
    const part = room.slice(0, length);
    assert.is(Short.encode({ number: 0x0102_0304 }, part), part);
    assert.equal(Short.decode(part), { number: 0x0102_0304 }, `${length}`);
    assert.equal(part.slice(0, 8), Uint8Array.of(4, 3, 2, 1, 5, 5, 5, 5).slice(0, length), `${length}`);
  }
});

test('decoding reads the given view, not its whole buffer', () => {
  const whole = new Uint8Array(64).fill(0xff);
  whole.set(ioctl.WvIoId.encode({ id: 0x0102030405060708n, verbInfo: 9, data: 10 }), 24);
  assert.equal(ioctl.WvIoId.decode(whole.subarray(24)), { id: 0x0102030405060708n, verbInfo: 9, data: 10 });
  assert.equal(ioctl.WvIoId.decode(whole, 24), { id: 0x0102030405060708n, verbInfo: 9, data: 10 });
  const shared = new Uint8Array(new SharedArrayBuffer(16));
  ioctl.WvIoId.encode({ id: 3n }, shared);
  assert.is(ioctl.WvIoId.decode(shared).id, 3n);
});

test('a table that would need hidden padding is rejected', () => {
  assert.throws(() => struct('S', { A: u8, B: u32 }), /S\.B at 1 is not aligned to 4/);
  assert.throws(() => struct('S', { A: u32, B: u8 }), /S of 5 bytes needs padding to a multiple of 4/);
  assert.throws(() => union('U', { A: u32, B: ioctl.bytes(5) }), /U of 5 bytes needs padding/);
});

test('keys of values are the names in camel case', () => {
  const one = struct('S', { pkt_life: u16, MaxQpWr: u16, SGid: u16, hop_flow_raw: u16 });
  assert.equal(one.decode(new Uint8Array([1, 0, 2, 0, 3, 0, 4, 0])), {
    pktLife: 1,
    maxQpWr: 2,
    sGid: 3,
    hopFlowRaw: 4,
  });
});

test('an endpoint parameter is a connection or a backlog, never both', () => {
  const { WvIoEpParam } = ioctl;
  assert.equal(WvIoEpParam.decode(WvIoEpParam.encode({ backlog: 5n })).backlog, 5n);
  assert.equal(WvIoEpParam.encode({ ...WvIoEpParam.zero(), backlog: 5n })[0], 5);
  assert.equal(WvIoEpParam.encode({ ...WvIoEpParam.zero(), connect: { responderResources: 6n } })[0], 6);
  assert.equal(
    WvIoEpParam.encode({ backlog: 6n, connect: { responderResources: 6n, retryCount: 7 } })[16],
    7,
  );
  const both = () => WvIoEpParam.encode({ backlog: 5n, connect: { responderResources: 6n } });
  throwsStatus(both, Status.INVALID_PARAMETER);
  assert.throws(both, /only one member, Connect or Backlog; got an object/);
});

test('lists contain whole elements only', () => {
  assert.equal(ioctl.WvPkeyList.encode([0xffff, 0x7fff]), new Uint8Array([0xff, 0xff, 0x7f, 0xff]));
  assert.equal(ioctl.WvPkeyList.encode([1, 2, 3], 5), new Uint8Array([0, 1, 0, 2]));
  assert.equal(ioctl.WvPkeyList.encode([1], 1), new Uint8Array(0));
  assert.equal(ioctl.WvPkeyList.encode([1], -1), new Uint8Array(0));
  assert.equal(ioctl.WvPkeyList.decode(new Uint8Array([0, 1, 0, 2, 9])), [1, 2]);
  assert.equal(ioctl.WvPkeyList.decode(new Uint8Array(0)), []);
  assert.is(ioctl.WvGidList.elementSize, 16);
  assert.equal(ioctl.WvGuidEntries.decode(new Uint8Array([0, 0, 0, 0, 0, 0, 1, 2])), [0x102n]);
});

test('provider data follows the structure', () => {
  const { CqProviderIn, WvIoId } = ioctl;
  const whole = ioctl.withProviderData(
    WvIoId.encode({ id: 1n }),
    CqProviderIn.encode({ ringAddress: 0x7fff_0000_1000n, ringBytes: 4096, entries: 62 }),
  );
  assert.is(whole.length, 32);
  assert.equal(ioctl.decodeProviderData(whole, WvIoId, CqProviderIn), {
    ringAddress: 0x7fff_0000_1000n,
    ringBytes: 4096,
    entries: 62,
  });
  assert.is(ioctl.withProviderData(WvIoId.encode({}), null).length, 16);
  assert.is(ioctl.providerBytes(new Uint8Array(16), WvIoId).length, 0);
  for (const length of [0, 15, 16, 31]) {
    const short = whole.subarray(0, length);
    throwsStatus(() => ioctl.decodeProviderData(short, WvIoId, CqProviderIn), Status.BUFFER_TOO_SMALL);
  }
});

test.run();
