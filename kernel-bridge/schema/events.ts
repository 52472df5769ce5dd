/**
 * Events of an HCA for the kernel that has opened it, by their kinds. Each is about an owner, in the word `ownerAt`: with real HCAs, which
 * have one queue, a device.
 */
import type { EventForm } from './describe.js';

export const events: Readonly<Record<string, EventForm>> = {
  mad: {
    about: 'A MAD for QP1.',
    words: {
      scopeId: {},
      pkey: { about: 'The P_Key that the packet carried; it fits the table that `setPkeyTable` set.' },
      sender: {
        about: 'The slot of the sending process of this host, which bypassed the wire, or {@link BY_WIRE}.',
      },
      stranger: {
        about: 'It belongs to no connection for which this kernel has sent a message.',
        flag: true,
      },
    },
    more: {
      source: { about: 'A GID.', ts: 'Uint8Array', from: 'bytes.slice(0, gidBytes)' },
      destination: { about: 'A GID.', ts: 'Uint8Array', from: 'bytes.slice(gidBytes, madAt)' },
      mad: {
        about: 'Valid until the next event is taken or the next MAD is sent: copy what you keep.',
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
      reason: { about: 'Of `fatal` and `peerLost`: the WV_WC_STATUS.' },
    },
  },
  cq: {
    words: {
      cq: {},
      event: {
        about: '{@link CqEventType}; completions only where `HcaCommands.listenCq` asked for them.',
        cpp: 'CqEvent',
      },
    },
  },
  srq: { words: { srq: {}, event: { about: '{@link SrqEventType}', cpp: 'SrqEvent' } } },
  notified: {
    about: 'A request that waited for a CQ event was completed natively: unlink it.',
    words: { slot: {}, serial: {} },
  },
  capture: {
    about: 'Capture has ended: its file cannot be written.',
    words: { errno: { about: "The system's reason." } },
  },
  fatal: {
    about:
      'A device has failed: all of its users have to close it. The software HCA fails as a whole, when its ' +
      "engine's thread cannot go on.",
    words: { errno: { about: "The system's reason, 0 if there is none." } },
    more: {
      device: { about: 'Undefined: all devices of the HCA.', ts: 'bigint | undefined', from: 'undefined' },
    },
  },
  observed: {
    about: 'A process requests statistics; `SoftHca.answerObserver` replies.',
    words: { number: {} },
  },
  wireLost: {
    about:
      'UDP port 4791 could not be opened when something needed it, or was given up because a process of another version shares it; ' +
      '`SoftHca.wireProblem` says why.',
    words: {},
  },
  port: { about: 'Ports, addresses or P_Keys of a device of real HCAs have changed.', words: {} },
  gone: { about: 'The system takes a device of real HCAs away.', words: {} },
  cm: {
    about: "An event of librdmacm, which has the connections of real HCAs. The numbers are rdma_cm's.",
    words: {
      event: { about: 'rdma_cm_event_type' },
      status: { about: 'Below 0 an errno.', signed: true },
      id: {},
      listener: { about: "Of a request: the listener's id." },
      responderResources: {},
      initiatorDepth: {},
      retryCount: {},
      rnrRetryCount: {},
      srq: { flag: true },
      qpn: {},
      qkey: {},
      length: { about: 'Bytes of private data.' },
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
