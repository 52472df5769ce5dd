/** Names of the options of Create… methods. */
import type { OptionNames } from '../core/argument-checks.js';
import type {
  Nd2InitiatorOptions,
  Nd2QueuePairOptions,
  Nd2SharedReceiveQueueOptions,
  Nd2SrqQueuePairOptions,
} from '../spi/v2.js';

const initiatorOptions: OptionNames<Nd2InitiatorOptions> = {
  receiveCompletionQueue: true,
  initiatorCompletionQueue: true,
  context: true,
  initiatorQueueDepth: true,
  maxInitiatorRequestSge: true,
  inlineDataSize: true,
};
/** Options of CreateQueuePair. */
export const queuePairOptions: OptionNames<Nd2QueuePairOptions> = {
  ...initiatorOptions,
  receiveQueueDepth: true,
  maxReceiveRequestSge: true,
};
/** Options of CreateQueuePairWithSrq. */
export const srqQueuePairOptions: OptionNames<Nd2SrqQueuePairOptions> = {
  ...initiatorOptions,
  sharedReceiveQueue: true,
};
/** Options of CreateSharedReceiveQueue. */
export const srqOptions: OptionNames<Nd2SharedReceiveQueueOptions> = {
  depth: true,
  maxRequestSge: true,
  notifyThreshold: true,
  affinity: true,
  overlappedFile: true,
};
