import type { ChannelRequest, ServedChannel } from './request-channel-binding.js';

/** Result of {@link RawChannelServer.next} without a request. */
const none = -1;

/** The native kernel side of a channel: a request is words and bytes in reused memory. */
export interface RawChannelServer extends Omit<ServedChannel, 'take' | 'answerEvents' | 'complete'> {
  /** Length of the next request's input in bytes; -1: no request; -2: there are events of the HCA. */
  next(): number;
  /** Makes next() report events from now on. */
  acceptNotifications(): void;
  /** The latest request as slot (all bits set without a request), serial, major, file id, code, length of the output. */
  readonly request: Uint32Array;
  /** The input of that request, up to the length of this memory. */
  readonly requestBytes: Uint8Array;
  /** The whole input of a longer request; callable once. */
  longInput(): Uint8Array;
  /** Memory for output, known to native code. If native code requested the bytes of an array, V8 would move them out of its heap. */
  readonly answerBytes: Uint8Array;
  /** The same as {@link ServedChannel.complete}; a number is the length of an output in `answerBytes`. */
  completeSlot(
    slot: number,
    serial: number,
    status: number,
    information: number,
    output: Uint8Array | number | null,
  ): boolean;
}

/** Adds the methods that create objects for requests. */
export function channelServer(raw: RawChannelServer): ServedChannel {
  // The methods are bound to their object.
  const { request, requestBytes, answerBytes, next, completeSlot } = raw;
  let onEvents = (): void => {};
  const startAnswering = raw.acceptNotifications.bind(raw);
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
