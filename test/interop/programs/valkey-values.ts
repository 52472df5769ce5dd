/** Commands with values to a Valkey server: many commands in one pipeline, and values that cross the end of a buffer. */
import { randomBytes } from 'node:crypto';
import { requestOf } from '../../helpers/resp-client.js';
import { check, inOnePipeline, openStream, openValkey, type Target, type Words } from './iovalkey.js';
import { bulk, Exchange, OK } from './valkey-exchange.js';

const COMMANDS = 10_000;

/** A value whose length and bytes differ from those of its neighbours. */
const bytesOf = (n: number): Buffer => Buffer.alloc(n % 257, `${n}.`);

/** SET, INCR and GET, each in one pipeline of 10,000 commands. */
export async function pipelines(target: Target): Promise<void> {
  using valkey = await openValkey(target);
  const run = async (wordsOf: (n: number) => Words, right: (reply: unknown, n: number) => boolean) => {
    const begun = performance.now();
    const replies = await inOnePipeline(valkey, COMMANDS, wordsOf);
    const seconds = (performance.now() - begun) / 1000;
    const [what] = wordsOf(0);
    const wrong = replies.findIndex((reply, n) => !right(reply, n));
    check(wrong < 0, `${what}: reply ${wrong} is "${replies[wrong]}".`);
    console.log(`${what}: ${COMMANDS} commands, ${Math.round(COMMANDS / seconds)} a second`);
  };
  await run(
    (n) => ['SET', `key:${n}`, bytesOf(n)],
    (reply) => String(reply) === 'OK',
  );
  await run(
    () => ['INCR', 'counter'],
    (reply, n) => reply === n + 1,
  );
  await run(
    (n) => ['GET', `key:${n}`],
    (reply, n) => bytesOf(n).equals(reply as Buffer),
  );
}

/** Size of our own buffer in bytes: the smallest that Valkey's server permits for its own. */
const OURS = 65_536;
/** Maximum number of bytes from the first byte of a message to the end of the buffer. */
const ALIGNMENTS = 64;
const MEBI = 1 << 20;
/** Sizes of values in bytes, and the step between the distances to the end of the buffer. */
const VALUES = [
  [1, 1],
  [100, 1],
  [5000, 1],
  [65_537, 4],
  [MEBI + 3, 16],
  [8 * MEBI, 32],
] as const;

/**
 * Values that cross the end of the server's buffer when they are sent, and the end of ours when they are received, at every distance modulo
 * 64 from the message's first byte. The message of a one-byte value is shorter, and only crosses the end if it is long enough.
 */
export async function crossings(target: Target): Promise<void> {
  const stream = await openStream(target, OURS);
  const exchange = new Exchange(stream, target.bufferBytes, OURS);
  const filling = randomBytes(2 * OURS);
  await exchange.ask(requestOf('SET', 'filling', filling), OK);
  let crossed = 0;
  for (const [bytes, step] of VALUES) {
    for (let room = 1; room <= ALIGNMENTS; room += step) {
      const value = randomBytes(bytes);
      const [set, get, reply] = [requestOf('SET', 'value', value), requestOf('GET', 'value'), bulk(value)];
      await exchange.leaveRoomThere(room);
      crossed += expected(set, room, await exchange.ask(set, OK), 'sent');
      await exchange.leaveRoomHere(room, filling);
      crossed += expected(reply, room, await exchange.ask(get, reply), 'received');
    }
  }
  stream.destroy();
  const { sent, received } = exchange;
  console.log(
    `${crossed} messages crossed the end of a buffer; ${mebi(sent.total)} MiB there, ${mebi(received.total)} back`,
  );
}

const mebi = (bytes: number): number => Math.round(bytes / MEBI);

/** Checks whether the message crossed the end, according to its length. Returns 1 if it did, otherwise 0. */
function expected(
  message: Buffer,
  room: number,
  crossed: { readonly sent: boolean; readonly received: boolean },
  way: 'sent' | 'received',
): number {
  check(
    crossed[way] === message.length > room,
    `A message of ${message.length} bytes was not ${room} from the end.`,
  );
  return Number(crossed[way]);
}
