/**
 * Clients of a Valkey server that lose their connection, because the server is killed, ends it, or uses requests that the HCA does not
 * support. Also many clients at the same time.
 */
import { once } from 'node:events';
import { connectValkey } from '../../../examples/valkey/connect.js';
import { check, inOnePipeline, openValkey, type Target, type Valkey } from './iovalkey.js';

const CLIENTS = 100;
const COUNTS = 100;

/** Bytes of each client's buffers, and so of the server's buffers for it. A hundred clients connect. */
const small = { receiveBytes: 65_536, sendBytes: 65_536 };

const clientsOf = async (valkey: Valkey): Promise<number> =>
  Number(/connected_clients:(\d+)/.exec(String(await valkey.call('INFO', 'clients')))?.[1]);

/** A hundred clients connect at the same time and increment a common counter. */
export async function manyClients(target: Target): Promise<void> {
  using judge = await openValkey(target);
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => openValkey(target, small)));
  check((await clientsOf(judge)) === CLIENTS + 1, 'The server has other clients.');
  const countAndKeep = async (valkey: Valkey, n: number) => {
    await inOnePipeline(valkey, COUNTS, () => ['INCR', 'counter']);
    await valkey.call('SET', `own:${n}`, `${n}`.repeat(1000));
    check((await valkey.call('GET', `own:${n}`)) === `${n}`.repeat(1000), `Client ${n} reads another value.`);
  };
  await Promise.all(clients.map(countAndKeep));
  const counter = await judge.call('GET', 'counter');
  check(counter === String(CLIENTS * COUNTS), `They have counted to ${counter}.`);
  for (const valkey of clients) valkey.disconnect();
  // The server detects the end of each connection.
  while ((await clientsOf(judge)) !== 1);
  console.log(`${CLIENTS} clients at once`);
}

/** Options for reconnecting: immediately, as often as needed, and with the commands that have no reply yet. */
const comesBack = { retryStrategy: () => 200, maxRetriesPerRequest: null };

/** Works while the server is killed and restarted, until a round has started and ended on the new connection. */
export async function survive(target: Target): Promise<void> {
  using valkey = await openValkey(target, comesBack);
  const quiet = () => {};
  let back = false;
  valkey.on('error', quiet);
  valkey.once('close', () => {
    console.log('lost');
    valkey.once('ready', () => {
      back = true;
    });
  });
  console.log('working');
  let round = 0;
  for (let last = false; !last; round += 1) {
    last = back;
    const value = `${round} `.repeat(10_000);
    await valkey.call('SET', 'round', value);
    const read = await valkey.call('GET', 'round');
    // In between, the server may have lost all data.
    check(read === value || (read === null && !last), `Round ${round} reads another value.`);
  }
  console.log(`came back; ${round} rounds`);
}

const KILLED = 20;
/**
 * The server ends connections on CLIENT KILL: a blocked one, and then all except the requesting one. None has waiting replies, because
 * valkey-server 8.1.1 may then crash (docs/reference/interop.md).
 */
export async function killedClients(target: Target): Promise<void> {
  using judge = await openValkey(target);
  const kill = async (...words: string[]) => Number(await judge.call('CLIENT', 'KILL', ...words));
  const idOf = async (valkey: Valkey) => String(await valkey.call('CLIENT', 'ID'));
  const clients = await Promise.all(Array.from({ length: KILLED }, () => openValkey(target, comesBack)));
  for (const valkey of clients) valkey.on('error', () => {});
  const back = () => Promise.all(clients.map((valkey) => once(valkey, 'ready')));
  const [first] = clients as [Valkey];

  const blocked = await idOf(first);
  const popped = first.call('BLPOP', 'list', '0');
  const ready = once(first, 'ready');
  check((await kill('ID', blocked)) === 1, 'CLIENT KILL has found no client.');
  await ready;
  await judge.call('RPUSH', 'list', 'late');
  check(
    JSON.stringify(await popped) === '["list","late"]',
    'The pop was not repeated on the new connection.',
  );

  check((await idOf(first)) !== blocked, 'The client has its old connection.');

  const allBack = back();
  check((await kill('TYPE', 'normal', 'SKIPME', 'yes')) === KILLED, 'CLIENT KILL has found other clients.');
  await allBack;
  for (const [n, valkey] of clients.entries())
    check((await valkey.call('ECHO', String(n))) === String(n), 'ECHO');
  for (const valkey of clients) valkey.disconnect();
  console.log(`${KILLED} clients came back`);
}

/** The device has no Write with immediate data: the stream fails before it connects, and says why. */
export async function refused({ host, port }: Target): Promise<void> {
  const stream = connectValkey({ host, port });
  stream.once('connect', () => console.log('connected'));
  const [error] = (await once(stream, 'error')) as [Error & { code?: string }];
  check(error.code === 'ENOTSUP', `It has failed by: ${error}`);
  console.log(error.message);
}
