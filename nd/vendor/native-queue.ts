import {
  argumentMemory,
  type NativeFunction,
  type OverlappedObject,
  ResultWord,
  type TokenTable,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import { type Overlapped, Status, StatusError, type WvCqNotifyType } from '../../winverbs/index.js';
import { type CompletionBelow, POLL_BATCH, type QueueBelow } from '../core/below.js';
import { Nd2AdapterFlag } from '../spi/v2.js';
import type { NativeQueuePair } from './native-queue-pair.js';

const { status: STATUS, bytes: BYTES, queuePair: QUEUE_PAIR, request: REQUEST, size: SIZE } = ResultWord;
/** ND_CQ_NOTIFY_*. */
const notifyTypes: Readonly<Record<WvCqNotifyType, number>> = { errors: 0, any: 1, solicited: 2 };

/** Maximum released queue pairs that a queue keeps for their results, because a provider may discard these. */
const MOST_UNREAD = 1024;

/** IND2CompletionQueue of a provider. */
export class NativeQueue implements QueueBelow {
  /** Queue pairs that were released with requests outstanding, whose results may still be returned. */
  readonly unread = new Set<NativeQueuePair>();
  readonly #getResults: NativeFunction;
  readonly #memory = argumentMemory(4 * SIZE * POLL_BATCH);

  constructor(
    readonly com: OverlappedObject<'IND2CompletionQueue'>,
    private readonly tokens: TokenTable<NativeQueuePair>,
    private readonly adapterFlags: number,
    public entries: number,
  ) {
    this.#getResults = com.slots.GetResults;
  }

  poll(completions: CompletionBelow[], n: number): number {
    const { words, address } = this.#memory;
    const count = this.#getResults(this.com.address, address, n) as number;
    // The provider has returned a status.
    if (count > n) return 0;
    for (let i = 0; i < count; i++) {
      let completion = completions[i];
      if (completion === undefined) {
        completion = blank();
        completions[i] = completion;
      }
      const at = i * SIZE;
      const queuePair = this.tokens.find(words[at + QUEUE_PAIR]!);
      const status = words[at + STATUS]!;
      completion.status = status;
      completion.length = words[at + BYTES]!;
      completion.qpContext = queuePair?.context;
      completion.context = queuePair?.take(words[at + REQUEST]!, status !== 0);
    }
    return count;
  }

  /** Keeps a released queue pair until its results are returned. */
  keep(queuePair: NativeQueuePair): void {
    this.unread.add(queuePair);
    const [oldest] = this.unread;
    if (this.unread.size > MOST_UNREAD) oldest?.forgetUnread();
  }

  /** Not needed to check a new depth: the provider checks it. */
  peek(): number {
    return 0;
  }

  resize(entries: number): void {
    if ((this.adapterFlags & Nd2AdapterFlag.CQ_RESIZE_SUPPORTED) === 0) {
      const text = `The provider ${this.com.library} does not support resizing completion queues. Create larger ones.`;
      throw new StatusError(Status.NOT_SUPPORTED, text);
    }
    this.com.run('Resize', entries);
    this.entries = entries;
  }

  notify(type: WvCqNotifyType): Overlapped<void> {
    return this.com.start('Notify', () => [notifyTypes[type]], { repeats: true });
  }

  cancelOverlappedRequests(): void {
    this.com.cancelAll();
  }

  release(): void {
    this.com.release();
    for (const queuePair of this.unread) queuePair.forgetUnread();
  }
}

function blank(): CompletionBelow {
  return { context: undefined, qpContext: undefined, status: 0, length: 0, flags: 0, immediateData: 0 };
}
