/**
 * Broadcasts to subscribers in another process with `server.broadcast` or zeromq's PUB and SUB. The process of the subscribers requests
 * each round of messages over a TCP connection, which is the same for both contestants, and counts the received messages, none of which may
 * be lost.
 */
import { once } from 'node:events';
import net from 'node:net';
import { connectChannel, createChannelServer } from 'networkdirect/net';
import { LOOPBACK, type NetJob } from './job.js';
import { publishZeromq, subscribeZeromq } from './zeromq.js';

/** Size of a round's messages in bytes: far less than the queue limit. */
const ROUND_BYTES = 2 ** 20;
const MOST_OF_ROUND = 1000;
const roundOf = ({ size }: NetJob): number => Math.min(MOST_OF_ROUND, Math.floor(ROUND_BYTES / size));

/** Addresses for subscribers and for requests of rounds. */
interface Where {
  readonly at: number | string;
  readonly rounds: number;
}

/** Prints the addresses. */
export async function serveBroadcasts(job: NetJob): Promise<void> {
  const message = Buffer.alloc(job.size, 7);
  let at: number | string;
  let publish: () => unknown;
  if (job.over === 'zeromq') {
    const publisher = await publishZeromq();
    at = publisher.address;
    publish = () => publisher.send(message);
  } else {
    const server = createChannelServer({ broadcasts: true });
    await once(server.listen(0, LOOPBACK), 'listening');
    at = server.address()!.port;
    // The next round may be requested before the last keys of this one are invalid.
    publish = () => server.broadcast(message, { maxQueuedBytes: 64 * ROUND_BYTES });
  }
  const rounds = net.createServer((socket) => {
    socket.setNoDelay().on('data', async (bytes) => {
      // Each byte requests messages: 0 for one, 1 for a round.
      for (const kind of bytes)
        for (let left = kind === 0 ? 1 : roundOf(job); left > 0; left -= 1) await publish();
    });
  });
  await once(rounds.listen(0, LOOPBACK), 'listening');
  const where: Where = { at, rounds: (rounds.address() as net.AddressInfo).port };
  console.log(JSON.stringify({ port: JSON.stringify(where) }));
}

/** Messages per second received by all subscribers together. */
export async function broadcasts(job: NetJob, text: string): Promise<number> {
  const where = JSON.parse(text) as Where;
  const { subscribers } = job;
  let missing = 0;
  let complete = (): void => {};
  const seen = new Set<number>();
  const take = (number: number): void => {
    seen.add(number);
    missing -= 1;
    if (missing === 0) complete();
  };
  for (let number = 0; number < subscribers; number += 1) {
    if (job.over === 'zeromq') subscribeZeromq(String(where.at), () => take(number));
    else {
      const channel = await connectChannel(Number(where.at), LOOPBACK);
      void (async () => {
        for await (const _ of channel) take(number);
      })();
    }
  }
  const rounds = net.connect(where.rounds, LOOPBACK).setNoDelay();
  await once(rounds, 'connect');
  // A zeromq subscription takes effect some time after the connection, without an event. If one of these messages ends a round early, the
  // next round has one more.
  while (seen.size < subscribers) {
    rounds.write(Buffer.of(0));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const round = (): Promise<void> => {
    missing = roundOf(job) * subscribers;
    const over = new Promise<void>((resolve) => (complete = resolve));
    rounds.write(Buffer.of(1));
    return over;
  };
  const until = async (ms: number): Promise<{ messages: number; seconds: number }> => {
    const begin = performance.now();
    let messages = 0;
    do {
      await round();
      messages += roundOf(job) * subscribers;
    } while (performance.now() < begin + ms);
    return { messages, seconds: (performance.now() - begin) / 1000 };
  };
  await until(500 * job.seconds);
  const { messages, seconds } = await until(1000 * job.seconds);
  return messages / seconds;
}
