/** Importing this removes RDMA Reads from the adapters of this process, as if they belonged to a provider without them (USB4). */
import { NdError, Status } from '../../nd/index.js';
import { Adapter } from '../../nd/v2/adapter.js';
import { QueuePair } from '../../nd/v2/queue-pair.js';

const { query } = Adapter.prototype;
Adapter.prototype.query = function (...version) {
  return { ...query.apply(this, version), maxInboundReadLimit: 0, maxOutboundReadLimit: 0 };
};
QueuePair.prototype.read = () => {
  throw new NdError(Status.NOT_SUPPORTED, 'This adapter does not support RDMA Reads.');
};
