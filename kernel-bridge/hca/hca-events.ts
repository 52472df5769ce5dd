/** Events of the HCA, as it reports them to the kernel. */
import type { BY_WIRE } from '../schema/generated/numbers.js';

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
