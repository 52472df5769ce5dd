/**
 * Events of an HCA for the kernel that has opened it, by kind. The word `ownerAt` of each event identifies its owner, which
 * is a device in the case of RDMA devices, because these share one queue.
 */
import type { EventForm } from './describe.js';

export const events: Readonly<Record<string, EventForm>> = {
  mad: {
    about: 'A MAD for QP1.',
    words: {
      scopeId: {},
      pkey: { about: 'The P_Key of the packet; it matches the table set with `setPkeyTable`.' },
      sender: {
        about: 'The slot of a sender on this host that used the local link, otherwise {@link BY_WIRE}.',
      },
      stranger: {
        about: 'Whether its connection is unknown, that is, this kernel has not sent a message for it.',
        flag: true,
      },
    },
    more: {
      source: { about: 'The GID of the sender.', ts: 'Uint8Array', from: 'bytes.slice(0, gidBytes)' },
      destination: {
        about: 'The GID that the packet was sent to.',
        ts: 'Uint8Array',
        from: 'bytes.slice(gidBytes, madAt)',
      },
      mad: {
        about: 'Valid only until the next event is taken or the next MAD is sent.',
        ts: 'Uint8Array',
        from: 'mad',
      },
    },
  },
  qp: {
    words: {
      qp: {},
      token: {},
      event: { about: '{@link QpEventType}', cpp: 'QpEvent' },
      reason: { about: 'The WV_WC_STATUS of `fatal` and `peerLost`.' },
    },
  },
  cq: {
    words: {
      cq: {},
      event: {
        about: '{@link CqEventType}; completions only if requested with `HcaCommands.listenCq`.',
        cpp: 'CqEvent',
      },
    },
  },
  srq: { words: { srq: {}, event: { about: '{@link SrqEventType}', cpp: 'SrqEvent' } } },
  notified: {
    about: 'A request that waited for a CQ event was completed natively and must be unlinked.',
    words: { slot: {}, serial: {} },
  },
  capture: {
    about: 'The capture has ended because its file cannot be written.',
    words: { errno: { about: 'The errno value of the failure.' } },
  },
  fatal: {
    about:
      'A device has failed; all of its users have to close it. The software HCA fails as a whole, when its ' +
      "engine's thread cannot continue.",
    words: { errno: { about: 'The errno value of the failure; 0: none.' } },
    more: {
      device: {
        about: 'The device, or undefined for all devices of the HCA.',
        ts: 'bigint | undefined',
        from: 'undefined',
      },
    },
  },
  observed: {
    about: 'A process requests statistics; `SoftHca.replyToObserver` replies.',
    words: { number: {} },
  },
  wireLost: {
    about:
      'UDP port 4791 could not be opened when it was needed, or was closed because a process of another version shares it; ' +
      '`SoftHca.wireProblem` has the reason.',
    words: {},
  },
  port: { about: 'Ports, addresses or P_Keys of a real HCA have changed.', words: {} },
  gone: { about: 'A real HCA is being removed.', words: {} },
  cm: {
    about:
      'An event of librdmacm, which manages the connections of real HCAs. The numbers are those of rdma_cm.',
    words: {
      event: { about: 'rdma_cm_event_type' },
      status: {
        about: "Negative: the NTSTATUS of a failure; otherwise the peer's reason, or 0.",
        signed: true,
      },
      id: {},
      listener: { about: "The listener's id, for a connection request." },
      responderResources: {},
      initiatorDepth: {},
      retryCount: {},
      rnrRetryCount: {},
      srq: { flag: true },
      qpn: {},
      qkey: {},
      length: { about: 'Length of the private data, in bytes.' },
    },
    more: {
      data: {
        about: 'A copy of the private data.',
        ts: 'Uint8Array',
        from: 'bytes.slice(madAt, madAt + word(words, 11))',
      },
    },
  },
};
