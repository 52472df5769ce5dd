import { wrongValue } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-places.js';
import type { LocalContext } from '../connection/local-context.js';
import { checkSizes } from '../connection/size-bounds.js';
import { SharedCopies, type SharedCopy } from '../memory/shared-copies.js';
import { Admission, type Budget, type Charge, Class } from './budget.js';
import type { Channel } from './channel.js';
import { bytesOf, type MessageBytes } from './channel-options.js';

/** Options of `Server.broadcast`. */
export interface BroadcastOptions {
  /** A channel that does not get the message, such as the one that it came from. */
  readonly except?: Channel | undefined;
  /**
   * What happens to a channel whose peer has not taken earlier messages, so that this one would exceed `maxQueuedBytes`: `'drop'`, the default, leaves
   * out this message, and `'close'` ends the channel with `ENOBUFS`. Both are counted.
   */
  readonly slow?: 'drop' | 'close' | undefined;
  /**
   * Bytes of broadcasts that wait for one channel's peer at most, at least 256 for each; default 1 MiB. One message may always wait. Further
   * ones must leave as much of the server's `maxBufferedBytes` free as wait for this channel.
   */
  readonly maxQueuedBytes?: number | undefined;
}

/** What became of a broadcast. */
export interface BroadcastResult {
  /** Channels that get it, unless their connections end first. */
  readonly sent: number;
  /** Channels that do not: slow ones, and those whose peers do not accept so long a message. */
  readonly dropped: number;
}

const MOST_QUEUED = 2 ** 20;
/** What a short message that waits is charged: more than its entry in the queue takes. */
const LEAST_CHARGE = 256;

/** One message for several channels. */
export interface BroadcastMessage {
  /** The caller's bytes, which may change after this turn. */
  readonly bytes: Uint8Array;
  /** A copy of this process, for those who cannot send it yet, and the call of one who has. */
  own(): {
    readonly bytes: Uint8Array;
    readonly over: () => void;
  };
  /** The copy that all peers at a local address read, and the call of a peer that has no access to it any more. */
  shared(context: LocalContext): {
    readonly copy: SharedCopy | Promise<SharedCopy>;
    readonly over: () => void;
  };
  /** A channel does not get it after all: there was no memory for a copy. */
  lost(): void;
  /** No further channel gets it. */
  handedOver(): void;
}

/** A copy, those who still need it, and the broadcast itself until all channels have it. */
interface Copied<C> {
  copy: C;
  readers: number;
  /** What the server's budget has for it. */
  readonly charge: Charge;
}

type Shared = Copied<SharedCopy | Promise<SharedCopy>>;

/** Sends messages to all channels of a server. */
export class Broadcaster {
  /** Of local addresses with copies. */
  readonly #copies = new Map<LocalContext, SharedCopies>();
  /** The copies: each is charged once, for all channels that wait. */
  readonly #admission: Admission;
  dropped = 0;

  /** @param budget - of the server's channels */
  constructor(budget: Budget) {
    this.#admission = new Admission(budget, Class.MESSAGES);
  }

  /** @throws TypeError, RangeError: options or the message */
  send(channels: Iterable<Channel>, message: MessageBytes, options: BroadcastOptions = {}): BroadcastResult {
    checkOptionNames('broadcast', options);
    const { except, slow = 'drop', maxQueuedBytes = MOST_QUEUED } = options;
    if (slow !== 'drop' && slow !== 'close')
      throw wrongValue(`\`slow\` must be 'drop' or 'close'; got ${String(slow)}.`);
    checkSizes({ maxQueuedBytes });
    const one = this.#message(bytesOf(message), typeof message === 'string');
    const charge = Math.max(LEAST_CHARGE, one.bytes.length);
    // All that share the copy are asked before it is charged.
    const { free } = this.#admission;
    let sent = 0;
    let dropped = 0;
    const tooSlow: [Channel, number][] = [];
    for (const channel of channels) {
      if (channel === except) continue;
      const queued = channel.broadcastBytes;
      const fits = queued === 0 || (queued + charge <= maxQueuedBytes && queued + charge <= free - charge);
      if (!fits || !channel.accepts(one.bytes.length)) {
        dropped += 1;
        channel.droppedMessages += 1;
        if (!fits && slow === 'close') tooSlow.push([channel, queued]);
        continue;
      }
      sent += 1;
      channel.relay(one, charge);
    }
    one.handedOver();
    this.dropped += dropped;
    // The program hears of each end at once, and may send a message of its own: by now all others have this one before it.
    for (const [channel, queued] of tooSlow) channel.destroy(slowError(queued));
    return { sent, dropped };
  }

  /** The server has closed. */
  close(): void {
    for (const copies of this.#copies.values()) copies.close();
    this.#copies.clear();
  }

  #message(bytes: Uint8Array, isOwn: boolean): BroadcastMessage {
    let own: Copied<Uint8Array> | undefined;
    const shared = new Map<LocalContext, Shared>();
    return {
      bytes,
      own: () => {
        own ??= {
          copy: isOwn ? bytes : Uint8Array.from(bytes),
          readers: 1,
          charge: this.#admission.hold(bytes.length),
        };
        const copied = own;
        copied.readers += 1;
        return { bytes: copied.copy, over: () => void leave(copied) };
      },
      shared: (context) => {
        let one = shared.get(context);
        if (one === undefined) {
          one = this.#copy(context, bytes);
          shared.set(context, one);
        }
        const copied = one;
        copied.readers += 1;
        return { copy: copied.copy, over: () => leaveShared(copied) };
      },
      lost: () => {
        this.dropped += 1;
      },
      handedOver: () => {
        if (own !== undefined) leave(own);
        for (const one of shared.values()) leaveShared(one);
      },
    };
  }

  #copy(context: LocalContext, bytes: Uint8Array): Shared {
    let copies = this.#copies.get(context);
    if (copies === undefined) {
      copies = new SharedCopies(context, () => this.#copies.delete(context));
      this.#copies.set(context, copies);
    }
    const charge = this.#admission.hold(bytes.length);
    const free = copies.take(bytes);
    if (free !== undefined) return { copy: free, readers: 1, charge };
    const made = copies.make(Uint8Array.from(bytes));
    const shared: Shared = { copy: made, readers: 1, charge };
    made.then(
      (copy) => (shared.copy = copy),
      () => {},
    );
    return shared;
  }
}

/** One reader fewer; whether it was the last. */
function leave(copied: Copied<unknown>): boolean {
  copied.readers -= 1;
  if (copied.readers > 0) return false;
  copied.charge.release();
  return true;
}

/** The same, of memory that is used again. */
function leaveShared(shared: Shared): void {
  if (!leave(shared)) return;
  void Promise.resolve(shared.copy).then(
    (copy) => copy.release(),
    () => {},
  );
}

function slowError(queued: number): NetError {
  return new NetError(
    'ENOBUFS',
    `The peer is too slow for broadcasts: ${queued} bytes wait for it (options slow, maxQueuedBytes, maxBufferedBytes).`,
  );
}
