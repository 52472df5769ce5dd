/**
 * A miniature of MS-MPI over v2 and v1. It has the same order of calls, depths, flags and private data, and it counts requests, arms
 * notifications, connects its ranks and shuts down in the same way. The tests assert what MS-MPI relies on.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2QueuePair,
  type INDCompletionQueue,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  NdMwDescriptor,
  NdOpFlag,
  NdQueryFlag,
  type NdResult,
  ndCleanup,
  ndOpenAdapter,
  ndOpenV1Adapter,
  ndQueryAddressList,
  ndStartup,
  type Overlapped,
  type SocketAddress,
  Status,
} from '../../nd/index.js';
import { outcome } from '../helpers/outcome.js';
import { HANG_MS } from '../helpers/within.js';

test.before(() => ndStartup());
test.after(() => ndCleanup());

/** Ends a wait that would last forever. */
const timeout = () => AbortSignal.timeout(HANG_MS);

/** A promise with its resolve function. */
class Event {
  fire!: () => void;
  readonly happened = new Promise<void>((resolve) => {
    this.fire = resolve;
  });
}

// ── MS-MPI, v2 channel ──────────────────────────────────────────────────────────────────────────────────────

const RECEIVES = 128;
const SENDS = 32;
const BUFFER = 64;
const LARGE = 1 << 20;

/** A connection with another rank. All its Receives are posted before it connects, and each is counted. */
class MpiPeer {
  readonly connector: IND2Connector;
  readonly queuePair: IND2QueuePair;
  /** Requests that have not completed. The object must exist until then. */
  references = 0;
  sends = 0;
  received = 0;
  expected = 0;
  readonly inbox: string[] = [];
  readonly gone = new Event();
  slot = new Event();
  message = new Event();
  /** Outstanding Reads by context. */
  readonly reads = new Map<unknown, () => void>();

  constructor(
    readonly rank: MpiRank,
    readonly region: IND2MemoryRegion,
    readonly bytes: Uint8Array,
    connector?: IND2Connector,
  ) {
    const { adapter, queue, inline } = rank;
    this.connector = connector ?? adapter.createConnector();
    this.queuePair = adapter.createQueuePair({
      receiveCompletionQueue: queue,
      initiatorCompletionQueue: queue,
      context: this,
      receiveQueueDepth: RECEIVES,
      initiatorQueueDepth: SENDS,
      maxReceiveRequestSge: 1,
      maxInitiatorRequestSge: 1,
      inlineDataSize: inline,
    });
    for (let i = 0; i < RECEIVES; i += 1) this.postReceive(i);
  }

  postReceive(index: number): void {
    this.queuePair.receive(index, [{ memory: this.region, offset: index * BUFFER, length: BUFFER }]);
    this.references += 1;
  }

  async send(text: string, flags = 0): Promise<void> {
    while (this.sends === SENDS) await this.slot.happened;
    const memory = new TextEncoder().encode(text);
    assert.ok(memory.length <= this.rank.inline);
    this.queuePair.send('send', [{ memory, offset: 0, length: memory.length }], Nd2OpFlag.INLINE | flags);
    this.sends += 1;
    this.references += 1;
  }

  /** Returns the next message. */
  async next(): Promise<string> {
    while (this.inbox.length === 0) await this.message.happened;
    return this.inbox.shift()!;
  }

  /** Handles a completed request, identified only by type and status. */
  complete({ status, requestType, requestContext, bytesTransferred }: Nd2Result): void {
    this.references -= 1;
    assert.ok(this.references >= 0, 'no request comes back twice');
    if (requestType === Nd2RequestType.RECEIVE) {
      assert.is(requestContext, this.expected % RECEIVES, 'receives complete in the order they were posted');
      this.expected += 1;
      if (status === Status.SUCCESS) {
        const at = (requestContext as number) * BUFFER;
        this.inbox.push(textOf(this.bytes.subarray(at, at + bytesTransferred)));
        this.postReceive(requestContext as number);
        this.message.fire();
        this.message = new Event();
      } else assert.is(status, Status.CANCELED);
    } else {
      this.sends -= 1;
      assert.is(status, Status.SUCCESS);
      if (requestType === Nd2RequestType.READ) this.reads.get(requestContext)?.();
      else assert.is(requestType, Nd2RequestType.SEND);
      this.slot.fire();
      this.slot = new Event();
    }
    if (this.references === 0) this.gone.fire();
  }

  /** Abandons a connection in favor of the peer's: all posted requests must complete. */
  async abandon(): Promise<void> {
    this.queuePair.flush();
    this.connector.cancelOverlappedRequests();
    await this.gone.happened;
    this.release();
  }

  async close(first: boolean): Promise<void> {
    // Requires that no request is outstanding. The other side's disconnect may have been faster.
    while (this.sends > 0) await this.slot.happened;
    if (first) assert.is(await outcome(this.connector.disconnect()), Status.SUCCESS);
    else {
      await this.connector.notifyDisconnect().abortOn(timeout());
      assert.is(await outcome(this.connector.disconnect()), Status.SUCCESS);
    }
    await this.gone.happened;
    this.release();
  }

  release(): void {
    assert.is(this.references, 0);
    for (const object of [this.connector, this.queuePair, this.region]) object.release();
  }
}

class MpiRank {
  readonly adapter: IND2Adapter = ndOpenAdapter(ADDRESS);
  readonly inline: number;
  readonly queue: IND2CompletionQueue;
  readonly listener: IND2Listener;
  readonly address: SocketAddress;
  readonly peers = new Map<number, { peer: MpiPeer; active: boolean }>();
  readonly ready = new Map<number, Event>();
  readonly connecting = new Set<number>();
  refused = 0;
  readonly #pump: Promise<void>;
  readonly #server: Promise<void>;

  constructor(
    readonly id: number,
    ranks: number,
  ) {
    const info = this.adapter.query(0x20000);
    assert.ok(info.maxCompletionQueueDepth >= RECEIVES + SENDS);
    assert.ok(info.maxReceiveQueueDepth >= RECEIVES && info.maxInitiatorQueueDepth >= SENDS);
    this.inline = info.inlineRequestThreshold;
    const depth = Math.min((ranks - 1) * (RECEIVES + SENDS) * 2, info.maxCompletionQueueDepth);
    this.queue = this.adapter.createCompletionQueue(depth);
    this.listener = this.adapter.createListener();
    this.listener.bind(ADDRESS);
    this.address = this.listener.getLocalAddress();
    this.listener.listen(0);
    for (let i = 0; i < ranks; i += 1) if (i !== id) this.ready.set(i, new Event());
    this.#pump = this.#poll();
    this.#server = this.#serve();
  }

  async newPeer(connector?: IND2Connector): Promise<MpiPeer> {
    const region = this.adapter.createMemoryRegion();
    const bytes = new Uint8Array(RECEIVES * BUFFER);
    await region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
    return new MpiPeer(this, region, bytes, connector);
  }

  /** Connects from the listener's own address and port. */
  async connect(other: MpiRank): Promise<void> {
    this.connecting.add(other.id);
    const peer = await this.newPeer();
    peer.connector.bind(this.address);
    const privateData = new Uint8Array(29);
    privateData[0] = this.id;
    const options = { inboundReadLimit: 16, outboundReadLimit: 16, privateData };
    let status: number;
    do {
      const request = peer.connector.connect(peer.queuePair, other.address, options);
      status = await outcome(request.abortOn(timeout()));
    } while (status === Status.IO_TIMEOUT);
    if (status === Status.CONNECTION_REFUSED) {
      // Both sides connect at the same time, and the other side's attempt wins.
      this.refused += 1;
      return peer.abandon();
    }
    assert.is(status, Status.SUCCESS);
    assert.ok(peer.connector.getPrivateData().length >= 1);
    await peer.connector.completeConnect();
    this.#established(other.id, peer, true);
    await peer.send('first');
  }

  #established(id: number, peer: MpiPeer, active: boolean): void {
    assert.is(this.peers.has(id), false, 'one connection with each rank');
    this.peers.set(id, { peer, active });
    this.ready.get(id)!.fire();
  }

  async #serve(): Promise<void> {
    for (;;) {
      const connector = this.adapter.createConnector();
      const status = await outcome(this.listener.getConnectionRequest(connector));
      if (status === Status.CANCELED) return void connector.release();
      void this.#serveOne(connector);
    }
  }

  async #serveOne(connector: IND2Connector): Promise<void> {
    const data = connector.getPrivateData();
    assert.ok(data.length >= 29);
    assert.is(connector.getLocalAddress().port, this.address.port);
    const id = data[0]!;
    if (this.connecting.has(id) && this.id < id) {
      connector.reject(new Uint8Array([1]));
      return void connector.release();
    }
    const peer = await this.newPeer(connector);
    await connector.accept(peer.queuePair, {
      inboundReadLimit: 16,
      outboundReadLimit: 16,
      privateData: new Uint8Array(1),
    });
    // The passive side never sends first.
    assert.is(await peer.next(), 'first');
    this.#established(id, peer, false);
  }

  async #poll(): Promise<void> {
    const results: Nd2Result[] = [];
    const drain = () => {
      let count: number;
      let any = false;
      do {
        count = this.queue.getResults(results, 16);
        any ||= count > 0;
        for (const result of results.slice(0, count)) (result.queuePairContext as MpiPeer).complete(result);
      } while (count === 16);
      return any;
    };
    let armed: Overlapped<void> | undefined;
    for (;;) {
      if (drain()) continue;
      armed ??= this.queue.notify('any');
      // Polls once more after arming.
      if (drain()) continue;
      if ((await outcome(armed)) === Status.CANCELED) return;
      armed = undefined;
    }
  }

  async finalize(): Promise<void> {
    this.listener.cancelOverlappedRequests();
    await this.#server;
    this.queue.cancelOverlappedRequests();
    await this.#pump;
    for (const object of [this.listener, this.queue, this.adapter]) object.release();
  }
}

test('MS-MPI, v2: all ranks connect to each other at once from their listeners’ ports, exchange messages, and disconnect', async () => {
  assert.ok(
    ndQueryAddressList(NdQueryFlag.EXCLUDE_NDV1_ADDRESSES).some(({ address }) => address === ADDRESS),
  );
  const count = 4;
  const ranks = Array.from({ length: count }, (_, id) => new MpiRank(id, count));
  const others = (rank: MpiRank) => ranks.filter((other) => other !== rank);
  await Promise.all(ranks.flatMap((rank) => others(rank).map((other) => rank.connect(other))));
  await Promise.all(ranks.flatMap((rank) => [...rank.ready.values()].map(({ happened }) => happened)));
  // One of each pair's two attempts was rejected.
  assert.is(
    ranks.reduce((sum, { refused }) => sum + refused, 0),
    (count * (count - 1)) / 2,
  );

  // Sends more eager messages than the send queue has entries.
  await Promise.all(
    ranks.flatMap((rank) =>
      [...rank.peers].map(async ([id, { peer }]) => {
        const sent = (async () => {
          for (let i = 0; i < 100; i += 1) await peer.send(`${rank.id}>${id} ${i}`);
        })();
        for (let i = 0; i < 100; i += 1) assert.is(await peer.next(), `${id}>${rank.id} ${i}`);
        await sent;
      }),
    ),
  );

  // Sends a large message, which the receiver fetches by RDMA Read. The receiver reports the end with a fence.
  const [a, b] = [ranks[0]!.peers.get(1)!.peer, ranks[1]!.peers.get(0)!.peer];
  const source = new Uint8Array(LARGE).map((_, i) => i * 7);
  const sourceRegion = ranks[0]!.adapter.createMemoryRegion();
  await sourceRegion.register(source, Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ);
  await a.send(`${sourceRegion.address} ${sourceRegion.getRemoteToken()}`);
  const [address, token] = (await b.next()).split(' ');
  const target = new Uint8Array(LARGE);
  const targetRegion = ranks[1]!.adapter.createMemoryRegion();
  await targetRegion.register(target, Nd2MrFlag.ALLOW_LOCAL_WRITE);
  const read = new Event();
  b.reads.set('rendezvous', read.fire);
  const remote = new Nd2RemoteMemory(BigInt(address!), Number(token));
  b.queuePair.read('rendezvous', [{ memory: targetRegion, offset: 0, length: LARGE }], remote);
  b.references += 1;
  b.sends += 1;
  await b.send('done', Nd2OpFlag.READ_FENCE);
  assert.is(await a.next(), 'done');
  assert.equal(Buffer.compare(target, source), 0, 'when the fenced Send has arrived, the Read is complete');
  await sourceRegion.deregister();
  await read.happened;
  await targetRegion.deregister();

  await Promise.all(
    ranks.flatMap((rank) => [...rank.peers.values()].map(({ peer, active }) => peer.close(active))),
  );
  for (const object of [sourceRegion, targetRegion]) object.release();
  for (const rank of ranks) await rank.finalize();
});

// ── MS-MPI, v1 channel ──────────────────────────────────────────────────────────────────────────────────────

/** Polls a v1 queue until it has returned `count` results. */
async function reap(queue: INDCompletionQueue, count: number): Promise<NdResult[]> {
  const taken: NdResult[] = [];
  while (taken.length < count) {
    const results: NdResult[] = [];
    const found = queue.getResults(results, count - taken.length);
    taken.push(...results.slice(0, found));
    if (found === 0) await queue.notify('any').abortOn(timeout());
  }
  return taken;
}

async function v1Side() {
  const adapter = ndOpenV1Adapter(ADDRESS);
  const info = adapter.query(1);
  const queue = adapter.createCompletionQueue(128);
  const connector = adapter.createConnector();
  const endpoint = connector.createEndpoint({
    inboundCompletionQueue: queue,
    outboundCompletionQueue: queue,
    inboundEntries: 64,
    outboundEntries: 64,
    inboundSge: 1,
    outboundSge: 1,
    inboundReadLimit: Math.min(info.maxInboundReadLimit, 16),
    outboundReadLimit: Math.min(info.maxOutboundReadLimit, 16),
  });
  const bytes = new Uint8Array(64 * BUFFER);
  const memory = await adapter.registerMemory(bytes);
  const received: (NdResult & { index: number })[] = [];
  endpoint.startRequestBatch();
  for (let index = 0; index < 64; index += 1) {
    const result = { status: -1, bytesTransferred: 0, index };
    received.push(result);
    endpoint.receive(result, [{ memory, offset: index * BUFFER, length: BUFFER }]);
  }
  endpoint.submitRequestBatch();
  return { adapter, queue, connector, endpoint, bytes, memory, received };
}

test('MS-MPI, v1: batches, fences, pooled windows, private data, and an orderly end', async () => {
  const active = await v1Side();
  const passive = await v1Side();
  const listen = passive.adapter.listen({ protocol: 123 });
  assert.ok(listen.port > 0);
  const requested = listen.getConnectionRequest(passive.connector);
  let status: number;
  do {
    const request = active.connector.connect(active.endpoint, `${ADDRESS}:${listen.port}`, {
      protocol: 123,
      privateData: new Uint8Array(32).fill(3),
    });
    await requested;
    assert.ok(passive.connector.getConnectionData().privateData.length >= 32);
    const accepted = passive.connector.accept(passive.endpoint, new Uint8Array(1));
    status = await outcome(request);
    if (status === Status.SUCCESS) {
      await active.connector.completeConnect();
      await accepted;
    }
  } while (status === Status.TIMEOUT);
  assert.is(status, Status.SUCCESS);

  const large = new Uint8Array(LARGE).map((_, i) => i * 3);
  const owned = await active.adapter.registerMemory(large);
  const target = new Uint8Array(LARGE);
  const targetMemory = await passive.adapter.registerMemory(target);
  const window = active.adapter.createMemoryWindow();
  const result = () => ({ status: -1, bytesTransferred: 0 });
  const send = (side: typeof active, bytes: Uint8Array) => {
    side.endpoint.startRequestBatch();
    const sent = result();
    side.endpoint.send(sent, [{ memory: bytes, offset: 0, length: bytes.length }], NdOpFlag.READ_FENCE);
    side.endpoint.submitRequestBatch();
    return sent;
  };
  let token = 0;
  for (let round = 0; round < 3; round += 1) {
    target.fill(0);
    // The descriptor is sent immediately, without waiting for the Bind's completion.
    const bound = result();
    const descriptor = active.endpoint.bind(bound, owned, window, 0, LARGE, NdOpFlag.ALLOW_READ);
    assert.is.not(descriptor.token, token, 'a token for each Bind');
    token = descriptor.token;
    const sent = send(active, descriptor.encode());
    const own = await reap(active.queue, 2);
    assert.equal(own, [bound, sent]);
    const [arrived] = await reap(passive.queue, 1);
    assert.equal([arrived!.status, arrived!.bytesTransferred], [0, NdMwDescriptor.size]);
    const { index } = arrived as (typeof passive.received)[number];
    assert.is(index, round, 'receives in order');
    const remote = NdMwDescriptor.decode(passive.bytes, index * BUFFER);
    const chunk = LARGE / 4;
    for (let offset = 0; offset < LARGE; offset += chunk) {
      passive.endpoint.read(result(), [{ memory: targetMemory, offset, length: chunk }], remote, offset);
    }
    send(passive, new Uint8Array([round]));
    for (const { status: each } of await reap(passive.queue, 5)) assert.is(each, Status.SUCCESS);
    assert.equal(Buffer.compare(target, large), 0);
    const [notice] = await reap(active.queue, 1);
    assert.is(notice!.bytesTransferred, 1);
    active.endpoint.invalidate(result(), window);
    assert.is((await reap(active.queue, 1))[0]!.status, Status.SUCCESS);
  }

  const reported = passive.connector.notifyDisconnect();
  await active.connector.disconnect();
  await reported;
  await passive.connector.disconnect();
  for (const [side, used] of [
    [active, 3],
    [passive, 3],
  ] as const) {
    const flushed = await reap(side.queue, 64 - used);
    assert.ok(flushed.every(({ status: each }) => each === Status.CANCELED));
    assert.is(new Set(flushed).size, 64 - used, 'each once');
  }
  window.release();
  await active.adapter.deregisterMemory(owned);
  await passive.adapter.deregisterMemory(targetMemory);
  listen.release();
  for (const { adapter, queue, connector, endpoint } of [active, passive]) {
    for (const object of [endpoint, connector, queue, adapter]) object.release();
  }
});

test.run();
