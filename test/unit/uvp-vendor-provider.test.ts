// The calls of a vendor's provider, with functions that do not need Windows: their arguments, and the state after they fail.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  UmvBuffer,
  type UvpCompletion,
  type UvpQpCreate,
  UvpSendRequest,
} from '../../kernel-bridge/door/user-verbs.js';
import { QpType, WcStatus, WvOpcode } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/index.js';
import type { UvpTable } from '../../kernel-bridge/uvp/vendor/native-library.js';
import { CompletionWord, layouts, SendWord } from '../../kernel-bridge/uvp/vendor/uvp-layouts.js';
import { VendorUserVerbs } from '../../kernel-bridge/uvp/vendor/vendor-user-verbs.js';
import type { NativeBytes, SteadyMemory } from '../../kernel-bridge/windows/steady-memory.js';
import type { NativeFunction } from '../../kernel-bridge/windows/win32.js';
import { refusal } from '../helpers/outcome.js';

/** Native memory by its made-up addresses. */
class FakeNative implements NativeBytes {
  readonly #blocks: SteadyMemory[] = [];

  memory(bytes: number): SteadyMemory {
    const buffer = new ArrayBuffer(Math.ceil(bytes / 8) * 8);
    const address = 0x10_0000 * (this.#blocks.length + 1);
    const block = { address, bytes: new Uint8Array(buffer), words: new Uint32Array(buffer) };
    this.#blocks.push(block);
    return block;
  }

  addressOf(): number {
    return 0x2000;
  }

  copy(): void {}

  /** The values that native code finds at an address. */
  at(address: number): Uint8Array {
    const block = this.#blocks[Math.floor(address / 0x10_0000) - 1]!;
    return block.bytes.subarray(address - block.address);
  }
}

type Answer = number | ((...values: number[]) => number);

/** A provider whose functions return the given values or 0, and the names of the called functions. */
function provider(answers: Readonly<Record<string, Answer>> = {}) {
  const called: string[] = [];
  const native = new FakeNative();
  const slot = (name: string): NativeFunction =>
    Object.assign(
      (...values: readonly unknown[]) => {
        called.push(name);
        const answer = answers[name] ?? 0;
        return typeof answer === 'number' ? answer : answer(...(values as number[]));
      },
      { async: () => {} },
    );
  const names = [
    ...['post_send', 'post_recv', 'rearm_cq', 'nd_modify_qp', 'wv_pre_create_qp', 'poll_cq_array'],
    ...['post_create_qp', 'pre_create_srq', 'post_create_srq', 'post_srq_recv', 'pre_open_ca'],
  ];
  const table = Object.fromEntries(names.map((name) => [name, slot(name)])) as UvpTable;
  return { verbs: new VendorUserVerbs(native, table), called, native };
}

/** A queue pair of a provider, and the objects that it belongs to. */
function queuePair(verbs: VendorUserVerbs, create: Partial<UvpQpCreate> = {}) {
  const ca = verbs.preOpenCa(1n, new UmvBuffer());
  const pd = verbs.preAllocatePd(ca, new UmvBuffer());
  return { ca, pd, qp: verbs.preCreateQp(pd, { ...qpCreate, ...create }, new UmvBuffer()) };
}

const qpCreate = {
  type: QpType.RC,
  sendCq: null,
  receiveCq: null,
  context: 'mine',
  sendDepth: 4,
  sendSge: 1,
  receiveDepth: 4,
  receiveSge: 1,
  maxInlineSend: 0,
};

test('opcodes with separate calls are not sends', () => {
  const { verbs, called } = provider();
  const { qp } = queuePair(verbs);
  const request = new UvpSendRequest();
  request.sgl = [{ region: { lkey: 1, address: 0x1000 }, offset: 0, length: 8 }];
  for (const opcode of [WvOpcode.BIND_WINDOW, WvOpcode.INVALIDATE, 0.5, -1, Number.NaN, 99]) {
    request.opcode = opcode;
    assert.is(refusal(() => verbs.postSend(qp, request)).status, Status.INVALID_PARAMETER, String(opcode));
  }
  assert.not.ok(called.includes('post_send'));
  request.opcode = WvOpcode.SEND;
  verbs.postSend(qp, request);
  assert.ok(called.includes('post_send'));
});

test('queues that the provider rejects leave no token', () => {
  const invalid = 3;
  const { verbs } = provider({ pre_create_srq: invalid, post_create_qp: invalid });
  const ca = verbs.preOpenCa(1n, new UmvBuffer());
  const pd = verbs.preAllocatePd(ca, new UmvBuffer());
  const sizes = { maxWr: 4, maxSge: 1, srqLimit: 0 };
  for (let n = 0; n < 3; n++) {
    const error = refusal(() => verbs.preCreateSrq(pd, sizes, new UmvBuffer()));
    assert.match(error.message, /pre_create_srq .*returned IB_INVALID_PARAMETER/);
    const qp = verbs.preCreateQp(pd, { ...qpCreate }, new UmvBuffer());
    assert.is(qp.token & 0xffff, 0, 'the first place is free again');
    assert.is(ca.tokens.find(qp.token), qp);
    refusal(() => verbs.postCreateQp(pd, Status.SUCCESS, qp, new UmvBuffer()));
    assert.is(ca.tokens.find(qp.token), undefined);
  }
  const other = verbs.preCreateQp(pd, { ...qpCreate }, new UmvBuffer());
  verbs.postCreateQp(pd, Status.INSUFFICIENT_RESOURCES, other, new UmvBuffer());
  assert.is(ca.tokens.find(other.token), undefined);
});

test('all creation parameters of a queue pair are passed to the provider', () => {
  const values: unknown[] = [];
  const { verbs, native } = provider({
    wv_pre_create_qp: (_pd, attributes) => {
      const { qpCreate: inner, ...rest } = layouts.uvpQpCreate.decode(native.at(attributes!));
      values.push([inner.sqSignaled, inner.sqDepth, inner.rqSge], rest);
      return 0;
    },
  });
  const depths = { initiatorDepth: 3, responderResources: 5, maxInlineSend: 64 };
  const { qp } = queuePair(verbs, { ...depths, signalSends: true });
  assert.equal(values, [[1, 4, 1], { context: qp.token, ...depths }]);
});

test('a remote offset carries into the upper half of the address', () => {
  const places: bigint[] = [];
  const { verbs, native } = provider({
    post_send: (_qp, request) => {
      const words = new DataView(native.at(request!).slice().buffer);
      places.push(words.getBigUint64(4 * SendWord.remote, true));
      return 0;
    },
  });
  const { qp } = queuePair(verbs);
  const request = new UvpSendRequest();
  request.opcode = WvOpcode.RDMA_WRITE;
  request.remoteLow = 0xffff_fff0;
  request.remoteHigh = 1;
  for (const offset of [0, 15, 16, 2 ** 32 + 32]) {
    request.remoteOffset = offset;
    verbs.postSend(qp, request);
  }
  assert.equal(
    places,
    [0, 15, 16, 2 ** 32 + 32].map((offset) => 0x1_ffff_fff0n + BigInt(offset)),
  );
  request.remoteHigh = 0xffff_ffff;
  request.remoteOffset = 16;
  assert.match(
    refusal(() => verbs.postSend(queuePair(verbs).qp, request)).message,
    /offset 16 leaves the 64-bit address space/,
  );
});

test('a failed completion has no length, and one with an unknown status is an error; a poll from a setter returns nothing', () => {
  const failures = [WcStatus.FLUSHED, 99];
  let ids: number[][] = [];
  const { verbs, native } = provider({
    post_send: (_qp, request) => {
      const words = new Uint32Array(native.at(request!).slice(0, 4 * SendWord.size).buffer);
      ids.push([words[SendWord.id]!, words[SendWord.id + 1]!]);
      return 0;
    },
    poll_cq_array: (_cq, count, at) => {
      const bytes = native.at(at!);
      const words = new Uint32Array(bytes.buffer, bytes.byteOffset);
      const got = ids.slice(0, count);
      for (const [n, [low, high]] of got.entries()) {
        const from = n * CompletionWord.size;
        words[from + CompletionWord.id] = low!;
        words[from + CompletionWord.id + 1] = high!;
        words[from + CompletionWord.status] = failures.shift()!;
        words[from + CompletionWord.vendor] = 7;
      }
      ids = ids.slice(got.length);
      return got.length;
    },
  });
  const { ca, qp } = queuePair(verbs);
  const cq = verbs.preCreateCq(ca, { entries: 8 }, new UmvBuffer());
  const request = new UvpSendRequest();
  request.sgl = [{ region: { lkey: 1, address: 0x1000 }, offset: 0, length: 100 }];
  for (const context of ['flushed', 'unknown']) {
    request.context = context;
    verbs.postSend(qp, request);
  }
  const done: UvpCompletion[] = [];
  let inner: number | undefined;
  const first = Object.defineProperty({}, 'context', {
    set: () => {
      inner ??= verbs.pollCq(cq, [], 8);
    },
  });
  done.push(first as UvpCompletion);
  assert.is(verbs.pollCq(cq, done, 8), 2);
  assert.is(inner, 0);
  assert.equal(
    done.map(({ status, length, vendorCode }) => [status, length, vendorCode]),
    [
      [WcStatus.FLUSHED, 0, 7],
      [WcStatus.ERROR, 0, 7],
    ],
  );
  assert.is(done[1]!.context, 'unknown');
});

test('a provider that requests an implausible number of bytes is rejected', () => {
  for (const sizes of [{ inputSize: 2 ** 20 + 1 }, { outputSize: 2 ** 20 + 1 }]) {
    const { verbs, native } = provider({
      pre_open_ca: (_guid, umv) => {
        layouts.umvBuf.encode(
          { command: 0, status: 0, inputSize: 0, outputSize: 0, pInoutBuf: 0, ...sizes },
          native.at(umv!),
        );
        return 0;
      },
    });
    assert.match(
      refusal(() => verbs.preOpenCa(1n, new UmvBuffer())).message,
      /at most 1048576 bytes with the driver/,
    );
  }
});

test.run();
