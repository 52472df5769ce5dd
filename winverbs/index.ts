/// <reference lib="esnext.disposable" preserve="true" />
/**
 * WinVerbs: the verbs interface below NetworkDirect. Start with {@link openProvider}.
 *
 * @module networkdirect/winverbs
 */

export {
  type GetResultOptions,
  Overlapped,
  type OverlappedSource,
} from '../kernel-bridge/door/overlapped.js';
export type * from '../kernel-bridge/door/user-verbs.js';
export type { AllocateOptions } from '../kernel-bridge/index.js';
export * from '../kernel-bridge/ioctl/constants.js';
export {
  addressOfGid,
  gidOfAddress,
  parseSocketAddress,
  scopeIdOfAddress,
} from '../kernel-bridge/ioctl/sockaddr.js';
export type { KernelOptionsInput } from '../kernel-bridge/option-checks/option-schemas.js';
export { SOFT_USER_LIBRARY, type UserVerbsMaker } from '../kernel-bridge/uvp/index.js';
export { WVAddressHandle } from './address-handle.js';
export {
  addressOf,
  GRH_BYTES,
  gidOf,
  isMulticastGid,
  MULTICAST_QPN,
  parseGrh,
  replyAddressVector,
} from './address-vector.js';
export { allocate } from './allocate.js';
export { asAddress } from './checked-numbers.js';
export { WVCompletionQueue } from './completion-queue.js';
export { WVConnectEndpoint } from './connect-endpoint.js';
export { WVConnectQueuePair } from './connect-queue-pair.js';
export { WVDatagramEndpoint } from './datagram-endpoint.js';
export { WVDatagramQueuePair } from './datagram-queue-pair.js';
export { WVDevice } from './device.js';
export { WVEndpoint } from './endpoint.js';
export { WVFastRegion } from './fast-region.js';
export * from './interfaces.js';
export { claimLocalName, type LocalNameClaim, portsOfLocalName } from './local-names.js';
export { MemoryRegion } from './memory-region.js';
export { WVMemoryWindow } from './memory-window.js';
export { WVProtectionDomain } from './protection-domain.js';
export { openProvider, type ProviderDoors, WVProvider } from './provider.js';
export { WVQueuePair } from './queue-pair.js';
export { registerUserVerbs } from './register-user-verbs.js';
export { RemoteMemory, WvDirect, WvDirectResult } from './remote-memory.js';
export { WVSharedReceiveQueue } from './shared-receive-queue.js';
export { socketAddress } from './socket-address.js';
export {
  Status,
  StatusError,
  type StatusName,
  statusHex,
  statusName,
  statusText,
  WvError,
} from './status.js';
export { checkedSignal, firstCompletion, firstTaken, nextCompletion, type WaitOptions } from './waiting.js';
export { WvObject, WvOverlapped } from './wv-object.js';
