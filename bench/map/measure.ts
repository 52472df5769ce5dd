/** The client of a measurement: readers, or an owner. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { allocate, connectChannel } from 'networkdirect/net';
import { each, quantile, type Sample, timed } from '../samples.js';
import { keysOf, type MapJob, scattered } from './job.js';
import { LOOPBACK } from './serve.js';
import { open, own, type Store } from './stores.js';

/** Operations between two turns of the event loop, as in a program with other work. */
const ACTS = 500;
/** Time that readers run before they are counted, in ms. */
const WARM_UP_MS = 500;
const MOST_TIMES = 2 ** 18;
/** Reads that are timed together. */
const READS = 1000;
/** Changes per lmdb transaction if they are not awaited. */
const TRANSACTION = 1000;
const COUNTER = 'counter';

/** One operation with a key. Returns the number of received bytes, or 0. */
type Act = (key: string) => number | Promise<number>;

/** The counted time span, in ms since 1970. */
interface Span {
  readonly from: number;
  readonly to: number;
}

const now = (): number => performance.timeOrigin + performance.now();

function actOf({ kind, size }: MapJob, store: Store): Act {
  const value = Buffer.alloc(size, 7);
  if (kind === 'add') return (): number | Promise<number> => without(store.add!(COUNTER));
  if (kind === 'set' || kind === 'store') return (key) => without(store.set(key, value));
  if (kind === 'getInto') return (key) => store.getInto!(key, value);
  return (key) => {
    const got = store.get(key);
    return got instanceof Promise ? got.then(lengthOf) : lengthOf(got);
  };
}

function lengthOf(value: Uint8Array | undefined | null): number {
  return value?.length ?? 0;
}

function without(result: unknown): number | Promise<number> {
  return result instanceof Promise ? result.then(() => 0) : 0;
}

/** Repeats an operation with one key after another. */
class Repetition {
  readonly #keys: readonly string[];
  #at = 0;
  count = 0;
  #bytes = 0;

  constructor(
    private readonly job: MapJob,
    private readonly act: Act,
  ) {
    this.#keys = scattered(keysOf(job));
  }

  /** Repeats until a time. */
  async until(end: number): Promise<void> {
    this.count = 0;
    this.#bytes = 0;
    const atOnce = typeof this.act(this.#next()) === 'number';
    while (now() < end) {
      if (atOnce) this.#acts(ACTS);
      else await this.#awaited();
      await turn();
    }
    const gets = this.job.kind === 'get' || this.job.kind === 'getInto';
    const all = this.count * this.job.size;
    if (gets && this.#bytes !== all) throw new Error(`Expected ${all} bytes; got ${this.#bytes}`);
  }

  /** Times of single operations, in µs. */
  async times(end: number): Promise<Float64Array> {
    const times = new Float64Array(MOST_TIMES);
    let count = 0;
    while (now() < end) {
      for (let i = 0; i < ACTS; i += 1) {
        const before = performance.now();
        const done = this.act(this.#next());
        if (typeof done !== 'number') await done;
        times[count % MOST_TIMES] = (performance.now() - before) * 1000;
        count += 1;
      }
      await turn();
    }
    return times.subarray(0, Math.min(count, MOST_TIMES));
  }

  #acts(count: number): void {
    for (let i = 0; i < count; i += 1) this.#bytes += this.act(this.#next()) as number;
    this.count += count;
  }

  async #awaited(): Promise<void> {
    const inFlight = this.job.over === 'lmdb' && this.job.kind === 'store' ? TRANSACTION : this.job.inFlight;
    const all = await Promise.all(Array.from({ length: inFlight }, () => this.act(this.#next())));
    this.#bytes += all.reduce((sum, bytes) => sum + bytes, 0);
    this.count += inFlight;
  }

  #next(): string {
    const key = this.#keys[this.#at]!;
    this.#at = this.#at + 1 < this.#keys.length ? this.#at + 1 : 0;
    return key;
  }
}

/** The store of the measured process: the owner's store if that is measured. */
async function storeOf(job: MapJob, where: string): Promise<Store> {
  const owns = job.over === 'Map' || (job.kind === 'store' && job.over === 'networkdirect/net');
  if (!owns) return open(job, where);
  const { store } = await own(job);
  for (const key of keysOf(job)) await store.set(key, Buffer.alloc(job.size, 7));
  return store;
}

/** One of several readers: a child process of the client. */
export async function read(job: MapJob, where: string): Promise<void> {
  const repetition = new Repetition(job, actOf(job, await storeOf(job, where)));
  process.send!('ready');
  const [{ from, to }] = (await once(process, 'message')) as [Span];
  await repetition.until(from);
  await repetition.until(to);
  process.send!(repetition.count);
}

/** The sum of all readers, per second, counted in the same time span. */
async function readers(job: MapJob, where: string): Promise<number> {
  const children = Array.from({ length: job.readers }, () =>
    fork(process.argv[1]!, ['reader', JSON.stringify(job), where]),
  );
  process.on('exit', () => {
    for (const child of children) child.kill();
  });
  await Promise.all(children.map(heard));
  const from = now() + WARM_UP_MS;
  const span: Span = { from, to: from + 1000 * job.seconds };
  const counts = children.map(heard);
  for (const child of children) child.send(span);
  const sum = (await Promise.all(counts)).reduce<number>((all, count) => all + Number(count), 0);
  return sum / job.seconds;
}

/** The next message of the child. */
async function heard(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`A reader exited with ${signal ?? `code ${code}`}.`);
  });
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [unknown];
  ended.catch(() => {});
  return message;
}

/** A read of exposed memory, or a copy within this process, in µs. */
async function readTime(job: MapJob, where: string): Promise<Sample> {
  const into = Buffer.alloc(job.size);
  const near = allocate(READS * job.size);
  let one = (at: number): unknown => into.set(near.subarray(at, at + job.size));
  if (job.over !== 'Map') {
    const channel = await connectChannel(Number(where), LOOPBACK);
    const remote = channel.open(await channel.request('memory'));
    one = (at) => remote.readSync(at, into);
  }
  const sample = timed(job.seconds, () => {
    for (let i = 0; i < READS; i += 1) one(i * job.size);
  });
  return each(sample, READS);
}

export async function measure(job: MapJob, where: string): Promise<Sample> {
  if (job.kind === 'readSync') return readTime(job, where);
  if (job.kind === 'get' || job.kind === 'getInto') return { mean: await readers(job, where) };
  const repetition = new Repetition(job, actOf(job, await storeOf(job, where)));
  const ms = 1000 * job.seconds;
  if (job.kind === 'latency') {
    await repetition.times(now() + WARM_UP_MS);
    return { mean: quantile(await repetition.times(now() + ms), 0.99) };
  }
  await repetition.until(now() + WARM_UP_MS);
  const begin = now();
  await repetition.until(begin + ms);
  return { mean: repetition.count / ((now() - begin) / 1000) };
}
