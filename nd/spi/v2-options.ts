/** Options of the Create… methods of an IND2Adapter. */
import type { NdOverlappedFile } from './types.js';
import type { IND2CompletionQueue, IND2SharedReceiveQueue } from './v2.js';

/** The processors that completions should interrupt: a wish, which a provider may ignore. */
export interface Nd2Affinity {
  /** Processor group. */
  readonly group: number;
  /** A bit for each processor of the group; 0: no wish. */
  readonly mask: bigint;
}

/** Attributes of a new shared receive queue. */
export interface Nd2SharedReceiveQueueOptions {
  /** Maximum of outstanding Receives. */
  depth: number;
  /** Scatter/gather entries of a Receive; default 1. */
  maxRequestSge?: number;
  /** `notify` completes when fewer Receives are outstanding; 0, the default: never. */
  notifyThreshold?: number;
  /** Processors that events should interrupt; default: no wish. */
  affinity?: Nd2Affinity;
  /** Collects the requests of the queue. */
  overlappedFile?: NdOverlappedFile;
}

/** Common attributes of queue pairs with and without a shared receive queue. */
export interface Nd2InitiatorOptions {
  /** Gets the results of Receives. */
  receiveCompletionQueue: IND2CompletionQueue;
  /** Gets the results of all other requests; may be the same. */
  initiatorCompletionQueue: IND2CompletionQueue;
  /** Every result returns it. */
  context?: unknown;
  /** Maximum of outstanding requests other than Receives. */
  initiatorQueueDepth: number;
  /** Scatter/gather entries of a Send, Read or Write, at least; default 1. The queue pair has the granted number. */
  maxInitiatorRequestSge?: number;
  /** Maximum bytes of a request with INLINE; default 0. */
  inlineDataSize?: number;
}

/** Attributes of a new queue pair. */
export interface Nd2QueuePairOptions extends Nd2InitiatorOptions {
  /** Maximum of outstanding Receives. */
  receiveQueueDepth: number;
  /** Scatter/gather entries of a Receive, at least; default 1. The queue pair has the granted number. */
  maxReceiveRequestSge?: number;
}

/** Attributes of a new queue pair whose Receives come from a shared receive queue. */
export interface Nd2SrqQueuePairOptions extends Nd2InitiatorOptions {
  /** Where it takes its Receives from. */
  sharedReceiveQueue: IND2SharedReceiveQueue;
}
