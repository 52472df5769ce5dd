/**
 * Miniatures of libfabric's netdir provider and of a measuring program. They have the same order of calls, depths and flags, and count
 * requests and shut down in the same way. The tests assert what these programs rely on.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import {
  type IND2Connector,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  NdError,
  ndCleanup,
  ndOpenAdapter,
  ndResolveAddress,
  ndStartup,
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

// ── libfabric, netdir provider ──────────────────────────────────────────────────────────────────────────────

/** A domain: an adapter instance with one completion queue for everything, armed again whenever it is empty. */
class Domain {
  readonly local = ndResolveAddress(`${ADDRESS}:1`);
  readonly adapter = ndOpenAdapter(this.local);
  readonly info = this.adapter.query();
  readonly queue = this.adapter.createCompletionQueue(this.info.maxCompletionQueueDepth);
  readonly #loop = this.#run();

  async #run(): Promise<void> {
    const results: Nd2Result[] = [];
    for (;;) {
      const armed = this.queue.notify('any');
      let count: number;
      do {
        count = this.queue.getResults(results, 256);
        for (const result of results.slice(0, count))
          (result.queuePairContext as FiEndpoint).complete(result);
      } while (count === 256);
      if ((await outcome(armed)) !== Status.SUCCESS) return;
    }
  }

  async close(): Promise<void> {
    this.queue.cancelOverlappedRequests();
    await this.#loop;
    this.queue.release();
    this.adapter.release();
  }
}

class FiEndpoint {
  readonly connector: IND2Connector;
  readonly queuePair: IND2QueuePair;
  readonly done: { type: number; status: number; context: unknown }[] = [];
  posted = 0;
  ended: Promise<number> | undefined;
  #changed = new Event();

  constructor(
    readonly domain: Domain,
    readonly region: IND2MemoryRegion,
    connector?: IND2Connector,
  ) {
    const { adapter, info, queue } = domain;
    this.connector = connector ?? adapter.createConnector();
    this.queuePair = adapter.createQueuePair({
      receiveCompletionQueue: queue,
      initiatorCompletionQueue: queue,
      context: this,
      receiveQueueDepth: Math.min(info.maxReceiveQueueDepth, 384),
      initiatorQueueDepth: Math.min(info.maxInitiatorQueueDepth, 384),
      maxReceiveRequestSge: Math.min(info.maxReceiveSge, 8),
      maxInitiatorRequestSge: Math.min(info.maxInitiatorSge, 8),
    });
    for (let i = 0; i < 64; i += 1) {
      this.queuePair.receive(i, [{ memory: region, offset: i * 32, length: 32 }]);
      this.posted += 1;
    }
  }

  get limits() {
    const { maxInboundReadLimit: inboundReadLimit, maxOutboundReadLimit: outboundReadLimit } =
      this.domain.info;
    return { inboundReadLimit, outboundReadLimit };
  }

  complete({ requestType: type, status, requestContext: context }: Nd2Result): void {
    if (type === Nd2RequestType.RECEIVE) this.posted -= 1;
    this.done.push({ type, status, context });
    this.#changed.fire();
    this.#changed = new Event();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#changed.happened;
  }

  /** Flushes, waits for every receive whatever its result, then disconnects. */
  async shutdown(): Promise<void> {
    this.queuePair.flush();
    await this.until(() => this.posted === 0);
    const status = await outcome(this.connector.disconnect());
    assert.ok(status === Status.SUCCESS || status === Status.CONNECTION_INVALID);
    this.connector.release();
    this.queuePair.release();
  }
}

test('libfabric: one deep queue for everything, events of connections, remote memory, shutdown by flush', async () => {
  const [client, server] = [new Domain(), new Domain()];
  const memory = [new Uint8Array(8192), new Uint8Array(8192)] as const;
  const regions = await Promise.all(
    [client, server].map(async ({ adapter }, i) => {
      const region = adapter.createMemoryRegion();
      const request = region.register(
        memory[i as 0 | 1],
        Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE,
      );
      // The result is queried with another object of the adapter.
      await request;
      adapter.createMemoryRegion().getOverlappedResult(request, { wait: true });
      return region;
    }),
  );
  const listener = server.adapter.createListener();
  listener.bind(server.local);
  listener.listen(0);
  const address = listener.getLocalAddress();

  // A passive endpoint rejects with a reason.
  const refusing = server.adapter.createConnector();
  const first = listener.getConnectionRequest(refusing);
  const active = new FiEndpoint(client, regions[0]!);
  active.connector.bind(client.local);
  const data = new TextEncoder().encode('client data');
  const refused = active.connector.connect(active.queuePair, address, {
    ...active.limits,
    privateData: data,
  });
  await first;
  refusing.reject(new TextEncoder().encode('busy'));
  assert.is(await outcome(refused), Status.CONNECTION_REFUSED);
  assert.is(textOf(active.connector.getPrivateData()), 'busy');
  refusing.release();

  const connector = server.adapter.createConnector();
  const requested = listener.getConnectionRequest(connector);
  const connected = active.connector.connect(active.queuePair, address, {
    ...active.limits,
    privateData: data,
  });
  await requested;
  assert.is(textOf(connector.getPrivateData()), 'client data');
  assert.equal(connector.getLocalAddress(), address);
  assert.equal(connector.getPeerAddress(), active.connector.getLocalAddress());
  const passive = new FiEndpoint(server, regions[1]!, connector);
  const accepted = connector
    .accept(passive.queuePair, { ...passive.limits, privateData: new TextEncoder().encode('server data') })
    .then(() => {
      passive.ended = outcome(connector.notifyDisconnect());
    });
  await connected;
  assert.is(textOf(active.connector.getPrivateData()), 'server data');
  const completed = active.connector.completeConnect();
  active.ended = outcome(active.connector.notifyDisconnect());
  await Promise.all([completed, accepted]);

  // Sends eight pieces in one message, then accesses remote memory by token and absolute address.
  const pieces = Array.from({ length: 8 }, (_, i) => ({ memory: regions[0]!, offset: 4096 + i, length: 1 }));
  memory[0].set(new TextEncoder().encode('eight...'), 4096);
  active.queuePair.send('message', pieces);
  await passive.until(() => passive.done.length === 1);
  assert.is(textOf(memory[1].subarray(0, 8)), 'eight...');
  const remote = new Nd2RemoteMemory(regions[1]!.address + 4096n, regions[1]!.getRemoteToken());
  active.queuePair.write('write', [{ memory: regions[0]!, offset: 4096, length: 1000 }], remote);
  active.queuePair.read('read', [{ memory: regions[0]!, offset: 6000, length: 8 }], remote);
  await active.until(() => active.done.length === 3);
  assert.equal(
    active.done.map(({ type, status, context }) => [type, status, context]),
    [
      [Nd2RequestType.SEND, 0, 'message'],
      [Nd2RequestType.WRITE, 0, 'write'],
      [Nd2RequestType.READ, 0, 'read'],
    ],
  );
  assert.is(textOf(memory[0].subarray(6000, 6008)), 'eight...');

  await active.shutdown();
  assert.is(await active.ended, Status.CONNECTION_DISCONNECTED, 'the usual end of the side that closes');
  assert.is(await passive.ended, Status.SUCCESS);
  await passive.shutdown();
  for (const { done } of [active, passive]) {
    assert.is(done.filter(({ type }) => type === Nd2RequestType.RECEIVE).length, 64, 'each receive once');
  }
  listener.release();
  for (const region of regions) {
    await region.deregister();
    region.release();
  }
  await Promise.all([client.close(), server.close()]);
});

test('measuring programs: objects with the depths of Query are created and filled, with one Overlapped after another', async () => {
  const adapter = ndOpenAdapter(ADDRESS);
  const info = adapter.query();
  const depth = Math.min(
    info.maxCompletionQueueDepth,
    info.maxReceiveQueueDepth,
    info.maxInitiatorQueueDepth,
  );
  const queue = adapter.createCompletionQueue(depth);
  const queuePair = adapter.createQueuePair({
    receiveCompletionQueue: queue,
    initiatorCompletionQueue: queue,
    receiveQueueDepth: depth,
    initiatorQueueDepth: depth,
    maxReceiveRequestSge: info.maxReceiveSge,
    maxInitiatorRequestSge: info.maxInitiatorSge,
    inlineDataSize: info.inlineRequestThreshold,
  });
  for (let i = 0; i < depth; i += 1) queuePair.receive(i, []);
  assert.throws(
    () => queuePair.receive(depth, []),
    (error: unknown) => error instanceof NdError && error.status === Status.NO_MORE_ENTRIES,
  );
  queuePair.flush();
  let count = 0;
  const results: Nd2Result[] = [];
  while (count < depth) {
    const found = queue.getResults(results, 1024);
    for (let i = 0; i < found; i += 1) assert.is(results[i]!.requestContext, count + i);
    count += found;
    if (found === 0) await queue.notify('any').abortOn(timeout());
  }
  for (const object of [queuePair, queue, adapter]) object.release();
});

test.run();
