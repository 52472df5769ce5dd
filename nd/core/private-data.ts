/** Private data of connections: its maximum lengths, and the check of a caller's data. */
import { kindOf } from '../../kernel-bridge/ioctl/shown.js';
import { Capacity, type IWVProvider, Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Maximum for Connect, in bytes: what a REQ has room for after its address header. */
export const MAX_CALLER_DATA = Capacity.CONNECT_DATA;

/** Maximum for Accept and Reject, in bytes: what both a REP, as the provider sends it, and a REJ have room for. */
export function maxCalleeData({ maxAcceptData }: IWVProvider): number {
  return Math.min(maxAcceptData, Capacity.REJ_DATA);
}

/** Throws INVALID_PARAMETER if it is not bytes, INVALID_BUFFER_SIZE if it is longer than `most` bytes. */
export function checkPrivateData(
  data: Uint8Array | undefined,
  what: string,
  most: number,
): Uint8Array | undefined {
  if (data !== undefined && !(data instanceof Uint8Array)) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `\`privateData\` must be a Uint8Array; got ${kindOf(data)}.`,
    );
  }
  if (data !== undefined && data.length > most) {
    throw refuse(
      Status.INVALID_BUFFER_SIZE,
      what,
      `\`privateData\` must be at most ${most} bytes; got ${data.length}.`,
    );
  }
  return data;
}
