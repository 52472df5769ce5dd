/** NVMe over RDMA: an initiator and a target. */

export { DISCOVERY_NQN, NVME_PORT, NvmeConnectionError, NvmeError } from './capsules.js';
export { NvmeController, type NvmeOptions } from './controller.js';
export { Disk, type Part } from './disk.js';
export { fileStore, memoryStore, type Store } from './store.js';
export { NvmeTarget, type TargetOptions } from './target.js';
