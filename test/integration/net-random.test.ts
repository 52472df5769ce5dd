/**
 * `networkdirect/net`: random messages, requests, requests in the opposite direction, aborts and ends of many channels over few slots.
 * All replies and messages are complete, and neither side ever reports a protocol violation.
 */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Channel, ChannelOptions, NetError, RequestHandler } from '../../nd/net/index.js';
import { channels, endAll } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import { seeded } from '../helpers/random.js';
import { firstIf } from '../helpers/tiers.js';

test.after.each(endAll);

const SEEDS = [1, 2, 3, 4];
const CHANNELS = 12;
const STEPS = 60;
/** Errors of connections that end, and of their requests. */
const ends = new Set(['ECONNRESET', 'ERR_STREAM_DESTROYED', 'ABORT_ERR']);

class Traffic {
  readonly #random: () => number;
  messages = 0;
  answers = 0;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #length(): number {
    const kind = this.below(12);
    return this.below(kind < 8 ? 500 : kind < 11 ? 20_000 : 2_000_000);
  }

  options(): ChannelOptions {
    return { slots: 1 + this.below(20), slotBytes: 64 + this.below(5000), maxRequests: 1 + this.below(200) };
  }

  /** Also resolves when the connection ends. */
  async #settle(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!ends.has(String((error as NetError).code))) throw error;
    }
  }

  /** A request contains the length of its reply, and the number of requests that the replying side first sends back. */
  async #ask(side: Channel, backs: number, signal?: AbortSignal): Promise<void> {
    const length = this.#length();
    const question = Buffer.alloc(8 + (this.below(3) === 0 ? this.#length() : 0));
    question.writeUInt32LE(length);
    question.writeUInt32LE(backs, 4);
    const answer = await side.request(question, { signal });
    assert.ok(answer.equals(patternOf(length)), `an answer of ${length} bytes`);
    this.answers += 1;
  }

  readonly answering: RequestHandler = async (question, { channel }) => {
    if (this.below(3) === 0) await new Promise((resolve) => setTimeout(resolve, this.below(4)));
    const backs = question.readUInt32LE(4);
    if (backs > 0) await this.#settle(this.#ask(channel, backs - 1));
    return patternOf(question.readUInt32LE(0));
  };

  /** Receives messages until the end, and sometimes sends a request before the next one. */
  async take(side: Channel): Promise<void> {
    for await (const message of side) {
      assert.ok(message.equals(patternOf(message.length)), `a message of ${message.length} bytes`);
      this.messages += 1;
      if (this.below(4) === 0) await this.#settle(this.#ask(side, 0));
    }
  }

  async drive(side: Channel): Promise<void> {
    const work: Promise<void>[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      if (this.below(4) === 0) work.push(this.#settle(side.send(patternOf(this.#length()))));
      else {
        const controller = new AbortController();
        work.push(this.#settle(this.#ask(side, this.below(6) === 0 ? 1 : 0, controller.signal)));
        if (this.below(6) === 0) setTimeout(() => controller.abort(), this.below(5));
      }
      if (this.below(5) === 0) await new Promise(setImmediate);
    }
    if (this.below(6) === 0) side.destroy();
    await Promise.all(work);
    await side.close();
  }

  async run(): Promise<void> {
    const [client, server] = await channels(this.options(), this.options());
    client.onRequest(this.answering);
    server.onRequest(this.answering);
    await Promise.all([this.#settle(this.take(server)), this.#settle(this.take(client)), this.drive(client)]);
    for (const side of [client, server])
      if (side.error !== undefined)
        assert.ok(ends.has(String((side.error as NetError).code)), side.error.message);
  }
}

for (const seed of SEEDS) {
  firstIf(seed === 1, test)(`random traffic, seed ${seed}`, async () => {
    const traffic = new Traffic(seed);
    await Promise.all(Array.from({ length: CHANNELS }, () => traffic.run()));
    assert.ok(
      traffic.answers > 100 && traffic.messages > 50,
      `${traffic.answers} answers, ${traffic.messages} messages`,
    );
  });
}

test.run();
