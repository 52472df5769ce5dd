import type { ChannelRequest, ServedChannel } from './channel-binding.js';

/** {@link RawChannelServer.next}: there is no request. */
const none = -1;

/** The kernel side of a channel as native code gives it: a request is words and bytes in memory that is used again. */
export interface RawChannelServer extends Omit<ServedChannel, 'take' | 'answerEvents' | 'complete'> {
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
  /** Memory for output that native code knows: where it asks for an array's bytes, they are moved out of the engine's heap. */
  readonly answerBytes: Uint8Array;
  /** As {@link ServedChannel.complete}; a number is as many of the answer's bytes. */
  completeSlot(
    slot: number,
    serial: number,
    status: number,
    information: number,
    output: Uint8Array | number | null,
  ): boolean;
}

/** Gives native code's kernel side the method that makes objects of requests. */
export function channelServer(raw: RawChannelServer): ServedChannel {
  // The methods know their object without being told.
  const { request, requestBytes, answerBytes, next, completeSlot } = raw;
  let onEvents = (): void => {};
  const startAnswering = raw.tellEvents.bind(raw);
  const answerEvents = (callback: () => void): void => {
    onEvents = callback;
    startAnswering();
  };
  const take = (): ChannelRequest | undefined => {
    let length = next();
    while (length < none) {
      onEvents();
      length = next();
    }
    if (length === none) return undefined;
    return {
      slot: request[0]! | 0,
      serial: request[1]!,
      major: request[2]!,
      fileId: request[3]!,
      code: request[4]!,
      input: length <= requestBytes.length ? requestBytes.subarray(0, length) : raw.longInput(),
      outputLength: request[5]!,
    };
  };
  const complete: ServedChannel['complete'] = (slot, serial, status, information, output) => {
    if (!(output instanceof Uint8Array) || output.length > answerBytes.length) {
      return completeSlot(slot, serial, status, information, output);
    }
    answerBytes.set(output);
    return completeSlot(slot, serial, status, information, output.length);
  };
  return Object.assign(raw, { take, answerEvents, complete });
}
