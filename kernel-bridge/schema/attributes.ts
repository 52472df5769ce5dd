/** Parameters, attributes and limits of HCA objects that are passed as numbers. */
import type { RecordForm } from './describe.js';

const U24 = 0xff_ffff;
/** A memory address or length. */
const memory = { type: 'u64' } as const;

/**
 * Layout of the numbers and bytes of commands and events. The four numbers of a path follow the others; its two GIDs
 * are the first bytes. The last word is the owner of an event.
 */
export const words = { count: 24, pathAt: 18, ownerAt: 22, gidBytes: 16, madAt: 32, madBytes: 256 };

export const path: RecordForm = {
  about: 'The path of packets. GIDs are 16 bytes.',
  ts: 'PathParameters',
  cpp: 'Path',
  fields: {
    source: { about: "The local GID, from the port's table.", type: 'gid' },
    destination: { about: 'The GID of the peer or the group.', type: 'gid' },
    flowLabel: {
      about: 'The flow label of IPv6 headers, 20 bits; 0: chosen by the operating system.',
      most: 0xf_ffff,
    },
    trafficClass: { about: "IPv4's TOS or IPv6's traffic class, 8 bits.", most: 0xff },
    hopLimit: { about: "IPv4's TTL or IPv6's hop limit, 8 bits; 0: 64.", most: 0xff },
    scopeId: {
      about:
        'Index of the interface, for IPv6 link-local destinations and for multicast groups; 0 otherwise. If it is 0, an address handle for a ' +
        'group derives it from its source.',
    },
  },
};

export const attributes: readonly RecordForm[] = [
  {
    about: 'Parameters of a new queue pair.',
    ts: 'QpCreateParameters',
    cpp: 'QpCreate',
    put: 'putQpCreate',
    fields: {
      pd: {},
      sendCq: {},
      receiveCq: {},
      srq: {},
      pkeyTable: { about: 'The P_Key table that `pkeyIndex` refers to; 0: a table with 0xffff only.' },
      type: { about: '0 RC, 1 UC, 3 UD (WV_QP_TYPE).' },
      signalAll: { about: 'WV_QP_SIGNAL_SENDS.', type: 'flag' },
      ringAddress: { about: 'Address of the ring, within a ring allocation.', ...memory },
      ringBytes: memory,
      sendEntries: { about: 'A power of two.' },
      sendStride: { about: 'Size of a WQE, in bytes.' },
      sendSge: {},
      maxInline: {},
      receiveEntries: { about: 'A power of two.' },
      receiveStride: { about: 'Size of a WQE, in bytes.' },
      receiveSge: {},
      token: { about: 'Returned in every CQE.' },
    },
  },
  {
    about: 'Parameters of a new shared receive queue.',
    ts: 'SrqCreateParameters',
    cpp: 'SrqCreate',
    put: 'putSrqCreate',
    fields: {
      pd: {},
      ringAddress: memory,
      ringBytes: memory,
      entries: { about: 'A power of two.' },
      stride: { about: 'Size of a WQE, in bytes.' },
      sge: {},
    },
  },
  {
    about: 'Attributes of a shared receive queue that can be modified.',
    ts: 'SrqAttributeValues',
    cpp: 'SrqAttributeWords',
    put: 'putSrqAttributes',
    mask: { ts: 'SrqMask', cpp: 'srqmask', bits: { entries: 1, limit: 2 } },
    fields: {
      entries: { about: 'Number of WQEs. Requires a new ring; nothing may be posted during the resize.' },
      ringAddress: { bit: 'entries', ...memory },
      ringBytes: { bit: 'entries', ...memory },
      limit: { about: 'One limit event is reported when fewer WQEs are left; 0: no event.' },
    },
  },
  {
    about: 'Attributes of a queue pair (IBA 1 §11.2.5.2); MTUs in bytes, timeouts as codes.',
    ts: 'QpAttributeValues',
    cpp: 'QpAttributeWords',
    put: 'putAttributes',
    mask: {
      ts: 'QpMask',
      cpp: 'qpmask',
      bits: {
        state: 1,
        access: 2,
        pkeyIndex: 4,
        port: 8,
        qkey: 0x10,
        path: 0x20,
        pathMtu: 0x40,
        destinationQpn: 0x80,
        receivePsn: 0x100,
        responderResources: 0x200,
        minRnrTimer: 0x400,
        ackTimeout: 0x800,
        retryCount: 0x1000,
        rnrRetry: 0x2000,
        sendPsn: 0x4000,
        initiatorDepth: 0x8000,
        currentState: 0x10000,
        drainNotify: [0x20000, 'With the state SQD: requests the event `sendQueueDrained`.'],
        rnrTimeout: 0x40000,
        extensions: 0x80000,
      },
    },
    fields: {
      state: { about: 'The current or requested WV_QP_STATE.', most: 6 },
      currentState: {
        about: 'The WV_QP_STATE that the caller assumes; the modify fails in any other.',
        most: 6,
      },
      type: { about: 'WV_QP_TYPE, as created.', query: true },
      qpn: { about: 'The queue pair number (QPN), 24 bits.', query: true },
      access: { about: 'WV_ACCESS_* values below 0x100: the operations permitted to the peer.', most: 0x1f },
      pkeyIndex: { about: "The index of the P_Key in the port's table.", most: 0xffff },
      port: { about: 'The local port; each device has port 1 only.', most: 0xff },
      qkey: {
        about:
          'The Q_Key; UD only. Values with the high bit set are controlled: QP1 has one, and only the kernel may assign one to a QP (IBA 1 §10.2.5).',
      },
      path: { about: 'The path to the peer; connected queue pairs only.', type: 'path' },
      pathMtu: {
        about: 'Payload of a full packet, in bytes: 256, 512, 1024, 2048 or 4096.',
        most: 4096,
      },
      destinationQpn: { about: "The peer's queue pair number, 24 bits.", most: U24 },
      receivePsn: { about: 'The expected PSN of the first packet received, 24 bits.', most: U24 },
      sendPsn: { about: 'The PSN of the first packet sent, 24 bits.', most: U24 },
      responderResources: {
        about: "Maximum number of the peer's RDMA Reads and atomics served at a time.",
        most: 0xffff,
      },
      initiatorDepth: {
        about: 'Maximum number of outstanding RDMA Reads and atomics of this side.',
        most: 0xffff,
      },
      minRnrTimer: {
        about: 'The wait that an RNR NAK requests of the peer, a code of 5 bits (IBA 1 §9.7.5.2.8).',
        most: 31,
      },
      ackTimeout: {
        about: 'How long to wait for an acknowledgement, 5 bits: 4.096 µs × 2^code; 0 is infinite.',
        most: 31,
      },
      retryCount: { about: 'Retries without an acknowledgement, 0 to 7.', most: 7 },
      rnrRetry: { about: 'Retries when the peer has no receive posted, 0 to 6; 7: unlimited.', most: 7 },
      rnrTimeout: {
        about: 'RnrTimeout bits. Without a bit, the respective retry number above applies unchanged.',
        most: 3,
      },
      extensions: {
        about:
          'PeerExtensions bits. The upper half is the payload of a full packet in bytes, or 0 for that of the path MTU.',
      },
    },
  },
  {
    about: 'Limits of every device of an HCA; the defaults are those of the software HCA.',
    ts: 'HcaLimits',
    cpp: 'HcaLimits',
    fields: {
      maxQp: { default: 65_000 },
      maxCq: { default: 65_536 },
      maxPd: { default: 65_536 },
      maxMr: { default: 2 ** 20 },
      maxMw: { default: 2 ** 20 },
      maxSrq: { default: 65_536 },
      maxSrqWr: { default: 16_384 },
      maxSrqSge: { default: 32 },
      maxQpWr: { default: 16_384 },
      maxSge: { default: 32 },
      maxReadSge: { about: 'SGEs of an RDMA Read.', default: 32 },
      maxCqEntries: { default: 2 ** 20 },
      maxInline: { default: 1024 },
      maxReadDepth: { about: 'Responder resources and initiator depth of a QP.', default: 128 },
      maxMrSize: { default: 2 ** 40, ...memory },
      maxAh: { about: 'Address handles.', default: 65_536 },
      maxGroups: { about: 'Multicast groups, for each interface.', default: 4096 },
      maxGroupQps: { about: 'QPs attached to one group.', default: 1024 },
      maxAttached: { about: 'Attachments of all groups and QPs.', default: 65_536 },
      maxPkeys: { about: 'Entries of a P_Key table.', default: 4096 },
    },
  },
];
