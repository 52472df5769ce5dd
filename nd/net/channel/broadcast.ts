import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { wrongType, wrongValue } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-places.js';
import type { LocalContext } from '../connection/local-context.js';
import { checkSizes } from '../connection/size-bounds.js';
import { SharedCopies, type SharedCopy } from '../memory/shared-copies.js';
import { Admission, type Budget, type Charge, Class } from './budget.js';
import { Channel } from './channel.js';
import { bytesOf, type MessageBytes } from './channel-options.js';

/** Options of `Server.broadcast`. */
export interface BroadcastOptions {
  /** A channel to exclude, such as the source of the message. */
  readonly except?: Channel | undefined;
  /**
   * Treatment of a channel whose peer is so slow that this message would exceed `maxQueuedBytes`. `'drop'`, the default, skips this
   * message. `'close'` ends the channel with `ENOBUFS`. Both are counted.
   */
  readonly slow?: 'drop' | 'close' | undefined;
  /**
   * Maximum bytes of broadcasts queued for one channel; default 1 MiB. Each message counts as at least 256 bytes. One message may always be
   * queued. Further messages must leave at least as much of the server's `maxBufferedBytes` free as is queued for this channel.
   */
  readonly maxQueuedBytes?: number | undefined;
}

/** Result of a broadcast. */
export interface BroadcastResult {
  /** Channels that get the message unless their connections end first. */
  readonly sent: number;
  /** Channels that do not get the message: slow ones, and those whose peers do not accept messages of its length. */
  readonly dropped: number;
}

const MOST_QUEUED = 2 ** 20;
/** Least charge for a queued message, in bytes: more than its queue entry occupies. */
const LEAST_CHARGE = 256;

/** One message for several channels. */
export interface BroadcastMessage {
  /** The caller's bytes, which the caller may change after this turn of the event loop. */
  readonly bytes: Uint8Array;
  /** A copy in this process for channels that cannot send yet, and the function to call when one of them has sent it. */
  own(): {
    readonly bytes: Uint8Array;
    readonly over: () => void;
  };
  /** The copy that all peers at a local address read, and the function to call when a peer has no access to it any more. */
  shared(context: LocalContext): {
    readonly copy: SharedCopy | Promise<SharedCopy>;
    readonly over: () => void;
  };
  /** Reports that a channel does not get the message, because there was not enough memory for a copy. */
  lost(): void;
  /** Reports that no further channel will use the message. */
  handedOver(): void;
}

/** A copy, and the number of its users. The broadcast itself is one of them until all channels have the message. */
interface Copied<C> {
  copy: C;
  readers: number;
  /** The copy's charge to the server's budget. */
  readonly charge: Charge;
}

type Shared = Copied<SharedCopy | Promise<SharedCopy>>;

/** Sends messages to all channels of a server. */
export class Broadcaster {
  /** The copies for each local address. */
  readonly #copies = new Map<LocalContext, SharedCopies>();
  /** Charges each copy once, regardless of the number of channels that wait for the copy. */
  readonly #admission: Admission;
  dropped = 0;

  /** @param budget - budget of the server's channels */
  constructor(budget: Budget) {
    this.#admission = new Admission(budget, Class.MESSAGES);
  }

  /** @throws TypeError, RangeError (invalid options or message) */
  send(channels: Iterable<Channel>, message: MessageBytes, options: BroadcastOptions = {}): BroadcastResult {
    checkOptionNames('broadcast', options);
    const { except, slow = 'drop', maxQueuedBytes = MOST_QUEUED } = options;
    if (slow !== 'drop' && slow !== 'close')
      throw wrongValue(`\`slow\` must be 'drop' or 'close'; got ${shown(slow)}.`);
    if (except !== undefined && !(except instanceof Channel))
      throw wrongType(`\`except\` must be a Channel; got ${shown(except)}.`);
    checkSizes({ maxQueuedBytes });
    const one = this.#message(bytesOf(message, '`message`'), typeof message === 'string');
    const charge = Math.max(LEAST_CHARGE, one.bytes.length);
    // All channels that share the copy are checked before it is charged.
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
    // Listeners run synchronously and may broadcast again, so all other channels get this message first.
    for (const [channel, queued] of tooSlow) channel.destroy(slowError(queued));
    return { sent, dropped };
  }

  /** Called when the server has closed. */
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

/** Removes one user. Returns whether it was the last. */
function leave(copied: Copied<unknown>): boolean {
  copied.readers -= 1;
  if (copied.readers > 0) return false;
  copied.charge.release();
  return true;
}

/** The same as {@link leave}, for memory that is reused. */
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
    `The peer is too slow for broadcasts: ${queued} bytes are queued for it. See the options slow, maxQueuedBytes and maxBufferedBytes.`,
  );
}
