import type {
  ConnectAttributes,
  ConnectSteps,
  HcaEvent,
  NativeHca,
  PathParameters,
  QpAttributeValues,
  QpCreateParameters,
} from './binding.js';
import { QpMask } from './binding.js';

/** INVALID_PARAMETER, as native code answers it. */
const invalidParameter = 0xc000_000d;

/** Commands that {@link hcaOfWords} gives the shape of {@link NativeHca}. */
type Commands =
  | 'createQp'
  | 'modifyQp'
  | 'connectQp'
  | 'setWill'
  | 'sendMad'
  | 'claimPort'
  | 'takeEvent'
  | 'queryQpState';

/**
 * The HCA as native code gives it: arguments and results of what every connection needs are numbers in `words` and bytes in
 * `bytes`, memory that is used again, for Node-API makes a string of each member's name that it reads.
 */
export interface RawHca extends Omit<NativeHca, Commands> {
  /** As `Words` of addon/hca_words.h. */
  readonly words: Float64Array;
  /** A path's source and destination, 16 bytes each, and a MAD. */
  readonly bytes: Uint8Array;
  readonly methods: WordMethods;
}

/** What is called for each connection: functions that know their HCA (addon/own_methods.h). */
export interface WordMethods {
  /** Words: parameters in the order of {@link QpCreateParameters}; afterwards QP and QPN. */
  createQpWords(): number;
  /** Words: attributes in the order of {@link QpAttributeValues}, those of the mask; and the path. */
  modifyQpWords(qp: number, mask: number): number;
  /** The same words, those of the three masks; the states are not looked at. */
  connectQpWords(qp: number, init: number, rtr: number, rts: number): number;
  /** The path and the MAD. */
  setWillWords(qp: number): number;
  sendMadWords(pkey: number): number;
  /** `one`: the address is at the place of a path's source. Words afterwards: claim and port. */
  claimPortWords(service: number, port: number, one: boolean): number;
  /** The kind of the next event, 0: there is none. Words and bytes: what it is about. */
  takeEventWords(alsoStrangers: boolean): number;
  queryQpState(qp: number): number;
}

/** Where things are in the words and bytes. */
const pathAt = 17;
const gidBytes = 16;
const madAt = 32;
const madBytes = 256;

/** Kinds of events: `HcaEvent::Kind` of addon/hca_events.h. */
const eventKind = { none: 0, mad: 1, qp: 2, cq: 3, srq: 4, notified: 5, capture: 6 } as const;

/** Gives native code's HCA the commands that take and make objects. */
export function hcaOfWords(raw: RawHca): NativeHca {
  const { words, bytes } = raw;
  const { createQpWords, modifyQpWords, connectQpWords, setWillWords } = raw.methods;
  const { sendMadWords, claimPortWords, takeEventWords, queryQpState } = raw.methods;
  const mad = bytes.subarray(madAt, madAt + madBytes);
  /** A number of 32 bits. As the array has it, V8 would make an object of it in each that keeps it. */
  const word = (at: number): number => words[at]! >>> 0;

  const putPath = (path: PathParameters | undefined): boolean => {
    if (path?.source?.length !== gidBytes || path.destination?.length !== gidBytes) return false;
    bytes.set(path.source, 0);
    bytes.set(path.destination, gidBytes);
    words[pathAt] = path.flowLabel;
    words[pathAt + 1] = path.trafficClass;
    words[pathAt + 2] = path.hopLimit;
    words[pathAt + 3] = path.scopeId;
    return true;
  };
  /** All but the path. What is missing becomes NaN, which is refused where the mask has it. */
  const putAttributes = (attributes: Partial<QpAttributeValues>): void => {
    const missing = Number.NaN;
    words[0] = attributes.state ?? missing;
    words[1] = attributes.currentState ?? missing;
    words[2] = attributes.access ?? missing;
    words[3] = attributes.pkeyIndex ?? missing;
    words[4] = attributes.port ?? missing;
    words[5] = attributes.qkey ?? missing;
    words[6] = attributes.pathMtu ?? missing;
    words[7] = attributes.destinationQpn ?? missing;
    words[8] = attributes.receivePsn ?? missing;
    words[9] = attributes.sendPsn ?? missing;
    words[10] = attributes.responderResources ?? missing;
    words[11] = attributes.initiatorDepth ?? missing;
    words[12] = attributes.minRnrTimer ?? missing;
    words[13] = attributes.ackTimeout ?? missing;
    words[14] = attributes.retryCount ?? missing;
    words[15] = attributes.rnrRetry ?? missing;
    words[16] = attributes.patience ?? missing;
  };
  const putMad = (given: Uint8Array): boolean => {
    if (given.length !== madBytes) return false;
    bytes.set(given, madAt);
    return true;
  };

  const commands: Pick<NativeHca, Commands> = {
    queryQpState,
    createQp(parameters: QpCreateParameters) {
      words[0] = parameters.pd;
      words[1] = parameters.sendCq;
      words[2] = parameters.receiveCq;
      words[3] = parameters.srq;
      words[4] = parameters.pkeyTable;
      words[5] = parameters.type;
      words[6] = parameters.signalAll ? 1 : 0;
      words[7] = parameters.ringAddress;
      words[8] = parameters.ringBytes;
      words[9] = parameters.sendEntries;
      words[10] = parameters.sendStride;
      words[11] = parameters.sendSge;
      words[12] = parameters.maxInline;
      words[13] = parameters.receiveEntries;
      words[14] = parameters.receiveStride;
      words[15] = parameters.receiveSge;
      words[16] = parameters.token;
      const status = createQpWords();
      return { status, qp: word(0), qpn: word(1) };
    },
    modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>) {
      putAttributes(attributes);
      if ((mask & QpMask.path) !== 0 && !putPath(attributes.path)) return invalidParameter;
      return modifyQpWords(qp, mask);
    },
    connectQp(qp: number, { init, rtr, rts }: ConnectSteps, attributes: ConnectAttributes) {
      putAttributes(attributes);
      return putPath(attributes.path) ? connectQpWords(qp, init, rtr, rts) : invalidParameter;
    },
    setWill(qp: number, path: PathParameters, mad: Uint8Array) {
      return putPath(path) && putMad(mad) ? setWillWords(qp) : invalidParameter;
    },
    sendMad(path: PathParameters, mad: Uint8Array, pkey = 0xffff) {
      return putPath(path) && putMad(mad) ? sendMadWords(pkey) : invalidParameter;
    },
    claimPort(service: number, address: Uint8Array | null, port: number) {
      if (address !== null) {
        if (address.length !== gidBytes) return { status: invalidParameter, claim: 0, port: 0 };
        bytes.set(address, 0);
      }
      const status = claimPortWords(service, port, address !== null);
      return { status, claim: word(0), port: word(1) };
    },
    takeEvent(alsoStrangers = true): HcaEvent | undefined {
      switch (takeEventWords(alsoStrangers)) {
        case eventKind.mad:
          return {
            type: 'mad',
            source: bytes.slice(0, gidBytes),
            destination: bytes.slice(gidBytes, madAt),
            scopeId: word(0),
            pkey: word(1),
            sender: word(2),
            stranger: word(3) === 0,
            mad,
          };
        case eventKind.qp:
          return { type: 'qp', qp: word(0), token: word(1), event: word(2), reason: word(3) };
        case eventKind.cq:
          return { type: 'cq', cq: word(0), event: word(1) };
        case eventKind.srq:
          return { type: 'srq', srq: word(0), event: word(1) };
        case eventKind.notified:
          return { type: 'notified', slot: word(0), serial: word(1) };
        case eventKind.capture:
          return { type: 'capture', errno: word(0) };
        default:
          return undefined;
      }
    },
  };
  return Object.assign(raw, commands);
}
