import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type AnyStruct, bits, bytes, layouts, u8, u32be, u64be } from '../../kernel-bridge/ioctl/layout.js';
import {
  CmAttribute,
  type CmBody,
  type CmMessageName,
  cmLayouts,
  cmRefusals,
  emitMad,
  emitMadOnce,
  encodeMessage,
  ipCmHeader,
  MAD_HEADER_SIZE,
  MAD_SIZE,
  madHeader,
  parseMad,
  timeoutCodeToMs,
} from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { madeCode } from '../../kernel-bridge/kernel/cm/made-code.js';
import { expectedIcrc, fromHex, icrcField } from '../helpers/pcap.js';

/** Whole packets of a Linux 6.1 pair, from the IP header to the ICRC (test/fixtures/captures). */
const vectors = {
  REQ: `450001 34a72b400040117def0a4d00030a4d0002 d87212b701200000 6400ffff000000018000000f
    800100000000000101070203 00*7 02b6c649d30010000000000000d349c6b6 00*8 01061c06505400fffe770003 00*10
    170100000001000000a0bcda61a7ffff37f0ffffffff 00*10 ffff0a4d0003 00*10 ffff0a4d0002c666600000400098 00*45
    40e9a0 00*12 0a4d0003 00*12 0a4d0002 00*56 296a1380`,
  REP: `450001349ea040004011867a0a4d00020a4d0003 d87212b701200000 6400ffff0000000180000000
    800100000000000101070203 00*7 02b6c649d30013000000000000ec0da06ad349c6b6000000000000110000000000e2f83800010178
    e0505400fffe770002 00*196 a788c414`,
  RTU: `45000134a733400040117de70a4d00030a4d0002 d87212b701200000 6400ffff0000000180000010
    800100000000000101070203 00*7 02b6c649d30014000000000000d349c6b6ec0da06a 00*224 0a38ec95`,
  DREQ: `45000134a741400040117dd90a4d00030a4d0002 d87212b701200000 6400ffff0000000180000011
    800100000000000101070203 00*7 02b6c649d30015000000000000d349c6b6ec0da06a000011 00*221 8609fc54`,
  DREP: `450001349eb040004011866a0a4d00020a4d0003 d87212b701200000 6400ffff0000000180000001
    800100000000000101070203 00*7 02b6c649d30016000000000000ec0da06ad349c6b6 00*224 e5b08c6c`,
  REJ: `45000134a28e40004011828c0a4d00020a4d0003 d87212b701200000 6400ffff0000000180000006
    800100000000000101070203 00*7 02b6c649d60012 00*10 d649c6b600000008 00*220 2ecfb2ce`,
  SIDR_REQ: `45000134aac5400040117a550a4d00030a4d0002 d87212b701200000 6400ffff000000018000001c
    800100000000000101070203 00*7 02b6c649d40017000000000000d449c6b6ffff00000000000001111c060040a290 00*12
    0a4d0003 00*12 0a4d0002 00*180 32602bce`,
  SIDR_REP: `45000134a61d400040117efd0a4d00020a4d0003 d87212b701200000 6400ffff0000000180000009
    800100000000000101070203 00*7 02b6c649d40018000000000000d449c6b600000000000015000000000001111c0601234567 00*208
    97acce76`,
} as const satisfies Partial<Record<CmMessageName, string>>;

const GSI_TID = { REQ: 0x2b6c649d3n, REJ: 0x2b6c649d6n, SIDR_REQ: 0x2b6c649d4n } as const;
const clientIp = fromHex('00*12 0a4d0003');
const serverIp = fromHex('00*12 0a4d0002');
const clientGid = fromHex('00*10 ffff0a4d0003');
const serverGid = fromHex('00*10 ffff0a4d0002');

function headerOf(sourcePort: number): Uint8Array {
  return ipCmHeader.encode({
    ipVersion: 4,
    sourcePort,
    sourceAddress: clientIp,
    destinationAddress: serverIp,
  });
}

/** The contents of the packets, field by field. Omitted fields are zero. */
const meanings: { [N in keyof typeof vectors]: { tid: bigint; body: Partial<CmBody<N>> } } = {
  REQ: {
    tid: GSI_TID.REQ,
    body: {
      localCommId: 0xd349c6b6,
      serviceId: 0x01061c06n,
      localCaGuid: 0x505400fffe770003n,
      localQpn: 0x17,
      responderResources: 1,
      initiatorDepth: 1,
      remoteResponseTimeout: 20,
      startingPsn: 0xbcda61,
      localResponseTimeout: 20,
      retryCount: 7,
      pkey: 0xffff,
      pathMtu: 3,
      rnrRetryCount: 7,
      maxCmRetries: 15,
      primaryLocalLid: 0xffff,
      primaryRemoteLid: 0xffff,
      primaryLocalGid: clientGid,
      primaryRemoteGid: serverGid,
      primaryFlowLabel: 0xc6666,
      primaryHopLimit: 64,
      primaryAckTimeout: 19,
      privateData: headerOf(59808),
    },
  },
  REP: {
    tid: GSI_TID.REQ,
    body: {
      localCommId: 0xec0da06a,
      remoteCommId: 0xd349c6b6,
      localQpn: 0x11,
      startingPsn: 0xe2f838,
      responderResources: 1,
      initiatorDepth: 1,
      targetAckDelay: 15,
      rnrRetryCount: 7,
      localCaGuid: 0x505400fffe770002n,
    },
  },
  RTU: { tid: GSI_TID.REQ, body: { localCommId: 0xd349c6b6, remoteCommId: 0xec0da06a } },
  DREQ: { tid: GSI_TID.REQ, body: { localCommId: 0xd349c6b6, remoteCommId: 0xec0da06a, remoteQpn: 0x11 } },
  DREP: { tid: GSI_TID.REQ, body: { localCommId: 0xec0da06a, remoteCommId: 0xd349c6b6 } },
  REJ: { tid: GSI_TID.REJ, body: { remoteCommId: 0xd649c6b6, reason: 8 } },
  SIDR_REQ: {
    tid: GSI_TID.SIDR_REQ,
    body: { requestId: 0xd449c6b6, pkey: 0xffff, serviceId: 0x01111c06n, privateData: headerOf(0xa290) },
  },
  SIDR_REP: {
    tid: GSI_TID.SIDR_REQ,
    body: { requestId: 0xd449c6b6, qpn: 0x15, serviceId: 0x01111c06n, qkey: 0x01234567 },
  },
};

for (const name of Object.keys(vectors) as (keyof typeof vectors)[]) {
  test(`${name} of a Linux peer parses correctly and encodes to the same bytes`, () => {
    const packet = fromHex(vectors[name]);
    assert.is(packet.length, 308);
    assert.is(icrcField(packet), expectedIcrc(packet));
    const mad = packet.slice(48, 48 + MAD_SIZE);
    const message = parseMad(mad);
    if (typeof message === 'string') throw new Error(`did not parse: ${message}`);
    assert.is(message.name, name);
    assert.equal(encodeMessage(message), mad);
    assert.equal(emitMad<CmMessageName>(name, meanings[name].tid, meanings[name].body), mad);
  });
}

/** First byte of fields that a wrong width would shift, from IBA 1 §12.6. */
const offsets: Partial<Record<CmMessageName, Record<string, number>>> = {
  REQ: { serviceId: 8, localCaGuid: 16, localQpn: 32, startingPsn: 44, pkey: 48, primaryLocalLid: 52 },
  REP: { localQpn: 12, startingPsn: 20, localCaGuid: 28, privateData: 36 },
  REJ: { reason: 10, ari: 12, privateData: 84 },
  MRA: { serviceTimeout: 9, privateData: 10 },
  DREQ: { remoteQpn: 8, privateData: 12 },
  SIDR_REQ: { pkey: 4, serviceId: 8, privateData: 16 },
  SIDR_REP: { status: 4, qpn: 8, serviceId: 12, qkey: 20, info: 24, privateData: 96 },
  LAP: {
    remoteQpn: 12,
    alternateLocalLid: 20,
    alternateFlowLabel: 56,
    alternateAckTimeout: 63,
    privateData: 64,
  },
  APR: { infoLength: 8, status: 9, info: 12, privateData: 84 },
};

test('every layout covers every bit of its message once', () => {
  assert.is(madHeader.size, MAD_HEADER_SIZE);
  assert.is(ipCmHeader.size, 36);
  for (const [name, layout] of Object.entries(cmLayouts)) {
    assert.is(layout.size, MAD_SIZE - MAD_HEADER_SIZE, name);
    let next = 0;
    for (const field of layout.fields) {
      assert.is(field.offset, next, `${name}.${field.name}`);
      next += field.size;
    }
    for (const [field, offset] of Object.entries(offsets[name as CmMessageName] ?? {})) {
      assert.is(layout.fields.find((place) => place.name === field)?.offset, offset, `${name}.${field}`);
    }
  }
});

test('arbitrary bytes of any message are decoded and encoded unchanged, including reserved bits', () => {
  const names = Object.keys(CmAttribute) as CmMessageName[];
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.uint8Array({ minLength: MAD_SIZE, maxLength: MAD_SIZE }),
      (name, noise) => {
        const mad = Uint8Array.from(noise);
        mad.set([1, 7, 2, 3]);
        mad.set([0, CmAttribute[name]], 16);
        const message = parseMad(mad);
        if (typeof message === 'string') throw new Error(message);
        assert.is(message.name, name);
        assert.equal(encodeMessage(message), mad);
      },
    ),
    { numRuns: 500 },
  );
});

test('every field of every layout reads back the written value, and nothing else', () => {
  for (const layout of Object.values(cmLayouts)) {
    for (const { name, size } of layout.fields) {
      const { kind } = (layout as AnyStruct).table[name]!;
      const width = size * 8;
      const value =
        kind === 'uint'
          ? 2 ** width - 1
          : kind === 'long'
            ? (1n << 64n) - 1n
            : new Uint8Array(size).fill(255);
      const emitted = (layout as AnyStruct).encode({ [name]: value } as never);
      const ones = [...emitted].reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
      assert.is(ones, width, `${layout.name}.${name}`);
      assert.equal(
        (layout.decode(emitted) as Record<string, unknown>)[name],
        value,
        `${layout.name}.${name}`,
      );
    }
  }
});

/** Tables without generated code, with the errors of messages. */
const { packed } = layouts({}, cmRefusals);

const allLayouts = [...Object.values(cmLayouts), madHeader, ipCmHeader] as unknown as readonly AnyStruct[];

test('the generated code of a layout reads and writes like the interpreter', () => {
  const number = fc.oneof(fc.integer({ min: -2, max: 2 ** 33 }), fc.double(), fc.constant(-0));
  const odd = fc.record({
    uint: fc.option(number, { nil: undefined }),
    long: fc.option(fc.bigInt({ min: -1n, max: 1n << 64n }), { nil: undefined }),
    bytes: fc.option(fc.uint8Array({ maxLength: 240 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(
      fc.nat(allLayouts.length - 1),
      fc.uint8Array({ minLength: 232, maxLength: 232 }),
      fc.nat(20),
      fc.array(fc.tuple(fc.nat(60), odd), { maxLength: 4 }),
      (which, bytes, margin, changes) => {
        const layout = allLayouts[which]!;
        const from = Uint8Array.of(...new Uint8Array(margin).fill(7), ...bytes);
        const code = madeCode[layout.name]!;
        const walked = packed(layout.name, layout.table);
        const value = walked.decode(from, margin) as Record<string, unknown>;
        assert.equal(code.read(from, margin), value);
        assert.equal(layout.decode(from, margin), value);
        for (const [index, change] of changes) {
          const { name } = layout.fields[index % layout.fields.length]!;
          value[name] = change[layout.table[name]!.kind as keyof typeof change];
        }
        const [byWalk, byCode] = [new Uint8Array(260).fill(0xee), new Uint8Array(260).fill(0xee)];
        let refused = false;
        try {
          walked.encode(value as never, byWalk, margin);
        } catch {
          refused = true;
        }
        assert.is(code.write(byCode, margin, value), !refused);
        assert.equal(byCode, byWalk);
      },
    ),
    { numRuns: 500 },
  );
});

test('a layout can be reused after rejected values', () => {
  const layout = packed('sample', { a: bits(4), b: bits(4), c: bytes(3) });
  for (let i = 0; i < 40; i++) {
    const target = new Uint8Array(4).fill(0xee);
    assert.throws(() => layout.encode({ a: 1, b: 16 }, target), /sample\.b must fit in 4 bits; got 16/);
    assert.throws(() => layout.decode(target, 1), /must have 4 bytes; got 3/);
    assert.equal(target, new Uint8Array(4).fill(0xee));
    layout.encode({ a: 1, b: i % 16, c: Uint8Array.of(i) }, target);
    assert.equal(layout.decode(target), { a: 1, b: i % 16, c: Uint8Array.of(i, 0, 0) });
  }
});

test('bytes that are not a CM message return the problem instead of throwing', () => {
  const mad = emitMad('RTU', 1n, {});
  assert.is(parseMad(mad.subarray(0, 255)), 'badLength');
  assert.is(parseMad(new Uint8Array(257)), 'badLength');
  const broken = (at: number, value: number) => {
    const copy = Uint8Array.from(mad);
    copy[at] = value;
    return parseMad(copy);
  };
  assert.is(broken(0, 2), 'badBaseVersion');
  assert.is(broken(1, 3), 'badClass');
  assert.is(broken(2, 1), 'badClassVersion');
  assert.is(broken(3, 0x81), 'badMethod');
  assert.is(broken(17, 0x1b), 'badAttribute');
  assert.is(broken(17, 0x0f), 'badAttribute');
});

test('a value that does not fit in its field is rejected before a byte is written', () => {
  const layout = packed('sample', { a: bits(4), b: bits(4), c: u8, d: u32be, e: u64be });
  const target = new Uint8Array(14).fill(0xee);
  assert.throws(() => layout.encode({ a: 1, b: 16 }, target), /sample\.b must fit in 4 bits; got 16/);
  assert.throws(() => layout.encode({ c: -1 }, target), /must fit in .* bits; got -1/);
  assert.throws(() => layout.encode({ c: 1.5 }, target), /must fit in .* bits; got 1\.5/);
  assert.throws(() => layout.encode({ e: 1n << 64n }, target), /must fit in 64 bits/);
  assert.throws(() => layout.encode({}, target, 1), /must have 14 bytes; got 13/);
  assert.ok(target.every((byte) => byte === 0xee));
  assert.throws(() => layout.decode(target, 1), /must have 14 bytes; got 13/);
  assert.throws(() => emitMad('REJ', 1n, { privateData: new Uint8Array(149) }), /148 bytes; got 149/);
});

test('timeout codes are multiples of 4.096 µs', () => {
  assert.is(timeoutCodeToMs(0), 1);
  assert.is(timeoutCodeToMs(20), 4295);
  assert.is(timeoutCodeToMs(24), 68720);
});

test('a message built in reused memory contains nothing of the previous one', () => {
  const ids = { localCommId: 0xffff_ffff, remoteCommId: 0xffff_ffff };
  const full = { ...ids, privateData: new Uint8Array(cmLayouts.RTU.size - 8).fill(0xff) };
  const before = emitMadOnce('RTU', 2n ** 64n - 1n, full);
  assert.equal(before, emitMad('RTU', 2n ** 64n - 1n, full));
  const names = Object.keys(CmAttribute) as CmMessageName[];
  // The comparison is repeated, because V8 optimizes code that runs often.
  for (let round = 0; round < 20; round++) {
    for (const name of names) {
      emitMadOnce('RTU', 2n ** 64n - 1n, full);
      const made = emitMadOnce(name, 7n, {});
      assert.is(made, before);
      assert.equal(made, emitMad(name, 7n, {}), name);
    }
  }
});

test.run();
