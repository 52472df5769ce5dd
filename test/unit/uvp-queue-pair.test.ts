import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { TokenTable } from '../../kernel-bridge/door/token-table.js';
import {
  UvpBindRequest,
  type UvpCompletion,
  UvpSendRequest,
  type UvpSge,
} from '../../kernel-bridge/door/user-verbs.js';
import { QpState, QpType, WvAccess, WvOpcode, WvSend } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { SoftFastRegion, SoftMemoryWindow } from '../../kernel-bridge/uvp/memory-keys.js';
import { SoftQueuePair } from '../../kernel-bridge/uvp/queue-pair.js';
import { qpRingLayout } from '../../kernel-bridge/uvp/rings.js';
import { FakeHca, writeCqe } from '../helpers/fake-hca.js';
import { throwsStatus } from '../helpers/outcome.js';

const HIGH_ADDRESS = 0x7fee_dead_b000;

type Sizes = Record<'sendDepth' | 'sendSge' | 'maxInlineSend' | 'type', number>;

function setUp(change: Partial<Sizes & { memoryManagement: boolean }> = {}) {
  const hca = new FakeHca();
  const tokens = new TokenTable<SoftQueuePair>();
  const cq = new SoftCompletionQueue(hca, tokens, 16);
  const create = {
    type: QpType.RC,
    sendCq: cq,
    receiveCq: cq,
    context: 'qp context',
    sendDepth: 3,
    sendSge: 2,
    receiveDepth: 3,
    receiveSge: 2,
    maxInlineSend: 40,
    ...change,
  };
  const layout = qpRingLayout(create);
  const qp = new SoftQueuePair(hca, tokens, create, layout, cq, cq);
  qp.open(5, 77);
  const { words } = hca.rings.get(qp.address)!;
  const bytes = new Uint8Array(words.buffer);
  const cqRing = hca.rings.get(cq.ring.address)!;
  const sendWqe = (index: number) =>
    words.subarray((abi.qpHeaderBytes + (index % layout.sendEntries) * layout.sendStride) / 4);
  const receiveWqe = (index: number) =>
    words.subarray(
      (abi.qpHeaderBytes +
        layout.sendEntries * layout.sendStride +
        (index % layout.receiveEntries) * layout.receiveStride) /
        4,
    );
  const setState = (state: number) => {
    words[abi.qpState] = state;
  };
  const completions: UvpCompletion[] = [];
  const poll = () => {
    return completions.slice(0, cq.poll(completions, 64));
  };
  setState(QpState.RTS);
  return { hca, tokens, cq, cqRing, qp, layout, words, bytes, sendWqe, receiveWqe, setState, poll };
}

const region = {
  lkey: 0xabcd_ef01,
  address: HIGH_ADDRESS,
  bytes: Uint8Array.from({ length: 256 }, (_, i) => i),
};
const sge = (offset: number, length: number) => ({ region, offset, length });

function sendRequest(fields: Partial<UvpSendRequest>): UvpSendRequest {
  return Object.assign(new UvpSendRequest(), fields);
}

test('rings have power-of-two entries, and strides large enough for SGEs or inline bytes', () => {
  const { layout, hca, qp } = setUp();
  assert.equal(layout, {
    sendEntries: 4,
    sendStride: 128,
    sendSge: 4,
    receiveEntries: 4,
    receiveStride: 16 + 32,
    bytes: 128 + 4 * 128 + 4 * 48,
  });
  assert.is(hca.rings.get(qp.address)!.bytes, layout.bytes);
  assert.is(
    qpRingLayout({
      ...qp,
      type: QpType.RC,
      receiveDepth: 0,
      sendDepth: 0,
      maxInlineSend: 65,
      sendCq: null,
      receiveCq: null,
      context: 0,
    }).sendStride,
    192,
  );
});

test('a send is written to the ring as the HCA reads it, and rings the doorbell', () => {
  const { qp, words, sendWqe, hca } = setUp();
  qp.postSend(
    sendRequest({
      opcode: WvOpcode.SEND,
      flags: WvSend.SIGNALED | WvSend.SOLICITED | WvSend.IMMEDIATE,
      immediate: 0xdead_beef,
      sgl: [sge(16, 100), sge(0, 7)],
    }),
  );
  const wqe = sendWqe(0);
  assert.is(wqe[abi.swOpcode], abi.opSend);
  assert.is(wqe[abi.swFlags], abi.sendFlagSignaled | abi.sendFlagSolicited | abi.sendFlagImmediate);
  assert.is(wqe[abi.swSgeCount], 2);
  assert.is(wqe[abi.swImmediate], 0xdead_beef);
  assert.equal(
    [...wqe.subarray(16, 24)],
    [0xdeadb010, 0x7fee, 100, region.lkey, 0xdeadb000, 0x7fee, 7, region.lkey],
  );
  assert.is(words[abi.qpSendProducer], 1);
  assert.equal(hca.log, ['doorbell 5']);
});

test('remote address and offset are added with carry', () => {
  const { qp, sendWqe } = setUp();
  const write = (low: number, high: number, offset: number) =>
    qp.postSend(
      sendRequest({
        opcode: WvOpcode.RDMA_WRITE,
        remoteLow: low,
        remoteHigh: high,
        remoteOffset: offset,
        rkey: 9,
      }),
    );
  write(0xffff_fff0, 0x12, 0x20);
  assert.equal([sendWqe(0)[abi.swRemoteLo], sendWqe(0)[abi.swRemoteHi]], [0x10, 0x13]);
  assert.is(sendWqe(0)[abi.swRkey], 9);
  write(8, 0xffff_ffff, 2 ** 32 - 9);
  assert.equal([sendWqe(1)[abi.swRemoteLo], sendWqe(1)[abi.swRemoteHi]], [0xffff_ffff, 0xffff_ffff]);
  throwsStatus(() => write(8, 0xffff_ffff, 2 ** 32 - 8), Status.INVALID_PARAMETER, /address space/);
  throwsStatus(() => write(0, 0, -1), Status.INVALID_PARAMETER);
  throwsStatus(() => write(0, 0, 0.5), Status.INVALID_PARAMETER);
});

test('atomics carry their operands and need exactly 8 local bytes', () => {
  const { qp, sendWqe } = setUp();
  const request = sendRequest({
    opcode: WvOpcode.COMPARE_EXCHANGE,
    compareLow: 1,
    compareHigh: 2,
    swapLow: 3,
    swapHigh: 4,
    sgl: [sge(0, 8)],
  });
  qp.postSend(request);
  assert.equal([...sendWqe(0).subarray(abi.swCompareLo, abi.swSwapHi + 1)], [1, 2, 3, 4]);
  request.sgl = [sge(0, 4)];
  throwsStatus(() => qp.postSend(request), Status.INVALID_PARAMETER, /8 bytes/);
});

test('inline bytes are copied during the call, with any number of SGEs', () => {
  const { qp, bytes, sendWqe } = setUp();
  const own = { lkey: 0, address: 0, bytes: Uint8Array.of(1, 2, 3) };
  const sgl = [
    { region: own, offset: 1, length: 2 },
    sge(200, 3),
    sge(0, 0),
    { region: own, offset: 0, length: 1 },
  ];
  qp.postSend(sendRequest({ flags: WvSend.INLINE, sgl }));
  own.bytes.fill(0);
  assert.is(sendWqe(0)[abi.swSgeCount], 6);
  assert.equal([...bytes.subarray(128 + 64, 128 + 64 + 6)], [2, 3, 200, 201, 202, 1]);
});

test('inline bytes are copied in words or bytes, and nothing beyond them is written', () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, i) => 0x80 + i);
  const byWords = { lkey: 1, address: HIGH_ADDRESS, bytes, words: new Uint32Array(bytes.buffer) };
  for (const from of [byWords, { ...byWords, words: undefined }]) {
    for (const offset of [0, 1, 4, 6, 40]) {
      for (const [first, second] of [
        [8, 0],
        [8, 8],
        [3, 8],
        [5, 7],
        [16, 24],
        [1, 1],
      ] as const) {
        const { qp, bytes: ring, sendWqe } = setUp();
        const start = sendWqe(0).byteOffset + abi.sendWqeHeaderBytes;
        ring.fill(0xee, start, start + 64);
        const sgl = [
          { region: from, offset, length: first },
          { region: from, offset: 24, length: second },
        ];
        qp.postSend(sendRequest({ flags: WvSend.INLINE, sgl }));
        const sent = [...bytes.subarray(offset, offset + first), ...bytes.subarray(24, 24 + second)];
        assert.is(sendWqe(0)[abi.swSgeCount], sent.length);
        assert.equal(
          [...ring.subarray(start, start + 64)],
          [...sent, ...new Array(64 - sent.length).fill(0xee)],
        );
      }
    }
  }
});

test('inline bytes from beyond 4 GiB are not taken from the offset modulo 2^32', () => {
  const offset = 2 ** 32 + 8;
  // A test cannot allocate memory of that size, so an object with the required members replaces it.
  const bytes = { length: 2 ** 33, [offset]: 1, [offset + 1]: 2, [offset + 2]: 3, [offset + 3]: 4 };
  const from = {
    lkey: 1,
    address: 4096,
    bytes: bytes as unknown as Uint8Array,
    words: new Uint32Array(16).fill(9),
  };
  const { qp, sendWqe } = setUp();
  qp.postSend(sendRequest({ flags: WvSend.INLINE, sgl: [{ region: from, offset, length: 4 }] }));
  assert.is(sendWqe(0)[abi.sendWqeHeaderBytes / 4], 0x0403_0201);
});

test('inline: too many bytes, bytes outside the region and regions without bytes are rejected', () => {
  const { qp, words } = setUp();
  const inline = (sgl: UvpSendRequest['sgl'], opcode: number = WvOpcode.SEND) =>
    qp.postSend(sendRequest({ opcode, flags: WvSend.INLINE, sgl }));
  throwsStatus(() => inline([sge(0, 40), sge(0, 1)]), Status.BUFFER_OVERFLOW, /40/);
  throwsStatus(() => inline([sge(250, 7)]), Status.ACCESS_VIOLATION, /offset 250, length 7/);
  throwsStatus(
    () => inline([{ region: { lkey: 1, address: 4096 }, offset: 0, length: 1 }]),
    Status.INVALID_PARAMETER,
    /inline/,
  );
  throwsStatus(() => inline([sge(0, 8)], WvOpcode.RDMA_READ), Status.INVALID_PARAMETER, /0x10/);
  assert.is(words[abi.qpSendProducer], 0);
  inline([]);
  assert.is(words[abi.qpSendProducer], 1);
});

test('N5: invalid requests are rejected and do not change the queue', () => {
  const { qp, words, hca } = setUp();
  const post = (fields: Partial<UvpSendRequest>) => () => qp.postSend(sendRequest(fields));
  throwsStatus(
    post({ sgl: [sge(0, 1), sge(0, 1), sge(0, 1)] }),
    Status.DATA_OVERRUN,
    /`sgl` must be at most 2,.*got 3/,
  );
  throwsStatus(post({ sgl: [sge(0, 2 ** 31), sge(0, 1)] }), Status.BUFFER_OVERFLOW, /2147483649/);
  throwsStatus(post({ sgl: [sge(0, 2 ** 32)] }), Status.INVALID_PARAMETER, /4294967296/);
  throwsStatus(post({ sgl: [sge(0, -1)] }), Status.INVALID_PARAMETER);
  throwsStatus(post({ sgl: [sge(0, 1.5)] }), Status.INVALID_PARAMETER);
  throwsStatus(post({ sgl: [sge(Number.NaN, 1)] }), Status.INVALID_PARAMETER);
  throwsStatus(post({ sgl: [sge(-1, 1)] }), Status.INVALID_PARAMETER);
  const refused = (sgl: unknown, text: RegExp) =>
    throwsStatus(post({ sgl: sgl as readonly UvpSge[] }), Status.INVALID_PARAMETER, text);
  refused({}, /array/);
  refused(sge(0, 5), /array/);
  refused([{ ...sge(0, 1), length: undefined }], /length of SGE 0 must be .*; got undefined/);
  refused([sge(0, 1), { ...sge(0, 1), offset: '0' }], /offset of SGE 1 must be .*; got '0'/);
  refused(
    [{ ...sge(0, 1), region: new Uint8Array(8) }],
    /region of SGE 0 must be the result of registerMemory/,
  );
  throwsStatus(post({ flags: 0x100 }), Status.INVALID_PARAMETER, /0x100/);
  throwsStatus(post({ flags: 0x8000_0000 }), Status.INVALID_PARAMETER, /0x80000000/);
  throwsStatus(post({ invalidate: true, flags: WvSend.IMMEDIATE }), Status.INVALID_PARAMETER);
  throwsStatus(() => qp.postReceive(0, [sge(0, 1), sge(0, 1), sge(0, 1)]), Status.DATA_OVERRUN);
  assert.equal([words[abi.qpSendProducer], words[abi.qpReceiveProducer]], [0, 0]);
  assert.equal(hca.log, []);
});

test('U18: opcodes that are not send requests never reach the HCA', () => {
  const { qp, words } = setUp();
  for (const opcode of [WvOpcode.BIND_WINDOW, 8, WvOpcode.RECEIVE, -1, Number.NaN]) {
    throwsStatus(() => qp.postSend(sendRequest({ opcode })), Status.INVALID_PARAMETER, /Opcode/);
  }
  for (const opcode of [WvOpcode.INVALIDATE, WvOpcode.FAST_REGISTER]) {
    throwsStatus(() => qp.postSend(sendRequest({ opcode })), Status.INVALID_PARAMETER, /must have a region/);
  }
  assert.is(words[abi.qpSendProducer], 0);
});

test('U18: a posted request is not changed', () => {
  const { qp } = setUp();
  const request = Object.freeze(
    sendRequest({
      opcode: WvOpcode.RDMA_READ,
      remoteLow: 5,
      remoteOffset: 7,
      sgl: Object.freeze([Object.freeze(sge(3, 4))]),
    }),
  );
  qp.postSend(request);
  assert.is(request.remoteLow, 5);
});

test('state: Receives from INIT on, with a doorbell if the HCA requests it; Sends from RTS on', () => {
  const { qp, words, setState, hca } = setUp();
  setState(QpState.RESET);
  throwsStatus(() => qp.postReceive(0, []), Status.INVALID_DEVICE_STATE, /RESET/);
  for (const state of [QpState.RESET, QpState.INIT, QpState.RTR]) {
    setState(state);
    throwsStatus(() => qp.postSend(sendRequest({})), Status.INVALID_DEVICE_STATE);
  }
  setState(QpState.INIT);
  qp.postReceive(0, []);
  assert.equal(hca.log, [], 'a receive needs no doorbell');
  setState(QpState.ERROR);
  words[abi.qpReceiveBell] = 1;
  qp.postReceive(0, []);
  qp.postSend(sendRequest({}));
  assert.equal(hca.log, ['doorbell 5', 'doorbell 5']);
});

test('depth: exactly as requested; a slot is free when its completion has been polled', () => {
  const { qp, cqRing, poll } = setUp();
  for (let i = 0; i < 3; i++) qp.postSend(sendRequest({ context: i, flags: WvSend.SIGNALED }));
  throwsStatus(() => qp.postSend(sendRequest({})), Status.NO_MORE_ENTRIES, /3/);
  writeCqe(cqRing, { token: qp.token, wqe: 0 });
  throwsStatus(() => qp.postSend(sendRequest({})), Status.NO_MORE_ENTRIES);
  assert.equal(
    poll().map(({ context, qpContext }) => [context, qpContext]),
    [[0, 'qp context']],
  );
  qp.postSend(sendRequest({ context: 3 }));
  throwsStatus(() => qp.postSend(sendRequest({})), Status.NO_MORE_ENTRIES);
});

test('depth: a signaled completion frees the unsignaled requests before it', () => {
  const { qp, cqRing, poll } = setUp();
  qp.postSend(sendRequest({ context: 'a' }));
  qp.postSend(sendRequest({ context: 'b' }));
  qp.postSend(sendRequest({ context: 'c', flags: WvSend.SIGNALED }));
  writeCqe(cqRing, { token: qp.token, wqe: 2 });
  assert.equal(
    poll().map(({ context }) => context),
    ['c'],
  );
  for (let i = 0; i < 3; i++) qp.postSend(sendRequest({}));
});

test('depth and contexts of Receives, and the words of their WQEs', () => {
  const { qp, cqRing, receiveWqe, words, poll } = setUp();
  for (const context of ['r0', 'r1', 'r2']) qp.postReceive(context, [sge(8, 64)]);
  throwsStatus(() => qp.postReceive('r3', []), Status.NO_MORE_ENTRIES, /receive/);
  assert.is(words[abi.qpReceiveProducer], 3);
  assert.equal([...receiveWqe(2).subarray(0, 8)], [1, 0, 0, 0, 0xdeadb008, 0x7fee, 64, region.lkey]);
  writeCqe(cqRing, {
    token: qp.token,
    wqe: 0,
    opcode: WvOpcode.RECEIVE,
    length: 33,
    flags: abi.cqeFlagReceiveQueue | abi.cqeFlagImmediate | abi.cqeFlagSolicited,
    immediate: 0xffff_fffe,
    sourceQpn: 0x123,
    pkeyIndex: 5,
  });
  assert.equal(
    { ...poll()[0]! },
    {
      context: 'r0',
      qpContext: 'qp context',
      opcode: WvOpcode.RECEIVE,
      status: 0,
      length: 33,
      flags: 9,
      immediateData: 0xffff_fffe,
      sourceQpn: 0x123,
      vendorCode: 0,
      pkeyIndex: 5,
      sLid: 0,
      sl: 0,
      dLidPathBits: 0,
    },
  );
  qp.postReceive('r3', []);
  // The same object is reused, and nothing of the previous completion is left.
  writeCqe(cqRing, { token: qp.token, wqe: 1, status: 5, flags: abi.cqeFlagReceiveQueue, vendor: 7 });
  const { context, status, immediateData, vendorCode } = poll()[0]!;
  assert.equal(
    { context, status, immediateData, vendorCode },
    { context: 'r1', status: 5, immediateData: 0, vendorCode: 7 },
  );
});

test('contexts are released with their completion', () => {
  const { qp, cqRing, poll } = setUp();
  qp.postSend(sendRequest({ context: 'first', flags: WvSend.SIGNALED }));
  qp.postReceive('second', []);
  writeCqe(cqRing, { token: qp.token, wqe: 0 });
  writeCqe(cqRing, { token: qp.token, wqe: 0, flags: abi.cqeFlagReceiveQueue });
  poll();
  const { sendContexts, receiveContexts } = qp as unknown as Record<string, unknown[]>;
  assert.equal([...sendContexts!, ...receiveContexts!], new Array(8).fill(undefined));
});

test('indexes wrap at 2^32', () => {
  const { qp, cqRing, poll, words } = setUp();
  for (let i = 0; i < 100; i++) {
    qp.postSend(sendRequest({ context: i, flags: WvSend.SIGNALED }));
    writeCqe(cqRing, { token: qp.token, wqe: i });
    assert.is(poll()[0]!.context, i);
  }
  words[abi.qpSendProducer] = 0xffff_ffff;
  qp.reset();
  qp.postSend(sendRequest({ context: 'x' }));
  qp.postSend(sendRequest({ context: 'y' }));
  writeCqe(cqRing, { token: qp.token, wqe: 0 });
  assert.is(poll()[0]!.context, 'y');
  for (let i = 0; i < 3; i++) qp.postSend(sendRequest({}));
});

test('a batch is published with one doorbell', () => {
  const { qp, words, hca } = setUp();
  qp.startBatch();
  qp.postSend(sendRequest({}));
  qp.postSend(sendRequest({}));
  assert.is(words[abi.qpSendProducer], 0);
  qp.submitBatch();
  assert.is(words[abi.qpSendProducer], 2);
  qp.startBatch();
  qp.submitBatch();
  assert.equal(hca.log, ['doorbell 5']);
});

test('reset empties both queues; earlier completions are dropped', () => {
  const { qp, cqRing, poll, words } = setUp();
  for (let i = 0; i < 3; i++) qp.postSend(sendRequest({}));
  qp.postReceive('old', []);
  writeCqe(cqRing, { token: qp.token, wqe: 0 });
  writeCqe(cqRing, { token: qp.token, wqe: 0, flags: abi.cqeFlagReceiveQueue });
  qp.startBatch();
  qp.reset();
  qp.submitBatch();
  assert.equal([words[abi.qpSendProducer], words[abi.qpReceiveProducer]], [3, 1]);
  for (let i = 0; i < 3; i++) qp.postSend(sendRequest({ context: `s${i}` }));
  for (let i = 0; i < 3; i++) qp.postReceive(`r${i}`, []);
  assert.equal(poll(), []);
  throwsStatus(() => qp.postSend(sendRequest({})), Status.NO_MORE_ENTRIES);
  writeCqe(cqRing, { token: qp.token, wqe: 5 });
  writeCqe(cqRing, { token: qp.token, wqe: 1, flags: abi.cqeFlagReceiveQueue });
  assert.equal(
    poll().map(({ context }) => context),
    ['s2', 'r0'],
  );
});

test('bind: a new key with the same index at once; the WQE has the old and the new key', () => {
  const { qp, sendWqe } = setUp();
  const mw = new SoftMemoryWindow();
  mw.open(1, 0xabcdef42);
  const request = Object.assign(new UvpBindRequest(), {
    region,
    offset: 2 ** 33,
    length: 2 ** 32 + 5,
    access: WvAccess.REMOTE_READ,
    flags: WvSend.SIGNALED,
  });
  const key = qp.bind(mw, request);
  assert.is(key >>> 8, 0xabcdef);
  assert.is.not(key, 0xabcdef42);
  assert.is(mw.rkey, key);
  const wqe = sendWqe(0);
  assert.equal([wqe[abi.swRemoteLo], wqe[abi.swRemoteHi]], [0xdeadb000, 0x7ff0]);
  assert.equal([wqe[abi.swCompareLo], wqe[abi.swCompareHi]], [5, 1]);
  assert.equal([wqe[abi.swRkey], wqe[abi.swAccess]], [region.lkey, WvAccess.REMOTE_READ]);
  assert.equal([wqe[abi.swSwapLo], wqe[abi.swSwapHi]], [0xabcdef42, key]);
  qp.invalidate(mw, 'context', 0);
  assert.equal([sendWqe(1)[abi.swOpcode], sendWqe(1)[abi.swRkey]], [abi.opLocalInvalidate, key]);
});

test('bind: keys do not repeat immediately, and a failed bind restores the previous key', () => {
  const { qp, cqRing, poll } = setUp();
  const mw = new SoftMemoryWindow();
  mw.open(1, 0x100);
  for (let i = 0; i < 1000; i++) assert.is.not(mw.nextKey(), mw.rkey);
  const request = new UvpBindRequest();
  const first = qp.bind(mw, request);
  qp.bind(mw, request);
  writeCqe(cqRing, { token: qp.token, wqe: 1, status: 5 });
  poll();
  assert.is(mw.rkey, first);
  throwsStatus(() => qp.bind(mw, Object.assign(request, { offset: -5 })), Status.INVALID_PARAMETER);
  assert.is(mw.rkey, first);
});

test('fast registration: the WQE has the memory and the new key, and a failed request restores the previous key', () => {
  const { qp, sendWqe, cqRing, poll } = setUp({ memoryManagement: true });
  const fastRegion = new SoftFastRegion(0xabcdefff);
  const memory = { region, offset: 2 ** 33, length: 2 ** 32 + 5 };
  const register = (keyByte = -1, sgl = [memory]) =>
    qp.postSend(
      sendRequest({ opcode: WvOpcode.FAST_REGISTER, fastRegion, access: 0x8000_0001, keyByte, sgl }),
    );
  register();
  assert.is(fastRegion.rkey, 0xabcdef00);
  const wqe = sendWqe(0);
  assert.is(wqe[abi.swOpcode], abi.opFastRegister);
  assert.equal([wqe[abi.swRemoteLo], wqe[abi.swRemoteHi]], [0xdeadb000, 0x7ff0]);
  assert.equal([wqe[abi.swCompareLo], wqe[abi.swCompareHi]], [5, 1]);
  assert.equal([wqe[abi.swRkey], wqe[abi.swAccess], wqe[abi.swSgeCount]], [region.lkey, 0x8000_0001, 0]);
  assert.is(wqe[abi.swSwapHi], 0xabcdef00);
  register(0x42);
  assert.is(sendWqe(1)[abi.swSwapHi], 0xabcdef42);
  qp.postSend(sendRequest({ opcode: WvOpcode.INVALIDATE, fastRegion }));
  assert.equal([sendWqe(2)[abi.swOpcode], sendWqe(2)[abi.swRkey]], [abi.opLocalInvalidate, 0xabcdef42]);
  writeCqe(cqRing, { token: qp.token, wqe: 1, status: 5 });
  poll();
  assert.is(fastRegion.rkey, 0xabcdef00);
  throwsStatus(() => register(256), Status.INVALID_PARAMETER, /256/);
  throwsStatus(() => register(1, []), Status.INVALID_PARAMETER, /one SGE/);
  throwsStatus(() => register(1, [memory, memory]), Status.INVALID_PARAMETER, /one SGE/);
  assert.is(fastRegion.rkey, 0xabcdef00);
});

test('fast registration: only on a reliable queue pair that was created for it', () => {
  for (const create of [{}, { type: QpType.UC, memoryManagement: true }]) {
    const { qp } = setUp(create);
    const request = sendRequest({
      opcode: WvOpcode.FAST_REGISTER,
      fastRegion: new SoftFastRegion(0x100),
      sgl: [sge(0, 8)],
    });
    throwsStatus(() => qp.postSend(request), Status.INVALID_PARAMETER, /memoryManagement/);
  }
});

test.run();
