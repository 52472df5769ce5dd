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

/** Completions that one call of the provider returns at most. */
const batch = 32;
const publicFlags = WvWc.IMMEDIATE | WvWc.GRH_VALID;

/** A completion queue of a provider. */
export class VendorCompletionQueue extends VendorHandle {
  readonly #memory: SteadyMemory;
  readonly #pollArray: NativeFunction;
  /** The objects that a poll fills may be of the client, whose setters may poll again. */
  #filling = false;
  /** Completions in the memory, and how many of them were read: all, unless a setter has thrown. */
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
    // The table was checked for it.
    this.#pollArray = table.poll_cq_array!;
  }

  /** Takes at most `n` completions and returns their number; negative: the queue has failed. */
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

  /** Asks the provider for at most `most` completions; answers how many there are, or less than 0. */
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

  /** False: of a request that there is not any more. */
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
    // Some providers have statuses of their own behind the last one of WinVerbs.
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

/** Providers leave the rest of a send's completion as it was. */
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
