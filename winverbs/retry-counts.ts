/** Retry counts of connections that name none. */
import { RnrRetry } from '../kernel-bridge/ioctl/constants.js';

/** Retries after a lost packet where WvConnectParam leaves them out: the most that three bits hold (IBA 1 §9.9.2.1.1). */
export const defaultRetryCount = 7;

/** The same of retries that the peer makes while this side has no receive. On a shared receive queue it may wait for receives that others post. */
export function defaultRnrRetryCount(usesSrq: boolean): number {
  return usesSrq ? RnrRetry.FOR_EVER : RnrRetry.MOST;
}
