/** The layouts of nd/cli/nvme, compared with bytes that Linux has sent (kernel 6.1, nvme-rdma to nvmet-rdma). */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  BlockCommand,
  Cap,
  Command,
  Completion,
  ConnectAccept,
  ConnectCommand,
  ConnectData,
  ConnectReject,
  ConnectRequest,
  FabricsCommand,
  NvmeError,
  NvmeStatus,
  PropertyCommand,
} from '../../nd/cli/nvme/capsules.js';
import {
  BlockFormat,
  DiscoveryEntry,
  IdentifyController,
  IdentifyNamespace,
} from '../../nd/cli/nvme/identify.js';
import { Layout, text, u8, u32, u64 } from '../../nd/cli/nvme/little-endian.js';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

test("Linux's connection request", () => {
  const bytes = hex(`0000 0000 2000 1f00 ${'00'.repeat(24)}`);
  const values = { recordFormat: 0, queueId: 0, hostReceiveSize: 32, hostSendSize: 31, controllerId: 0 };
  assert.equal(ConnectRequest.parse(bytes), values);
  assert.equal(ConnectRequest.make(values), bytes);
});

test("Linux's Connect, with a keyed descriptor whose key the completion invalidates", () => {
  const bytes = hex(
    `7f40 0000 01000000 ${'00'.repeat(16)} 005434c2108bffff 000400 2d3e0000 4f
    0000 0000 1f00 00 00 88130000 ${'00'.repeat(12)}`.replaceAll(/\s/g, ''),
  );
  const { opcode, flags, address, keyedLength, key, sglType } = Command.parse(bytes);
  assert.equal(
    [opcode, flags, address, keyedLength, key, sglType],
    [0x7f, 0x40, 0xffff8b10c2345400n, 1024, 0x3e2d, 0x4f],
  );
  assert.is(FabricsCommand.parse(bytes).type, 1);
  assert.equal(ConnectCommand.parse(bytes), {
    recordFormat: 0,
    queueId: 0,
    queueSize: 31,
    attributes: 0,
    keepAliveTimeout: 5000,
  });
});

test("Linux's Read of 8 blocks", () => {
  const bytes = hex(
    `0240 0900 01000000 ${'00'.repeat(16)} 00b095df108bffff 001000 8b5e0000 4f
    0000000000000000 0700 ${'00'.repeat(14)}`.replaceAll(/\s/g, ''),
  );
  const { opcode, commandId, namespaceId, keyedLength } = Command.parse(bytes);
  assert.equal([opcode, commandId, namespaceId, keyedLength], [2, 9, 1, 4096]);
  assert.equal(BlockCommand.parse(bytes), { start: 0, count: 7 });
});

test("Linux's completions", () => {
  assert.equal(Completion.parse(hex('0100000000000000 0100 0000 0000 0000')), {
    result: 1n,
    head: 1,
    queueId: 0,
    commandId: 0,
    statusField: 0,
  });
  const cap = Completion.parse(hex('7f00000f20080000 0200 0000 0100 0000')).result;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(cap);
  assert.equal(Cap.parse(bytes), { maxQueueEntries: 127, flags: 0, timeout: 15, commandSets: 0x20 });
});

test('a layout writes the given fields and does not change the others', () => {
  const layout = new Layout('thing', 12, { a: u8(0), b: u32(4), c: text(8, 4, ' ') });
  const bytes = Buffer.alloc(14, 0xee);
  layout.emit({ b: 0x0102_0304, c: 'ab' }, bytes, 1);
  assert.is(bytes.toString('hex'), 'eeeeeeeeee0403020161622020ee');
  assert.equal(layout.parse(bytes, 1), { a: 0xee, b: 0x0102_0304, c: 'ab' });
});

test('values that do not fit are rejected', () => {
  const layout = new Layout('thing', 4, { a: u8(0), b: text(1, 3) });
  assert.throws(() => layout.parse(Buffer.alloc(3)), /thing must have 4 bytes; got 3/);
  assert.throws(() => layout.emit({ a: 1 }, Buffer.alloc(8), 5), /got 3/);
  assert.throws(() => layout.emit({ a: 256 }, Buffer.alloc(4)), RangeError);
  assert.throws(() => layout.emit({ b: 'four' }, Buffer.alloc(4)), /at most 3 characters/);
  assert.throws(() => new Layout('thing', 4, { a: u32(1) }), /thing.a must end within 4 bytes; got 5/);
});

test('64-bit counts are exact up to 2^53', () => {
  const layout = new Layout('thing', 8, { a: u64(0) });
  for (const a of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1])
    assert.equal(layout.parse(layout.make({ a })), { a });
});

test('the fields of each layout do not overlap, except for the two forms of a descriptor', () => {
  const shared = new Set(['blockLength', 'keyedLength', 'key']);
  for (const { name, bytes, fields } of [
    ConnectRequest,
    ConnectAccept,
    ConnectReject,
    Command,
    Completion,
    ConnectCommand,
    ConnectData,
    FabricsCommand,
    PropertyCommand,
    BlockCommand,
    Cap,
    IdentifyController,
    IdentifyNamespace,
    BlockFormat,
    DiscoveryEntry,
  ]) {
    const owner = new Array<string | undefined>(bytes);
    for (const [key, { at, size }] of Object.entries(fields)) {
      for (let i = at; i < at + size; i += 1) {
        assert.ok(
          owner[i] === undefined || (shared.has(key) && shared.has(owner[i]!)),
          `${name}.${key}, ${owner[i]}`,
        );
        owner[i] = key;
      }
    }
  }
});

test('an error contains the name of its status', () => {
  const error = new NvmeError('Read', NvmeStatus.LBA_OUT_OF_RANGE | 0x4000);
  assert.is(error.message, 'Read failed with LBA_OUT_OF_RANGE.');
  assert.is(error.retryable, false);
  assert.is(new NvmeError('Read', 0x7).retryable, true);
  assert.is(new NvmeError('Read', 0x1ff).code, 'status 0x1ff');
});

test.run();
