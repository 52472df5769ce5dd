import type { EventEmitter } from 'node:events';
import type { SocketAddress } from '../index.js';
import type { MessageBytes } from './channel-options.js';
import { kindOf, outOfRange, wrongType } from './checks.js';
import { aborted } from './errors.js';
import { MOST_RING_BYTES } from './wire.js';

/** What a program's listener or handler has thrown is an uncaught exception, as in `node:net`, and no error of a connection. */
export function uncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Emits an event; see {@link uncaught}. */
export function tell(emitter: EventEmitter, event: string, ...details: unknown[]): void {
  try {
    emitter.emit(event, ...details);
  } catch (error) {
    uncaught(error);
  }
}

/** The family of an address, as Node.js names it. */
export function familyOf({ family }: SocketAddress): 'IPv4' | 'IPv6' {
  return family === 6 ? 'IPv6' : 'IPv4';
}

/** The properties that are not undefined. */
export function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

/** Bounds of the sizes of connections. */
const bounds = {
  slots: [1, 65_535],
  slotBytes: [64, 2 ** 26],
  ringBytes: [0, MOST_RING_BYTES],
  maxMessageBytes: [1, Number.MAX_SAFE_INTEGER],
  maxRequests: [1, Number.MAX_SAFE_INTEGER],
  maxBufferedBytes: [1, Number.MAX_SAFE_INTEGER],
} as const;

/** @throws RangeError: which size is not a whole number within its bounds */
export function checkSizes(sizes: { readonly [K in keyof typeof bounds]?: number | undefined }): void {
  for (const [name, [least, most]] of Object.entries(bounds)) {
    const value = sizes[name as keyof typeof bounds];
    if (value === undefined || (Number.isSafeInteger(value) && value >= least && value <= most)) continue;
    throw outOfRange(`${name} is ${String(value)}; it takes a whole number from ${least} to ${most}.`);
  }
}

/** The longest time of a timer. */
const MOST_MS = 2 ** 31 - 1;

/** @throws TypeError, RangeError, with the codes that Node.js has for them: not the time of a timer */
export function checkMs(ms: number): void {
  if (typeof ms !== 'number')
    throw wrongType(`The time is of type ${typeof ms}; it is a number of milliseconds.`);
  if (!(ms >= 0 && ms <= MOST_MS))
    throw outOfRange(`The time is ${ms} ms; it is a number from 0 to ${MOST_MS}.`);
}

/** The bytes of a message. */
export function bytesOf(bytes: MessageBytes): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  if (typeof bytes === 'string') return Buffer.from(bytes);
  throw wrongType(`A message is a Uint8Array or a string, not ${kindOf(bytes)}.`);
}

/** A promise that a signal rejects if `cancel` answers true. */
export function abortable<T>(
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  signal: AbortSignal | undefined,
  cancel: () => boolean,
): Promise<T> {
  if (signal === undefined) return new Promise(start);
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
      if (cancel()) reject(aborted(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    const over = (): void => signal.removeEventListener('abort', onAbort);
    start(
      (value) => {
        over();
        resolve(value);
      },
      (error) => {
        over();
        reject(error);
      },
    );
  });
}

/** Memory from which {@link copyOf} takes, and how much of it has been taken. */
let slab = new ArrayBuffer(0);
let taken = 0;

/** Bytes of a slab, and of a copy that is worth a part of one. */
const SLAB_BYTES = 262_144;
const PART_BYTES = 16_384;

/**
 * A copy in new memory. Several long ones share an allocation: new memory costs more than the copy, because the system fills each page
 * with zeros and the allocator gives what was freed back to the system. That is less so for large allocations.
 */
export function copyOf(bytes: Uint8Array): Buffer {
  const { length } = bytes;
  if (length < PART_BYTES || length > SLAB_BYTES) return Buffer.from(bytes);
  if (taken + length > slab.byteLength) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer as ArrayBuffer;
    taken = 0;
  }
  const copy = Buffer.from(slab, taken, length);
  taken += length;
  copy.set(bytes);
  return copy;
}
