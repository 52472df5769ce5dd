/** The crowd's connections over this library: queue pairs of one process with one completion queue in common, or one each. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type IWVCompletionQueue,
  type RemoteMemory,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvOpcode,
  WvSend,
} from 'networkdirect/winverbs';
import { wcName } from '../../nd/cli/sides/winverbs-side.js';
import { type Connection, Side } from '../ours/side.js';
import { BULK_BYTES, BYTES, type Client, type Part } from './crowd-messages.js';

const DEPTH = 16;
/** One Send in this many is signaled; its completion covers all before it. */
const SIGNAL_EVERY = DEPTH / 2;
/** A request of this length requests bulk data. Only the length identifies a request, because Receives share their memory. */
const BULK_REQUEST_BYTES = BYTES - 1;

/** While completions arrive, the event loop gets a turn at this interval. */
const TURN_MS = 2;

/** Queue pairs with one completion queue, on which the event loop waits, or with one each (`apart`). */
class Crowd {
  readonly side: Side;
  readonly #memory;
  readonly #room;
  readonly #out;
  readonly #bulkRequest;
  readonly #bulk;
  readonly #sent: number[] = [];
  readonly #queuePairs: Connection['qp'][] = [];
  /** Time of the last turn of the event loop. */
  #turned = performance.now();
  #turning: Promise<void> | undefined = undefined;

  /** `taken` is called with the index of the connection of each message, and the message's length. */
  constructor(
    readonly apart: boolean,
    link: 'auto' | 'wire',
    readonly taken: (index: number, length: number) => void,
  ) {
    this.side = new Side({ kind: 'open', link }, 8192);
    this.#memory = this.side.memory(new Uint8Array(2 * BYTES));
    this.#room = this.#memory.sge(0, BYTES);
    this.#out = this.#memory.sge(BYTES, BYTES);
    this.#bulkRequest = this.#memory.sge(BYTES, BULK_REQUEST_BYTES);
    // Connections advertise the memory that was registered last.
    this.#bulk = this.side.memory(new Uint8Array(BULK_BYTES)).sge(0, BULK_BYTES);
    if (!apart) void this.#run(this.side.cq);
  }

  queuePair(): Connection['qp'] {
    const { host, cq: shared } = this.side;
    const cq = this.apart ? host.device.createCompletionQueue(4 * DEPTH) : shared;
    const context = this.#queuePairs.length;
    const shape = { sendDepth: DEPTH, sendSge: 1, receiveDepth: DEPTH, receiveSge: 1, context };
    const qp = host.queuePair(cq, shape, WvAccess.REMOTE_WRITE);
    qp.postReceive(0, this.#room);
    qp.postReceive(0, this.#room);
    this.#queuePairs.push(qp);
    if (this.apart) void this.#run(cq);
    return qp;
  }

  send(index: number, bulk = false): void {
    this.#queuePairs[index]!.send(0, bulk ? this.#bulkRequest : this.#out, this.#flags(index));
  }

  /** Writes bulk data to a peer's memory. */
  write(index: number, remote: RemoteMemory): void {
    this.#queuePairs[index]!.write(0, this.#bulk, this.#flags(index), remote, 0);
  }

  #flags(index: number): number {
    const sent = (this.#sent[index] ?? 0) + 1;
    this.#sent[index] = sent;
    return sent % SIGNAL_EVERY === 0 ? WvSend.SIGNALED : 0;
  }

  async #run(cq: IWVCompletionQueue): Promise<void> {
    const completions: WvCompletion[] = [];
    for (;;) {
      const count = cq.poll(completions, 64);
      for (let i = 0; i < count; i += 1) {
        const { opcode, status, qpContext, length } = completions[i]!;
        const index = qpContext as number;
        if (status !== WcStatus.SUCCESS)
          throw new Error(`A request on connection ${index} failed with ${wcName(status)}.`);
        if (opcode !== WvOpcode.RECEIVE) continue;
        this.#queuePairs[index]!.postReceive(0, this.#room);
        this.taken(index, length);
      }
      await (count === 0 ? cq.notify('any') : this.#turn());
    }
  }

  /** Polls a completion queue again, after a turn of the event loop if the last one was long ago. */
  #turn(): Promise<void> | undefined {
    if (performance.now() > this.#turned + TURN_MS) {
      this.#turning ??= nextTurn().then(() => {
        this.#turned = performance.now();
        this.#turning = undefined;
      });
    }
    return this.#turning;
  }
}

export async function serveOurs({ who }: Part): Promise<number> {
  const remotes: RemoteMemory[] = [];
  const crowd: Crowd = new Crowd(who === 'apart', 'auto', (index, length) => {
    if (length === BULK_REQUEST_BYTES) crowd.write(index, remotes[index]!);
    crowd.send(index);
  });
  const listener = crowd.side.host.listen(0, 1024);
  const accept = async () => {
    for (let index = 0; ; index += 1) {
      const endpoint = await listener.next();
      const accepted = crowd.side.accept(endpoint, crowd.queuePair());
      void accepted.then(({ remote }) => {
        remotes[index] = remote;
      });
    }
  };
  void accept();
  return listener.address.port;
}

export function connectOurs({ who }: Part, { port, connections, link }: NonNullable<Part['client']>): Client {
  const heard: (() => void)[] = [];
  const crowd = new Crowd(who === 'apart', link, (index) => heard[index]!());
  return {
    connected: Promise.all(
      Array.from({ length: connections }, () => crowd.side.connect(port, crowd.queuePair())),
    ),
    ask: (index, bulk) =>
      new Promise((resolve) => {
        heard[index] = resolve;
        crowd.send(index, bulk);
      }),
  };
}
