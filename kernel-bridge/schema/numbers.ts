/** Numbers that TypeScript and C++ both name, besides those of the rings. */
import { DEFAULT_PKEY, RnrRetry, WvDatagram } from '../ioctl/constants.js';
import { Status } from '../ioctl/status.js';
import { WvIoId } from '../ioctl/structs.js';
import type { Constant, NumberTable } from './describe.js';

const offsetOf = (field: string): number => WvIoId.fields.find(({ name }) => name === field)!.offset;

/** Payload of full packets between two instances that have agreed on it. */
const packetBytes = { shift: 16, step: 8, longest: 16_384 } as const;

/** Constants on their own: `BY_WIRE` in TypeScript, `nd::kByWire` in C++. */
export const single: Readonly<Record<string, Constant>> = {
  dialect: [
    6,
    'The version of all that two instances of this package say to each other beyond the standards: the frames of slots and ports, the ' +
      'rings and tables that processes of a host share, the statistics they ask each other for, the probes of the steering of the port, the ' +
      'extensions that REQ and REP agree on, and the hello of networkdirect/net. Two numbers that differ have nothing in common but RoCEv2: ' +
      'the names of local sockets contain this one (local_names.h), so that instances of two dialects on one host meet as two users do. ' +
      'CONTRIBUTING.md says when it changes.',
  ],
  slots: [254, 'Processes of one user on a host: a slot is a number below, the high 8 bits of a QPN.'],
  mostViews: [
    4096,
    'Views that a process has of memory of its peers at a time. Each is a mapping, of which Linux gives a process 65530 for all that it does.',
  ],
  byWire: [0xffff_ffff, "In place of a sender's slot: the packet arrived over UDP, from any sender."],
};

export const numbers: readonly NumberTable[] = [
  {
    about: 'NTSTATUS values of HCA commands and of the door.',
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
    about: "What a direct access does with a peer's memory.",
    ts: 'DirectOperation',
    cpp: { enum: 'DirectOperation' },
    members: {
      write: [0, "Copies bytes to the peer's memory."],
      read: [1, "Copies the peer's memory into the bytes."],
      fetchAdd: [2, 'Adds the 8 bytes to 8 of the peer; their previous value replaces them.'],
      compareExchange: [
        3,
        'If 8 bytes of the peer equal the first 8, they become the second 8; their previous value replaces the first.',
      ],
    },
  },
  {
    about: 'How a direct access ends.',
    ts: 'DirectResult',
    cpp: { enum: 'DirectResult' },
    members: {
      done: [0, 'It is done.'],
      notMapped: [1, "The peer's memory is not mapped in this process yet; the peer has been asked for it."],
      refused: [2, "The peer's key does not allow it, or this process can map no memory of the peer."],
      unknown: [3, 'The peer took its memory away meanwhile: an atomic operation may have been executed.'],
    },
  },
  {
    about: 'QP event numbers.',
    ts: 'QpEventType',
    cpp: { enum: 'QpEvent' },
    members: {
      communicationEstablished: [
        1,
        'The first packet has arrived in RTR: the peer regards the connection as established.',
      ],
      sendQueueDrained: [2, 'The queue pair has reached SQD, and nothing is in flight.'],
      fatal: [3, "The queue pair has moved itself to ERROR; the event's reason is the WV_WC_STATUS."],
      peerLost: [4, "As `fatal`: retries or keep-alive are spent, or the peer's process has died."],
      lastWqe: [5, 'In ERROR: the queue pair takes no more WQEs from its shared receive queue.'],
    },
  },
  {
    about: 'SRQ event numbers.',
    ts: 'SrqEventType',
    cpp: { enum: 'SrqEvent' },
    members: {
      limit: [1, 'Fewer receives are left than the limit; reported once for each time that it is set.'],
      fatal: [2, 'The queue has failed for good, as its ring was invalid.'],
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
      'Sides whose RNR handling is limited by time: bits of a QP attribute. Without them only the RNR retry count and the RNR NAK timer apply.',
    ts: 'RnrPatience',
    cpp: { namespace: 'rnrpatience' },
    members: {
      responder: [
        1,
        'The peer may retry RnrRetry.MOST times or for ever: RNR NAKs request longer and longer waits, which together reach the option ' +
          'rnrPatienceMs, and are withdrawn on the wire once a receive is posted.',
      ],
      requester: [2, 'Retries go on beyond a count of RnrRetry.MOST until that time has passed.'],
    },
  },
  {
    about:
      'Extensions that a peer accepts beyond the standard: bits of a QP attribute. Connection management sets them when both ends have ' +
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
        'Packets that are too long for the path, in fragments (transport/extensions/fragments.h).',
      ],
      answers: [
        8,
        'Selective retransmission of lost READ and ATOMIC responses (transport/extensions/lost_responses.h).',
      ],
      longPackets: [
        16,
        'Full packets have a length of their own, which is in the upper half of the word (PacketBytes).',
      ],
    },
  },
  {
    about:
      'With PeerExtensions.longPackets the upper half of the word (above `shift`) has the bytes of payload of a full packet: a multiple of ' +
      '`step`, so that no packet splits a word of 8 bytes which both sides have aligned, and at most `longest`. 0: the path MTU.',
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
    about: 'A request for an event is a WV_IO_ID: where its Id and its Data are, and its bytes.',
    cpp: { namespace: 'door', prefix: 'event', type: 'size_t' },
    members: { idAt: offsetOf('Id'), typeAt: offsetOf('Data'), bytes: WvIoId.size },
  },
  {
    about: 'The kinds of requests: open, close, an IOCTL, or cancelling an earlier request.',
    ts: 'ChannelMajor',
    cpp: { namespace: 'door', prefix: 'major' },
    members: { create: 0, close: 2, deviceControl: 14, cancel: 0x100 },
  },
  {
    about: 'Slot states, as in `NativeChannel.states`: what JavaScript sees in the state words.',
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
        'The output is too long for `answerBytes`: it is in the slot of `answer`, which the caller releases.',
      ],
      timedOut: [2, 'The kernel was asked to cancel the request; its answer is lost.'],
      noSlot: [3, 'All slots are taken.'],
      stopped: [
        4,
        'V8 was asked to stop this thread (`worker.terminate()`, `process.exit()`, the timeout of a vm script), and stops it as soon as ' +
          'native code has returned; the kernel was asked to cancel a `NativeChannel.call`.',
      ],
    },
  },
];
