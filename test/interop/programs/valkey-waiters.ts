/** Clients of a Valkey server that wait for a list or for published messages, or that read more slowly than the server writes. */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { requestOf } from '../../helpers/resp-client.js';
import { check, inOnePipeline, openStream, openValkey, type Target, type Valkey } from './iovalkey.js';

const BLOCKED = 20;
/** Three times the interval of keep-alives. */
const IDLE_MS = 9000;

/** Clients that block on a list each get a value, in the order of their requests, after a time without data. */
export async function blockedPops(target: Target): Promise<void> {
  using pushing = await openValkey(target);
  check((await pushing.call('BLPOP', 'list', '0.1')) === null, 'A pop of an empty list has a value.');
  const waiting: Valkey[] = [];
  const popped: Promise<unknown>[] = [];
  while (popped.length < BLOCKED) {
    const valkey = await openValkey(target);
    waiting.push(valkey);
    popped.push(valkey.call('BLPOP', 'list', '0'));
    // Nothing else shows that the server has received this request.
    while (!String(await pushing.call('INFO', 'clients')).includes(`blocked_clients:${popped.length}\r`));
  }
  await sleep(IDLE_MS);
  for (let n = 0; n < BLOCKED; n += 1) await pushing.call('RPUSH', 'list', String(n));
  const replies = JSON.stringify(await Promise.all(popped));
  check(replies === JSON.stringify(popped.map((_, n) => ['list', String(n)])), `Popped ${replies}.`);
  for (const valkey of waiting) valkey.disconnect();
  console.log(`${BLOCKED} clients were blocked for ${IDLE_MS / 1000} s`);
}

const textOf = (n: number): string => `${n} ${'.'.repeat(n % 300)}`;
const MESSAGES = 10_000;

/** Two subscribers, of a channel and of a pattern, each get every message once and in order. */
export async function publications(target: Target): Promise<void> {
  using publisher = await openValkey(target);
  using byName = await openValkey(target);
  using byPattern = await openValkey(target);
  const heard = [byName, byPattern].map((valkey) => {
    let count = 0;
    return new Promise<void>((resolve, reject) => {
      const hear = (text: string) => {
        if (text !== textOf(count)) reject(new Error(`Message ${count} is "${text}".`));
        count += 1;
        if (count === MESSAGES) resolve();
      };
      valkey.on('message', (_channel, text) => hear(text));
      valkey.on('pmessage', (_pattern, _channel, text) => hear(text));
    });
  });
  // iovalkey only has lower-case names for these commands.
  await byName.call('subscribe', 'news');
  await byPattern.call('psubscribe', 'n?ws');
  const receivers = await inOnePipeline(publisher, MESSAGES, (n) => ['PUBLISH', 'news', textOf(n)]);
  check(
    receivers.every((count) => count === 2),
    'Not every message had two receivers.',
  );
  await Promise.all(heard);
  console.log(`${MESSAGES} messages to two subscribers`);
}

const RECEIVE_BYTES = 1 << 20;
const FLOOD = 20_000;
/** Commands that are awaited one by one, so that each is a separate Write to the monitor. These are more than its Receives. */
const ALONE = 3000;
/**
 * Bytes that a stream may hold for its reader, in addition to the buffer that the server writes to: the size of that buffer plus the
 * high-water mark.
 */
const MOST_HELD = RECEIVE_BYTES + 65_536;

/** Sends as many commands as a monitor must report. */
async function flood(valkey: Valkey): Promise<void> {
  for (let n = 0; n < ALONE; n += 1) await valkey.call('SET', `flood:${n}`, textOf(n));
  await inOnePipeline(valkey, FLOOD - ALONE, (n) => ['SET', `flood:${ALONE + n}`, textOf(ALONE + n)]);
}

/** Reads slowly until all commands have arrived, each once and in order, or the stream ends. @returns The number that arrived */
async function readSlowly(stream: Duplex): Promise<number> {
  let count = 0;
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = (rest + chunk.toString('latin1')).split('\r\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const [, n, text] = /"SET" "flood:(\d+)" "(.*)"$/.exec(line) ?? [];
      // Other lines are that reply, or commands of the client library.
      if (n === undefined) continue;
      check(Number(n) === count && text === textOf(count), `Command ${count} came as ${line}`);
      count += 1;
    }
    if (count === FLOOD) break;
    await sleep(1);
  }
  return count;
}

/**
 * A connection that monitors all commands of another one, but only reads them after the last one has got its reply. The server keeps them
 * until then.
 */
export async function monitor(target: Target): Promise<void> {
  using valkey = await openValkey(target);
  const stream = await openStream(target, RECEIVE_BYTES);
  stream.write(requestOf('MONITOR'));
  // After the reply, the connection monitors all commands.
  await once(stream, 'readable');
  await flood(valkey);
  check(stream.readableLength <= MOST_HELD, `The stream holds ${stream.readableLength} bytes.`);
  const count = await readSlowly(stream);
  check(count === FLOOD, `The stream has ended after ${count} of ${FLOOD} commands.`);
  console.log(`${count} commands came to a reader that read none until the last one`);
}
