/** The NetworkDirect side of the measurements: one connection a job, both sides polling. */
import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  NdMwDescriptor,
  NdOpFlag,
  type NdResult,
  openNetworkDirect,
} from '../nd/index.js';
import type { Job, Measurement } from './plan.js';
import { quantile } from './statistics.js';

const depth = 128;
const warmup = 200;
/** Receives between two credit messages of a rate job. */
const creditBatch = depth / 2;

/** A connected side: its endpoint, its queue, and one buffer for messages with room for a window descriptor. */
class Side {
  readonly results: NdResult[] = [];
  private constructor(
    readonly cq: INDCompletionQueue,
    readonly connector: INDConnector,
    readonly endpoint: INDEndpoint,
    readonly memory: Awaited<ReturnType<typeof register>>,
    readonly bytes: Uint8Array,
  ) {}

  static async create(adapter: INDAdapter, connector: INDConnector, size: number): Promise<Side> {
    const cq = adapter.createCompletionQueue(4 * depth);
    const endpoint = connector.createEndpoint({
      inboundCompletionQueue: cq,
      outboundCompletionQueue: cq,
      inboundEntries: 2 * depth,
      outboundEntries: depth,
    });
    const bytes = new Uint8Array(new SharedArrayBuffer(Math.max(size, 64)));
    const side = new Side(cq, connector, endpoint, await register(adapter, bytes), bytes);
    return side;
  }

  sge(offset: number, length: number) {
    return [{ memory: this.memory, offset, length }];
  }

  /** Polls until `n` results are in; every one must have succeeded. */
  take(n: number): void {
    while (n > 0) {
      const got = this.cq.getResults(this.results, 64);
      for (let i = 0; i < got; i++) check(this.results[i]!);
      n -= got;
    }
  }
}

function register(adapter: INDAdapter, bytes: Uint8Array) {
  return adapter.registerMemory(bytes);
}

function check(result: NdResult): void {
  if (result.status !== 0) throw new Error(`A request ended in status 0x${result.status.toString(16)}.`);
}

function newResult(): NdResult {
  return { status: 0, bytesTransferred: 0 };
}

/** Serves jobs until stopped: the request's private data is the job. */
export async function serveNd(address: string): Promise<{ port: number; close(): void }> {
  const provider = openNetworkDirect();
  const adapter = provider.openAdapter(address);
  const listen = adapter.listen({ backlog: 16 });
  let closed = false;
  void (async () => {
    while (!closed) {
      const connector = adapter.createConnector();
      try {
        await listen.getConnectionRequest(connector);
      } catch (error) {
        if (closed) return;
        throw error;
      }
      await serveOne(adapter, connector);
      connector.release();
    }
  })();
  return {
    port: listen.port,
    close() {
      closed = true;
      listen.release();
      adapter.release();
      provider.release();
    },
  };
}

async function serveOne(adapter: INDAdapter, connector: INDConnector): Promise<void> {
  const text = new TextDecoder().decode(connector.getConnectionData().privateData);
  const [kind, size, count] = text.replace(/\0+$/, '').split(' ') as [Job['kind'], string, string];
  const job: Job = { transport: 'nd', kind, size: Number(size), count: Number(count) };
  const side = await Side.create(adapter, connector, job.size);
  const { endpoint } = side;
  const receive = newResult();
  const receives = kind === 'rate' ? 2 * depth : 2;
  const sge = side.sge(0, Math.max(job.size, 1));
  for (let i = 0; i < receives; i++) endpoint.receive(receive, sge);
  await connector.accept(endpoint);
  const gone = connector.notifyDisconnect();

  const send = newResult();
  if (kind === 'latency') {
    const answer = side.sge(0, job.size);
    for (let i = 0; i < job.count + warmup; i++) {
      waitFor(side, receive);
      endpoint.receive(receive, sge);
      endpoint.send(send, answer);
    }
  } else if (kind === 'rate') {
    let received = 0;
    while (received < job.count) {
      const got = side.cq.getResults(side.results, 64);
      for (let i = 0; i < got; i++) {
        const result = side.results[i]!;
        check(result);
        if (result !== receive) continue;
        endpoint.receive(receive, sge);
        received += 1;
        if (received % creditBatch === 0 || received === job.count) endpoint.send(send, []);
      }
    }
  } else {
    const window = adapter.createMemoryWindow();
    const descriptor = endpoint.bind(
      newResult(),
      side.memory,
      window,
      0,
      job.size,
      NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE,
    );
    descriptor.encode(side.bytes, 0);
    endpoint.send(send, side.sge(0, NdMwDescriptor.size));
    side.take(2);
  }
  await gone;
}

/** Polls until this receive has come; results of sends are taken on the way. */
function waitFor(side: Side, receive: NdResult): void {
  for (;;) {
    const got = side.cq.getResults(side.results, 1);
    if (got === 0) continue;
    const result = side.results[0]!;
    check(result);
    if (result === receive) return;
  }
}

export async function measureNd(address: string, port: number, job: Job): Promise<Measurement> {
  const provider = openNetworkDirect();
  const adapter = provider.openAdapter(address);
  const connector = adapter.createConnector();
  const side = await Side.create(adapter, connector, job.size);
  const receive = newResult();
  const sge = side.sge(0, side.bytes.length);
  for (let i = 0; i < 8; i++) side.endpoint.receive(receive, sge);
  await connector.connect(side.endpoint, `${address}:${port}`, {
    privateData: new TextEncoder().encode(`${job.kind} ${job.size} ${job.count}`),
  });
  await connector.completeConnect();
  try {
    if (job.kind === 'latency') return { ...job, ...pingPong(side, receive, job) };
    const seconds = job.kind === 'rate' ? messages(side, receive, job) : oneSided(side, receive, job);
    return job.kind === 'rate'
      ? { ...job, rate: job.count / seconds }
      : { ...job, bandwidth: (job.count * job.size) / seconds };
  } finally {
    await connector.disconnect();
    for (const object of [connector, side.endpoint, side.cq, adapter, provider]) object.release();
  }
}

function pingPong(side: Side, receive: NdResult, job: Job): { median: number; p99: number } {
  const samples = new Float64Array(job.count);
  const message = side.sge(0, job.size);
  const room = side.sge(0, side.bytes.length);
  const send = newResult();
  for (let i = -warmup; i < job.count; i++) {
    const start = performance.now();
    side.endpoint.send(send, message);
    waitFor(side, receive);
    if (i >= 0) samples[i] = ((performance.now() - start) * 1000) / 2;
    side.endpoint.receive(receive, room);
  }
  return { median: quantile(samples, 0.5), p99: quantile(samples, 0.99) };
}

function messages(side: Side, receive: NdResult, job: Job): number {
  const send = newResult();
  const message = side.sge(0, job.size);
  const nothing = side.sge(0, 1);
  let credits = 2 * depth;
  let outstanding = 0;
  let sent = 0;
  let answers = Math.ceil(job.count / creditBatch);
  const start = performance.now();
  while (answers > 0 || outstanding > 0) {
    side.endpoint.startRequestBatch();
    while (sent < job.count && credits > 0 && outstanding < depth) {
      side.endpoint.send(send, message);
      sent += 1;
      credits -= 1;
      outstanding += 1;
    }
    side.endpoint.submitRequestBatch();
    const got = side.cq.getResults(side.results, 64);
    for (let i = 0; i < got; i++) {
      const result = side.results[i]!;
      check(result);
      if (result === send) outstanding -= 1;
      else {
        side.endpoint.receive(receive, nothing);
        credits += creditBatch;
        answers -= 1;
      }
    }
  }
  return (performance.now() - start) / 1000;
}

function oneSided(side: Side, receive: NdResult, job: Job): number {
  waitFor(side, receive);
  const remote = NdMwDescriptor.decode(side.bytes);
  const result = newResult();
  const data = side.sge(0, job.size);
  const inFlight = 16;
  const post = () =>
    job.kind === 'write'
      ? side.endpoint.write(result, data, remote, 0)
      : side.endpoint.read(result, data, remote, 0);
  let posted = 0;
  let completed = 0;
  const start = performance.now();
  while (completed < job.count) {
    while (posted < job.count && posted - completed < inFlight) {
      post();
      posted += 1;
    }
    const got = side.cq.getResults(side.results, inFlight);
    for (let i = 0; i < got; i++) check(side.results[i]!);
    completed += got;
  }
  return (performance.now() - start) / 1000;
}
