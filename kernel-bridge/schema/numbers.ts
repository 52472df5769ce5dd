/** Numbers with names in both TypeScript and C++, except those of the rings. */
import { DEFAULT_PKEY, RnrRetry, WvDatagram } from '../ioctl/constants.js';
import { Status } from '../ioctl/status.js';
import { WvIoId } from '../ioctl/structs.js';
import type { Constant, NumberTable } from './describe.js';

const offsetOf = (field: string): number => WvIoId.fields.find(({ name }) => name === field)!.offset;

/** Payload of full packets between two instances that have agreed on a size. */
const packetBytes = { shift: 16, step: 8, longest: 16_384 } as const;

/** Individual constants: `BY_WIRE` in TypeScript, `nd::kByWire` in C++. */
export const single: Readonly<Record<string, Constant>> = {
  dialect: [
    6,
    'The version of everything that two instances of this package exchange beyond the standards: the frames of slots and ports, the ' +
      'rings and tables shared by processes on a host, statistics, the probes of the port steering, the ' +
      'extensions negotiated in REQ and REP, and the hello of networkdirect/net. Instances with different versions have only RoCEv2 in common: ' +
      'the names of local sockets contain the version (local_names.h), so that two dialects on one host are separated like two users. ' +
      'CONTRIBUTING.md says when it changes.',
  ],
  slots: [
    254,
    'Maximum number of processes of one user on a host. Their slots are numbers below this; a slot is the high 8 bits of a QPN.',
  ],
  mostViews: [
    4096,
    'Maximum number of views of peer memory that a process has at a time. Each is a mapping; Linux limits a process to 65530 mappings in total.',
  ],
  byWire: [0xffff_ffff, "Used instead of a sender's slot for packets that arrived over UDP."],
};

export const numbers: readonly NumberTable[] = [
  {
    about: 'NTSTATUS values of HCA commands and of the request channel.',
    cpp: { enum: 'Status' },
    flags: true,
    members: {
      success: Status.SUCCESS,
      pending: Status.PENDING,
      bufferOverflow: Status.BUFFER_OVERFLOW,
      deviceBusy: Status.DEVICE_BUSY,
      unsuccessful: Status.UNSUCCESSFUL,
      accessViolation: Status.ACCESS_VIOLATION,
      invalidHandle: Status.INVALID_HANDLE,
      invalidParameter: Status.INVALID_PARAMETER,
      invalidDeviceRequest: Status.INVALID_DEVICE_REQUEST,
      noMemory: Status.NO_MEMORY,
      accessDenied: Status.ACCESS_DENIED,
      insufficientResources: Status.INSUFFICIENT_RESOURCES,
      ioTimeout: Status.IO_TIMEOUT,
      notSupported: Status.NOT_SUPPORTED,
      tooManyOpenedFiles: Status.TOO_MANY_OPENED_FILES,
      cancelled: Status.CANCELED,
      invalidAddress: Status.INVALID_ADDRESS,
      invalidDeviceState: Status.INVALID_DEVICE_STATE,
      tooManyAddresses: Status.TOO_MANY_ADDRESSES,
      addressAlreadyExists: Status.ADDRESS_ALREADY_EXISTS,
      networkUnreachable: Status.NETWORK_UNREACHABLE,
      hostUnreachable: Status.HOST_UNREACHABLE,
      connectionAborted: Status.CONNECTION_ABORTED,
      deviceRemoved: Status.DEVICE_REMOVED,
    },
  },
  {
    about: "Operations of a direct access to a peer's memory.",
    ts: 'DirectOperation',
    cpp: { enum: 'DirectOperation' },
    members: {
      write: [0, "Copies local bytes to the peer's memory."],
      read: [1, "Copies the peer's memory to local bytes."],
      fetchAdd: [
        2,
        'Adds 8 local bytes to 8 bytes of the peer, and returns the previous value in their place.',
      ],
      compareExchange: [
        3,
        'If 8 bytes of the peer equal the first 8 local bytes, replaces them by the second 8. Their previous value replaces the first 8.',
      ],
    },
  },
  {
    about: 'Results of a direct access.',
    ts: 'DirectResult',
    cpp: { enum: 'DirectResult' },
    members: {
      done: [0, 'The access was executed.'],
      notMapped: [
        1,
        "The peer's memory is not mapped in this process yet; the mapping was requested from the peer.",
      ],
      refused: [
        2,
        "The peer's key does not allow the access, or this process cannot map memory of the peer.",
      ],
      unknown: [
        3,
        'The peer withdrew its memory during the access: an atomic operation may have been executed.',
      ],
    },
  },
  {
    about: 'QP event numbers.',
    ts: 'QpEventType',
    cpp: { enum: 'QpEvent' },
    members: {
      communicationEstablished: [
        1,
        'The first packet has arrived in RTR: for the peer, the connection is established.',
      ],
      sendQueueDrained: [2, 'The queue pair has reached SQD, with nothing in flight.'],
      fatal: [3, 'The queue pair has moved to ERROR on its own; the reason of the event is a WV_WC_STATUS.'],
      peerLost: [
        4,
        "As `fatal`, because retries or keep-alive probes are exhausted, or the peer's process has died.",
      ],
      lastWqe: [5, 'The queue pair is in ERROR and no longer takes WQEs from its shared receive queue.'],
    },
  },
  {
    about: 'SRQ event numbers.',
    ts: 'SrqEventType',
    cpp: { enum: 'SrqEvent' },
    members: {
      limit: [1, 'Fewer receives are left than the limit; reported once each time the limit is set.'],
      fatal: [2, 'The queue has failed permanently because its ring was invalid.'],
    },
  },
  {
    about: 'CQ event numbers.',
    ts: 'CqEventType',
    cpp: { enum: 'CqEvent' },
    members: {
      completion: [1, 'The requested event has occurred.'],
      overrun: [2, 'The CQ has overrun and failed; its QPs are in ERROR.'],
    },
  },
  {
    about:
      'Sides with a time limit for RNR retries: bits of a QP attribute. Without a bit, only the RNR retry count and the RNR NAK timer apply.',
    ts: 'RnrTimeout',
    cpp: { namespace: 'rnrtimeout' },
    members: {
      responder: [
        1,
        'The peer may retry RnrRetry.MOST times or without limit: RNR NAKs request increasing waits, which add up to the option ' +
          'rnrTimeoutMs, and are withdrawn on the wire once a receive is posted.',
      ],
      requester: [2, 'Retries continue beyond a count of RnrRetry.MOST until that time has passed.'],
    },
  },
  {
    about:
      'Extensions beyond the standard that a peer supports: bits of a QP attribute. Connection management sets them when both peers have ' +
      'agreed; other peers receive standard packets only.',
    ts: 'PeerExtensions',
    cpp: { namespace: 'extensions' },
    members: {
      longWindow: [1, 'More PSNs in flight than the option `window`.'],
      recovery: [
        2,
        'Acknowledgements that report packets received behind a gap (transport/extensions/selective_ack.h).',
      ],
      fragments: [
        4,
        'Packets longer than the path allows, sent as fragments (transport/extensions/fragments.h).',
      ],
      lostResponses: [
        8,
        'Selective retransmission of lost READ and ATOMIC responses (transport/extensions/lost_responses.h).',
      ],
      longPackets: [
        16,
        'Full packets of an agreed length, which is in the upper half of the word (PacketBytes).',
      ],
    },
  },
  {
    about:
      'With PeerExtensions.longPackets, the upper half of the word (above `shift`) is the payload of a full packet in bytes: at most `longest`, and a multiple of ' +
      '`step`, so that a packet never splits an 8-byte word that is aligned on both sides. 0: the path MTU.',
    ts: 'PacketBytes',
    cpp: { namespace: 'extensions', prefix: 'packetBytes' },
    members: packetBytes,
  },
  {
    about: 'Numbers of the transport that `ioctl/constants.ts` defines.',
    cpp: { namespace: 'wire' },
    members: {
      rnrForEver: [RnrRetry.FOR_EVER, 'As an RNR retry count.'],
      mostRnrRetries: RnrRetry.MOST,
      multicastQpn: WvDatagram.MULTICAST_QPN,
    },
  },
  {
    about: 'The P_Key of the default partition.',
    cpp: { namespace: 'wire', type: 'uint16_t' },
    flags: true,
    members: { defaultPkey: DEFAULT_PKEY },
  },
  {
    about: 'Layout of the request for an event, a WV_IO_ID: offsets of Id and Data, and its size.',
    cpp: { namespace: 'door', prefix: 'event', type: 'size_t' },
    members: { idAt: offsetOf('Id'), typeAt: offsetOf('Data'), bytes: WvIoId.size },
  },
  {
    about: 'Kinds of requests: open, close, an IOCTL, or the cancellation of an earlier request.',
    ts: 'ChannelMajor',
    cpp: { namespace: 'door', prefix: 'major' },
    members: { create: 0, close: 2, deviceControl: 14, cancel: 0x100 },
  },
  {
    about: 'Slot states, as JavaScript reads them in `NativeChannel.states`.',
    ts: 'SlotState',
    cpp: { namespace: 'door', prefix: 'slot', type: 'int32_t' },
    members: { free: 0, pending: 1, done: 2 },
  },
  {
    about: 'Outcomes of `NativeChannel.call`.',
    ts: 'CallOutcome',
    cpp: { namespace: 'door', prefix: 'call' },
    members: {
      done: [0, 'Status, information and output are in `answer` and `answerBytes`.'],
      long: [
        1,
        'The output is too long for `answerBytes`; it is in the slot of `answer`, which the caller releases.',
      ],
      timedOut: [2, 'The kernel was requested to cancel the request; its output is lost.'],
      noSlot: [3, 'All slots are in use.'],
      stopped: [
        4,
        'V8 was requested to stop this thread (`worker.terminate()`, `process.exit()`, the timeout of a vm script), and stops it as soon as ' +
          'native code has returned; the kernel was requested to cancel a pending `NativeChannel.call`.',
      ],
    },
  },
];
