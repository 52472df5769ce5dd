/** Encodes commands' parameters into the words and bytes shared with native code, in the order of addon/qp_words.h. */
import type { PathParameters, QpAttributeValues, QpCreateParameters } from './hca-parameters.js';

/** Positions in the words and bytes: `Words` of addon/hca_words.h. */
export const pathAt = 18;
export const gidBytes = 16;
export const madAt = 32;
export const madBytes = 256;

/** The memory of a command's arguments and results. */
export interface SharedWords {
  /** Parameters and results from the start; a path's numbers behind them. */
  readonly words: Float64Array;
  /** A path's source and destination, 16 bytes each, and a MAD. */
  readonly bytes: Uint8Array;
}

/** Encodes a path's addresses and numbers. False: there is none, or an address does not have 16 bytes. */
export function putPath({ words, bytes }: SharedWords, path: PathParameters | undefined): boolean {
  if (path?.source?.length !== gidBytes || path.destination?.length !== gidBytes) return false;
  bytes.set(path.source, 0);
  bytes.set(path.destination, gidBytes);
  words[pathAt] = path.flowLabel;
  words[pathAt + 1] = path.trafficClass;
  words[pathAt + 2] = path.hopLimit;
  words[pathAt + 3] = path.scopeId;
  return true;
}

/** Encodes a MAD. False: it does not have 256 bytes. */
export function putMad({ bytes }: SharedWords, given: Uint8Array): boolean {
  if (given.length !== madBytes) return false;
  bytes.set(given, madAt);
  return true;
}

/** Encodes the parameters of a new queue pair. */
export function putQpCreate({ words }: SharedWords, parameters: QpCreateParameters): void {
  words[0] = parameters.pd;
  words[1] = parameters.sendCq;
  words[2] = parameters.receiveCq;
  words[3] = parameters.srq;
  words[4] = parameters.pkeyTable;
  words[5] = parameters.type;
  words[6] = parameters.signalAll ? 1 : 0;
  words[7] = parameters.ringAddress;
  words[8] = parameters.ringBytes;
  words[9] = parameters.sendEntries;
  words[10] = parameters.sendStride;
  words[11] = parameters.sendSge;
  words[12] = parameters.maxInline;
  words[13] = parameters.receiveEntries;
  words[14] = parameters.receiveStride;
  words[15] = parameters.receiveSge;
  words[16] = parameters.token;
}

/**
 * Encodes a queue pair's attributes except the path. A missing one becomes NaN, which native code refuses if the mask
 * has it.
 */
export function putAttributes({ words }: SharedWords, attributes: Partial<QpAttributeValues>): void {
  const missing = Number.NaN;
  words[0] = attributes.state ?? missing;
  words[1] = attributes.currentState ?? missing;
  words[2] = attributes.access ?? missing;
  words[3] = attributes.pkeyIndex ?? missing;
  words[4] = attributes.port ?? missing;
  words[5] = attributes.qkey ?? missing;
  words[6] = attributes.pathMtu ?? missing;
  words[7] = attributes.destinationQpn ?? missing;
  words[8] = attributes.receivePsn ?? missing;
  words[9] = attributes.sendPsn ?? missing;
  words[10] = attributes.responderResources ?? missing;
  words[11] = attributes.initiatorDepth ?? missing;
  words[12] = attributes.minRnrTimer ?? missing;
  words[13] = attributes.ackTimeout ?? missing;
  words[14] = attributes.retryCount ?? missing;
  words[15] = attributes.rnrRetry ?? missing;
  words[16] = attributes.patience ?? missing;
  words[17] = attributes.extensions ?? missing;
}
