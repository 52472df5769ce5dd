/** Private data of connections: how many bytes its messages have room for, and the check of what a program gives. */
import { Capacity, type IWVProvider, Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Of Connect: what a REQ has room for behind its address header. */
export const MAX_CALLER_DATA = Capacity.CONNECT_DATA;

/** Of Accept and Reject alike: what both a REP, as the provider makes it, and a REJ have room for. */
export function maxCalleeData({ maxAcceptData }: IWVProvider): number {
  return Math.min(maxAcceptData, Capacity.REJ_DATA);
}

/** INVALID_PARAMETER if it is not bytes, INVALID_BUFFER_SIZE if it is more than `most` of them. */
export function checkPrivateData(
  data: Uint8Array | undefined,
  what: string,
  most: number,
): Uint8Array | undefined {
  if (data !== undefined && !(data instanceof Uint8Array)) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `Private data is a Uint8Array, not ${data === null ? 'null' : `of type ${typeof data}`}.`,
    );
  }
  if (data !== undefined && data.length > most) {
    throw refuse(
      Status.INVALID_BUFFER_SIZE,
      what,
      `${data.length} bytes of private data are more than the ${most} that ${what} carries.`,
    );
  }
  return data;
}
