/**
 * Every operation over a link that loses or duplicates packets: `loss server ADDRESS` serves, and `loss client
 * ADDRESS OWN-ADDRESS` sends requests, disturbs its own link, and prints a line of JSON for each case.
 */

import { connectEndpoint, HostWv, ListenerWv, type MemoryWv } from '../../../nd/cli/sides/winverbs-side.js';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  RemoteMemory,
  WvAccess,
  WvSend,
} from '../../../winverbs/index.js';
import { type Queue, socketAddress } from '../../interop/programs/interop-side.js';
import { calm, type Direction, disturb, prepareInwards } from './lossy-link.js';

const PORT = 18_630;
const OPERATIONS = ['send', 'write', 'read', 'fetch-add'] as const;
type Operation = (typeof OPERATIONS)[number];
const LINKS = ['loss 2%', 'loss 8%', 'duplicate 8%'] as const;
const DIRECTIONS = ['out', 'in'] as const;

/** Number of messages in a case, each of a few packets. */
const [COUNT, ATOMICS] = [100, 300];
const BYTES = 3000;
/** Requests in flight. */
const WINDOW = 8;
/** If this many losses are expected, none at all cannot be chance. */
const SURE = 9;
/** Slots for received messages. */
const SLOTS = 16;
const OPEN = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC;
const depths = { responderResources: 4, initiatorDepth: 4, retryCount: 7, rnrRetryCount: 7 };

/** The bytes of a message. */
function pattern(n: number): Buffer {
  const bytes = Buffer.alloc(BYTES);
  for (let i = 0; i < BYTES; i++) bytes[i] = (n * 31 + i * 7 + (i >> 8)) & 0xff;
  return bytes;
}
const patterns = Array.from({ length: COUNT }, (_, n) => pattern(n));

/** Number of messages in memory that differ from the pattern. */
const wrongOf = (memory: Uint8Array): number =>
  patterns.filter((bytes, n) => bytes.compare(memory, n * BYTES, (n + 1) * BYTES) !== 0).length;

/** One side: memory that the peer may use, and slots for messages. */
class End {
  readonly queue: Queue;
  readonly qp: IWVConnectQueuePair;
  readonly open: MemoryWv;
  readonly slots: MemoryWv;

  constructor(readonly host: HostWv) {
    this.queue = host.queue(256);
    const entries = { sendDepth: 32, sendSge: 1, receiveDepth: SLOTS, receiveSge: 1 };
    this.qp = host.queuePair(this.queue.cq, entries, 0xf);
    this.open = host.memory(Buffer.alloc(COUNT * BYTES), OPEN | WvAccess.LOCAL_WRITE);
    this.slots = host.memory(Buffer.alloc(SLOTS * BYTES), WvAccess.LOCAL_WRITE);
    for (let slot = 0; slot < SLOTS; slot++) this.receive(slot);
  }

  receive(slot: number): void {
    this.qp.postReceive(`receive ${slot}`, this.slots.sge(slot * BYTES, BYTES));
  }

  release(endpoint: IWVConnectEndpoint): void {
    endpoint.release();
    this.qp.release();
    this.queue.cq.release();
    for (const memory of [this.open, this.slots]) memory.release();
  }
}

/** Echoes messages. The reply to an empty one reports wrong messages in the open memory, and the counter. */
async function serve(end: End, endpoint: IWVConnectEndpoint): Promise<void> {
  const { qp, queue, open, slots } = end;
  const over = endpoint.notifyDisconnect().then(
    () => {},
    () => {},
  );
  const echoing = (async () => {
    let next = 0;
    for (;;) {
      const { context, length, status } = await queue.any();
      if (status !== 0) return;
      const [what, text] = String(context).split(' ');
      const slot = Number(text);
      if (what === 'echo') {
        end.receive(slot);
        continue;
      }
      if (slot !== next % SLOTS) throw new Error(`Message ${next} came in place ${slot}.`);
      next += 1;
      const bytes = Buffer.from(slots.bytes.buffer, slots.bytes.byteOffset + slot * BYTES, BYTES);
      if (length === 0) {
        bytes.writeUInt32LE(wrongOf(open.bytes), 0);
        bytes.writeBigUInt64LE(Buffer.from(open.bytes.buffer, open.bytes.byteOffset).readBigUInt64LE(0), 4);
      }
      qp.send(`echo ${slot}`, slots.sge(slot * BYTES, length || 12), WvSend.SIGNALED);
    }
  })();
  await over;
  await echoing;
  end.release(endpoint);
}

async function server(address: string): Promise<void> {
  const host = HostWv.open(address);
  const listener = new ListenerWv(host.provider, socketAddress(address, PORT));
  console.log(`listening on port ${PORT}`);
  for (;;) {
    const endpoint = await listener.next();
    const end = new End(host);
    const operation = OPERATIONS[endpoint.query().privateData[0] ?? 0];
    if (operation === 'read')
      for (const [n, bytes] of patterns.entries()) end.open.bytes.set(bytes, n * BYTES);
    const advert = Buffer.alloc(12);
    advert.writeBigUInt64LE(BigInt(end.open.region.address), 0);
    advert.writeUInt32LE(end.open.region.rkey, 8);
    await endpoint.accept(end.qp, { ...depths, privateData: advert });
    void serve(end, endpoint);
  }
}

/** Posts requests, a few at a time, and consumes their completions. */
async function window(queue: Queue, count: number, post: (n: number) => void, done: (n: number) => void) {
  let posted = 0;
  for (let taken = 0; taken < count; taken++) {
    while (posted < count && posted - taken < WINDOW) post(posted++);
    await queue.next();
    done(taken);
  }
}

/** The report in the reply to an empty message: wrong messages in the server's memory, and its counter. */
async function ask({ qp, queue, slots }: End): Promise<{ wrong: number; counter: number }> {
  qp.send('ask', [], WvSend.SIGNALED);
  await queue.take(2);
  const answer = Buffer.from(slots.bytes.buffer, slots.bytes.byteOffset);
  return { wrong: answer.readUInt32LE(0), counter: Number(answer.readBigUInt64LE(4)) };
}

const check = (right: boolean, text: string): void => {
  if (!right) throw new Error(text);
};

async function sends(end: End): Promise<void> {
  const { qp, queue, slots, open } = end;
  const echoes = { next: 0 };
  for (const [n, bytes] of patterns.entries()) open.bytes.set(bytes, n * BYTES);
  let sent = 0;
  while (echoes.next < COUNT) {
    while (sent < COUNT && sent - echoes.next < WINDOW) {
      qp.send('send', open.sge(sent * BYTES, BYTES), WvSend.SIGNALED);
      sent += 1;
    }
    const { context, length } = await queue.next();
    if (context === 'send') continue;
    const slot = echoes.next % SLOTS;
    const came = Buffer.from(slots.bytes.buffer, slots.bytes.byteOffset + slot * BYTES, BYTES);
    check(
      context === `receive ${slot}` && length === BYTES,
      `Echo ${echoes.next} arrived as ${context}, ${length}.`,
    );
    check(came.equals(patterns[echoes.next]!), `Echo ${echoes.next} has other bytes.`);
    end.receive(slot);
    echoes.next += 1;
  }
}

async function writes(end: End, remote: RemoteMemory): Promise<void> {
  const { qp, queue, open } = end;
  for (const [n, bytes] of patterns.entries()) open.bytes.set(bytes, n * BYTES);
  const post = (n: number) => qp.write(n, open.sge(n * BYTES, BYTES), WvSend.SIGNALED, remote, n * BYTES);
  await window(queue, COUNT, post, () => {});
  const { wrong } = await ask(end);
  check(wrong === 0, `${wrong} of ${COUNT} Writes are not in the peer's memory.`);
}

async function reads({ qp, queue, open }: End, remote: RemoteMemory): Promise<void> {
  const post = (n: number) => qp.read(n, open.sge(n * BYTES, BYTES), WvSend.SIGNALED, remote, n * BYTES);
  await window(queue, COUNT, post, () => {});
  const wrong = wrongOf(open.bytes);
  check(wrong === 0, `${wrong} of ${COUNT} Reads have brought other bytes.`);
}

async function fetchAdds(end: End, remote: RemoteMemory): Promise<void> {
  const { qp, queue, open } = end;
  const old = Buffer.from(open.bytes.buffer, open.bytes.byteOffset);
  const post = (n: number) => qp.fetchAdd(n, open.sge(n * 8, 8)[0], WvSend.SIGNALED, 1n, remote, 0);
  const done = (n: number) => {
    const value = Number(old.readBigUInt64LE(n * 8));
    check(value === n, `Fetch-add ${n} has found ${value}.`);
  };
  await window(queue, ATOMICS, post, done);
  const { counter } = await ask(end);
  check(counter === ATOMICS, `${ATOMICS} fetch-adds have counted to ${counter}.`);
}

const operations: Record<Operation, (end: End, remote: RemoteMemory) => Promise<void>> = {
  send: sends,
  write: writes,
  read: reads,
  'fetch-add': fetchAdds,
};

async function one(
  host: HostWv,
  server: string,
  operation: Operation,
  link: string,
  direction: Direction,
): Promise<object> {
  const endpoint = host.provider.createConnectEndpoint();
  const end = new End(host);
  const privateData = Uint8Array.of(OPERATIONS.indexOf(operation));
  const peer = socketAddress(server, PORT);
  const { privateData: advert } = await connectEndpoint(
    endpoint,
    end.qp,
    peer,
    { ...depths, privateData },
    host.address,
  );
  const reported = Buffer.from(advert);
  const remote = new RemoteMemory({ address: reported.readBigUInt64LE(0), rkey: reported.readUInt32LE(8) });
  const begun = performance.now();
  let problem: string | undefined;
  disturb(direction, link);
  try {
    await operations[operation](end, remote);
  } catch (error) {
    problem = (error as Error).message;
  }
  const { packets, dropped } = calm(direction);
  const expected = (packets * Number(/^loss (\d+)%/.exec(link)?.[1] ?? 0)) / 100;
  if (expected > SURE && dropped === 0) problem ??= `The link has lost none of ${packets} packets.`;
  const seconds = Math.round(performance.now() - begun) / 1000;
  await endpoint.disconnect().then(
    () => {},
    () => {},
  );
  end.release(endpoint);
  return {
    operation,
    link,
    direction,
    packets,
    dropped,
    seconds,
    ...(problem === undefined ? {} : { problem }),
  };
}

async function client(server: string, address: string): Promise<void> {
  prepareInwards();
  const host = HostWv.open(address);
  for (const link of LINKS)
    for (const direction of DIRECTIONS)
      for (const operation of OPERATIONS)
        console.log(JSON.stringify(await one(host, server, operation, link, direction)));
  host.release();
}

const [role, address = '', own = ''] = process.argv.slice(2);
await (role === 'server' ? server(address) : client(address, own));
