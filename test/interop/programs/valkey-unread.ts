/** Connections that end while replies wait for room in the client's buffer. */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { requestOf } from '../../helpers/resp-client.js';
import { check, openStream, openValkey, type Target, type Valkey } from './iovalkey.js';

const RECEIVE_BYTES = 1 << 20;
const REPLY_BYTES = 1 << 20;
const REPLIES = 16;

/** A connection that has requested more than fits in its buffer, and reads nothing. */
async function unread(target: Target, valkey: Valkey): Promise<Duplex> {
  await valkey.call('SET', 'long', Buffer.alloc(REPLY_BYTES, 'long'));
  const stream = await openStream(target, RECEIVE_BYTES);
  for (let n = 0; n < REPLIES; n += 1) stream.write(requestOf('GET', 'long'));
  await once(stream, 'readable');
  return stream;
}

/** Whether the server still replies. */
async function goesOn(valkey: Valkey): Promise<void> {
  const answers = await valkey.call('PING').then(
    () => true,
    () => false,
  );
  console.log(answers ? 'the server goes on' : 'the server is gone');
}

const noReturn = { retryStrategy: () => null };

/**
 * The client disconnects. valkey-server 8.1.1 then crashes with SIGSEGV, because its list of connections with such replies keeps a closed
 * one (rdma.c, pending_list).
 */
export async function leaves(target: Target): Promise<void> {
  using valkey = await openValkey(target, noReturn);
  const stream = await unread(target, valkey);
  stream.destroy();
  await goesOn(valkey);
}

/** The server drops the client, because it may only keep few replies for it. */
export async function givenUp(target: Target): Promise<void> {
  using valkey = await openValkey(target, noReturn);
  valkey.on('error', () => {});
  await valkey.call('CONFIG', 'SET', 'client-output-buffer-limit', `normal ${RECEIVE_BYTES} 0 0`);
  const stream = await unread(target, valkey);
  let bytes = 0;
  const read = async () => {
    for await (const chunk of stream as AsyncIterable<Buffer>) bytes += chunk.length;
  };
  const why = await read().then(
    () => 'its end',
    (error: Error) => error.message,
  );
  check(bytes < REPLIES * REPLY_BYTES, 'All replies have come.');
  console.log(`the stream ends after ${bytes} bytes: ${why}`);
  await goesOn(valkey);
}
