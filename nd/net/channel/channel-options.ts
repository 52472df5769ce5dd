import { checkHandler, kindOf, wrongType } from '../base/checks.js';
import { checkOptionNames } from '../base/option-places.js';
import { checkSizes } from '../connection/size-bounds.js';
import type { Channel } from './channel.js';

/** Bytes of a message; text is sent as UTF-8. */
export type MessageBytes = Uint8Array | string;

/** An operation that can be aborted. */
export interface AbortOptions {
  /** Rejects the operation with an AbortError. */
  readonly signal?: AbortSignal | undefined;
}

/** A request that is being answered. */
export interface IncomingRequest {
  /** Aborts when the requester has lost interest, or the connection has ended. */
  readonly signal: AbortSignal;
  /** The channel that it came from. */
  readonly channel: Channel;
}

/**
 * Answers requests: with bytes, or with a promise of them. What it throws is the requester's error: its message travels.
 */
export type RequestHandler = (
  bytes: Buffer,
  request: IncomingRequest,
) => MessageBytes | undefined | Promise<MessageBytes | undefined>;

/** Limits of a channel. */
export interface ChannelOptions {
  /** Answers the peer's requests; {@link Channel.onRequest} sets it later. */
  readonly onRequest?: RequestHandler | undefined;
  /**
   * Slots for messages that the peer has sent and this side has not taken, and for its requests that wait; short ones share slots. Answers
   * have slots of their own. From 1 to 65535, default 128.
   */
  readonly slots?: number | undefined;
  /**
   * Bytes of a slot, from 64 to 64 Mi; default 4096. A message may take a quarter of the slots while half of them stay free;
   * the receiver reads others from the sender's memory.
   */
  readonly slotBytes?: number | undefined;
  /** The longest message, request or answer that is taken, in bytes; default 256 MiB. The peer's `send` of a longer one fails with `EMSGSIZE`. */
  readonly maxMessageBytes?: number | undefined;
  /**
   * Requests that are answered at the same time, until the peer has their answers; default 1024. Further ones wait in slots; those that do
   * not fit wait in the peer's memory.
   */
  readonly maxRequests?: number | undefined;
}

/** Defaults of {@link ChannelOptions}. */
export const channelDefaults = {
  slots: 128,
  slotBytes: 4096,
  maxMessageBytes: 2 ** 28,
  maxRequests: 1024,
} as const;

/** @throws TypeError, RangeError: an option that is unknown or has a wrong value */
export function checkChannelOptions(at: 'connectChannel' | 'serverChannels', options: ChannelOptions): void {
  checkOptionNames(at, options);
  checkSizes(options);
  if (options.onRequest !== undefined) checkHandler(options.onRequest);
}

/** The bytes of a message. */
export function bytesOf(bytes: MessageBytes): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  if (typeof bytes === 'string') return Buffer.from(bytes);
  throw wrongType(`A message is a Uint8Array or a string, not ${kindOf(bytes)}.`);
}
