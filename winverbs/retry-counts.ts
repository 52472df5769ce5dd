/** Default retry counts of connections. */
import { RnrRetry } from '../kernel-bridge/ioctl/constants.js';

/** Retries after a lost packet, unless WvConnectParam sets them: the maximum of three bits (IBA 1 §9.9.2.1.1). */
export const defaultRetryCount = 7;

/**
 * RNR retries of the peer. With a shared receive queue they are unlimited, because the peer may have to wait for
 * receives that others post.
 */
export function defaultRnrRetryCount(usesSrq: boolean): number {
  return usesSrq ? RnrRetry.FOR_EVER : RnrRetry.MOST;
}
