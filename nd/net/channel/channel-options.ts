import { kindOf } from '../../../kernel-bridge/ioctl/shown.js';
import { checkFunction, wrongType } from '../base/checks.js';
import { checkOptionNames } from '../base/option-places.js';
import { checkSizes } from '../connection/size-bounds.js';
import type { Channel } from './channel.js';

/** Bytes of a message. A string is sent as UTF-8. */
export type MessageBytes = Uint8Array | string;

/** An operation that can be aborted. */
export interface AbortOptions {
  /** Rejects the operation with an AbortError. */
  readonly signal?: AbortSignal | undefined;
}

/** A request that is being handled. */
export interface IncomingRequest {
  /** Aborts when the requester has canceled the request or the connection has ended. */
  readonly signal: AbortSignal;
  /** The channel on which the request arrived. */
  readonly channel: Channel;
}

/**
 * Handles a request and returns the bytes of the answer or a promise for them. If it throws, the request fails with the message of the
 * error.
 */
export type RequestHandler = (
  bytes: Buffer,
  request: IncomingRequest,
) => MessageBytes | undefined | Promise<MessageBytes | undefined>;

/** Limits of a channel. */
export interface ChannelOptions {
  /** Handles the peer's requests; {@link Channel.onRequest} sets it later. */
  readonly onRequest?: RequestHandler | undefined;
  /**
   * Slots for received messages and requests that are not processed yet, from 1 to 65535; default 128. Short messages share slots. Answers
   * have slots of their own.
   */
  readonly slots?: number | undefined;
  /**
   * Bytes of a slot, from 64 to 64 Mi; default 4096. A message is sent in slots if it needs at most a quarter of them and half of them stay
   * free; the receiver reads other messages from the sender's memory.
   */
  readonly slotBytes?: number | undefined;
  /**
   * The longest message, request or answer that is accepted, in bytes; default 256 MiB. If the peer sends a longer one, its `send` fails
   * with `EMSGSIZE`.
   */
  readonly maxMessageBytes?: number | undefined;
  /**
   * Maximum requests in progress, each until the peer has received its answer; default 1024. Further requests wait in slots, and those that
   * do not fit wait in the peer's memory.
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

/** @throws TypeError, RangeError (an unknown option or an invalid value) */
export function checkChannelOptions(at: 'connectChannel' | 'serverChannels', options: ChannelOptions): void {
  checkOptionNames(at, options);
  checkSizes(options);
  if (options.onRequest !== undefined) checkFunction('onRequest', options.onRequest);
}

/** Returns the bytes of a message. `what` names it in errors. */
export function bytesOf(bytes: MessageBytes, what = '`bytes`'): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  if (typeof bytes === 'string') return Buffer.from(bytes);
  throw wrongType(`${what} must be a Uint8Array or a string; got ${kindOf(bytes)}.`);
}
