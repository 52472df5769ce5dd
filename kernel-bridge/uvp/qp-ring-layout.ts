import { abi } from '../schema/generated/ring.js';
import type { UvpQpCreate } from '../user-verbs.js';
import { powerOfTwo, receiveStride } from './work-request.js';

/** The layout of a queue pair's ring (schema/ring.ts). */
export interface QpRingLayout {
  readonly sendEntries: number;
  readonly sendStride: number;
  /** SGEs that a send WQE has room for: at least the requested number. */
  readonly sendSge: number;
  readonly receiveEntries: number;
  readonly receiveStride: number;
  readonly bytes: number;
}

export function qpRingLayout(create: UvpQpCreate): QpRingLayout {
  const sendEntries = powerOfTwo(create.sendDepth);
  // A queue pair on a shared receive queue has no receive queue of its own.
  const shared = (create.srq ?? null) !== null;
  const receiveEntries = shared ? 0 : powerOfTwo(create.receiveDepth);
  const payload = Math.max(create.sendSge * abi.sgeBytes, create.maxInlineSend);
  const sendStride = Math.ceil((abi.sendWqeHeaderBytes + payload) / 64) * 64;
  const stride = receiveStride(shared ? 0 : create.receiveSge);
  return {
    sendEntries,
    sendStride,
    sendSge: (sendStride - abi.sendWqeHeaderBytes) / abi.sgeBytes,
    receiveEntries,
    receiveStride: stride,
    bytes: abi.qpHeaderBytes + sendEntries * sendStride + receiveEntries * stride,
  };
}
