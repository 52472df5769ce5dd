/** Events of the HCA, as it tells them to the kernel. */

/** QP event numbers, see `QpEvent` in engine/base/types.h. */
export const QpEventType = {
  /** The first packet has come in RTR: the peer takes the connection for established. */
  communicationEstablished: 1,
  /** The queue pair has reached SQD, and nothing is in flight. */
  sendQueueDrained: 2,
  /** The queue pair has moved itself to ERROR; the event's reason is the WV_WC_STATUS. */
  fatal: 3,
  /** As `fatal`: retries or keep-alive are spent, or the peer's process has died. */
  peerLost: 4,
  /** In ERROR: it takes nothing more from its shared receive queue. */
  lastWqe: 5,
} as const;

/** SRQ event numbers, see `SrqEvent` in engine/base/types.h. */
export const SrqEventType = {
  /** Fewer receives are left than the limit; reported once for each time that it is set. */
  limit: 1,
  /** The queue has failed for good, as its ring was invalid. */
  fatal: 2,
} as const;

/** CQ event numbers. */
export const CqEventType = {
  /** The event that was asked for has come. */
  completion: 1,
  /** The CQ has overrun and failed; its QPs are in ERROR. */
  overrun: 2,
} as const;

/** Stands for a sender's slot: the packet arrived by UDP, from anybody. `kByWire` of engine/base/types.h. */
export const BY_WIRE = 0xffff_ffff;

export type HcaEvent =
  /** `pkey`: the P_Key that the packet carried; it fits the table that `setPkeyTable` told of. */
  | {
      type: 'mad';
      source: Uint8Array;
      destination: Uint8Array;
      scopeId: number;
      pkey: number;
      /** The slot of the sending process of this host, which bypassed the wire, or {@link BY_WIRE}. */
      sender: number;
      /** It belongs to no connection for which this kernel has sent a message. */
      stranger: boolean;
      /** Valid until the next event is taken or the next MAD is sent: copy what you keep. */
      mad: Uint8Array;
    }
  | { type: 'qp'; qp: number; token: number; event: number; reason: number }
  /** `event`: {@link CqEventType}; completions only where `HcaCommands.listenCq` asked for them. */
  | { type: 'cq'; cq: number; event: number }
  /** `event` is one of {@link SrqEventType}. */
  | { type: 'srq'; srq: number; event: number }
  /** A request that waited for a CQ event was completed natively: unlink it. */
  | { type: 'notified'; slot: number; serial: number }
  /**
   * A device has failed: it has to be closed by all who have it open. Undefined: all devices of the HCA. The software HCA fails as a
   * whole, when its engine's thread cannot go on; `errno` is the system's reason.
   */
  | { type: 'fatal'; device: bigint | undefined; errno?: number }
  /** A process asks for statistics; `SoftHca.answerObserver` answers. */
  | { type: 'observed'; number: number }
  /** UDP port 4791 was given up, because a process of another version shares it; `SoftHca.wireProblem` says which. */
  | { type: 'wireLost' }
  /** Packets are recorded no more: their file cannot be written. */
  | { type: 'capture'; errno: number };
