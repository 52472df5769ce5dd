/** The sizes of connections that a program can set. */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { outOfRange } from '../base/checks.js';
import { MOST_RING_BYTES } from './frames.js';

/** Minimum and maximum of each size. */
const bounds = {
  slots: [1, 65_535],
  slotBytes: [64, 2 ** 26],
  ringBytes: [0, MOST_RING_BYTES],
  maxMessageBytes: [1, Number.MAX_SAFE_INTEGER],
  maxRequests: [1, Number.MAX_SAFE_INTEGER],
  maxBufferedBytes: [1, Number.MAX_SAFE_INTEGER],
  maxQueuedBytes: [1, Number.MAX_SAFE_INTEGER],
  bytes: [1, Number.MAX_SAFE_INTEGER],
  highWaterMark: [0, Number.MAX_SAFE_INTEGER],
} as const;

/** @throws RangeError if a size is not an integer within its bounds */
export function checkSizes(sizes: { readonly [K in keyof typeof bounds]?: number | undefined }): void {
  for (const [name, [least, most]] of Object.entries(bounds)) {
    const value = sizes[name as keyof typeof bounds];
    if (value === undefined || (Number.isSafeInteger(value) && value >= least && value <= most)) continue;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw outOfRange(`\`${name}\` must be an integer ${range}; got ${shown(value)}.`);
  }
}
