/** Every NAK, in both roles: the rejected request, both sides' statuses, and their final states. */
import assert from 'node:assert/strict';
import { readCounters } from '../../../kernel-bridge/index.js';
import { QpState, RemoteMemory, WcStatus, WvAccess, WvSend, type WvSge } from '../../../winverbs/index.js';
import { SIGNALED, wcName } from './interop-side.js';
import {
  type GuestRequest,
  type Hosts,
  IBV_QPS_ERR,
  Ibv,
  IbvWc,
  type Pair,
  type PairOptions,
} from './verbs-guest.js';

const SIZE = 65_536;
const WORD = 8;

interface Refusal {
  readonly name: string;
  readonly pair?: PairOptions;
  readonly status: number;
}

interface RefusalOfTheirs extends Refusal {
  post(pair: Pair, piece: readonly [WvSge]): void;
}

interface RefusalOfOurs extends Refusal {
  request(pair: Pair): GuestRequest;
}

const OPERATIONS = ['READ', 'WRITE', 'WRITE_IMM', 'CMP_SWAP', 'FETCH_ADD'] as const;
type Operation = (typeof OPERATIONS)[number];
const ATOMICS = ['CMP_SWAP', 'FETCH_ADD'] as const;
const IMMEDIATE = 0x1234_5678;
/** Options that prevent retransmissions because of a late report of a missing receive. */
const THREE_TRIES = { rnrRetry: 2, ackTimeout: 0 } as const;

function post(
  { qp, remote }: Pair,
  piece: readonly [WvSge],
  kind: Operation,
  at: number,
  key?: number,
): void {
  const target = key === undefined ? remote : new RemoteMemory({ address: remote.address, rkey: key });
  if (kind === 'READ') qp.read(kind, piece, SIGNALED, target, at);
  else if (kind === 'WRITE') qp.write(kind, piece, SIGNALED, target, at);
  else if (kind === 'WRITE_IMM') qp.write(kind, piece, SIGNALED | WvSend.IMMEDIATE, target, at, IMMEDIATE);
  else if (kind === 'CMP_SWAP') qp.compareExchange(kind, piece[0], SIGNALED, 0n, 1n, target, at);
  else qp.fetchAdd(kind, piece[0], SIGNALED, 1n, target, at);
}

function request({ memory: { region } }: Pair, kind: Operation, at: number, key?: number): GuestRequest {
  const common = { at: 0, len: WORD, addr: region.address + at, rkey: key ?? region.rkey };
  if (kind === 'READ') return { op: 'read', ...common };
  if (kind === 'WRITE') return { op: 'write', ...common };
  if (kind === 'WRITE_IMM') return { op: 'write_imm', ...common, imm: IMMEDIATE };
  return { op: kind === 'CMP_SWAP' ? 'cas' : 'add', ...common, want: 0, swap: 1 };
}

/** Changes the 24 bits of a key that identify the memory. */
const otherIndex = (key: number): number => (key ^ 0x5500_0000) >>> 0;
/** Changes the 8 bits that the consumer chooses. */
const otherKey = (key: number): number => (key ^ 0x55) >>> 0;

const theirRights: Record<Operation, number> = {
  READ: Ibv.REMOTE_READ,
  WRITE: Ibv.REMOTE_WRITE,
  WRITE_IMM: Ibv.REMOTE_WRITE,
  CMP_SWAP: Ibv.REMOTE_ATOMIC,
  FETCH_ADD: Ibv.REMOTE_ATOMIC,
};
const ourRights: Record<Operation, number> = {
  READ: WvAccess.REMOTE_READ,
  WRITE: WvAccess.REMOTE_WRITE,
  WRITE_IMM: WvAccess.REMOTE_WRITE,
  CMP_SWAP: WvAccess.REMOTE_ATOMIC,
  FETCH_ADD: WvAccess.REMOTE_ATOMIC,
};
const EVERY = Ibv.LOCAL_WRITE | Ibv.REMOTE_READ | Ibv.REMOTE_WRITE | Ibv.REMOTE_ATOMIC;
const OUR_EVERY = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC;
/** Remote write includes local write, which the others also need. */
const withoutOurs = (kind: Operation): number => (OUR_EVERY & ~ourRights[kind]) | WvAccess.LOCAL_WRITE;

function refusalsOfTheirs(): RefusalOfTheirs[] {
  const denied = { status: WcStatus.REMOTE_ACCESS_ERROR };
  return [
    ...OPERATIONS.flatMap((kind): RefusalOfTheirs[] => [
      {
        ...denied,
        name: `${kind} with an unknown key`,
        post: (pair, piece) => post(pair, piece, kind, 0, otherIndex(pair.remote.rkey)),
      },
      {
        ...denied,
        name: `${kind} with another key byte`,
        post: (pair, piece) => post(pair, piece, kind, 0, otherKey(pair.remote.rkey)),
      },
      {
        ...denied,
        name: `${kind} without the memory's right`,
        pair: { guestMemory: EVERY & ~theirRights[kind] },
        post: (pair, piece) => post(pair, piece, kind, 0),
      },
      {
        name: `${kind} without the queue pair's right`,
        pair: { guestQp: EVERY & ~theirRights[kind] },
        // rxe and this package reply with this (IBA 1 §9.7.4.1.5: the responder does not support the operation).
        status: WcStatus.REMOTE_INVALID_REQUEST,
        post: (pair, piece) => post(pair, piece, kind, 0),
      },
    ]),
    ...(['READ', 'WRITE', 'WRITE_IMM'] as const).map(
      (kind): RefusalOfTheirs => ({
        ...denied,
        name: `${kind} one byte beyond the end`,
        post: (pair, piece) => post(pair, piece, kind, SIZE - WORD + 1),
      }),
    ),
    ...ATOMICS.flatMap((kind): RefusalOfTheirs[] => [
      { ...denied, name: `${kind} beyond the end`, post: (pair, piece) => post(pair, piece, kind, SIZE) },
      {
        name: `${kind} not at a multiple of 8`,
        status: WcStatus.REMOTE_INVALID_REQUEST,
        post: (pair, piece) => post(pair, piece, kind, 4),
      },
    ]),
  ];
}

function refusalsOfOurs(): RefusalOfOurs[] {
  const denied = { status: IbvWc.REM_ACCESS_ERR };
  return [
    ...OPERATIONS.flatMap((kind): RefusalOfOurs[] => [
      {
        ...denied,
        name: `${kind} with an unknown key`,
        request: (pair) => request(pair, kind, 0, otherIndex(pair.memory.region.rkey)),
      },
      {
        ...denied,
        name: `${kind} with another key byte`,
        request: (pair) => request(pair, kind, 0, otherKey(pair.memory.region.rkey)),
      },
      {
        ...denied,
        name: `${kind} without the memory's right`,
        pair: { ourMemory: withoutOurs(kind) & ~(kind === 'WRITE' ? 0x2 : 0) },
        request: (pair) => request(pair, kind, 0),
      },
      {
        name: `${kind} without the queue pair's right`,
        pair: { ourQp: OUR_EVERY & ~ourRights[kind] },
        status: IbvWc.REM_INV_REQ_ERR,
        request: (pair) => request(pair, kind, 0),
      },
    ]),
    ...(['READ', 'WRITE', 'WRITE_IMM'] as const).map(
      (kind): RefusalOfOurs => ({
        ...denied,
        name: `${kind} one byte beyond the end`,
        request: (pair) => request(pair, kind, SIZE - WORD + 1),
      }),
    ),
    // A misaligned atomic never leaves the guest, because its library rejects it. Native tests cover this package's NAK for it.
    ...ATOMICS.map(
      (kind): RefusalOfOurs => ({
        ...denied,
        name: `${kind} beyond the end`,
        request: (pair) => request(pair, kind, SIZE),
      }),
    ),
  ];
}

async function step(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    console.log(`ok  ${name}`);
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The guest rejects our requests. We get the reason, and both queue pairs fail. */
export async function naksOfTheirs(hosts: Hosts): Promise<void> {
  for (const { name, pair: options, status, post: run } of refusalsOfTheirs()) {
    await step(name, async () => {
      const pair = await hosts.pair({ size: SIZE, ...options });
      await hosts.receive(0, WORD);
      run(pair, pair.memory.sge(0, WORD));
      pair.qp.send('later', pair.memory.sge(0, WORD), SIGNALED);
      assert.equal(wcName((await pair.queue.any()).status), wcName(status));
      assert.equal(wcName((await pair.queue.any()).status), 'FLUSHED');
      assert.equal(pair.qp.state, QpState.ERROR);
      assert.equal(await hosts.guestState(), IBV_QPS_ERR);
      pair.qp.release();
    });
  }
  await step('SEND longer than the receive', async () => {
    const pair = await hosts.pair({ size: SIZE });
    await hosts.receive(0, 100);
    pair.qp.send('send', pair.memory.sge(0, 101), SIGNALED);
    const here = wcName((await pair.queue.any()).status);
    const [there] = await hosts.completions(1);
    // The architecture requires an invalid request here; rxe reports an operational error on both sides.
    const expected = there?.status === IbvWc.LOC_QP_OP_ERR ? 'REMOTE_OP_ERROR' : 'REMOTE_INVALID_REQUEST';
    assert.equal(here, expected);
    assert.ok(there?.status === IbvWc.LOC_QP_OP_ERR || there?.status === IbvWc.LOC_LEN_ERR);
    assert.equal(await hosts.guestState(), IBV_QPS_ERR);
    pair.qp.release();
  });
  await step('SEND into memory that may not be written', async () => {
    const pair = await hosts.pair({ guestMemory: Ibv.REMOTE_READ });
    await hosts.receive(0, WORD);
    pair.qp.send('send', pair.memory.sge(0, WORD), SIGNALED);
    assert.equal(wcName((await pair.queue.any()).status), 'REMOTE_OP_ERROR');
    assert.equal(await hosts.guestState(), IBV_QPS_ERR);
    pair.qp.release();
  });
  await step('WRITE with immediate data that finds no receive, finite retry', async () => {
    const pair = await hosts.pair({ rnrRetry: 1 });
    post(pair, pair.memory.sge(0, WORD), 'WRITE_IMM', 0);
    assert.equal(wcName((await pair.queue.any()).status), 'RNR_RETRY_ERROR');
    pair.qp.release();
  });
  await step('SEND that finds no receive, finite retry', async () => {
    const pair = await hosts.pair(THREE_TRIES);
    const before = readCounters().hca.rcvd_rnr_err ?? 0;
    pair.qp.send('send', pair.memory.sge(0, WORD), SIGNALED);
    assert.equal(wcName((await pair.queue.any()).status), 'RNR_RETRY_ERROR');
    // There were three tries: the first one and two retries.
    assert.equal((readCounters().hca.rcvd_rnr_err ?? 0) - before, 3);
    pair.qp.release();
  });
  await step('SEND that finds no receive, infinite retry', async () => {
    const pair = await hosts.pair({ rnrRetry: 7 });
    const before = readCounters().hca.rcvd_rnr_err ?? 0;
    pair.qp.send('send', pair.memory.sge(0, WORD), SIGNALED);
    // Waits for more retries than any finite count permits.
    while ((readCounters().hca.rcvd_rnr_err ?? 0) - before < 10) await hosts.guestState();
    assert.equal(pair.queue.cq.peek(), 0);
    await hosts.receive(0, WORD);
    assert.equal(wcName((await pair.queue.any()).status), 'SUCCESS');
    const [there] = await hosts.completions(1);
    assert.equal(there?.status, IbvWc.SUCCESS);
    pair.qp.release();
  });
  await step('a queue pair that is gone', async () => {
    const pair = await hosts.pair();
    await hosts.drop();
    pair.qp.write('write', pair.memory.sge(0, WORD), SIGNALED, pair.remote, 0);
    assert.equal(wcName((await pair.queue.any()).status), 'TIMEOUT_RETRY_ERROR');
    pair.qp.release();
  });
}

/** We reject the guest's requests. Its library reports the reason, and both queue pairs fail. */
export async function naksOfOurs(hosts: Hosts): Promise<void> {
  for (const { name, pair: options, status, request: make } of refusalsOfOurs()) {
    await step(name, async () => {
      const pair = await hosts.pair({ size: SIZE, ...options });
      pair.memory.bytes.fill(0x77);
      pair.qp.postReceive('receive', pair.memory.sge(0, WORD));
      await hosts.post(make(pair), { op: 'send', at: 0, len: WORD });
      const [first, second] = await hosts.completions(2);
      assert.equal(first?.status, status);
      assert.equal(second?.status, IbvWc.WR_FLUSH_ERR);
      assert.equal(await hosts.guestState(), IBV_QPS_ERR);
      assert.equal(wcName((await pair.queue.any()).status), 'FLUSHED');
      assert.equal(pair.qp.state, QpState.ERROR);
      assert.ok(
        pair.memory.bytes.every((byte) => byte === 0x77),
        'memory was changed',
      );
      pair.qp.release();
    });
  }
  await step('SEND longer than the receive', async () => {
    const pair = await hosts.pair({ size: SIZE });
    pair.qp.postReceive('receive', pair.memory.sge(0, 100));
    assert.equal(await hosts.status({ op: 'send', at: 0, len: 101 }), IbvWc.REM_INV_REQ_ERR);
    assert.equal(wcName((await pair.queue.any()).status), 'LOCAL_LENGTH_ERROR');
    pair.qp.release();
  });
  await step('SEND into memory that may not be written', async () => {
    const pair = await hosts.pair({ ourMemory: WvAccess.REMOTE_READ });
    pair.qp.postReceive('receive', pair.memory.sge(0, WORD));
    assert.equal(await hosts.status({ op: 'send', at: 0, len: WORD }), IbvWc.REM_OP_ERR);
    assert.equal(wcName((await pair.queue.any()).status), 'LOCAL_PROTECTION_ERROR');
    assert.equal(pair.qp.state, QpState.ERROR);
    pair.qp.release();
  });
  await step('WRITE with immediate data that finds no receive, finite retry', async () => {
    const pair = await hosts.pair({ rnrRetry: 1 });
    assert.equal(await hosts.status(request(pair, 'WRITE_IMM', 0)), IbvWc.RNR_RETRY_EXC_ERR);
    pair.qp.release();
  });
  await step('SEND that finds no receive, finite retry', async () => {
    const pair = await hosts.pair(THREE_TRIES);
    const before = readCounters().hca.send_rnr_err ?? 0;
    assert.equal(await hosts.status({ op: 'send', at: 0, len: WORD }), IbvWc.RNR_RETRY_EXC_ERR);
    assert.equal((readCounters().hca.send_rnr_err ?? 0) - before, 3);
    pair.qp.release();
  });
  await step('SEND that finds no receive, infinite retry', async () => {
    const pair = await hosts.pair({ rnrRetry: 7 });
    const before = readCounters().hca.send_rnr_err ?? 0;
    await hosts.post({ op: 'send', at: 0, len: WORD });
    while ((readCounters().hca.send_rnr_err ?? 0) - before < 10) await hosts.guestState();
    pair.qp.postReceive('receive', pair.memory.sge(0, WORD));
    assert.equal(wcName((await pair.queue.any()).status), 'SUCCESS');
    const [there] = await hosts.completions(1);
    assert.equal(there?.status, IbvWc.SUCCESS);
    pair.qp.release();
  });
  await step('a queue pair that is gone', async () => {
    const pair = await hosts.pair({ retry: 3 });
    const { address, rkey } = pair.memory.region;
    pair.qp.release();
    const status = await hosts.status({ op: 'write', at: 0, len: WORD, addr: address, rkey });
    assert.equal(status, IbvWc.RETRY_EXC_ERR);
  });
}
