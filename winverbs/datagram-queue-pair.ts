import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { QpAttr, QpState, QpType, WvOpcode } from '../kernel-bridge/ioctl/constants.js';
import { randomBits } from '../kernel-bridge/ioctl/random-bits.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { WvIoQpMulticast } from '../kernel-bridge/ioctl/structs.js';
import { WVAddressHandle } from './address-handle.js';
import { checkedGid } from './address-vector.js';
import { checkedSmall } from './checked-numbers.js';
import { nameOf } from './explain.js';
import type {
  IWVAddressHandle,
  IWVDatagramQueuePair,
  WvDatagramStart,
  WvQpCreate,
  WvSendDatagram,
  WvSendRequest,
  WvSge,
} from './interfaces.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { checkedRequest, checkWord, NO_SGES, WVQueuePair } from './queue-pair.js';
import { checkedObject, guarded, Status, WvError, wrongSge } from './status.js';

/** IWVDatagramQueuePair: exchanges datagrams with any UD queue pair whose number and Q_Key are known. */
export class WVDatagramQueuePair extends WVQueuePair implements IWVDatagramQueuePair {
  private readonly single: WvSge[] = [];

  /** @internal */
  static create(pd: WVProtectionDomain, create: WvQpCreate): WVDatagramQueuePair {
    const depths = { initiatorDepth: 0, responderResources: 0 };
    return new WVDatagramQueuePair(
      pd,
      WVQueuePair.make(pd, QpType.UD, create, depths),
      'IWVDatagramQueuePair',
    );
  }

  /**
   * Moves the queue pair from RESET or INIT to RTS, so that it receives datagrams with this Q_Key and can send.
   *
   * @throws WvError INVALID_DEVICE_STATE (it is in another state), INVALID_PARAMETER (no such port or P_Key index),
   *   ACCESS_DENIED (Q_Keys from 0x80000000 on are reserved for the OS)
   * @category Queues
   */
  start(qkey: number, options: WvDatagramStart = {}): void {
    checkedObject('options', options, 'portNumber, pkeyIndex and sendPsn, all optional');
    const { portNumber = 1, pkeyIndex = 0, sendPsn = randomBits(24) } = options;
    try {
      this.modify({ qpState: QpState.INIT, qkey, portNumber, pkeyIndex }, QpAttr.STATE);
    } catch (error) {
      if (!(error instanceof WvError && error.status === Status.INVALID_DEVICE_STATE)) throw error;
      const text = `The queue pair must be in RESET or INIT before start(); it is in ${nameOf(QpState, this.state)}.`;
      throw new WvError(error.status, text, { cause: error });
    }
    this.modify({ qpState: QpState.RTR }, QpAttr.STATE);
    this.modify({ qpState: QpState.RTS, sendPsn }, QpAttr.STATE);
  }

  /** Posts a datagram of one SGE, without immediate data; otherwise the same as {@link sendMessage}. @category Post */
  send(
    context: unknown,
    addressHandle: IWVAddressHandle,
    sge: WvSge,
    flags: number,
    destinationQpn: number,
    destinationQkey: number,
  ): void {
    if (typeof sge?.region !== 'object') throw wrongSge('sge', sge);
    this.single[0] = sge;
    this.queue(context, addressHandle, this.single, flags, destinationQpn, destinationQkey, 0);
  }

  /**
   * Posts a datagram of at most the port's active MTU, delivered once or not at all. Its completion means that it was
   * sent, not that it arrived. A datagram that is too long completes with LOCAL_LENGTH_ERROR, and one whose address
   * handle was released before it was sent with LOCAL_OP_ERROR. Either moves the send queue to SQERROR: modify the
   * state to RTS to continue.
   *
   * @throws WvError INVALID_DEVICE_STATE, NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER,
   *   INVALID_HANDLE (the address handle was released)
   * @category Post
   */
  sendMessage(message: WvSendDatagram): void {
    checkedObject(
      'message',
      message,
      'context, addressHandle, sgl, flags, destinationQpn and destinationQkey',
    );
    this.queue(
      message.context,
      message.addressHandle,
      message.sgl,
      message.flags,
      message.destinationQpn,
      message.destinationQkey,
      message.immediateData ?? 0,
    );
  }

  /**
   * Attaches the queue pair to a multicast group (QP_ATTACH), given as an IP address or its GID. It then receives a
   * copy of every datagram to the group that the device's interface receives and that has its Q_Key, including its own.
   * `lid` is ignored on RoCE.
   *
   * Rejects with WvError INVALID_ADDRESS (not a group), ADDRESS_ALREADY_EXISTS (already attached), NETWORK_UNREACHABLE
   * (the interface cannot join), INSUFFICIENT_RESOURCES (the host allows no more groups).
   * @category Queues
   */
  attachMulticast(group: string | Uint8Array, lid = 0): Overlapped<void> {
    return this.multicast(IoctlCode.QP_ATTACH, group, lid);
  }

  /**
   * Reverts {@link attachMulticast}. Rejects with WvError NOT_FOUND (not attached with this address and LID).
   * @category Queues
   */
  detachMulticast(group: string | Uint8Array, lid = 0): Overlapped<void> {
    return this.multicast(IoctlCode.QP_DETACH, group, lid);
  }

  private multicast(code: number, group: string | Uint8Array, lid: number): Overlapped<void> {
    this.check();
    const raw = checkedGid('group', group);
    checkedSmall('lid', lid, 0xffff);
    const input = guarded('Multicast', () =>
      WvIoQpMulticast.encode({ id: { id: this.id, data: lid }, gid: { raw } }),
    );
    return this.overlapped<void>(code, input, 0, () => undefined);
  }

  /** @internal */
  protected override postOne(posted: WvSendRequest): void {
    const {
      context,
      opcode = WvOpcode.SEND,
      sgl = NO_SGES,
      flags = 0,
      immediate = 0,
    } = checkedRequest(posted);
    const { addressHandle, destinationQpn, destinationQkey = 0 } = posted;
    if (opcode !== WvOpcode.SEND || posted.invalidateRkey !== undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`opcode\` must be ${WvOpcode.SEND} (Send) on a datagram queue pair, without \`invalidateRkey\`; got ${opcode}.`,
      );
    }
    if (addressHandle === undefined || destinationQpn === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        'A request on a datagram queue pair must have `addressHandle` and `destinationQpn`.',
      );
    }
    checkWord('flags', flags);
    checkWord('immediate', immediate);
    this.queue(context, addressHandle, sgl, flags, destinationQpn, destinationQkey, immediate);
  }

  private queue(
    context: unknown,
    addressHandle: IWVAddressHandle,
    sgl: readonly WvSge[],
    flags: number,
    destinationQpn: number,
    destinationQkey: number,
    immediate: number,
  ): void {
    const ah = this.checkedHandle(addressHandle);
    const request = this.prepare(WvOpcode.SEND, context, sgl, flags);
    request.av = ah.handle;
    request.remoteQpn = destinationQpn;
    request.remoteQkey = destinationQkey;
    request.immediate = immediate;
    try {
      this.post(request);
    } finally {
      request.av = null;
    }
  }

  private checkedHandle(handle: IWVAddressHandle): WVAddressHandle {
    if (!(handle instanceof WVAddressHandle) || handle.pd !== this.pd) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`addressHandle\` must be an address handle of the queue pair's protection domain; got ${shown(handle)}.`,
      );
    }
    handle.check();
    return handle;
  }
}
