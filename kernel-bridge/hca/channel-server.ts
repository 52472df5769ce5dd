import type { ChannelRequest, ServedChannel } from './binding.js';

/** {@link RawChannelServer.next}: there is no request. */
const none = -1;

/** The kernel side of a channel as native code gives it: a request is words and bytes in memory that is used again. */
export interface RawChannelServer extends Omit<ServedChannel, 'take' | 'answerEvents'> {
  /** Bytes of the next request's input; -1: there is none; -2: events of the HCA have come. */
  next(): number;
  /** From now on next() tells of events. */
  tellEvents(): void;
  /** Of the latest request: slot (all bits set: none), serial, major, file id, code, length of the output. */
  readonly request: Uint32Array;
  /** Its input, as far as it fits. */
  readonly requestBytes: Uint8Array;
  /** The whole input of a request for which it does not; once. */
  longInput(): Uint8Array;
}

/** Gives native code's kernel side the method that makes objects of requests. */
export function channelServer(raw: RawChannelServer): ServedChannel {
  const { request, requestBytes } = raw;
  let onEvents = (): void => {};
  const startAnswering = raw.tellEvents.bind(raw);
  const answerEvents = (callback: () => void): void => {
    onEvents = callback;
    startAnswering();
  };
  const take = (): ChannelRequest | undefined => {
    let length = raw.next();
    while (length < none) {
      onEvents();
      length = raw.next();
    }
    if (length === none) return undefined;
    return {
      slot: request[0]! | 0,
      serial: request[1]!,
      major: request[2]!,
      fileId: request[3]!,
      code: request[4]!,
      input: length <= requestBytes.length ? requestBytes.slice(0, length) : raw.longInput(),
      outputLength: request[5]!,
    };
  };
  return Object.assign(raw, { take, answerEvents });
}
