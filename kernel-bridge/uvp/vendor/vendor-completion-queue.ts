import type { TokenTable } from '../../door/token-table.js';
import type { UvpCompletion } from '../../door/user-verbs.js';
import { WcStatus, WvOpcode, WvWc } from '../../ioctl/constants.js';
import type { NativeBytes, SteadyMemory } from '../../windows/steady-memory.js';
import type { NativeFunction } from '../../windows/win32.js';
import { Completion } from '../completion-queue.js';
import type { UvpTable } from './native-library.js';
import { positionOf, Queue } from './request-ids.js';
import { CompletionWord, swapped } from './uvp-layouts.js';
import {
  VendorHandle,
  type VendorOwner,
  VendorQueuePair,
  VendorSharedReceiveQueue,
} from './vendor-queue-pair.js';

/** Maximum completions of one call of the provider. */
const batch = 32;
const publicFlags = WvWc.IMMEDIATE | WvWc.GRH_VALID;

/** A completion queue of a provider. */
export class VendorCompletionQueue extends VendorHandle {
  readonly #memory: SteadyMemory;
  readonly #pollArray: NativeFunction;
  /** Whether a poll is filling completions. They may be objects of the client, whose setters may poll again. */
  #filling = false;
  /** Number of completions in the memory, and number of those that were read: all, unless a setter has thrown. */
  #got = 0;
  #read = 0;

  constructor(
    native: NativeBytes,
    table: UvpTable,
    private readonly tokens: TokenTable<VendorOwner>,
    entries: number,
  ) {
    super();
    this.#memory = native.memory(4 * CompletionWord.size * Math.min(entries, batch));
    // A mandatory function of the table.
    this.#pollArray = table.poll_cq_array!;
  }

  /** Polls at most `n` completions and returns their number; negative if the queue has failed. */
  poll(completions: UvpCompletion[], n: number): number {
    if (this.#filling) return 0;
    const { words } = this.#memory;
    let count = 0;
    this.#filling = true;
    try {
      while (count < n) {
        if (this.#read === this.#got) {
          const got = this.#fetch(n - count);
          if (got < 0 && count === 0) return got;
          if (got <= 0) break;
        }
        let completion = completions[count];
        if (completion === undefined) {
          completion = new Completion();
          completions[count] = completion;
        }
        const at = this.#read++ * CompletionWord.size;
        if (this.#fill(words, at, completion)) count++;
      }
      return count;
    } finally {
      this.#filling = false;
    }
  }

  /** Polls the provider for at most `most` completions. Returns their number, or less than 0. */
  #fetch(most: number): number {
    const { words, address } = this.#memory;
    const got = this.#pollArray(
      this.address,
      Math.min(most, words.length / CompletionWord.size),
      address,
    ) as number;
    this.#read = 0;
    this.#got = Math.max(0, got);
    return got;
  }

  /** Fills a completion. Returns false if its request is no longer outstanding. */
  #fill(words: Uint32Array, at: number, completion: UvpCompletion): boolean {
    const id = words[at + CompletionWord.id]!;
    const owner = this.tokens.find(words[at + CompletionWord.id + 1]!);
    const position = positionOf(id);
    const queue = id & 3;
    const status = words[at + CompletionWord.status]!;
    const type = words[at + CompletionWord.type]!;
    if (owner instanceof VendorSharedReceiveQueue) {
      if (queue !== Queue.SHARED || !owner.requests.has(position)) return false;
      completion.context = owner.requests.take(position);
      const qp = this.tokens.find(words[at + CompletionWord.qpContext]!);
      completion.qpContext = qp instanceof VendorQueuePair ? qp.qpContext : undefined;
      this.#fillReceive(words, at, completion, type, status);
    } else if (owner instanceof VendorQueuePair) {
      const isReceive = queue === Queue.RECEIVE;
      const requests = isReceive ? owner.receives : owner.sends;
      if (queue === Queue.SHARED || !requests.has(position)) return false;
      const length = requests.lengthOf(position);
      completion.context = requests.take(position);
      completion.qpContext = owner.qpContext;
      if (isReceive) this.#fillReceive(words, at, completion, type, status);
      else
        fillSend(
          completion,
          queue === Queue.INVALIDATE ? WvOpcode.INVALIDATE : type,
          status === 0 ? length : 0,
        );
    } else return false;
    // Some providers have additional statuses, which follow those of WinVerbs.
    completion.status = Math.min(status, WcStatus.ERROR);
    completion.vendorCode = status === 0 ? 0 : words[at + CompletionWord.vendor]!;
    return true;
  }

  #fillReceive(
    words: Uint32Array,
    at: number,
    completion: UvpCompletion,
    type: number,
    status: number,
  ): void {
    const flags = words[at + CompletionWord.flags]! & publicFlags;
    const pkeyAndLid = words[at + CompletionWord.pkeyAndLid]!;
    const slAndPath = words[at + CompletionWord.slAndPath]!;
    completion.opcode = type;
    completion.length = status === 0 ? words[at + CompletionWord.length]! : 0;
    completion.flags = status === 0 ? flags : 0;
    completion.immediateData =
      status === 0 && (flags & WvWc.IMMEDIATE) !== 0 ? swapped(words[at + CompletionWord.immediate]!) : 0;
    completion.sourceQpn = swapped(words[at + CompletionWord.remoteQpn]!);
    completion.pkeyIndex = pkeyAndLid & 0xffff;
    completion.sLid = swapped(pkeyAndLid) & 0xffff;
    completion.sl = slAndPath & 0xff;
    completion.dLidPathBits = (slAndPath >>> 8) & 0xff;
  }
}

/** Fills the completion of a send. Providers leave its other fields unchanged. */
function fillSend(completion: UvpCompletion, opcode: number, length: number): void {
  completion.opcode = opcode;
  completion.length = length;
  completion.flags = 0;
  completion.immediateData = 0;
  completion.sourceQpn = 0;
  completion.pkeyIndex = 0;
  completion.sLid = 0;
  completion.sl = 0;
  completion.dLidPathBits = 0;
}
